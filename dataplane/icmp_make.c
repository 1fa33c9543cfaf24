/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * icmp_make.c: tells a sender that its packet does not fit the tunnel or link, and what would.
 *
 *   - IPv4 with DF: destination unreachable, fragmentation needed (RFC 1191, section 4), with as
 *     much of the packet as 576 bytes hold (RFC 1812, section 4.3.2.3).
 *   - IPv6: packet too big (RFC 4443, section 3.2), with as much as 1,280 bytes hold; never with an
 *     MTU below 1,280, nor about a packet that is no larger than that.
 *
 * The MTU is the backend's `inner_max`: that of the link without the tunnel's headers; of answers
 * of NAT backends, that of the link to the clients. The message
 * comes from the address of the settings, else from the VIP, and goes back the way the packet came.
 *
 * None is sent about an ICMP error or a later fragment (RFC 1122, section 3.2.2; RFC 4443, section
 * 2.4), nor more than `icmp_rate` a second. Packets that came by broadcast or from an address that
 * can't be answered did not come as far as here.
 */
#include <string.h>

#include <rte_byteorder.h>

#include "answer.h"
#include "checksum.h"
#include "parse_care.h"
#include "stages.h"
#include "worker_state.h"

#define IPV6_MTU_MIN   1280
#define IPV4_ICMP_MAX  576
#define HEADER         8
#define TRAFFIC_CLASS  0xc0 /* internetwork control (RFC 1812, section 4.3.2.5) */
#define ECHO           8
#define FIRST_QUERY_V6 128

/* RFC 792, RFC 4443: types below 128 are errors; of ICMP only echo requests get here otherwise. */
static bool is_icmp_error(const struct hb_packet *packet)
{
    const uint8_t *icmp = rte_pktmbuf_mtod_offset(packet->mbuf, const uint8_t *, packet->l4_offset);

    if ((uint8_t)packet->flow.kind != 0)
        return false; /* TCP, UDP, SCTP */
    return hb_flow_is_ipv6(&packet->flow) ? icmp[0] < FIRST_QUERY_V6 : icmp[0] != ECHO;
}

static bool may_tell(const struct hb_batch *batch, const struct hb_packet *packet)
{
    if (!packet->dont_fragment || is_icmp_error(packet) || hb_is_later_fragment(packet) ||
        !hb_is_writable(packet->mbuf))
        return false;
    if (hb_flow_is_ipv6(&packet->flow) && packet->inner_length <= IPV6_MTU_MIN)
        return false;
    return hb_token_take(&batch->worker->icmp_rate, batch->generation->settings.icmp_rate,
                         batch->worker->now_ms);
}

/* Cuts the frame down to the start of its IP packet. Of several segments the first is enough: it
 * holds the headers. */
static void cut_to_quote(struct rte_mbuf *mbuf, const struct hb_packet *packet, uint32_t room)
{
    uint32_t length = packet->inner_length;

    rte_pktmbuf_free(mbuf->next);
    mbuf->next = NULL;
    mbuf->nb_segs = 1;
    mbuf->pkt_len = mbuf->data_len;
    rte_pktmbuf_adj(mbuf, packet->l3_offset);
    if (length > room)
        length = room;
    if (rte_pktmbuf_data_len(mbuf) > length)
        rte_pktmbuf_trim(mbuf, (uint16_t)(rte_pktmbuf_data_len(mbuf) - length));
}

/* The message in front of the quote, its checksum not made. */
static bool put_message(struct rte_mbuf *mbuf, bool ipv6, uint32_t mtu)
{
    uint8_t *icmp = (uint8_t *)rte_pktmbuf_prepend(mbuf, HEADER);
    rte_be32_t field = rte_cpu_to_be_32(mtu);

    if (icmp == NULL)
        return false;
    memset(icmp, 0, HEADER);
    icmp[0] = ipv6 ? 2 : 3;
    icmp[1] = ipv6 ? 0 : 4;
    memcpy(icmp + 4, &field, sizeof(field)); /* IPv4: its upper half is unused and 0 */
    return true;
}

static void set_source(struct hb_answer *answer, const struct hb_settings *settings)
{
    static const uint8_t none[16];
    const uint8_t *source = settings->icmp_source4;
    uint32_t size = 4;

    if (answer->family == HB_FAMILY_IPV6) {
        source = settings->icmp_source6;
        size = 16;
    }
    if (memcmp(source, none, size) != 0)
        memcpy(answer->addresses, source, size);
}

/* Makes the message out of the packet's own buffer. */
static void tell(struct hb_batch *batch, const struct hb_packet *packet, uint32_t mtu)
{
    struct hb_worker *worker = batch->worker;
    struct rte_mbuf *mbuf = packet->mbuf;
    bool ipv6 = hb_flow_is_ipv6(&packet->flow);
    uint32_t length;
    struct hb_answer answer;
    uint16_t checksum, sum = 0;

    if (ipv6 && mtu < IPV6_MTU_MIN)
        mtu = IPV6_MTU_MIN;
    hb_answer_to(&answer, packet);
    answer.protocol = ipv6 ? HB_ICMPV6 : HB_ICMP;
    answer.traffic_class = TRAFFIC_CLASS;
    set_source(&answer, &batch->generation->settings);
    cut_to_quote(mbuf, packet, ipv6 ? IPV6_MTU_MIN - 40 - HEADER : IPV4_ICMP_MAX - 20 - HEADER);
    worker->counters->made_packets++;
    if (!put_message(mbuf, ipv6, mtu)) {
        hb_drop_mbuf(worker, mbuf, HB_DROP_NO_HEADROOM);
        return;
    }
    length = rte_pktmbuf_pkt_len(mbuf);
    if (ipv6)
        sum = hb_pseudo_sum(answer.addresses, 32, HB_ICMPV6, length);
    checksum = (uint16_t)~hb_packet_sum(mbuf, 0, length, sum);
    memcpy(rte_pktmbuf_mtod_offset(mbuf, uint8_t *, 2), &checksum, sizeof(checksum));
    hb_answer_send(worker, &answer, mbuf);
    worker->counters->icmp_sent++;
}

void hb_too_big(struct hb_batch *batch, struct hb_packet *packet, uint16_t mtu)
{
    struct hb_worker *worker = batch->worker;

    if (!may_tell(batch, packet)) {
        hb_drop(batch, packet, HB_DROP_OVERSIZE);
        return;
    }
    hb_count_drop(batch, packet, HB_DROP_OVERSIZE);
    if (packet->service != HB_NO_SERVICE)
        worker->services[batch->generation->services[packet->service].id].too_big++;
    tell(batch, packet, mtu);
    packet->mbuf = NULL;
    batch->ended++;
}
