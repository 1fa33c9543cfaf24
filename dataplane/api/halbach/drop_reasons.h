/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drop_reasons.h: every way a packet can end inside the dataplane, as one list.
 *
 * X(ENUM, "name", "description for a person"). The enum, the names in counters and metrics, the
 * texts of `halbachctl drops` and the packet tests all come from here. Names are an interface: add
 * at the end, never rename.
 */
#ifndef HB_API_DROP_REASONS_H
#define HB_API_DROP_REASONS_H

/* clang-format off */
#define HB_DROP_REASONS(X) \
    X(RUNT,              "runt",              "frame shorter than its own headers") \
    X(ETHERTYPE,         "ethertype",         "not IPv4, not IPv6, or VLAN tags nested too deep") \
    X(IPV4_HEADER,       "ipv4_header",       "bad IPv4 version, header length or total length") \
    X(IPV4_CHECKSUM,     "ipv4_checksum",     "IPv4 header checksum is wrong") \
    X(IPV6_HEADER,       "ipv6_header",       "bad IPv6 version or payload length") \
    X(IPV6_EXTENSION,    "ipv6_extension",    "IPv6 extension headers malformed or nested too deep") \
    X(FRAGMENT,          "fragment",          "fragment for a VIP that could not be balanced") \
    X(TTL_EXPIRED,       "ttl_expired",       "TTL or hop limit was 0") \
    X(MARTIAN,           "martian",           "source or destination address that may not be forwarded") \
    X(L4_HEADER,         "l4_header",         "TCP, UDP or SCTP header cut short or with lying lengths") \
    X(PROTOCOL,          "protocol",          "for a VIP, but not TCP, UDP or SCTP") \
    X(NO_SERVICE,        "no_service",        "for a VIP, but no service has this protocol and port") \
    X(NOT_VIP,           "not_vip",           "not for a VIP and no punt port to hand it to the kernel") \
    X(NO_GENERATION,     "no_generation",     "control has not published anything yet") \
    X(NO_BACKEND,        "no_backend",        "the pool has no usable backend") \
    X(OVERSIZE,          "oversize",          "does not fit the link once encapsulated") \
    X(NO_HEADROOM,       "no_headroom",       "no room in front of the packet for the tunnel header") \
    X(TX_FULL,           "tx_full",           "the transmit queue did not take it, though the port has a link") \
    X(PUNT_FULL,         "punt_full",         "the punt port did not take it") \
    X(BROADCAST,         "broadcast",         "for a VIP, but sent to a link-layer broadcast or group address") \
    X(UDP_LITE,          "udp_lite",          "UDP-Lite for a VIP, which is not balanced") \
    X(FRAGMENT_NO_FIRST, "fragment_no_first", "fragment whose first one did not come in time") \
    X(FRAGMENT_FULL,     "fragment_full",     "no room to remember or to hold a fragment") \
    X(FRAGMENT_OVERLAP,  "fragment_overlap",  "fragment that overlaps another of its datagram or contradicts its end") \
    X(ICMP_TYPE,         "icmp_type",         "ICMP message to a VIP that a balancer has no use for") \
    X(ICMP_QUOTE,        "icmp_quote",        "ICMP error whose quoted packet is cut short or can't be read") \
    X(ICMP_NO_FLOW,      "icmp_no_flow",      "ICMP error about a packet that no service sent") \
    X(ICMP_CHECKSUM,     "icmp_checksum",     "ICMP checksum is wrong") \
    X(ICMP_LIMIT,        "icmp_limit",        "ICMP above its rate limit") \
    X(ICMP_MTU,          "icmp_mtu",          "packet-too-big message with an MTU below the floor") \
    X(ECHO,              "echo",              "echo request to a VIP; the setting is to drop them") \
    X(DENIED,            "denied",            "source address is denied by the service") \
    X(LIMIT_NEW_FLOWS,   "limit_new_flows",   "new flow above the rate that the service allows") \
    X(LIMIT_FLOWS,       "limit_flows",       "new flow above the number that the service allows") \
    X(PUNT_LIMIT,        "punt_limit",        "for the kernel, above the rate limit of that way") \
    X(NAT_NO_SESSION,    "nat_no_session",    "packet of full NAT, either way, that belongs to no known flow") \
    X(NAT_PORTS,         "nat_ports",         "no source port was free for a new flow") \
    X(NAT_PROTOCOL,      "nat_protocol",      "packet that address translation can't carry") \
    X(RESET,             "reset",             "TCP flow that its backend serves no more, ended by reset; its ends were told") \
    X(LINK_DOWN,         "link_down",         "the transmit queue did not take it, and the port has no link") \
    X(NO_MBUF,           "no_mbuf",           "no buffer was free for a copy or an answer") \
    X(NAT_NO_WAY,        "nat_no_way",        "answer of a backend while no route to clients is known") \
    X(NAT_SESSIONS,      "nat_sessions",      "all sessions of full NAT are in use by established flows") \
    X(FRAGMENT_DUPLICATE,"fragment_duplicate","fragment whose bytes were all there already") \
    X(FRAGMENT_REFUSED,  "fragment_refused",  "fragment of a datagram of which another one overlapped") \
    X(FRAGMENT_TINY,     "fragment_tiny",     "first fragment without the whole header behind IP") \
    X(FRAGMENT_LENGTH,   "fragment_length",   "fragment that is empty, too long, or no multiple of eight bytes")
/* clang-format on */

#define HB_DROP_ENUM(id, name, text) HB_DROP_##id,
enum hb_drop_reason { HB_DROP_REASONS(HB_DROP_ENUM) HB_DROP_COUNT };
#undef HB_DROP_ENUM

/* The counters region has room for this many, so that a new reason does not move other fields. */
#define HB_DROPS_MAX 64
_Static_assert(HB_DROP_COUNT <= HB_DROPS_MAX, "more drop reasons than the counters have room for");

static inline const char *hb_drop_name(unsigned reason)
{
#define HB_DROP_NAME(id, name, text) name,
    static const char *const names[] = { HB_DROP_REASONS(HB_DROP_NAME) };
#undef HB_DROP_NAME
    return reason < HB_DROP_COUNT ? names[reason] : "unknown";
}

static inline const char *hb_drop_text(unsigned reason)
{
#define HB_DROP_TEXT(id, name, text) text,
    static const char *const texts[] = { HB_DROP_REASONS(HB_DROP_TEXT) };
#undef HB_DROP_TEXT
    return reason < HB_DROP_COUNT ? texts[reason] : "a reason of a newer dataplane";
}

#endif
