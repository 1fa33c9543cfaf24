/* SPDX-License-Identifier: BSD-3-Clause */
/* See nat_client.h. */
#include "nat_client.h"

#include <string.h>

#include "nat_checksum.h"
#include "proxy_v2.h"
#include "stages.h"
#include "worker_state.h"

enum {
    TCP_BYTES = 20,
    UDP_BYTES = 8,
    TCP_SEQUENCE = 4,
    TCP_ACK_NUMBER = 8,
    TCP_OFFSET = 12,
    TCP_FLAGS = 13,
    FLAG_SYN = 2,
    FLAG_RST = 4,
    FLAG_ACK = 16,
    OPTION_END = 0,
    OPTION_NOP = 1,
    OPTION_MSS = 2,
    OPTION_SACK = 5,
    OPTION_CLIENT = 254,
    OPTION_CLIENT_28 = 28,
    OPTIONS_MAX = 40,
};

static uint32_t load_be32(const uint8_t *at)
{
    return (uint32_t)at[0] << 24 | (uint32_t)at[1] << 16 | (uint32_t)at[2] << 8 | at[3];
}

static void store_be32(uint8_t *at, uint32_t value)
{
    for (int i = 0; i < 4; i++)
        at[i] = (uint8_t)(value >> (24 - 8 * i));
}

/* As a word of the sum. */
static uint16_t word_of(uint32_t length)
{
    return (uint16_t)((length & 0xff) << 8 | (length >> 8 & 0xff));
}

static uint32_t tcp_size(const struct hb_nat_header *header)
{
    return (header->l4[TCP_OFFSET] >> 4) * 4u;
}

/* Writes a part of the TCP header and keeps the checksum in line. */
static void put_tcp(struct hb_nat_header *header, uint32_t offset, const uint8_t *bytes,
                    size_t count)
{
    uint16_t check = hb_checksum_load(header->l4 + 16);

    check = hb_checksum_put(check, header->l4 + offset, offset, bytes, count);
    hb_checksum_store(header->l4 + 16, check);
}

static void put_tcp32(struct hb_nat_header *header, uint32_t offset, uint32_t value)
{
    uint8_t bytes[4];

    store_be32(bytes, value);
    put_tcp(header, offset, bytes, sizeof(bytes));
}

static void grow_ip(struct hb_nat_header *header, uint32_t bytes)
{
    uint8_t *length = header->l3 + (header->family == HB_FAMILY_IPV4 ? 2 : 4);
    uint16_t before = hb_checksum_load(length);
    uint32_t value = (uint32_t)(length[0] << 8 | length[1]) + bytes;

    length[0] = (uint8_t)(value >> 8);
    length[1] = (uint8_t)value;
    if (header->family == HB_FAMILY_IPV4)
        hb_checksum_store(header->l3 + 10, hb_checksum_replace(hb_checksum_load(header->l3 + 10),
                                                               before, hb_checksum_load(length)));
}

/* Makes a gap of `bytes` behind the first `keep` bytes of the header of TCP or UDP: what is before
 * it moves to the front. Lengths and the pseudo-header's part of the checksum follow. */
static uint8_t *insert(struct hb_packet *packet, struct hb_nat_header *header, uint32_t keep,
                       uint32_t bytes)
{
    uint32_t headers = (uint32_t)(header->l4 - header->l3);
    uint32_t segment = packet->inner_length - headers;

    rte_pktmbuf_prepend(packet->mbuf, (uint16_t)bytes);
    memmove(header->l3 - bytes, header->l3, headers + keep);
    header->l3 -= bytes;
    header->l4 -= bytes;
    header->l4_length += bytes;
    packet->inner_length = (uint16_t)(packet->inner_length + bytes);
    grow_ip(header, bytes);
    hb_nat_fix_checksum(header, word_of(segment), word_of(segment + bytes));
    return header->l4 + keep;
}

static bool refuse(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    hb_drop(batch, packet, reason);
    return false;
}

static bool fits(const struct hb_packet *packet, uint32_t more)
{
    return packet->inner_length + more <= packet->backend->inner_max;
}

static bool put_proxy_tcp(struct hb_batch *batch, struct hb_packet *packet,
                          struct hb_nat_header *header, struct hb_nat_session *session)
{
    uint8_t proxy[HB_PROXY_V2_MAX];
    uint32_t size = hb_proxy_v2_write(proxy, &session->request);

    if (!fits(packet, size))
        return refuse(batch, packet, HB_DROP_OVERSIZE);
    memcpy(insert(packet, header, tcp_size(header), size), proxy, size);
    hb_nat_fix_checksum(header, 0, hb_checksum_words(proxy, size));
    session->shift_sent = true;
    return true;
}

static bool tell_by_proxy_tcp(struct hb_batch *batch, struct hb_packet *packet,
                              struct hb_nat_header *header, struct hb_nat_session *session)
{
    uint32_t sequence = load_be32(header->l4 + TCP_SEQUENCE);
    uint8_t flags = header->l4[TCP_FLAGS];

    if (flags & FLAG_SYN) {
        bool has_data =
            (uint32_t)(header->l4 - header->l3) + tcp_size(header) < packet->inner_length;

        session->shift = (uint8_t)hb_proxy_v2_size(header->family);
        return has_data ? refuse(batch, packet, HB_DROP_NAT_PROTOCOL) : true;
    }
    if (sequence == session->first_byte && !session->shift_seen && !(flags & FLAG_RST))
        return put_proxy_tcp(batch, packet, header, session);
    if (session->shift_seen ||
        (session->shift_sent && (int32_t)(sequence - session->first_byte) >= 0))
        put_tcp32(header, TCP_SEQUENCE, sequence + session->shift);
    return true;
}

static bool tell_by_proxy_udp(struct hb_batch *batch, struct hb_packet *packet,
                              struct hb_nat_header *header, const struct hb_nat_session *session)
{
    uint8_t proxy[HB_PROXY_V2_MAX];
    uint32_t size = hb_proxy_v2_write(proxy, &session->request);
    uint32_t length = (uint32_t)(header->l4[4] << 8 | header->l4[5]);
    uint16_t before = word_of(length), after = word_of(length + size);

    if (header->fragment)
        return refuse(batch, packet, HB_DROP_FRAGMENT);
    if (!fits(packet, size))
        return refuse(batch, packet, HB_DROP_OVERSIZE);
    memcpy(insert(packet, header, UDP_BYTES, size), proxy, size);
    hb_checksum_store(header->l4 + 4, after);
    hb_nat_fix_checksum(header, before, (uint64_t)after + hb_checksum_words(proxy, size));
    return true;
}

/* kind, length, port, address */
static void tell_by_option(struct hb_packet *packet, struct hb_nat_header *header,
                           struct hb_nat_session *session)
{
    uint32_t address = header->family == HB_FAMILY_IPV4 ? 4 : HB_ADDRESS_SIZE, size = 4 + address;
    bool is_28 = (packet->backend->flags & HB_REWRITE_TCP_OPTION_28) != 0;
    uint8_t option[4 + HB_ADDRESS_SIZE] = {is_28 ? OPTION_CLIENT_28 : OPTION_CLIENT, (uint8_t)size};
    uint8_t flags = header->l4[TCP_FLAGS], offset;
    bool first = load_be32(header->l4 + TCP_SEQUENCE) == session->first_byte;

    if (!(flags & FLAG_SYN) && (session->shift_seen || !first || (flags & FLAG_RST)))
        return;
    if (tcp_size(header) + size > TCP_BYTES + OPTIONS_MAX || !fits(packet, size))
        return;
    memcpy(option + 2, &session->request.source_port, 2);
    memcpy(option + 4, session->request.source, address);
    memcpy(insert(packet, header, TCP_BYTES, size), option, size);
    hb_nat_fix_checksum(header, 0, hb_checksum_words(option, size));
    offset = (uint8_t)(header->l4[TCP_OFFSET] + (size / 4 << 4));
    put_tcp(header, TCP_OFFSET, &offset, 1);
}

bool hb_nat_tell_client(struct hb_batch *batch, struct hb_packet *packet,
                        struct hb_nat_header *header, struct hb_nat_session *session)
{
    uint8_t ways = packet->backend->flags;
    bool tcp = header->protocol == HB_PROTOCOL_TCP;

    if ((ways & (HB_REWRITE_PROXY_V2 | HB_REWRITE_TCP_OPTION | HB_REWRITE_TCP_OPTION_28)) == 0)
        return true;
    if (!hb_nat_has_ports(header)) /* a later fragment */
        return refuse(batch, packet, HB_DROP_FRAGMENT);
    if (!tcp)
        return (ways & HB_REWRITE_PROXY_V2) == 0 ||
               tell_by_proxy_udp(batch, packet, header, session);
    if (header->fragment)
        return refuse(batch, packet, HB_DROP_FRAGMENT);
    if (tcp_size(header) > header->l4_length)
        return refuse(batch, packet, HB_DROP_RUNT);
    if (ways & HB_REWRITE_PROXY_V2)
        return tell_by_proxy_tcp(batch, packet, header, session);
    tell_by_option(packet, header, session);
    return true;
}

/* --- answers --- */

/* A number of the client's stream as the backend counts, back to how the client counts. What is
 * within the header is its beginning. */
static uint32_t unshift(const struct hb_nat_session *session, uint32_t number)
{
    uint32_t distance = number - session->first_byte;

    if ((int32_t)distance <= 0)
        return number;
    return distance >= session->shift ? number - session->shift : session->first_byte;
}

static void fix_sack(struct hb_nat_header *header, const struct hb_nat_session *session,
                     uint32_t at, uint32_t size)
{
    for (uint32_t edge = at + 2; edge + 4 <= at + size; edge += 4)
        put_tcp32(header, edge, unshift(session, load_be32(header->l4 + edge)));
}

static void cut_mss(struct hb_nat_header *header, uint32_t at, uint16_t mss_max)
{
    uint8_t cut[2] = {(uint8_t)(mss_max >> 8), (uint8_t)mss_max};
    uint32_t mss = (uint32_t)(header->l4[at + 2] << 8 | header->l4[at + 3]);

    if (mss > mss_max)
        put_tcp(header, at + 2, cut, sizeof(cut));
}

static void fix_options(struct hb_nat_header *header, const struct hb_nat_session *session,
                        uint16_t mss_max)
{
    uint32_t end = tcp_size(header), at = TCP_BYTES;
    bool syn = (header->l4[TCP_FLAGS] & FLAG_SYN) != 0;

    if (end > header->l4_length)
        end = header->l4_length;
    while (at < end && header->l4[at] != OPTION_END) {
        uint32_t size;

        if (header->l4[at] == OPTION_NOP) {
            at++;
            continue;
        }
        if (at + 2 > end)
            return;
        size = header->l4[at + 1];
        if (size < 2 || at + size > end)
            return;
        if (header->l4[at] == OPTION_SACK)
            fix_sack(header, session, at, size);
        else if (header->l4[at] == OPTION_MSS && size == 4 && syn)
            cut_mss(header, at, mss_max);
        at += size;
    }
}

void hb_nat_hide_shift(struct hb_nat_header *header, struct hb_nat_session *session,
                       uint16_t mss_max)
{
    uint8_t flags = header->l4[TCP_FLAGS];
    uint32_t number;

    if (session->shift == 0) { /* a TCP option at most */
        session->shift_seen |= (flags & FLAG_SYN) == 0;
        return;
    }
    if (flags & FLAG_ACK) {
        number = load_be32(header->l4 + TCP_ACK_NUMBER);
        if (session->shift_sent && (int32_t)(number - session->first_byte - session->shift) >= 0)
            session->shift_seen = true;
        put_tcp32(header, TCP_ACK_NUMBER, unshift(session, number));
    }
    fix_options(header, session, mss_max);
}
