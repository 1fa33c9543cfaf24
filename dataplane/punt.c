/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * punt.c: the kernel's packets, both ways.
 *
 * With AF_XDP the steering program passes what is not ours before it reaches DPDK. A NIC that is
 * bound to DPDK has a TAP beside it (--punt): what the NIC receives and is not ours goes to the
 * kernel there, as it came, and what the kernel sends there goes out of the NIC. So ARP, neighbour
 * discovery, ping, SSH and routing daemons work as on any interface. Without a TAP a packet that is
 * not ours is dropped.
 *
 * A flood toward the host must not cost the VIPs' traffic its cycles, and the way to the kernel is
 * a system call a packet. So it is limited (`punt: { rate }`), in two classes: what keeps the host
 * reachable (ARP, neighbour discovery, BGP, BFD) has a rate of its own, as high as that of all
 * else, which a flood of the other kind can't use up.
 */
#include <rte_byteorder.h>
#include <rte_ethdev.h>
#include <rte_ether.h>
#include <rte_ip.h>

#include "stages.h"
#include "worker_state.h"

enum { OTHERS, VITAL, CLASSES };
_Static_assert(CLASSES == sizeof(((struct hb_worker *)0)->punt_rate) /
                              sizeof(((struct hb_worker *)0)->punt_rate[0]),
               "a bucket each");

#define ND_FIRST 133 /* router solicitation, RFC 4861 */
#define ND_LAST  137 /* redirect */
#define PORT_BGP RTE_BE16(179)
#define PORT_BFD RTE_BE16(3784) /* single hop, RFC 5881 */

static bool is_vital_l4(uint8_t protocol, const uint8_t *l4, uint32_t readable)
{
    const hb_be16 *ports = (const void *)l4;

    if (protocol == IPPROTO_ICMPV6)
        return readable >= 1 && l4[0] >= ND_FIRST && l4[0] <= ND_LAST;
    if (readable < 4)
        return false;
    if (protocol == HB_PROTOCOL_TCP)
        return ports[0] == PORT_BGP || ports[1] == PORT_BGP;
    return protocol == HB_PROTOCOL_UDP && ports[1] == PORT_BFD;
}

/* Does it keep the host reachable? Judged by the headers alone, read as far as they are there. */
static bool is_vital(const struct rte_mbuf *mbuf)
{
    const uint8_t *frame = rte_pktmbuf_mtod(mbuf, const uint8_t *);
    uint32_t readable = rte_pktmbuf_data_len(mbuf), l3 = sizeof(struct rte_ether_hdr), l4;
    uint16_t type;

    do {
        if (readable < l3)
            return false;
        type = (uint16_t)(frame[l3 - 2] << 8 | frame[l3 - 1]);
        l3 += sizeof(struct rte_vlan_hdr);
    } while (type == RTE_ETHER_TYPE_VLAN);
    l3 -= sizeof(struct rte_vlan_hdr);
    if (type == RTE_ETHER_TYPE_ARP)
        return true;
    if (type == RTE_ETHER_TYPE_IPV4 && readable >= l3 + sizeof(struct rte_ipv4_hdr)) {
        l4 = l3 + (frame[l3] & 0xfu) * 4;
        return l4 <= readable && is_vital_l4(frame[l3 + 9], frame + l4, readable - l4);
    }
    l4 = l3 + sizeof(struct rte_ipv6_hdr);
    if (type == RTE_ETHER_TYPE_IPV6 && readable >= l4)
        return is_vital_l4(frame[l3 + 6], frame + l4, readable - l4);
    return false;
}

static bool may_pass(struct hb_batch *batch, const struct rte_mbuf *mbuf)
{
    struct hb_worker *worker = batch->worker;
    uint32_t rate = batch->generation != NULL ? batch->generation->settings.punt_rate : 0;

    return rate == 0 ||
           hb_token_take(&worker->punt_rate[is_vital(mbuf) ? VITAL : OTHERS], rate, worker->now_ms);
}

void hb_punt(struct hb_batch *batch, struct hb_packet *packet, enum hb_drop_reason reason)
{
    struct hb_tx_buffer *buffer = &batch->worker->punt;

    if (batch->worker->punt_port == HB_NO_PORT) {
        hb_drop(batch, packet, reason);
        return;
    }
    if (!may_pass(batch, packet->mbuf)) {
        hb_drop(batch, packet, HB_DROP_PUNT_LIMIT);
        return;
    }
    buffer->mbuf[buffer->count++] = packet->mbuf;
    packet->mbuf = NULL;
    batch->ended++;
}

void hb_punt_flush(struct hb_worker *worker)
{
    struct hb_tx_buffer *buffer = &worker->punt;
    uint64_t bytes = 0;
    uint16_t taken;

    if (buffer->count == 0)
        return;
    for (uint16_t i = 0; i < buffer->count; i++)
        bytes += rte_pktmbuf_pkt_len(buffer->mbuf[i]);
    taken = rte_eth_tx_burst(worker->punt_port, (uint16_t)worker->config.index, buffer->mbuf,
                             buffer->count);
    for (uint16_t i = taken; i < buffer->count; i++) {
        bytes -= rte_pktmbuf_pkt_len(buffer->mbuf[i]);
        hb_drop_mbuf(worker, buffer->mbuf[i], HB_DROP_PUNT_FULL);
    }
    worker->counters->punted_packets += taken;
    worker->counters->punted_bytes += bytes;
    buffer->count = 0;
}

bool hb_punt_relay(struct hb_worker *worker, uint16_t from, uint16_t to)
{
    uint16_t queue = (uint16_t)worker->config.index, taken;
    struct rte_mbuf *mbufs[HB_BURST];
    uint16_t count = rte_eth_rx_burst(from, queue, mbufs, HB_BURST);

    if (count == 0)
        return false;
    taken = rte_eth_tx_burst(to, queue, mbufs, count);
    worker->counters->kernel_packets += taken;
    worker->counters->kernel_losses += count - taken;
    for (uint16_t i = taken; i < count; i++)
        rte_pktmbuf_free(mbufs[i]);
    return true;
}
