/* SPDX-License-Identifier: BSD-3-Clause */
/* nat_frames.h: frames with right checksums of TCP, UDP and ICMP, computed whole, and the frames
 * that translation makes of them. Nothing here is shared with the code under test. */
#ifndef HB_TEST_NAT_FRAMES_H
#define HB_TEST_NAT_FRAMES_H

#include "packet.h"

/* Gives an untagged or tagged frame the checksums that its bytes call for. Fragments: as if the
 * first one were the whole. A UDP checksum that comes out as zero is 0xffff. */
struct frame whole(struct frame frame);

/* The same with the Ethernet header of backend 1, or of the way to clients. */
struct frame toward_backend(struct frame frame, uint8_t family);
struct frame toward_client(struct frame frame);
struct frame toward_client_as_is(struct frame frame);

/* An IPv4 packet cut to `length` bytes, its header saying so. */
struct frame cut_ip4(struct frame frame, uint32_t length);

/* An ICMP or ICMPv6 message of `type` that quotes `quoted` bytes of a frame's IP packet. */
struct frame icmp_error(const char *from, const char *to, uint8_t type, const struct frame *about,
                        uint32_t quoted, uint8_t ttl);

/* Whether all checksums of a frame are right. */
int is_sound(const struct frame *frame);

#endif
