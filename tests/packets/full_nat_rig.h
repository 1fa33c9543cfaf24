/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * full_nat_rig.h: what the tests of full NAT begin with.
 *
 * Backends 1 and 2 serve TCP 80 and UDP 443 of the VIP on port 8080. The source address is
 * 198.51.100.64 or 2001:db8:0:f::64, its ports are 2000 to 2999. Source ports are read from what
 * leaves; all else is known.
 */
#ifndef HB_TEST_FULL_NAT_RIG_H
#define HB_TEST_FULL_NAT_RIG_H

#include "rig.h"

static inline const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

const char *source_of(uint8_t family);
const char *backend_name(uint8_t family); /* of backend 1 */

/* Backends 1 to `backends`; `flags`: HB_REWRITE_..., how they are told of the client. */
void publish_full(struct rig *rig, uint8_t family, uint8_t flags, uint16_t backends);

/* A second worker, only played: nothing of it runs, but packets are handed to it, and by it with
 * hb_handover_give. */
struct hb_worker *add_other_worker(struct rig *rig);
/* With what is in the rings. */
void remove_other_worker(struct rig *rig, struct hb_worker *other);

/* Sends a frame. Whether something leaves, which then is sound; the first is in *out. */
bool pass(struct rig *rig, struct frame in, struct frame *out);
/* Sends one that must be dropped for this reason alone. */
void drop(struct rig *rig, const char *text, struct frame in, unsigned reason);

uint32_t get16(const struct frame *frame, uint32_t at);
uint32_t get32(const struct frame *frame, uint32_t at);
struct frame poke32(struct frame frame, uint32_t at, uint32_t value);
uint32_t l4_of(uint8_t family);

/* A TCP segment with numbers, of the client or, `answer`, of backend 1; `port` is the client's, or
 * that of the source address. */
struct frame segment(uint8_t family, bool answer, uint16_t port, uint8_t flags, uint32_t seq,
                     uint32_t ack, uint32_t payload);

#endif
