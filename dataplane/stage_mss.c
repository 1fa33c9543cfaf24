/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * stage_mss.c: lowers the MSS that a client offers in its SYN (RFC 9293, section 3.7.1).
 *
 * So the server sends segments that fit a path whose small MTU nobody reports. The server's own
 * offer goes straight to the client and is not seen here: what clients send too large they are told
 * by ICMP (icmp_make.c). A SYN without the option is left alone: it stands for 536 or 1,220 bytes.
 * The checksum is changed for the two bytes (RFC 1624), so a wrong one stays wrong.
 */
#include <string.h>

#include <rte_byteorder.h>

#include "answer.h"
#include "checksum.h"
#include "stages.h"
#include "worker_state.h"

#define TCP_HEADER   20
#define TCP_CHECKSUM 16
#define OPTION_END   0
#define OPTION_NOP   1
#define OPTION_MSS   2
#define MSS_SIZE     4

static uint16_t load_be16(const uint8_t *at)
{
    return (uint16_t)(at[0] << 8 | at[1]);
}

static uint16_t load16(const uint8_t *at)
{
    uint16_t word;

    memcpy(&word, at, sizeof(word));
    return word;
}

/* Where the option's value is in the header, or 0. */
static uint32_t find_mss(const uint8_t *tcp, uint32_t length)
{
    uint32_t at = TCP_HEADER;

    while (at < length && tcp[at] != OPTION_END) {
        if (tcp[at] == OPTION_NOP) {
            at++;
            continue;
        }
        if (at + 1 >= length || tcp[at + 1] < 2 || at + tcp[at + 1] > length)
            return 0;
        if (tcp[at] == OPTION_MSS)
            return tcp[at + 1] == MSS_SIZE ? at + 2 : 0;
        at += tcp[at + 1];
    }
    return 0;
}

/* The value may lie across two of the words that the checksum sums up. */
static void set_mss(uint8_t *tcp, uint32_t at, uint16_t mss)
{
    uint8_t *words = tcp + (at & ~1u);
    uint32_t count = at % 2 == 0 ? 1 : 2;
    uint16_t before[2] = {load16(words), count > 1 ? load16(words + 2) : 0};
    uint16_t checksum = load16(tcp + TCP_CHECKSUM);

    tcp[at] = (uint8_t)(mss >> 8);
    tcp[at + 1] = (uint8_t)mss;
    for (uint32_t i = 0; i < count; i++)
        checksum = hb_checksum_update(checksum, before[i], load16(words + 2 * i));
    memcpy(tcp + TCP_CHECKSUM, &checksum, sizeof(checksum));
}

static void lower(const struct hb_packet *packet, uint16_t mss_max)
{
    uint8_t *tcp = rte_pktmbuf_mtod_offset(packet->mbuf, uint8_t *, packet->l4_offset);
    uint32_t length = (tcp[12] >> 4) * 4u, at;

    if (packet->l4_offset + length > rte_pktmbuf_data_len(packet->mbuf) ||
        !hb_is_writable(packet->mbuf))
        return;
    at = find_mss(tcp, length);
    if (at != 0 && load_be16(tcp + at) > mss_max)
        set_mss(tcp, at, mss_max);
}

void hb_stage_mss(struct hb_batch *batch)
{
    const uint16_t *mss_max = batch->generation->mss_max;
    struct hb_packet *packet;

    HB_BATCH_FOREACH (packet, batch) {
        if (packet->event == HB_EVENT_SYN && mss_max[packet->service] != 0)
            lower(packet, mss_max[packet->service]);
    }
}
