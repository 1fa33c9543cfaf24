/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_nat.h: the rewrite of a backend that NAT or full NAT reaches, and the way to clients.
 *
 * Pure; one thread.
 */
#ifndef HB_CONTROL_REWRITE_NAT_H
#define HB_CONTROL_REWRITE_NAT_H

#include "config_nat.h"
#include "rewrite.h"

/* As hb_rewrite_make. */
bool hb_rewrite_make_nat(const struct hb_address *to, const struct hb_next_hop *hop,
                         enum hb_forwarding forwarding, const struct hb_nat_config *nat,
                         struct hb_port_list ports, struct hb_rewrite *rewrite, char *problem,
                         size_t size);

/* The way to clients by the route to `to`. False with `problem` when there is none: *way is as it
 * was. */
bool hb_client_hop_make(const struct hb_address *to, const struct hb_next_hop *hop,
                        struct hb_port_list ports, struct hb_client_hop *way, char *problem,
                        size_t size);

#endif
