/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_frames.h: the packets that the generator sends, and reads again when they come back in a
 * tunnel.
 *
 * Client c is 11.0.0.0 + c with source port 1024 + c % 60000, so that flows differ in both; it
 * talks to VIP number c % vips of bench_plan.h. Pure.
 */
#ifndef HB_BENCH_FRAMES_H
#define HB_BENCH_FRAMES_H

#include <arpa/inet.h>
#include <stdint.h>
#include <string.h>

#include "bench_plan.h"

#define FRAME_CRC  4 /* counted in the size of a frame, not there in memory */
#define FRAME_MIN  64
#define FRAME_MAX  1518
#define CLIENTS    0x0b000000u
#define L3_AT      14
#define L4_AT      (L3_AT + 20)
#define TUNNEL     20 /* what IPIP over IPv4 puts in front of the inner header */
#define STAMP_SIZE 6

enum frame_kind { FRAME_TCP, FRAME_SYN, FRAME_UDP };

/* Where a time stamp of STAMP_SIZE bytes has room even in the smallest frame. */
static inline uint32_t frame_stamp_at(enum frame_kind kind)
{
    return L4_AT + (kind == FRAME_UDP ? 8 : 20);
}

static inline uint16_t frame_sum(const uint8_t *ip)
{
    uint32_t sum = 0;

    for (int i = 0; i < 20; i += 2)
        sum += (uint32_t)ip[i] << 8 | ip[i + 1];
    while (sum >> 16)
        sum = (sum & 0xffff) + (sum >> 16);
    return (uint16_t)sum;
}

/* Writes all of a frame but what frame_address sets. `size` counts the CRC. */
static inline void frame_write(uint8_t *frame, enum frame_kind kind, uint32_t size)
{
    static const uint8_t ethernet[L3_AT] = {2, 0, 0, 0, 0, 16, 2, 0, 0, 0, 0, 32, 0x08, 0x00};
    uint16_t ip_length = htons((uint16_t)(size - FRAME_CRC - L3_AT));
    uint8_t *ip = frame + L3_AT, *l4 = frame + L4_AT;

    memset(frame, 0, size - FRAME_CRC);
    memcpy(frame, ethernet, sizeof(ethernet));
    ip[0] = 0x45;
    memcpy(ip + 2, &ip_length, 2);
    ip[6] = 0x40; /* don't fragment */
    ip[8] = 64;
    ip[9] = kind == FRAME_UDP ? 17 : 6;
    if (kind == FRAME_UDP) {
        uint16_t length = htons((uint16_t)(size - FRAME_CRC - L4_AT));

        l4[2] = 443 >> 8, l4[3] = 443 & 0xff;
        memcpy(l4 + 4, &length, 2); /* no checksum: allowed over IPv4 */
    } else {
        l4[3] = 80;
        l4[12] = 5 << 4;
        l4[13] = kind == FRAME_SYN ? 0x02 : 0x10;
        l4[14] = 0xff;
    }
}

/* Makes it a packet of one client. `base` is frame_sum() of the header that frame_write left. */
static inline void frame_address(uint8_t *frame, uint32_t base, uint32_t client, uint32_t vip)
{
    uint32_t source = CLIENTS + client, destination = bench_plan_vip4(vip);
    uint32_t sum =
        base + (source >> 16) + (source & 0xffff) + (destination >> 16) + (destination & 0xffff);
    uint32_t addresses[2] = {htonl(source), htonl(destination)};
    uint16_t port = htons((uint16_t)(1024 + client % 60000)), folded;

    sum = (sum & 0xffff) + (sum >> 16);
    sum = (sum & 0xffff) + (sum >> 16);
    folded = htons((uint16_t)~sum);
    memcpy(frame + L3_AT + 12, addresses, sizeof(addresses));
    memcpy(frame + L3_AT + 10, &folded, 2);
    memcpy(frame + L4_AT, &port, 2);
}

#endif
