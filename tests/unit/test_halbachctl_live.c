/* SPDX-License-Identifier: BSD-3-Clause */
/* What events, history, rollback, top and talkers print, from written answers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <locale.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "ctl.h"
#include "json.h"

static char *printed;
static size_t printed_size;

static struct hb_screen open_screen(unsigned width)
{
    return (struct hb_screen){.out = open_memstream(&printed, &printed_size), .width = width};
}

static void expect(struct hb_screen *screen, const char *text)
{
    fclose(screen->out);
    assert_string_equal(printed, text);
    free(printed);
}

static json_t *parse(const char *text)
{
    char why[128] = "";
    json_t *document = hb_json_parse(text, strlen(text), why, sizeof(why));

    if (!document)
        fail_msg("%s in %s", why, text);
    return document;
}

static const char history_text[] =
    "{\"in_use\": 1, \"rollback\": {\"unix\": 1790000100, \"actor\": null},"
    " \"configurations\": ["
    "  {\"number\": 1, \"unix\": 1790000000, \"size\": 800, \"in_use\": true, \"actor\": null,"
    "   \"cause\": \"start of control\"},"
    "  {\"number\": 2, \"unix\": 1790000050, \"size\": 801, \"in_use\": false,"
    "   \"actor\": {\"by\": \"unix\", \"uid\": 4294967294, \"pid\": 12}, \"cause\": \"reload\"}],"
    " \"generations\": ["
    "  {\"number\": 7, \"first\": 7, \"count\": 1, \"unix\": 1790000050,"
    "   \"first_unix\": 1790000050, \"configuration\": 2, \"moved\": 16402,"
    "   \"outcome\": \"refused\", \"actor\": {\"by\": \"signal\", \"uid\": null, \"pid\": null},"
    "   \"cause\": \"reload\"},"
    "  {\"number\": 67, \"first\": 8, \"count\": 60, \"unix\": 1790000110,"
    "   \"first_unix\": 1790000051, \"configuration\": 2, \"moved\": 21000, \"outcome\": "
    "\"served\","
    "   \"actor\": null, \"cause\": \"slow start of backend web1\"},"
    "  {\"number\": 68, \"first\": 68, \"count\": 1, \"unix\": 1790000120,"
    "   \"first_unix\": 1790000120, \"configuration\": null, \"moved\": 0,"
    "   \"outcome\": \"served\", \"actor\": {\"by\": \"tcp\", \"uid\": null, \"pid\": null},"
    "   \"cause\": \"rollback from configuration 2 to 1; next hop of backend web1 found\"}],"
    " \"actions\": ["
    "  {\"unix\": 1790000000, \"generation\": null, \"actor\": null,"
    "   \"action\": \"maintenance begun\"},"
    "  {\"unix\": 1790000115, \"generation\": 67, \"actor\": null,"
    "   \"action\": \"flow caches flushed: 7 entries forgotten\"},"
    "  {\"unix\": 1790000130, \"generation\": 68, \"actor\": null,"
    "   \"action\": \"maintenance ended\"}]}";

static void test_history(void **state)
{
    struct hb_screen screen = open_screen(0);
    json_t *answer = parse(history_text);

    (void)state;
    hb_show_history(&screen, answer);
    expect(&screen,
           " GEN  TIME                 MOVED  CONFIG  OUTCOME  BY               CAUSE\n"
           "   -  2026-09-21 14:13:20      -       -  done     -                maintenance begun\n"
           "   7  2026-09-21 14:14:10  16402       2  refused  SIGHUP           reload\n"
           "8-67  2026-09-21 14:14:11  21000       2  served   -                slow start of "
           "backend web1 (60 times)\n"
           "   -  2026-09-21 14:15:15      -       -  done     -                flow caches "
           "flushed: 7 entries forgotten\n"
           "  68  2026-09-21 14:15:20      0       -  served   a client on TCP  rollback from "
           "configuration 2 to 1; next hop of backend web1 found\n"
           "   -  2026-09-21 14:15:30      -       -  done     -                maintenance ended\n"
           "\n"
           "CONFIG  ACCEPTED             BYTES  STATE              BY                       CAUSE\n"
           "     1  2026-09-21 14:13:20    800  in use (rollback)  -                        start "
           "of control\n"
           "     2  2026-09-21 14:14:10    801  kept               uid 4294967294 (pid 12)  "
           "reload\n");
    json_decref(answer);
}

/* Spare columns go when cutting is not enough, the rightmost first; the rest fits. */
static void test_history_on_a_narrow_screen(void **state)
{
    json_t *answer = parse(history_text);

    (void)state;
    for (unsigned width = 75; width < 130; width++) {
        struct hb_screen screen = open_screen(width);
        char *rest, *line;

        hb_show_history(&screen, answer);
        fclose(screen.out);
        rest = printed;
        while ((line = strsep(&rest, "\n")) != NULL)
            assert_true(hb_text_width(line) <= width);
        free(printed);
    }
    json_decref(answer);
}

static void test_events(void **state)
{
    struct hb_screen screen = open_screen(0);
    json_t *answer = parse(
        "{\"oldest\": 1, \"newest\": 2, \"events\": ["
        "{\"number\": 1, \"unix_ms\": 1790000000042, \"type\": \"drain\", \"pool\": \"web\","
        " \"object\": \"web1\", \"actor\": {\"by\": \"unix\", \"uid\": 4294967294, \"pid\": 7},"
        " \"message\": \"drain of backend web1\"},"
        "{\"number\": 2, \"unix_ms\": 1790000001000, \"type\": \"published\", \"pool\": null,"
        " \"object\": null, \"actor\": null, \"message\": \"generation 8 \\u001b[2J serves\"},"
        "{\"type\": \"notice\", \"number\": 5, \"message\": \"cut off\"}]}");

    (void)state;
    hb_show_events(&screen, answer);
    /* What comes from elsewhere can't play with the terminal. */
    expect(&screen, "2026-09-21 14:13:20.042  drain        pool web: drain of backend web1, by uid "
                    "4294967294 (pid 7)\n"
                    "2026-09-21 14:13:21.000  published    generation 8 ?[2J serves\n"
                    "notice       cut off\n");
    json_decref(answer);
}

static void test_rollback(void **state)
{
    struct hb_screen screen = open_screen(0);
    json_t *answer =
        parse("{\"applied\": true, \"changed\": true, \"generation\": 9, \"from\": 4, \"to\": 3,"
              " \"services\": {\"added\": 0, \"removed\": 1, \"changed\": 0},"
              " \"backends\": {\"added\": 0, \"removed\": 0, \"changed\": 1}, \"warnings\": [],"
              " \"pools\": [{\"name\": \"web\", \"moved\": 10, \"ideal\": 9, \"collateral\": 1}]}");

    (void)state;
    hb_show_rollback(&screen, answer);
    expect(&screen, "configuration 3 is in use, in place of 4\n"
                    "services: 0 added, 1 removed, 0 changed\n"
                    "backends: 0 added, 0 removed, 1 changed\n"
                    "pool web: 10 slots moved (at least 9 had to)\n"
                    "the dataplane forwards by generation 9\n"
                    "the configuration file was not touched and differs from this: mend it, then "
                    "'halbachctl reload' takes it again\n");
    json_decref(answer);
}

#define SERVICE(name, port, packets, bytes, flows, drops)                                          \
    "{\"name\": \"" name "\", \"vip\": \"192.0.2.10\", \"protocol\": \"tcp\", \"port\": " port     \
    ", \"pool\": \"web\", \"packets\": " packets ", \"bytes\": " bytes ", \"new_flows\": " flows   \
    ", \"drops\": " drops "}"
#define BACKEND(name, packets, bytes, flows)                                                       \
    "{\"name\": \"" name                                                                           \
    "\", \"pool\": \"web\", \"address\": \"198.51.100.1\", \"state\": \"up\","                     \
    " \"packets\": " packets ", \"bytes\": " bytes ", \"new_flows\": " flows ", \"flows\": 5}"

/* Two seconds apart. A service that is new has no rate yet; counts near the end of 64 bits do. */
static void test_top(void **state)
{
    struct hb_screen screen = open_screen(0);
    json_t *before =
        parse("{\"services\": [" SERVICE("www", "80", "100", "1000", "10", "0") "," SERVICE(
            "big", "81", "18446744073709551000", "0", "0",
            "0") "],"
                 " \"backends\": [" BACKEND("web1", "100", "1000", "10") "]}");
    json_t *now = parse("{\"services\": [" SERVICE("new", "82", "500", "500", "5", "0") "," SERVICE(
        "www", "80", "300", "5000", "14",
        "6") "," SERVICE("big", "81", "18446744073709551614", "0", "0",
                         "0") "],"
                              " \"backends\": [" BACKEND("web1", "300", "5000", "14") "]}");

    (void)state;
    hb_show_top(&screen, now, before, 2);
    expect(&screen, "407 packets/s, 16.0 kbit/s, 2 new flows/s\n"
                    "\n"
                    "SERVICE  VIP            PACKETS/S  BITS/S  NEW FLOWS/S  DROPS/S\n"
                    "www      192.0.2.10:80        100  16.0 k            2        3\n"
                    "big      192.0.2.10:81        307       0            0        0\n"
                    "new      192.0.2.10:82          0       0            0        0\n"
                    "\n"
                    "BACKEND  POOL  STATE  PACKETS/S  BITS/S  NEW FLOWS/S  FLOWS\n"
                    "web1     web   up           100  16.0 k            2      5\n");
    json_decref(before);
    json_decref(now);
}

static void test_talkers(void **state)
{
    static const char *const texts[] = {
        "{\"sampled\": 1000, \"talkers\": ["
        "{\"source\": \"203.0.113.9\", \"service\": \"www\", \"count\": 200, \"error\": 10,"
        " \"missed\": 0, \"bytes\": 1}]}",
        "{\"sampled\": 2000, \"talkers\": ["
        "{\"source\": \"203.0.113.9\", \"service\": \"www\", \"count\": 700, \"error\": 10,"
        " \"missed\": 0, \"bytes\": 1},"
        "{\"source\": \"2001:db8::1\", \"service\": null, \"count\": 100, \"error\": 40,"
        " \"missed\": 8, \"bytes\": 1}]}"};
    json_t *before = parse(texts[0]), *now = parse(texts[1]);
    struct hb_screen screen = open_screen(0);

    (void)state;
    hb_show_talkers(&screen, now, NULL);
    expect(&screen, "SOURCE       SERVICE  AT LEAST  AT MOST  SAMPLES\n"
                    "203.0.113.9  www        34.5 %   35.0 %      690\n"
                    "2001:db8::1  -           3.0 %    5.4 %       60\n"
                    "\n"
                    "of 2000 sampled packets (one of each burst); a source's part is between the "
                    "two\n");
    screen = open_screen(0);
    hb_show_talkers(&screen, now, before);
    /* The same entry in both: exact. One that is new: between its bounds. */
    expect(&screen, "SOURCE       SERVICE  AT LEAST  AT MOST  SAMPLES\n"
                    "203.0.113.9  www        50.0 %   50.0 %      500\n"
                    "2001:db8::1  -           6.0 %   10.8 %       60\n"
                    "\n"
                    "of 1000 sampled packets (one of each burst); a source's part is between the "
                    "two\n");
    screen = open_screen(0);
    hb_show_talkers(&screen, now, now);
    expect(&screen, "no packet for a service was seen meanwhile\n");
    json_decref(before);
    json_decref(now);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_history), cmocka_unit_test(test_history_on_a_narrow_screen),
        cmocka_unit_test(test_events),  cmocka_unit_test(test_rollback),
        cmocka_unit_test(test_top),     cmocka_unit_test(test_talkers),
    };

    setlocale(LC_CTYPE, "C.UTF-8");
    setenv("TZ", "UTC", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
