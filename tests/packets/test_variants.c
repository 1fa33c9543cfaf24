/* SPDX-License-Identifier: BSD-3-Clause */
/* The short cuts of the packet path, in every variant that this machine can run: they read what the
 * careful way reads, and send what the test's own builder says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow_bucket.h"
#include "rig.h"
#include "stages.h"
#include "variant.h"

static uint64_t random_state = 88172645463325252ULL;

static uint32_t next_random(uint32_t below)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16) % below;
}

/* A sound frame, most likely a plain one. */
static struct frame make_sound_frame(void)
{
    struct spec spec = {
        .family = next_random(24) == 0 ? 6 : 4,
        .protocol = next_random(3) == 0 ? 17 : 6,
        .flags = ACK,
        .tos = (uint8_t)next_random(256),
        .tags = next_random(48) == 0 ? 1 : 0,
        .options = next_random(48) == 0 ? 8 : 0,
        .fragment = next_random(3) == 0 ? DF : 0,
        .source_port = (uint16_t)next_random(65536),
        .payload = next_random(300),
    };
    struct frame frame = build(&spec);

    return next_random(3) == 0 ? pad(frame, frame.length + next_random(20)) : frame;
}

/* A frame of any kind with a few bytes changed at random, cut anywhere, its checksum mostly made
 * right again. */
static struct frame make_random_frame(void)
{
    static const uint16_t fragments[] = {0, 0, 0, 0, DF, DF, 0x8000, MF, 1, DF | 7, 0x1fff};
    static const uint8_t bytes[] = {0, 1, 2, 0x45, 0x46, 5, 6, 17, 127, 128, 223, 224, 255};
    struct spec spec = {
        .family = next_random(3) == 0 ? 6 : 4,
        .protocol = next_random(3) == 0 ? 17 : 6,
        .flags = (uint8_t)next_random(64),
        .tos = (uint8_t)next_random(256),
        .tags = next_random(8) == 0 ? (uint8_t)(1 + next_random(2)) : 0,
        .options = next_random(8) == 0 ? (uint8_t)(4 * next_random(11)) : 0,
        .fragment = fragments[next_random(11)],
        .source_port = (uint16_t)next_random(65536),
        .payload = next_random(40),
    };
    struct frame frame = build(&spec);

    if (next_random(3) == 0)
        frame = pad(frame, frame.length + next_random(20));
    for (uint32_t changes = next_random(4); changes > 0; changes--) {
        uint8_t value = next_random(2) == 0 ? (uint8_t)next_random(256) : bytes[next_random(13)];

        frame = poke8(frame, ETHERTYPE + next_random(frame.length < 76 ? frame.length - 12 : 64),
                      value);
    }
    if (spec.family == 4 && spec.tags == 0 && spec.options == 0 && next_random(8) != 0)
        frame = fix4(frame);
    if (next_random(4) == 0)
        frame = cut(frame, 14 + next_random(frame.length - 13));
    return frame;
}

/* Of what the short cuts and the careful way made of one frame. */
static void compare_readings(const struct hb_packet *a, const struct hb_packet *b)
{
    assert_int_equal(a->mbuf != NULL, b->mbuf != NULL);
    if (a->mbuf == NULL)
        return;
    assert_int_equal(a->fault, b->fault);
    assert_int_equal(a->flow.source, b->flow.source);
    assert_int_equal(a->flow.destination, b->flow.destination);
    assert_int_equal(a->flow.ports, b->flow.ports);
    assert_int_equal(a->flow.kind, b->flow.kind);
    assert_int_equal(a->l3_offset, b->l3_offset);
    if (a->fault != HB_NO_FAULT)
        return;
    assert_int_equal(a->inner_length, b->inner_length);
    assert_int_equal(a->traffic_class, b->traffic_class);
    assert_int_equal(a->event, b->event);
    assert_int_equal(a->dont_fragment, b->dont_fragment);
    assert_int_equal(a->l4_offset, b->l4_offset);
    assert_int_equal(a->outer_protocol, b->outer_protocol);
    assert_int_equal(a->service, HB_NO_SERVICE);
}

static void fill_batch(struct rig *rig, struct hb_batch *batch, const struct frame *frame,
                       const uint32_t *split, uint16_t count)
{
    batch->worker = rig->worker;
    batch->generation = atomic_load(&rig->head.current)->node[0];
    batch->count = count;
    batch->ended = 0;
    batch->aside_count = 0;
    for (uint16_t i = 0; i < count; i++) {
        memset(&batch->packet[i], 0xff, sizeof(batch->packet[i]));
        batch->packet[i].mbuf = make_mbuf(&frame[i], RTE_PKTMBUF_HEADROOM, split[i]);
        batch->packet[i].service = HB_NO_SERVICE;
    }
    rig->worker->counters->rx_packets += count;
}

static void drop_batch(struct hb_batch *batch)
{
    for (uint16_t i = 0; i < batch->count; i++)
        hb_drop(batch, &batch->packet[i], HB_DROP_NOT_VIP);
}

static bool is_for_one(const struct hb_packet *a, const struct hb_packet *b)
{
    if (a->flow.kind != b->flow.kind || a->flow.destination != b->flow.destination ||
        a->flow.ports >> 16 != b->flow.ports >> 16)
        return false;
    return !hb_flow_is_ipv6(&a->flow) ||
           memcmp(a->flow.addresses + 16, b->flow.addresses + 16, 16) == 0;
}

/* One burst; returns how many of its packets are sound. `alike` must only be said of a burst whose
 * packets are for one service. */
static uint32_t compare_burst(struct rig *rig, const struct hb_variant *variant,
                              const struct frame *frame, const uint32_t *split, uint16_t count)
{
    static struct hb_batch fast, careful;
    const struct hb_packet *first = &careful.packet[0];
    uint32_t sound = 0;
    bool alike = true;

    fill_batch(rig, &fast, frame, split, count);
    fill_batch(rig, &careful, frame, split, count);
    variant->parse(&fast);
    hb_stage_parse_with_care(&careful);
    assert_int_equal(fast.count, careful.count);
    for (uint16_t i = 0; i < careful.count; i++) {
        const struct hb_packet *packet = &careful.packet[i];

        compare_readings(&fast.packet[i], packet);
        sound += packet->fault == HB_NO_FAULT;
        alike &= packet->fault == HB_NO_FAULT && is_for_one(packet, first);
    }
    assert_true(!fast.alike || (alike && careful.count == count));
    drop_batch(&fast);
    drop_batch(&careful);
    return sound;
}

static void all_ways_to_read_agree(void **state)
{
    static struct frame frame[HB_BURST];
    struct rig *rig = *state;
    uint32_t split[HB_BURST], sound = 0, all = 0, variants;
    const struct hb_variant *variant = hb_variants(&variants);

    publish_one_backend(rig, 4);
    for (uint32_t round = 0; round < 12000; round++) {
        uint16_t count = (uint16_t)(1 + next_random(HB_BURST));
        bool tidy = next_random(2) == 0;

        for (uint16_t i = 0; i < count; i++) {
            frame[i] = tidy && next_random(20) != 0 ? make_sound_frame() : make_random_frame();
            /* Sometimes in two segments, so that not all is at hand. */
            split[i] = next_random(tidy ? 64 : 8) == 0 ? 14 + next_random(60) : 0;
        }
        for (uint32_t v = 0; v < variants; v++)
            sound += compare_burst(rig, &variant[v], frame, split, count);
        all += count * variants;
    }
    assert_in_range(sound, all / 2, all / 10 * 9);
}

/* Bursts for one service, for the short look-up that such get: all, or all but one. */
static void a_burst_for_one_service(void **state)
{
    static struct frame frame[HB_BURST];
    struct rig *rig = *state;
    uint32_t split[HB_BURST] = {0}, variants;
    const struct hb_variant *variant = hb_variants(&variants);

    publish_one_backend(rig, 4);
    for (uint32_t v = 0; v < 2 * variants; v++) {
        uint8_t family = v % 2 == 0 ? 4 : 6;

        for (uint16_t other = 0; other <= HB_BURST; other++) {
            struct frame out;
            uint32_t sent = 0;

            rig->worker->run = variant[v / 2].run;
            for (uint16_t i = 0; i < HB_BURST; i++) {
                struct spec spec = {.family = family, .protocol = 6, .source_port = i};

                spec.destination_port = i == other ? 81 : 0;
                frame[i] = build(&spec);
            }
            compare_burst(rig, &variant[v / 2], frame, split, HB_BURST);
            for (uint16_t i = 0; i < HB_BURST; i++)
                send_frame(rig, &frame[i]);
            turn(rig);
            while (receive(rig, PORT, &out))
                sent++;
            assert_int_equal(sent, other < HB_BURST ? HB_BURST - 1 : HB_BURST);
        }
    }
}

struct folded {
    uint32_t fold, number;
};

static int by_fold(const void *a, const void *b)
{
    const struct folded *x = a, *y = b;

    return x->fold < y->fold ? -1 : x->fold > y->fold;
}

/* To one address of many, which differ all over their lower half. */
static struct frame to_number(uint32_t number)
{
    struct frame frame = TCP6(.flags = ACK);
    uint64_t spread = number * UINT64_C(0x9e3779b97f4a7c15);

    for (uint32_t i = 0; i < 8; i++)
        frame = poke8(frame, IP6_DESTINATION + 8 + i, (uint8_t)((spread ^ spread >> 29) >> 8 * i));
    return frame;
}

/* The addresses' fold in a flow's key is not secret: two VIPs with one fold are two VIPs. */
static void one_fold_is_not_one_vip(void **state)
{
    enum { TRIED = 400000 };
    struct folded *folded = calloc(TRIED, sizeof(*folded));
    struct rig *rig = *state;
    uint32_t split[2] = {0}, pairs = 0, variants;
    const struct hb_variant *variant = hb_variants(&variants);

    assert_non_null(folded);
    for (uint32_t i = 0; i < TRIED; i++) {
        struct frame frame = to_number(i);

        folded[i] = (struct folded){hb_flow_fold(&frame.bytes[IP6_DESTINATION]), i};
    }
    qsort(folded, TRIED, sizeof(*folded), by_fold);
    publish_one_backend(rig, 6);
    for (uint32_t i = 1; i < TRIED; i++) {
        if (folded[i - 1].fold == folded[i].fold) {
            struct frame frame[2] = {to_number(folded[i - 1].number), to_number(folded[i].number)};

            for (uint32_t v = 0; v < variants; v++)
                compare_burst(rig, &variant[v], frame, split, 2);
            pairs++;
        }
    }
    free(folded);
    assert_in_range(pairs, 1, TRIED);
}

/* Whole bursts of sound frames through the pipeline: every byte that leaves, in order. Now and then
 * one is too long for the backend's link (1,480 bytes), or has no room for the headers in front.
 * BL-06: the IDs of a burst's packets that may be fragmented differ. */
static void every_variant_sends_the_same(void **state)
{
    static struct frame frame[HB_BURST];
    struct rig *rig = *state;
    uint32_t variants;
    const struct hb_variant *variant = hb_variants(&variants);

    publish_one_backend(rig, 4);
    for (uint32_t round = 0; round < 2000 * variants; round++) {
        uint16_t count = (uint16_t)(1 + next_random(HB_BURST)), last = 0;
        bool leaves[HB_BURST];

        rig->worker->run = variant[round % variants].run;
        for (uint16_t i = 0; i < count; i++) {
            uint32_t headroom = next_random(100) == 0 ? 14 + next_random(12) : RTE_PKTMBUF_HEADROOM;

            frame[i] = make_sound_frame();
            if (next_random(100) == 0)
                frame[i] = TCP4(.flags = ACK, .payload = 1439 + next_random(4));
            leaves[i] = headroom + frame[i].l3 >= 34 && frame[i].ip_length <= 1480;
            send_mbuf(rig, make_mbuf(&frame[i], headroom, 0));
        }
        turn(rig);
        for (uint16_t i = 0; i < count; i++) {
            struct frame out, want;
            uint16_t id;

            if (!leaves[i])
                continue;
            assert_true(receive(rig, PORT, &out));
            id = (uint16_t)(out.bytes[L3 + 4] << 8 | out.bytes[L3 + 5]);
            want = tunnel(&frame[i], 4, 1, id, 0);
            assert_frame(variant[round % variants].name, &out, &want);
            if (frame[i].df || frame[i].family == 6)
                continue;
            assert_true(i == 0 || id != last);
            last = id;
        }
    }
}

/* An entry whose time is over decides nothing, though nobody has taken it out yet. */
static void an_old_entry_decides_nothing(void **state)
{
    struct rig *rig = *state;
    uint32_t variants;
    const struct hb_variant *variant = hb_variants(&variants);

    add_backend(rig, 1, 0, 4);
    add_backend(rig, 2, 0, 4);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    for (uint32_t v = 0; v < variants; v++) {
        uint16_t port = (uint16_t)(1000 + v);

        rig->worker->run = variant[v].run;
        set_table(rig, 0, 1, (uint16_t[]){1});
        publish(rig);
        assert_int_equal(B(rig, TCP4(.source_port = port)), 1);
        set_table(rig, 0, 1, (uint16_t[]){2});
        publish(rig);
        rig->now_ms += 2999; /* tcp_syn_ms is 3,000 */
        assert_int_equal(B(rig, TCP4(.source_port = port)), 1);
        rig->now_ms += 3000;
        assert_int_equal(B(rig, TCP4(.source_port = port)), 2);
    }
}

/* Packets of one flow in one burst: each begins where the one before it ended. */
static void a_burst_of_one_flow(void **state)
{
    static const uint8_t flags[] = {SYN, ACK, ACK, FIN | ACK, ACK, ACK, ACK, ACK, ACK};
    struct rig *rig = *state;
    uint32_t variants;
    const struct hb_variant *variant = hb_variants(&variants);

    publish_one_backend(rig, 4);
    for (uint32_t v = 0; v < variants; v++) {
        struct frame frame;

        rig->worker->run = variant[v].run;
        frame = TCP4(.source_port = (uint16_t)(2000 + v));
        send_frame(rig, &frame);
        turn(rig);
        for (uint32_t i = 0; i < sizeof(flags); i++) {
            frame = TCP4(.source_port = (uint16_t)(2000 + v), .flags = flags[i]);
            send_frame(rig, &frame);
        }
        turn(rig);
        take_all(rig, PORT);
        assert_int_equal(live_flows(rig, 1), v + 1);
    }
    advance(rig, 3001); /* tcp_syn_ms */
    assert_int_equal(live_flows(rig, 1), variants);
    advance(rig, 7000); /* tcp_fin_ms is 10,000; an established flow would stay an hour */
    assert_int_equal(live_flows(rig, 1), 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(all_ways_to_read_agree),       TEST(a_burst_for_one_service),
        TEST(one_fold_is_not_one_vip),      TEST(every_variant_sends_the_same),
        TEST(an_old_entry_decides_nothing), TEST(a_burst_of_one_flow),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
