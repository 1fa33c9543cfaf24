/* SPDX-License-Identifier: BSD-3-Clause */
/* See full_nat_rig.h. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "full_nat_rig.h"
#include "nat_frames.h"
#include "nat_handover.h"

const char *source_of(uint8_t family)
{
    return family == 6 ? "2001:db8:0:f::64" : "198.51.100.64";
}

const char *backend_name(uint8_t family)
{
    return family == 6 ? "2001:db8:0:b::11" : "198.51.100.11";
}

void publish_full(struct rig *rig, uint8_t family, uint8_t flags, uint16_t backends)
{
    for (uint16_t id = 1; id <= backends; id++) {
        add_backend(rig, id, 0, family);
        translate_backend(rig, id, HB_FORWARDING_FULL_NAT);
        rig->backend[id].nat_port = htons(8080);
        rig->backend[id].flags = flags;
    }
    share_table(rig, 0);
    rig->services = 0;
    add_service(rig, family, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, family, HB_PROTOCOL_UDP, 443, 0);
    rig->sources = 1;
    rig->source[0] =
        (struct hb_source_record){.family = family, .port_first = 2000, .port_last = 2999};
    inet_pton(family == 6 ? AF_INET6 : AF_INET, source_of(family), rig->source[0].address);
    publish(rig);
}

struct hb_worker *add_other_worker(struct rig *rig)
{
    struct hb_worker *other = aligned_alloc(64, sizeof(*other));
    struct hb_handover *handover;
    bool needed;

    handover = hb_handover_create(2, &needed);
    assert_non_null(handover);
    assert_non_null(other);
    memset(other, 0, sizeof(*other));
    other->config.index = 1;
    other->config.handover = handover;
    rig->worker->config.handover = handover;
    rig->workers = 2;
    return other;
}

void remove_other_worker(struct rig *rig, struct hb_worker *other)
{
    hb_handover_destroy((struct hb_handover *)(uintptr_t)rig->worker->config.handover);
    rig->worker->config.handover = NULL;
    free(other);
}

bool pass(struct rig *rig, struct frame in, struct frame *out)
{
    send_frame(rig, &in);
    turn(rig);
    if (!receive(rig, PORT, out))
        return false;
    out->family = in.family;
    out->l3 = L3;
    assert_true(is_sound(out));
    return true;
}

uint32_t get16(const struct frame *frame, uint32_t at)
{
    return (uint32_t)(frame->bytes[at] << 8 | frame->bytes[at + 1]);
}

uint32_t get32(const struct frame *frame, uint32_t at)
{
    return get16(frame, at) << 16 | get16(frame, at + 2);
}

struct frame poke32(struct frame frame, uint32_t at, uint32_t value)
{
    return poke16(poke16(frame, at, (uint16_t)(value >> 16)), at + 2, (uint16_t)value);
}

uint32_t l4_of(uint8_t family)
{
    return family == 6 ? L4_OF_6 : L4_OF_4;
}

void drop(struct rig *rig, const char *text, struct frame in, unsigned reason)
{
    uint64_t before = counters(rig)->drops[reason];
    struct frame out;

    if (pass(rig, in, &out) || counters(rig)->drops[reason] != before + 1)
        fail_msg("%s: not dropped for %s", text, hb_drop_name(reason));
}

/* A TCP segment with numbers. `size` of options is taken from the front of the payload. */
struct frame segment(uint8_t family, bool answer, uint16_t port, uint8_t flags, uint32_t seq,
                     uint32_t ack, uint32_t payload)
{
    struct frame frame = answer ? build(&(struct spec){.family = family,
                                                       .protocol = 6,
                                                       .source = backend_name(family),
                                                       .source_port = 8080,
                                                       .destination = source_of(family),
                                                       .destination_port = port,
                                                       .flags = flags,
                                                       .payload = payload})
                                : build(&(struct spec){.family = family,
                                                       .protocol = 6,
                                                       .source_port = port,
                                                       .flags = flags,
                                                       .payload = payload});
    uint32_t l4 = l4_of(family);

    return whole(poke32(poke32(frame, l4 + 4, seq), l4 + 8, ack));
}
