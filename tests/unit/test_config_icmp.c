/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys about ICMP and MSS: presets, values, complaints, and the settings they become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

#include "config_fixture.h"

#define SERVICE "  - { name: www, vip: 192.0.2.10, protocol: %s, port: 80, pool: web%s }"

static struct hb_config *parse_with(int line, const char *replacement,
                                    struct complaints *complaints)
{
    char *text = edit_base(line, replacement);
    struct hb_config *config = parse(text, complaints);

    free(text);
    return config;
}

static void presets(void **state)
{
    struct complaints complaints = {0};
    struct hb_config *config = parse_with(1, "seed: 0123456789abcdef", &complaints);
    struct hb_settings settings = {0}, want = {.icmp_rate = 1000,
                                               .icmp_relay_rate = 10000,
                                               .mtu_floor4 = 552,
                                               .mtu_floor6 = 1280,
                                               .echo = HB_ECHO_ANSWER};

    (void)state;
    assert_non_null(config);
    hb_icmp_config_apply(&config->icmp, &settings);
    assert_memory_equal(&settings, &want, sizeof(want));
    assert_int_equal(config->services[0].mss_max, 0);
    hb_config_free(config);
}

static void every_key(void **state)
{
    struct complaints complaints = {0};
    struct hb_config *config =
        parse_with(1,
                   "seed: 0123456789abcdef\nicmp: { source: 198.51.100.10, source6: "
                   "\"2001:db8::10\", rate: 0, relay_rate: 7, echo: forward, mtu_floor: 0, "
                   "mtu_floor6: 1400 }",
                   &complaints);
    struct hb_settings settings = {.punt_rate = 5};
    struct hb_settings want = {.icmp_source4 = {198, 51, 100, 10},
                               .icmp_source6 = {0x20, 1, 0xd, 0xb8, [15] = 0x10},
                               .icmp_relay_rate = 7,
                               .echo = HB_ECHO_FORWARD,
                               .mtu_floor6 = 1400,
                               .punt_rate = 5}; /* not ours */

    (void)state;
    assert_non_null(config);
    hb_icmp_config_apply(&config->icmp, &settings);
    assert_memory_equal(&settings, &want, sizeof(want));
    hb_config_free(config);
}

static void complaints_about_icmp(void **state)
{
    static const struct {
        const char *value, *complaint;
    } rows[] = {
        {"{ echo: ignore }", "t:2: icmp.echo: expected answer, forward or drop, found \"ignore\""},
        {"{ rate: 1000001 }",
         "t:2: icmp.rate: expected messages a second, 0 to 1000000, found \"1000001\""},
        {"{ mtu_floor: 1501 }",
         "t:2: icmp.mtu_floor: expected bytes from 0 to 1500, found \"1501\""},
        {"{ source: 127.0.0.1 }",
         "t:2: icmp.source: expected the unicast address of a host or a service, but 127.0.0.1 is "
         "loopback (127.0.0.0/8)"},
        {"{ mtu_flor: 5 }", "t:2: icmp: unknown key \"mtu_flor\"; did you mean \"mtu_floor\"?"},
        {"none", "t:2: icmp: expected a mapping such as { rate: 1000, echo: answer }"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct complaints complaints = {0};
        char line[256];

        snprintf(line, sizeof(line), "seed: 0123456789abcdef\nicmp: %s", rows[i].value);
        assert_null(parse_with(1, line, &complaints));
        if (complaints.count != 1 || !has_complaint(&complaints, false, rows[i].complaint)) {
            print_complaints(&complaints);
            fail_msg("expected \"%s\"", rows[i].complaint);
        }
        drop_complaints(&complaints);
    }
}

static void mss_of_a_service(void **state)
{
    static const struct {
        const char *protocol, *key, *complaint;
    } rows[] = {
        {"tcp", ", mss: 536", NULL},
        {"tcp", ", mss: 65495", NULL},
        {"tcp", ", mss: 535",
         "t:9: services[0].mss: expected bytes from 536 to 65495, found \"535\""},
        {"udp", ", mss: 1400",
         "t:9: services[0].mss: only TCP has a maximum segment size; remove it"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct complaints complaints = {0};
        struct hb_config *config;
        char line[256];

        snprintf(line, sizeof(line), SERVICE, rows[i].protocol, rows[i].key);
        config = parse_with(9, line, &complaints);
        assert_int_equal(config != NULL, rows[i].complaint == NULL);
        if (rows[i].complaint != NULL)
            assert_true(has_complaint(&complaints, false, rows[i].complaint));
        else
            assert_int_equal(config->services[0].mss_max, atoi(rows[i].key + 7));
        hb_config_free(config);
        drop_complaints(&complaints);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(presets),
        cmocka_unit_test(every_key),
        cmocka_unit_test(complaints_about_icmp),
        cmocka_unit_test(mss_of_a_service),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
