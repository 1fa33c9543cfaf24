/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_icmp.c: ICMP and ICMPv6 messages to a VIP.
 *
 * Errors (RFC 792 types 3, 11, 12; RFC 4443 types 1 to 4) are about a packet that a backend sent
 * straight to its client, and the sender of the error knows only the VIP. The start of that packet
 * stands in the message: addresses and ports, the other way round than in the client's packets. The
 * message goes, whole and unchanged, to the backend that has this flow (peek.h), on whichever
 * worker or balancer it comes in. No entry is made or refreshed by it.
 *
 *   - 8 bytes behind the quoted IP header are enough: more is not promised (RFC 792).
 *   - The message must be sound: its checksum, and quoted packets from the VIP that it is sent to.
 *   - "Packet too big" with an MTU below the floor of the settings is dropped: forged ones would
 * make servers send tiny packets. An MTU of 0 (RFC 1191, section 5) is below any floor.
 *   - No more errors a second than `icmp_relay_rate`, so that they can't starve packets of data.
 *
 * Echo requests are answered in place, forwarded or dropped, by the setting. All else is dropped.
 *
 * An error about a tunnel packet is sent to the source of the tunnels, which is no VIP: it is the
 * kernel's, and control hears of it there (control/control_errors.c).
 */
#include <string.h>

#include <rte_byteorder.h>

#include "answer.h"
#include "checksum.h"
#include "flow_bucket.h"
#include "parse_care.h"
#include "peek.h"
#include "service_map.h"
#include "stages.h"
#include "worker_state.h"

#define HEADER         8 /* bytes in front of the quote */
#define PORTS_AND_MORE 8 /* bytes of the quoted packet behind its IP header */
#define IPV4_OFFSET    0x1fff
#define EXTENSIONS_MAX 8
#define ECHO           8
#define ECHO_REPLY     0
#define ECHO_V6        128
#define ECHO_REPLY_V6  129
#define UNREACHABLE    3
#define TOO_BIG_CODE   4 /* of UNREACHABLE */
#define TIME_EXCEEDED  11
#define PARAMETER      12
#define UNREACHABLE_V6 1
#define TOO_BIG_V6     2
#define LAST_ERROR_V6  4

/* Part of an ICMP message that is at hand. */
struct bytes {
    const uint8_t *at;
    uint32_t length;
};

/* The start of an IP packet that stands in a message. */
struct quoted {
    const uint8_t *source, *destination;
    struct bytes l4;
    uint8_t protocol;
    uint8_t family;
};

static uint16_t load_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint32_t load32(const uint8_t *at)
{
    uint32_t value;

    memcpy(&value, at, sizeof(value));
    return value;
}

/* The message by the IP header's word, without padding, as far as it is in the first segment. */
static struct bytes message_of(const struct hb_packet *packet)
{
    const uint8_t *frame = rte_pktmbuf_mtod(packet->mbuf, const uint8_t *);
    uint32_t end = packet->l3_offset + packet->inner_length;

    if (end > rte_pktmbuf_data_len(packet->mbuf))
        end = rte_pktmbuf_data_len(packet->mbuf);
    return (struct bytes){frame + packet->l4_offset, end - packet->l4_offset};
}

static bool is_sound(const struct hb_packet *packet)
{
    const uint8_t *ip = rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l3_offset);
    uint32_t length = packet->l3_offset + packet->inner_length - packet->l4_offset;
    uint16_t sum = 0;

    if (hb_flow_is_ipv6(&packet->flow))
        sum = hb_pseudo_sum(ip + 8, 32, HB_ICMPV6, length);
    return hb_packet_sum(packet->mbuf, packet->l4_offset, length, sum) == 0xffff;
}

/* ---- quotes ---- */

static bool read_ipv4(struct bytes from, struct quoted *quoted)
{
    uint32_t size;

    if (from.length < 20 || from.at[0] >> 4 != 4)
        return false;
    size = (from.at[0] & 0xf) * 4;
    if (size < 20 || size > from.length || (load_be16(from.at + 6) & IPV4_OFFSET) != 0)
        return false;
    *quoted = (struct quoted){.source = from.at + 12,
                              .destination = from.at + 16,
                              .l4 = {from.at + size, from.length - size},
                              .protocol = from.at[9],
                              .family = HB_FAMILY_IPV4};
    return true;
}

static bool read_ipv6(struct bytes from, struct quoted *quoted)
{
    struct bytes rest = {from.at + 40, from.length - 40};

    if (from.length < 40 || from.at[0] >> 4 != 6)
        return false;
    *quoted = (struct quoted){.source = from.at + 8,
                              .destination = from.at + 24,
                              .protocol = from.at[6],
                              .family = HB_FAMILY_IPV6};
    for (uint32_t depth = 0; depth < EXTENSIONS_MAX; depth++) {
        bool fragment = quoted->protocol == 44;
        uint32_t size;

        quoted->l4 = rest;
        if (quoted->protocol != 0 && quoted->protocol != 43 && quoted->protocol != 60 && !fragment)
            return true;
        if (rest.length < 8 || (fragment && (load_be16(rest.at + 2) & 0xfff8) != 0))
            return false;
        size = fragment ? 8 : 8 + rest.at[1] * 8u;
        if (size > rest.length)
            return false;
        quoted->protocol = rest.at[0];
        rest = (struct bytes){rest.at + size, rest.length - size};
    }
    return false;
}

static bool read_ip(struct bytes from, uint8_t family, struct quoted *quoted)
{
    return family == HB_FAMILY_IPV4 ? read_ipv4(from, quoted) : read_ipv6(from, quoted);
}

static bool has_ports(const struct quoted *quoted)
{
    return quoted->protocol == HB_PROTOCOL_TCP || quoted->protocol == HB_PROTOCOL_UDP ||
           quoted->protocol == HB_PROTOCOL_SCTP;
}

/* The flow of the client's packets, which went the other way than the quoted one. `addresses` has
 * room for 32 bytes and must live as long as the flow. */
static struct hb_flow_query flow_of(const struct quoted *quoted, uint8_t *addresses,
                                    const struct hb_hash_key *key)
{
    const uint8_t *client = quoted->destination, *vip = quoted->source;
    uint32_t ports = load32(quoted->l4.at);
    struct hb_flow_query flow = {.ports = ports >> 16 | ports << 16,
                                 .kind = HB_FLOW_KIND(quoted->protocol, quoted->family)};

    if (quoted->family == HB_FAMILY_IPV4) {
        flow.source = load32(client);
        flow.destination = load32(vip);
        flow.hash = hb_flow_hash_ipv4(&flow, key);
        return flow;
    }
    memcpy(addresses, client, 16);
    memcpy(addresses + 16, vip, 16);
    flow.source = hb_flow_fold(client);
    flow.destination = hb_flow_fold(vip);
    flow.addresses = addresses;
    flow.hash = hb_flow_hash_ipv6(&flow, key);
    return flow;
}

/* ---- errors ---- */

static bool is_error(bool ipv6, uint8_t type)
{
    if (ipv6)
        return type >= UNREACHABLE_V6 && type <= LAST_ERROR_V6;
    return type == UNREACHABLE || type == TIME_EXCEEDED || type == PARAMETER;
}

static bool is_below_floor(const struct hb_settings *settings, bool ipv6, struct bytes message)
{
    if (ipv6)
        return message.at[0] == TOO_BIG_V6 &&
               rte_be_to_cpu_32(load32(message.at + 4)) < settings->mtu_floor6;
    return message.at[0] == UNREACHABLE && message.at[1] == TOO_BIG_CODE &&
           load_be16(message.at + 6) < settings->mtu_floor4;
}

/* On its way past stage_flow and stage_select. */
static void set_decided(struct hb_batch *batch, struct hb_packet *packet, uint16_t service,
                        uint16_t backend)
{
    packet->service = service;
    packet->backend_id = backend;
    packet->backend = &batch->generation->backends[backend];
    packet->event = HB_EVENT_ODD;
    packet->fault = HB_NO_FAULT;
    packet->shape = HB_SHAPE_DECIDED;
}

/* Finds the flow that the message is about, and its backend. HB_NO_FAULT or why there is none. */
static uint8_t route_error(struct hb_batch *batch, struct hb_packet *packet, struct bytes message)
{
    const struct hb_generation *generation = batch->generation;
    bool ipv6 = hb_flow_is_ipv6(&packet->flow);
    const uint8_t *ip = rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l3_offset);
    struct quoted quoted;
    struct hb_flow_query flow;
    uint8_t addresses[32];
    uint16_t backend;
    int32_t service;
    enum hb_peek peek;

    if (!read_ip((struct bytes){message.at + HEADER, message.length - HEADER},
                 ipv6 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4, &quoted))
        return HB_DROP_ICMP_QUOTE;
    if (memcmp(quoted.source, ip + (ipv6 ? 24 : 16), ipv6 ? 16 : 4) != 0 || !has_ports(&quoted))
        return HB_DROP_ICMP_NO_FLOW;
    if (quoted.l4.length < PORTS_AND_MORE)
        return HB_DROP_ICMP_QUOTE;
    flow = flow_of(&quoted, addresses, &generation->hash_key);
    service = hb_service_of(generation, &flow);
    if (service < 0)
        return HB_DROP_ICMP_NO_FLOW;
    packet->service = (uint16_t)service;
    peek = hb_peek_backend(batch, packet->service, &flow, &backend);
    if (peek == HB_PEEK_NONE)
        return HB_DROP_NO_BACKEND;
    batch->worker->counters->icmp_elsewhere += peek == HB_PEEK_TABLE;
    packet->flow.hash = flow.hash; /* its tunnel goes the way of the flow's */
    set_decided(batch, packet, packet->service, backend);
    return HB_NO_FAULT;
}

static uint8_t take_error(struct hb_batch *batch, struct hb_packet *packet, struct bytes message)
{
    const struct hb_settings *settings = &batch->generation->settings;
    struct hb_worker *worker = batch->worker;
    uint8_t fault;

    if (!hb_token_take(&worker->relay_rate, settings->icmp_relay_rate, worker->now_ms))
        return HB_DROP_ICMP_LIMIT;
    if (!is_sound(packet))
        return HB_DROP_ICMP_CHECKSUM;
    if (is_below_floor(settings, hb_flow_is_ipv6(&packet->flow), message))
        return HB_DROP_ICMP_MTU;
    fault = route_error(batch, packet, message);
    if (fault != HB_NO_FAULT)
        return fault;
    worker->counters->icmp_relayed++;
    return HB_NO_FAULT;
}

/* ---- echo ---- */

/* The answer is the request, turned round: RFC 1122, section 3.2.2.6; RFC 4443, section 4.2. */
static uint8_t answer_echo(struct hb_batch *batch, struct hb_packet *packet, struct bytes message)
{
    struct hb_worker *worker = batch->worker;
    bool ipv6 = hb_flow_is_ipv6(&packet->flow);
    uint32_t padding = rte_pktmbuf_pkt_len(packet->mbuf) - packet->l3_offset - packet->inner_length;
    uint8_t *icmp = (uint8_t *)(uintptr_t)message.at;
    struct hb_answer answer;
    uint16_t before, after, checksum;

    if (!hb_token_take(&worker->icmp_rate, batch->generation->settings.icmp_rate, worker->now_ms))
        return HB_DROP_ICMP_LIMIT;
    if (!is_sound(packet))
        return HB_DROP_ICMP_CHECKSUM;
    if (!hb_is_writable(packet->mbuf))
        return HB_DROP_NO_MBUF;
    if (padding != 0 && rte_pktmbuf_trim(packet->mbuf, (uint16_t)padding) != 0)
        return HB_DROP_RUNT;
    hb_answer_to(&answer, packet);
    answer.protocol = ipv6 ? HB_ICMPV6 : HB_ICMP;
    answer.traffic_class = packet->traffic_class;
    memcpy(&before, icmp, sizeof(before));
    memcpy(&checksum, icmp + 2, sizeof(checksum));
    icmp[0] = ipv6 ? ECHO_REPLY_V6 : ECHO_REPLY;
    memcpy(&after, icmp, sizeof(after));
    checksum = hb_checksum_update(checksum, before, after);
    memcpy(icmp + 2, &checksum, sizeof(checksum));
    rte_pktmbuf_adj(packet->mbuf, packet->l4_offset);
    hb_answer_send(worker, &answer, packet->mbuf);
    worker->counters->icmp_sent++;
    packet->mbuf = NULL;
    batch->ended++;
    return HB_NO_FAULT;
}

/* To the owner of the slot of its addresses: a client's pings reach one backend. */
static uint8_t forward_echo(struct hb_batch *batch, struct hb_packet *packet)
{
    const struct hb_generation *generation = batch->generation;
    bool ipv6 = hb_flow_is_ipv6(&packet->flow);
    const uint8_t *ip = rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l3_offset);
    int32_t service = hb_service_map_first(generation->map, ipv6 ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4,
                                           ip + (ipv6 ? 24 : 16));
    const struct hb_pool *pool;

    if (service < 0)
        return HB_DROP_NO_SERVICE;
    pool = &generation->pools[generation->services[service].pool];
    if (pool->slots == 0)
        return HB_DROP_NO_BACKEND;
    set_decided(batch, packet, (uint16_t)service,
                pool->owner[hb_slot_of(packet->flow.hash, pool->slots)]);
    return HB_NO_FAULT;
}

static uint8_t take_echo(struct hb_batch *batch, struct hb_packet *packet, struct bytes message)
{
    switch (batch->generation->settings.echo) {
    case HB_ECHO_ANSWER:
        return answer_echo(batch, packet, message);
    case HB_ECHO_FORWARD:
        return forward_echo(batch, packet);
    default:
        return HB_DROP_ECHO;
    }
}

void hb_stage_icmp(struct hb_batch *batch)
{
    for (uint16_t i = 0; i < batch->aside_count; i++) {
        struct hb_packet *packet = &batch->aside[i];
        struct bytes message;
        uint8_t fault = HB_DROP_ICMP_TYPE;
        bool ipv6;

        if (packet->mbuf == NULL || packet->shape != HB_SHAPE_ICMP)
            continue;
        message = message_of(packet);
        ipv6 = hb_flow_is_ipv6(&packet->flow);
        if (is_error(ipv6, message.at[0]))
            fault = take_error(batch, packet, message);
        else if (message.at[0] == (ipv6 ? ECHO_V6 : ECHO) && message.at[1] == 0)
            fault = take_echo(batch, packet, message);
        if (fault != HB_NO_FAULT)
            hb_drop(batch, packet, fault);
    }
}
