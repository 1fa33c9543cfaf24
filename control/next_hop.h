/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_hop.h: how to reach an address, learned from the kernel.
 *
 * For each watched address the kernel is asked for its route (RTM_GETROUTE, so policy rules and
 * metrics count), which gives interface, gateway and preferred source; the neighbour table gives
 * the gateway's MAC address. Both are watched (RTNLGRP_*), so changes arrive as they happen; a full
 * re-read after an overrun (ENOBUFS) makes lost messages harmless. A neighbour that is missing or
 * failed is probed by asking the kernel to resolve it (NTF_USE), with growing pauses. A MAC address
 * once learned is kept until another one is learned: a stale or failed neighbour is a matter for
 * health checks, not a reason to stop. Runs on control's event loop.
 */
#ifndef HB_CONTROL_NEXT_HOP_H
#define HB_CONTROL_NEXT_HOP_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"

struct event_base;
struct hb_next_hops;

struct hb_next_hop {
    bool resolved;    /* everything below is known */
    uint32_t ifindex; /* of the outgoing interface */
    char ifname[16];
    uint32_t port_ifindex; /* of the interface that puts it on the wire: of a VLAN the lower one */
    uint16_t vlan_type;    /* EtherType of the tag it gets there; 0: none */
    uint16_t vlan_id;
    uint32_t mtu;          /* of the route or the interface */
    uint8_t source_mac[6]; /* of the interface */
    uint8_t gateway_mac[6];
    struct hb_address gateway; /* the address itself when it is on the link */
    struct hb_address source;  /* the kernel's preferred source */
    char problem[96];          /* when not resolved: "no route to 198.51.100.11", for a person */
};

/* Called from the event loop when the next hop of a watched address changed in any field. May watch
 * and unwatch, but not close. */
typedef void (*hb_next_hop_changed)(void *context, const struct hb_address *address);

/* Opens netlink and reads links and neighbours. NULL with errno on failure. */
struct hb_next_hops *hb_next_hops_open(struct event_base *base, hb_next_hop_changed changed,
                                       void *context);
void hb_next_hops_close(struct hb_next_hops *hops);

/* Starts and ends watching an address; counted, so each watch needs its unwatch. */
int hb_next_hops_watch(struct hb_next_hops *hops, const struct hb_address *address);
void hb_next_hops_unwatch(struct hb_next_hops *hops, const struct hb_address *address);

/* What is known now; false when the address is not watched. */
bool hb_next_hops_get(const struct hb_next_hops *hops, const struct hb_address *address,
                      struct hb_next_hop *hop);

#endif
