/* SPDX-License-Identifier: BSD-3-Clause */
/* The command line: how it is split, what each option takes, and what a person is told about
 * mistakes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "options.h"

static char problem[HB_TEXT_SIZE];
static struct hb_options options;

/* Splits and parses "a b c". The words live until the next call. */
static int parse(const char *line, struct hb_command_line *split)
{
    static char *argv[64], words[1024];
    char *rest = words;
    int argc = 0, error;

    snprintf(words, sizeof(words), "%s", line);
    argv[argc++] = "halbach-dataplane";
    for (char *word; (word = strsep(&rest, " ")) != NULL;)
        if (*word != '\0')
            argv[argc++] = word;
    argv[argc] = NULL;
    error = hb_command_line_split(argc, argv, split, problem);
    return error != 0 ? error : hb_options_parse(split->own_count, split->own, &options, problem);
}

static void expect_problem(const char *line, const char *words)
{
    struct hb_command_line split;

    assert_int_equal(parse(line, &split), -EINVAL);
    if (strstr(problem, words) == NULL)
        fail_msg("%s: \"%s\" does not say \"%s\"", line, problem, words);
}

static void defaults(void **state)
{
    struct hb_command_line split;

    (void)state;
    assert_int_equal(parse("", &split), 0);
    assert_string_equal(options.socket, HB_DATAPLANE_SOCKET);
    assert_int_equal(options.flows, 1048576);
    assert_int_equal(options.interfaces, 0);
    assert_int_equal(options.idle_sleep_us, 0);
    assert_int_equal(options.timeouts.tcp_syn_ms, 3000);
    assert_int_equal(options.timeouts.tcp_established_ms, 3600000);
    assert_int_equal(options.timeouts.tcp_fin_ms, 10000);
    assert_int_equal(options.timeouts.tcp_rst_ms, 1000);
    assert_int_equal(options.timeouts.udp_ms, 60000);
}

static void every_option_is_read(void **state)
{
    struct hb_command_line split;

    (void)state;
    assert_int_equal(
        parse("-l 0-3 -a 0000:3b:00.0 -- --socket /tmp/x --interface eth0 --interface=eth1 "
              "--flows 16M --idle-sleep 50 --kernel-interface 2=tap0 --punt 1=hb0 --timeout-udp "
              "500ms "
              "--timeout-tcp-established 2h --timeout-tcp-syn 5s --timeout-tcp-fin 1m "
              "--timeout-tcp-rst=2s --flows6 4M --mbufs 1000K --mbuf-size 256",
              &split),
        0);
    assert_int_equal(split.eal_count, 4);
    assert_string_equal(split.eal[3], "0000:3b:00.0");
    assert_string_equal(options.socket, "/tmp/x");
    assert_string_equal(options.punt[1], "hb0");
    assert_int_equal(options.interfaces, 2);
    assert_string_equal(options.interface[1], "eth1");
    assert_int_equal(options.flows, 16 << 20);
    assert_int_equal(options.flows6, 4 << 20);
    assert_int_equal(options.mbufs, 1000 * 1024);
    assert_int_equal(options.mbuf_size, 256);
    assert_int_equal(options.idle_sleep_us, 50);
    assert_null(options.kernel_interface[0]);
    assert_string_equal(options.kernel_interface[2], "tap0");
    assert_int_equal(options.timeouts.udp_ms, 500);
    assert_int_equal(options.timeouts.tcp_established_ms, 7200000);
    assert_int_equal(options.timeouts.tcp_syn_ms, 5000);
    assert_int_equal(options.timeouts.tcp_fin_ms, 60000);
    assert_int_equal(options.timeouts.tcp_rst_ms, 2000);
}

static void the_line_is_split(void **state)
{
    static const struct {
        const char *line;
        int eal, own;
    } rows[] = {
        {"", 0, 0},
        {"--", 0, 0},
        {"-l 0,1 --vdev net_null0", 4, 0},
        {"-l 0,1 --", 2, 0},
        {"-- --flows 1M", 0, 2},
        {"--flows 1M", 0, 2},
        {"--flows=1M --interface eth0", 0, 3},
        {"-l 0,1 -- --flows 1M", 2, 2},
    };
    struct hb_command_line split;

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(parse(rows[i].line, &split), 0);
        assert_int_equal(split.eal_count, rows[i].eal);
        assert_int_equal(split.own_count, rows[i].own);
    }
    expect_problem("-l 0,1 --flows 1M", "put -- between");
    expect_problem("--flows 1M -l 0,1", "unknown option '-l'");
}

static void mistakes_are_named(void **state)
{
    (void)state;
    expect_problem("-- --flow 1M", "unknown option '--flow'");
    expect_problem("-- --flows", "--flows needs a value: --flows N");
    expect_problem("-- --help=yes", "--help takes no value");
    expect_problem("-- eth0", "unknown option 'eth0'");
    expect_problem("-- --socket=", "--socket");
    expect_problem("-- --interface a/b", "--interface 'a/b'");
    expect_problem("-- --interface sixteen-letters-x", "--interface");
    expect_problem("-- --interface a --interface a", "twice");
    expect_problem("-- --kernel-interface tap0", "PORT=IFNAME");
    expect_problem("-- --kernel-interface 32=tap0", "PORT=IFNAME");
    expect_problem("-- --kernel-interface 1=", "PORT=IFNAME");
    expect_problem("-- --kernel-interface 1=a --kernel-interface 1=b", "twice");
    expect_problem("-- --punt hb0", "--punt 'hb0': PORT=IFNAME");
    expect_problem("-- --punt 1=a --punt 1=b", "--punt: port 1 is given twice");
    expect_problem("-- --idle-sleep -1", "microseconds");
    expect_problem("-- --idle-sleep 100001", "microseconds");
}

/* BL-86: the limits, and what does not fit its type. */
static void numbers_are_checked_to_the_end(void **state)
{
    static const char *const bad[] = {"0",
                                      "1023",
                                      "-1",
                                      "1.5M",
                                      "1G",
                                      "M",
                                      "0x100000",
                                      "1M2",
                                      "4097M",
                                      "18446744073709551616",
                                      "18014398509481985K"};
    static const char *const bad_times[] = {"0s", "5",    "-1s",          "s",
                                            "1d", "25h1", "2147483648ms", "600h"};
    struct hb_command_line split;
    char line[64];

    (void)state;
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        snprintf(line, sizeof(line), "--flows %s", bad[i]);
        expect_problem(line, bad[i]);
    }
    for (size_t i = 0; i < sizeof(bad_times) / sizeof(bad_times[0]); i++) {
        snprintf(line, sizeof(line), "--timeout-udp %s", bad_times[i]);
        expect_problem(line, "--timeout-udp");
    }
    expect_problem("--flows6 0", "--flows6");
    expect_problem("--flows 1K --flows6 2K", "more than --flows 1024");
    expect_problem("--mbufs 65M", "64M");
    expect_problem("--mbuf-size 127", "128 to 16384");
    expect_problem("--mbuf-size 2K", "128 to 16384");
    assert_int_equal(parse("--flows 4096M --timeout-udp 2147483647ms", &split), 0);
    assert_int_equal(options.flows, UINT64_C(1) << 32);
    assert_int_equal(options.timeouts.udp_ms, INT32_MAX);
    assert_int_equal(parse("--flows 1024", &split), 0);
}

static void help_names_every_option(void **state)
{
    static const char *const names[] = {
        "--interface", "--socket", "--flows",     "--idle-sleep",  "--kernel-interface", "--punt",
        "--flows6",    "--mbufs",  "--mbuf-size", "--timeout-udp", "--version"};
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);

    (void)state;
    hb_options_help(out);
    fclose(out);
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        assert_non_null(strstr(text, names[i]));
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults),
        cmocka_unit_test(every_option_is_read),
        cmocka_unit_test(the_line_is_split),
        cmocka_unit_test(mistakes_are_named),
        cmocka_unit_test(numbers_are_checked_to_the_end),
        cmocka_unit_test(help_names_every_option),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
