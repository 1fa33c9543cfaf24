/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rewrite_check.h: whether the ready-made headers of a backend record are what the packet path
 * takes for granted when it copies and patches them.
 *
 * Sources: RFC 791 and RFC 8200 for the headers, IEEE 802.1Q for the tag. Pure; any thread.
 */
#ifndef HB_DATAPLANE_REWRITE_CHECK_H
#define HB_DATAPLANE_REWRITE_CHECK_H

#include <stdbool.h>
#include <stddef.h>

#include "halbach/generation.h"

/* Looks at backend->rewrite, whose size is not 0. Returns false with what is wrong in `problem`. */
bool hb_rewrite_check(const struct hb_backend_record *backend, char *problem, size_t problem_size);

/* The same for forwarding by NAT and full NAT: an Ethernet header, and the backend's address behind
 * it. Called by the above. */
bool hb_rewrite_check_nat(const struct hb_backend_record *backend, char *problem,
                          size_t problem_size);

#endif
