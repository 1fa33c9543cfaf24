/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Damaged configuration files: whatever a file holds, there is either a configuration and no
 * complaint, or no configuration and at least one complaint that names the file. Sanitizers watch
 * for reads outside and for leaks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "config.h"
#include "fuzz.h"

struct complaints {
    uint32_t errors;
    bool nameless;
};

static void note(void *context, bool warning, const char *message)
{
    struct complaints *complaints = context;

    complaints->errors += !warning;
    if (strncmp(message, "fuzz.yaml", 9) != 0 || strchr(message, '\n') != NULL)
        complaints->nameless = true;
}

static bool parse(const char *text, size_t size)
{
    struct complaints complaints = {0};
    char *copy = malloc(size + 1); /* with nothing behind it */
    struct hb_config *config;

    assert_non_null(copy);
    memcpy(copy, text, size);
    config = hb_config_parse(copy, size, "fuzz.yaml", note, &complaints);
    free(copy);
    assert_int_equal(config == NULL, complaints.errors > 0);
    assert_false(complaints.nameless);
    hb_config_free(config);
    return complaints.errors == 0;
}

static const char good[] =
    "seed: a-seed-for-tests\n"
    "tunnel: { source: 198.51.100.10, source6: \"2001:db8:0:1::10\" }\n"
    "pools:\n"
    "  - name: web\n"
    "    algorithm: maglev\n"
    "    table_size: 251\n"
    "    forwarding: ipip\n"
    "    health: { type: http, port: 80, interval: 1s, timeout: 500ms, jitter: 10ms, rise: 2, "
    "fall: 3,\n"
    "      path: /up, host: www.example.org, status: \"200-299,404\", body: \"hex:6f 6b\", via: "
    "tunnel,\n"
    "      vip: 192.0.2.10, damping: { half_life: 1m, suppress: 3.5, reuse: 1, max_hold: 5m } }\n"
    "    backends:\n"
    "      - { name: web1, address: 198.51.100.11 }\n"
    "      - { name: web2, address: \"2001:db8:0:b::12\", weight: 2 }\n"
    "services:\n"
    "  - { name: www, vip: 192.0.2.10, protocol: tcp, port: 80, pool: web }\n"
    "  - { name: www6, vip: \"2001:db8:0:a::10\", protocol: udp, port: 443, pool: web }\n";

#ifndef HB_LIBFUZZER
/* Words of the file in each other's place, and what YAML treats in its own way. */
static const char *const words[] = {
    "name", "web", "web1",  "pools",  "services",     "198.51.100.11",
    "0",    "-1",  "65537", "1s",     "1e9",          "{",
    "}",    "[",   "]",     "- ",     ": ",           "\n",
    "\t",   "&a ", "*a",    "!!int ", "\"",           "'",
    "|\n",  ">\n", "---\n", "...\n",  "# ",           "~",
    "null", "<<",  "\xff",  "\xc3",   "\xef\xbb\xbf", "99999999999999999999",
};

static size_t damage(uint64_t *random, char *text, size_t size, size_t room)
{
    const char *word = words[fuzz_below(random, sizeof(words) / sizeof(words[0]))];
    size_t at = fuzz_below(random, size), length = strlen(word);
    size_t gone =
        fuzz_below(random, 3) == 0 ? fuzz_below(random, size - at) : fuzz_below(random, 8);

    if (at + gone > size)
        gone = size - at;
    switch (fuzz_below(random, 3)) {
    case 0: /* one byte */
        text[at] = (char)fuzz_random(random);
        return size;
    case 1: /* something goes */
        memmove(text + at, text + at + gone, size - at - gone);
        return size - gone;
    default: /* a word comes */
        if (size + length > room)
            return size;
        memmove(text + at + length, text + at, size - at);
        memcpy(text + at, word, length);
        return size + length;
    }
}

static void undamaged_is_accepted(void **state)
{
    (void)state;
    assert_true(parse(good, sizeof(good) - 1));
}

static void every_beginning_has_an_answer(void **state)
{
    (void)state;
    for (size_t size = 0; size < sizeof(good); size++)
        parse(good, size);
}

static void damage_is_refused_with_a_complaint(void **state)
{
    uint64_t rounds = fuzz_setting("HB_FUZZ_ROUNDS", 200000) / 4, accepted = 0;

    (void)state;
    for (uint64_t round = 0; round < rounds; round++) {
        uint64_t random = fuzz_setting("HB_FUZZ_SEED", 1) * rounds + round;
        char text[2 * sizeof(good)];
        size_t size = sizeof(good) - 1;

        memcpy(text, good, size);
        for (uint64_t n = 1 + fuzz_below(&random, 3); n > 0 && size > 1; n--)
            size = damage(&random, text, size, sizeof(text));
        accepted += parse(text, size);
    }
    print_message("%llu rounds: %llu accepted\n", (unsigned long long)rounds,
                  (unsigned long long)accepted);
    assert_true(accepted > 0 && accepted < rounds);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(undamaged_is_accepted),
        cmocka_unit_test(every_beginning_has_an_answer),
        cmocka_unit_test(damage_is_refused_with_a_complaint),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
#else

/* The input is a file. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    parse((const char *)data, size);
    return 0;
}

/* The file above with each part of others that it does not have. scripts/fuzz adds the example of
 * docs, which has every key there is. */
void fuzz_seeds(void)
{
    static const char *const parts[] = {
        "",
        "tunnel: { source_prefix: 198.51.100.128/25, source_prefix6: \"2001:db8:0:2::/112\" }\n",
        "icmp: { source: 198.51.100.10, rate: 1000, relay_rate: 0, echo: forward, mtu_floor: 552 "
        "}\n",
        "punt: { rate: 100000 }\nsettle_after: 1h\nkeep_configurations: 10\n",
        "maintenance: { on_withdraw: \"true\", on_announce: \"false\", time_limit: 10s, quiet: 10 "
        "}\n",
        "api: { listen: 127.0.0.1:8080, listen_may_change: false, others_may_read: true }\n",
        "---\nseed: another-seed-for-tests\n...\n",
    };

    for (uint32_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
        struct seed seed = {.size = 0};

        put_bytes(&seed, parts[i], strlen(parts[i]));
        put_bytes(&seed, good, sizeof(good) - 1);
        save_seed(&seed);
    }
}

int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc, (void)argv;
    return fuzz_begin(0);
}
#endif
