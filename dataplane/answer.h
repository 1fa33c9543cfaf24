/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * answer.h: packets of the balancer's own that go back the way a packet came: ICMP errors, echo
 * answers, resets.
 *
 * Back: by the port that it came from, to the MAC address that it came from, from the one that it
 * came to, with the same VLAN tags. So the balancer needs no route for them.
 */
#ifndef HB_DATAPLANE_ANSWER_H
#define HB_DATAPLANE_ANSWER_H

#include "batch.h"

#define HB_ANSWER_L2_MAX 22 /* Ethernet and two tags */

struct hb_answer {
    uint8_t l2[HB_ANSWER_L2_MAX];
    uint8_t l2_size;
    uint8_t family; /* enum hb_family */
    uint8_t protocol;
    uint8_t traffic_class;
    uint8_t addresses[32]; /* as in the IP header: 4 and 4 bytes, or 16 and 16 */
};

/* Fills in all but `protocol` and `traffic_class` (0): from the packet's destination to its source.
 */
void hb_answer_to(struct hb_answer *answer, const struct hb_packet *packet);

/* Bytes of its pseudo header's addresses. */
static inline uint32_t hb_answer_addresses_size(const struct hb_answer *answer)
{
    return answer->family == HB_FAMILY_IPV6 ? 32 : 8;
}

/* May its bytes be written? Others read those of clones. */
bool hb_is_writable(const struct rte_mbuf *mbuf);

/* Puts the IP header in front of the data of `mbuf`. Returns it, or NULL when there is no room. */
uint8_t *hb_answer_put_ip(const struct hb_answer *answer, struct rte_mbuf *mbuf);

/* Puts Ethernet and IP headers in front of the data of `mbuf` and sends it at the end of the burst.
 * The mbuf is no longer the caller's. What the worker made anew the caller counts in made_packets.
 */
void hb_answer_send(struct hb_worker *worker, const struct hb_answer *answer,
                    struct rte_mbuf *mbuf);

/* Hands over what hb_answer_send has collected. At the end of each burst. */
void hb_answer_flush(struct hb_worker *worker);

#endif
