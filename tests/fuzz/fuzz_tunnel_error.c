/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damaged ICMP errors about tunnel packets, as control hears them from anybody: whatever a message
 * holds, nothing outside of it is read, and what is said of it is in it. One that is taken for a
 * backend's has that backend's address and source where the quoted packet has its own.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "fuzz.h"
#include "tunnel_error.h"
#include "wrap.h"

#define MODES       5
#define REWRITES    (2 * MODES * 2) /* both families, one source and spread ones */
#define MESSAGE_MAX 2048

static struct hb_rewrite rewrites[REWRITES];
static uint64_t totals[3]; /* messages, read, a backend's */

static struct wrap wrap_of(uint32_t number)
{
    static const uint8_t modes[MODES] = {HB_FORWARDING_IPIP, HB_FORWARDING_GUE, HB_FORWARDING_GUE1,
                                         HB_FORWARDING_GRE, HB_FORWARDING_VXLAN};

    return (struct wrap){.forwarding = modes[number % MODES],
                         .family = number / MODES % 2 ? 6 : 4,
                         .number = 1,
                         .source_port = 50000,
                         .spread = number >= 2 * MODES ? 7 : 0};
}

static void make_rewrites(void)
{
    for (uint32_t i = 0; i < REWRITES; i++) {
        struct wrap wrap = wrap_of(i);

        rewrites[i] = (struct hb_rewrite){.l2_size = 14,
                                          .family = wrap.family,
                                          .forwarding = wrap.forwarding,
                                          .spread = wrap.spread};
        rewrites[i].size = (uint8_t)write_wrap(rewrites[i].bytes, &wrap);
    }
}

/* The rewrite's addresses against the quoted bytes, read in another way. */
static void judge(const struct hb_tunnel_error *error, const struct hb_rewrite *rewrite,
                  const uint8_t *quote)
{
    uint32_t size = rewrite->family == 6 ? 16 : 4, end = rewrite->family == 6 ? 40 : 20;
    const uint8_t *outer = rewrite->bytes + rewrite->l2_size;
    struct hb_address inner;

    if (!hb_tunnel_error_is_of(error, rewrite, &inner))
        return;
    totals[2]++;
    assert_int_equal(error->to.family, rewrite->family);
    assert_memory_equal(quote + end - size, outer + end - size, size);
    for (uint32_t bit = 0; bit < 8 * size - rewrite->spread; bit++)
        assert_int_equal(quote[end - 2 * size + bit / 8] >> (7 - bit % 8) & 1,
                         outer[end - 2 * size + bit / 8] >> (7 - bit % 8) & 1);
    assert_true(inner.family == 0 || inner.family == 4 || inner.family == 6);
    assert_true(inner.family == 0 || error->size >= (inner.family == 6 ? 40 : 20));
}

/* A message in a buffer that ends with it. */
static void hear(uint8_t family, const uint8_t *bytes, size_t size)
{
    uint8_t *message = malloc(size + (size == 0));
    struct hb_tunnel_error error;

    assert_non_null(message);
    memcpy(message, bytes, size);
    totals[0]++;
    if (hb_tunnel_error_read(family, message, size, &error)) {
        totals[1]++;
        assert_true(size >= 8 + 20 + 8 && error.size <= size - 8 - 20);
        assert_ptr_equal(error.payload + error.size, message + size);
        assert_int_equal(error.to.family, family);
        assert_true(error.kind == HB_TUNNEL_TOO_BIG || error.mtu == 0);
        for (uint32_t i = 0; i < REWRITES; i++)
            judge(&error, &rewrites[i], message + 8);
    }
    free(message);
}

/* Makes the sum of an ICMP message right again, so that what is behind that check is reached. */
static void seal(uint8_t *bytes, size_t size)
{
    uint16_t sum;

    bytes[2] = bytes[3] = 0;
    sum = checksum(bytes, (uint32_t)size);
    bytes[2] = (uint8_t)(sum >> 8);
    bytes[3] = (uint8_t)sum;
}

/* About a tunnel packet of one of the rewrites, which quotes so many bytes of it; 0: all. */
static struct frame make_message(uint32_t number, uint8_t inner_family, uint8_t type, uint8_t code,
                                 uint32_t word, uint32_t quoted)
{
    struct wrap wrap = wrap_of(number);
    struct frame inner = inner_family == 6 ? TCP6(.payload = 100) : TCP4(.payload = 100);
    struct frame sent = wrap_frame(&inner, &wrap);

    return build_icmp(&(struct icmp){.family = wrap.family,
                                     .type = type,
                                     .code = code,
                                     .word = word,
                                     .quote = &sent,
                                     .quoted = quoted < sent.ip_length ? quoted : 0});
}

#ifndef HB_LIBFUZZER
static struct frame random_message(uint64_t *random)
{
    static const uint8_t types[2][4] = {{3, 3, 3, 11}, {1, 2, 2, 3}};
    uint32_t number = (uint32_t)fuzz_below(random, REWRITES);
    bool six = wrap_of(number).family == 6;

    return make_message(number, fuzz_below(random, 2) ? 6 : 4, types[six][fuzz_below(random, 4)],
                        six ? 0 : (uint8_t)fuzz_below(random, 6), (uint32_t)fuzz_edge(random),
                        (uint32_t)fuzz_below(random, 160));
}

static void messages_of_anybody(void **state)
{
    uint64_t rounds = fuzz_setting("HB_FUZZ_ROUNDS", 200000);

    (void)state;
    make_rewrites();
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = fuzz_setting("HB_FUZZ_SEED", 1) * rounds + round;
        struct frame frame = random_message(&random);
        uint32_t header = frame.family == 6 ? 40 : 20, size = frame.ip_length - header;
        uint8_t *message = frame.bytes + frame.l3 + header;

        if (fuzz_below(&random, 4) != 0)
            fuzz_damage(&random, message, size < 100 ? size : 100);
        if (fuzz_below(&random, 4) == 0)
            size = (uint32_t)fuzz_below(&random, size + 1);
        if (frame.family == 4 && size >= 8 && fuzz_below(&random, 8) != 0)
            seal(message, size);
        hear(fuzz_below(&random, 16) ? frame.family : 10 - frame.family, message, size);
    }
    print_message("%llu messages: %llu read, %llu taken for a backend's\n",
                  (unsigned long long)totals[0], (unsigned long long)totals[1],
                  (unsigned long long)totals[2]);
    /* Some of all outcomes, else the damage is too great or too small to mean anything. */
    assert_true(rounds < 10000 ||
                (totals[1] > rounds / 4 && totals[1] < rounds && totals[2] > rounds / 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(messages_of_anybody)};

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else

/* The input: family and whether the sum is made right, then the message. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint8_t message[MESSAGE_MAX];

    if (size == 0 || size > sizeof(message))
        return 0;
    memcpy(message, data + 1, size - 1);
    if ((data[0] & 2) != 0 && size > 8)
        seal(message, size - 1);
    hear(data[0] & 1 ? 6 : 4, message, size - 1);
    return 0;
}

/* Every kind of error about every kind of tunnel packet, whole and cut to the least. */
void fuzz_seeds(void)
{
    static const uint8_t types[2][5] = {{3, 3, 11, 12, 5}, {2, 1, 3, 4, 128}};

    for (uint32_t i = 0; i < REWRITES * 2 * 5 * 3; i++) {
        static const uint16_t quoted[] = {0, 28, 48};
        uint32_t number = i % REWRITES, kind = i / REWRITES / 2 % 5;
        bool six = wrap_of(number).family == 6;
        struct frame frame =
            make_message(number, i / REWRITES % 2 ? 6 : 4, types[six][kind],
                         !six && kind == 0 ? 4 : 0, 1400, quoted[i / REWRITES / 10]);
        uint32_t header = six ? 40 : 20;
        struct seed seed = {.size = 0};

        put8(&seed, 2 | six);
        put_bytes(&seed, frame.bytes + frame.l3 + header, frame.ip_length - header);
        save_seed(&seed);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    make_rewrites();
    return fuzz_begin(0);
}
#endif
