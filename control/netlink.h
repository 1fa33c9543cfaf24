/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * netlink.h: the few rtnetlink(7) messages that next hops need, built and parsed.
 *
 * Pure: bytes in, structs out, no socket. Everything read is checked against the message's length,
 * so a short or odd message is refused and never misread. Formats: linux/rtnetlink.h,
 * linux/neighbour.h.
 */
#ifndef HB_CONTROL_NETLINK_H
#define HB_CONTROL_NETLINK_H

#include <stdbool.h>
#include <stdint.h>

#include <linux/netlink.h>

#include "address.h"

/* An interface, from RTM_NEWLINK or RTM_DELLINK. */
struct hb_netlink_link {
    uint32_t ifindex;
    bool gone; /* RTM_DELLINK: the fields below are not set */
    bool up;   /* administratively; a missing carrier is a matter for health checks */
    bool ethernet;
    char name[16];
    uint8_t mac[6];
    uint32_t mtu; /* bytes */
    /* Of a VLAN interface: whose frames it tags, and how. `lower` is 0 for all others, and where
     * the lower interface is in another network namespace. */
    uint32_t lower;
    uint16_t vlan_type; /* EtherType of the tag: 0x8100, 0x88a8 */
    uint16_t vlan_id;
};

/* A neighbour, from RTM_NEWNEIGH or RTM_DELNEIGH. */
struct hb_netlink_neighbour {
    uint32_t ifindex;
    struct hb_address address;
    bool gone;      /* RTM_DELNEIGH */
    uint16_t state; /* NUD_*, 0 when gone */
    bool has_mac;
    uint8_t mac[6]; /* when has_mac */
};

/* The kernel's answer to "which way to `destination`?". */
struct hb_netlink_route {
    struct hb_address destination;
    int error;        /* 0, or why there is no route: ENETUNREACH, EHOSTUNREACH, EACCES, ... */
    uint8_t type;     /* RTN_*, when there is no error */
    uint32_t ifindex; /* 0: none was given */
    struct hb_address gateway; /* family 0: the destination is on the link */
    struct hb_address source;  /* family 0: the kernel has none */
    uint32_t mtu;              /* RTAX_MTU, 0: none */
};

/* Each parser returns 0, -ENOMSG when the message is of no interest here (an entry of a bridge, a
 * proxy entry, another family, news about part of a link), or -EBADMSG when it is malformed. */
int hb_netlink_parse_link(const struct nlmsghdr *message, struct hb_netlink_link *link);
int hb_netlink_parse_neighbour(const struct nlmsghdr *message,
                               struct hb_netlink_neighbour *neighbour);
int hb_netlink_parse_route(const struct nlmsghdr *message, struct hb_netlink_route *route);

/* An NLMSG_ERROR quotes the request it answers. Returns the error as a positive number (0 for a
 * plain acknowledgement) and in `request` the quoted message, or NULL when it is not there whole.
 */
int hb_netlink_parse_error(const struct nlmsghdr *message, const struct nlmsghdr **request);

/* Each builder writes one request into `buffer` of at least HB_NETLINK_REQUEST_MAX bytes, aligned
 * as a struct nlmsghdr, and returns it; its nlmsg_len is its size, a multiple of NLMSG_ALIGNTO. */
#define HB_NETLINK_REQUEST_MAX 64

/* Asks for all links (RTM_GETLINK) or all neighbours of both families (RTM_GETNEIGH). */
struct nlmsghdr *hb_netlink_build_dump(void *buffer, uint16_t type, uint32_t seq);

/* Asks for the route to `destination`, as the kernel itself would take it. */
struct nlmsghdr *hb_netlink_build_get_route(void *buffer, const struct hb_address *destination,
                                            uint32_t seq);

/* Asks the kernel to resolve a neighbour, or to confirm one that it has not heard of for a while.
 * Not for permanent entries: since Linux 5.16 this turns them into dynamic ones. Needs
 * CAP_NET_ADMIN. Only a failure is answered. */
struct nlmsghdr *hb_netlink_build_use_neighbour(void *buffer, uint32_t ifindex,
                                                const struct hb_address *address, uint32_t seq);

#endif
