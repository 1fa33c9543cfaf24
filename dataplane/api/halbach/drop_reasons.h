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
    X(FRAGMENT,          "fragment",          "fragment for a VIP (fragments are not balanced yet)") \
    X(TTL_EXPIRED,       "ttl_expired",       "TTL or hop limit was 0") \
    X(MARTIAN,           "martian",           "source or destination address that may not be forwarded") \
    X(L4_HEADER,         "l4_header",         "TCP or UDP header cut short or with lying lengths") \
    X(PROTOCOL,          "protocol",          "for a VIP, but neither TCP nor UDP") \
    X(NO_SERVICE,        "no_service",        "for a VIP, but no service has this protocol and port") \
    X(NOT_VIP,           "not_vip",           "not for a VIP and no punt port to hand it to the kernel") \
    X(NO_GENERATION,     "no_generation",     "control has not published anything yet") \
    X(NO_BACKEND,        "no_backend",        "the pool has no usable backend") \
    X(OVERSIZE,          "oversize",          "does not fit the link once encapsulated") \
    X(NO_HEADROOM,       "no_headroom",       "no room in front of the packet for the tunnel header") \
    X(TX_FULL,           "tx_full",           "the transmit queue did not take it") \
    X(PUNT_FULL,         "punt_full",         "the punt port did not take it")
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
