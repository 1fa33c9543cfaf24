/* SPDX-License-Identifier: BSD-3-Clause */
/* What an operator sees: the examples of docs/api.md and worse days, against written text. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "ctl.h"
#include "drain_wait.h"
#include "json.h"

static char *printed;
static size_t printed_size;

static struct hb_screen open_screen(void)
{
    return (struct hb_screen){.out = open_memstream(&printed, &printed_size)};
}

static void expect(struct hb_screen *screen, const char *text)
{
    fclose(screen->out);
    assert_string_equal(printed, text);
    free(printed);
}

static void expect_part(struct hb_screen *screen, const char *text)
{
    fclose(screen->out);
    if (!strstr(printed, text))
        fail_msg("\"%s\" is not in \"%s\"", text, printed);
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

#define STATUS_BEGIN                                                                               \
    "{\"version\": \"0.1.0\", \"pid\": 4711, \"uptime_s\": 86400,"                                 \
    " \"config\": {\"file\": \"/etc/halbach/halbach.yaml\", \"loaded_unix\": 1790000000,"          \
    "  \"reloads\": 3, \"reloads_refused\": 1, \"last_error\": null, \"configuration\": 4},"       \
    " \"services\": 2, \"pools\": [{\"name\": \"web\", \"algorithm\": \"maglev\","                 \
    "  \"table_size\": 65537, \"backends\": 4, \"usable\": 3, \"unsettled\": 402,"                 \
    "  \"digest\": \"0c4f00112233445566778899aabbccdd\", \"last_change\": {\"moved\": 16402,"      \
    "   \"ideal\": 16384, \"collateral\": 18, \"generation\": 7}}],"
#define STATUS_DATAPLANE                                                                           \
    " \"dataplane\": {\"connected\": true, \"pid\": 4700, \"version\": \"0.1.0\", \"workers\": 1," \
    "  \"flows\": 812, \"flows_max\": 1048576, \"ports\": [{\"id\": 0, \"interface\": \"eth0\","   \
    "  \"driver\": \"net_af_xdp\", \"mac\": \"02:00:00:00:00:10\", \"mtu\": 1500, \"link\": "      \
    "true}],"                                                                                      \
    "  \"problem\": null},"
#define STATUS_GOOD                                                                                \
    STATUS_BEGIN STATUS_DATAPLANE                                                                  \
        " \"generation\": {\"wanted\": 7, \"serving\": 7, \"in_sync\": true, \"adopt_us\": 310,"   \
        "  \"grace_us\": 12, \"rejects\": 0, \"last_reject\": null},"                              \
        " \"backends\": {\"total\": 4, \"up\": 4, \"down\": 0, \"draining\": 0, \"unknown\": 0}}"

#define HOP " \"next_hop\": {\"resolved\": true, \"problem\": null}}"

static const char backends_text[] =
    "{\"backends\": ["
    "{\"pool\": \"web\", \"name\": \"web1\", \"address\": \"198.51.100.11\", \"weight\": 1,"
    " \"state\": \"up\", \"draining\": false, \"reason\": \"port 80 accepted the connection\","
    " \"since_s\": 3600, \"share\": 0.33333, \"flows\": 12, \"new_flows\": 400,"
    " \"packets\": 9000, \"bytes\": 900000," HOP ","
    "{\"pool\": \"web\", \"name\": \"web2\", \"address\": \"2001:db8:0:b::12\", \"weight\": 2,"
    " \"state\": \"down\", \"draining\": false, \"reason\": \"port 80 refused the connection\","
    " \"since_s\": 725, \"share\": 0, \"flows\": 0, \"new_flows\": 4000000000,"
    " \"packets\": 18446744073709551615, \"bytes\": 9223372036854775808,"
    " \"returned_packets\": 12345," HOP ","
    "{\"pool\": \"web\", \"name\": \"web3\", \"address\": \"198.51.100.13\", \"weight\": 1,"
    " \"state\": \"draining\", \"draining\": true, \"reason\": \"port 80 accepted the connection\","
    " \"since_s\": 45, \"share\": 0, \"flows\": 12345, \"new_flows\": 1," HOP ","
    "{\"pool\": \"web\", \"name\": \"web4\", \"address\": \"198.51.100.14\", \"weight\": 1,"
    " \"state\": \"up\", \"draining\": false, \"reason\": \"-\", \"since_s\": 9,"
    " \"share\": 0.66667, \"flows\": 0, \"new_flows\": 0, \"next_hop\": {\"resolved\": false,"
    "  \"problem\": \"198.51.100.14 does not answer on eth0\"}}]}";

static void test_status_of_a_good_day(void **state)
{
    struct hb_screen screen = open_screen();
    json_t *status = parse(STATUS_GOOD), *backends = parse("{\"backends\": []}");

    (void)state;
    hb_show_status(&screen, status, backends);
    expect(&screen,
           "All is well: dataplane connected and in sync, no backend down\n"
           "\n"
           "Control     0.1.0, pid 4711, up 1d 0h\n"
           "Config      /etc/halbach/halbach.yaml, number 4\n"
           "            taken 2026-09-21 14:13:20; 3 reloads, 1 refused\n"
           "Dataplane   0.1.0, pid 4700, 1 worker, 812 of 1.0 M flows (0.1 %)\n"
           "Port 0      eth0 (net_af_xdp), 02:00:00:00:00:10, MTU 1500, link up\n"
           "Generation  7, in sync; adopted in 310 us, all workers on it 12 us later\n"
           "Backends    4: 4 up\n"
           "Services    2\n"
           "\n"
           "POOL  ALGORITHM  SLOTS  USABLE  MOVED  IDEAL  UNSETTLED  GENERATION  DIGEST\n"
           "web   maglev     65537     3/4  16402  16384        402           7  0c4f00112233\n");
    json_decref(status);
    json_decref(backends);
}

static void test_status_of_a_bad_night(void **state)
{
    struct hb_screen screen = open_screen();
    json_t *backends = parse(backends_text);
    json_t *status = parse(
        STATUS_BEGIN STATUS_DATAPLANE
        " \"generation\": {\"wanted\": 9, \"serving\": 7, \"in_sync\": false, \"rejects\": 2,"
        "  \"last_reject\": \"a slot names a backend that is missing\"},"
        " \"backends\": {\"total\": 4, \"up\": 2, \"down\": 1, \"draining\": 1, \"unknown\": 0}}");

    (void)state;
    json_object_set_new(json_object_get(status, "config"), "last_error",
                        json_string("halbach.yaml:12: table_size: 65536 is not prime"));
    json_object_set_new(json_array_get(json_object_get(status, "pools"), 0), "usable",
                        json_integer(0));
    json_object_set_new(json_array_get(json_object_get(status, "pools"), 0), "warning",
                        json_string("algorithm modulo is for comparison"));
    hb_show_status(&screen, status, backends);
    expect(
        &screen,
        "6 problems:\n"
        "  ! generation 9 is wanted, but the dataplane serves 7; it refused: a slot names a "
        "backend "
        "that is missing\n"
        "  ! pool web has no usable backend: packets for its services are dropped\n"
        "  ! backend web2 (pool web) is down for 12m 5s: port 80 refused the connection\n"
        "  ! backend web4 (pool web) cannot be reached: 198.51.100.14 does not answer on eth0\n"
        "  ! pool web: algorithm modulo is for comparison\n"
        "  ! the last reload was refused, the configuration before it is in use: halbach.yaml:12: "
        "table_size: 65536 is not prime\n"
        "\n"
        "Draining    web3 (pool web), 12345 flows left\n"
        "\n"
        "Control     0.1.0, pid 4711, up 1d 0h\n"
        "Config      /etc/halbach/halbach.yaml, number 4\n"
        "            taken 2026-09-21 14:13:20; 3 reloads, 1 refused\n"
        "Dataplane   0.1.0, pid 4700, 1 worker, 812 of 1.0 M flows (0.1 %)\n"
        "Port 0      eth0 (net_af_xdp), 02:00:00:00:00:10, MTU 1500, link up\n"
        "Generation  9 wanted, 7 serving, not in sync; 2 refused so far\n"
        "Backends    4: 2 up, 1 down, 1 draining\n"
        "Services    2\n"
        "\n"
        "POOL  ALGORITHM  SLOTS  USABLE  MOVED  IDEAL  UNSETTLED  GENERATION  DIGEST\n"
        "web   maglev     65537     0/4  16402  16384        402           7  0c4f00112233\n");
    json_decref(status);
    json_decref(backends);
}

static void test_status_without_a_dataplane(void **state)
{
    struct hb_screen screen = open_screen();
    json_t *status = parse(
        STATUS_BEGIN " \"dataplane\": {\"connected\": false, \"problem\": \"Connection refused\"},"
                     " \"generation\": {\"wanted\": 9, \"serving\": 0, \"in_sync\": false},"
                     " \"backends\": {\"total\": 4, \"up\": 3, \"down\": 1}}");

    (void)state;
    json_object_set_new(json_array_get(json_object_get(status, "pools"), 0), "usable",
                        json_integer(0)); /* not known without a dataplane: no problem of its own */
    hb_show_status(&screen, status, NULL);
    expect_part(&screen, "2 problems:\n"
                         "  ! the dataplane is out of reach (if it runs, it forwards by its last "
                         "generation): Connection refused\n"
                         "  ! 1 backend is down; 'halbachctl backends --down' says why\n\n");
    json_decref(status);
}

static void test_status_names_only_the_first_of_many(void **state)
{
    json_t *status = parse(STATUS_GOOD), *backends = json_object(), *list = json_array();
    struct hb_screen screen = open_screen();
    int i;

    (void)state;
    for (i = 0; i < 47; i++)
        json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", "w", "pool", "p",
                                              "state", "down", "reason", "r"));
    json_object_set_new(backends, "backends", list);
    hb_show_status(&screen, status, backends);
    fclose(screen.out);
    assert_non_null(strstr(printed, "47 problems:\n"));
    assert_non_null(
        strstr(printed, "and 37 more backends; 'halbachctl backends --down' lists them\n"));
    free(printed);
    json_decref(status);
    json_decref(backends);
}

static void test_an_empty_answer_is_survived(void **state)
{
    json_t *empty = json_object();
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_status(&screen, empty, empty);
    hb_show_services(&screen, empty);
    hb_show_backends(&screen, empty, NULL, false, false);
    hb_show_drain(&screen, empty, true);
    hb_show_reload(&screen, empty);
    hb_show_stats(&screen, empty, NULL, 0);
    hb_show_drops(&screen, empty, true);
    hb_show_lookup(&screen, empty, "a", "b", "tcp");
    expect_part(&screen, "the dataplane is out of reach");
    json_decref(empty);
}

static void test_backends(void **state)
{
    json_t *backends = parse(backends_text);
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_backends(&screen, backends, NULL, false, false);
    expect(&screen,
           "BACKEND  POOL  ADDRESS           STATE          SINCE  WEIGHT   SHARE   FLOWS\n"
           "web1     web   198.51.100.11     up             1h 0m       1  33.3 %      12\n"
           "web2     web   2001:db8:0:b::12  down          12m 5s       2   0.0 %       0\n"
           "web3     web   198.51.100.13     draining         45s       1   0.0 %  12.3 k\n"
           "web4     web   198.51.100.14     up, no route      9s       1  66.7 %       0\n"
           "\n"
           "web2 (pool web): port 80 refused the connection\n"
           "web4 (pool web): 198.51.100.14 does not answer on eth0\n");

    screen = open_screen();
    hb_show_backends(&screen, backends, "web", true, true);
    expect(&screen, "BACKEND  POOL  STATE          FLOWS  NEW FLOWS  PACKETS   BYTES  ANSWERS\n"
                    "web2     web   down               0      4.0 G   18.4 E  9.2 EB   12.3 k\n"
                    "web3     web   draining      12.3 k          1        0     0 B        0\n"
                    "web4     web   up, no route       0          0        0     0 B        0\n"
                    "\n"
                    "web2 (pool web): port 80 refused the connection\n"
                    "web4 (pool web): 198.51.100.14 does not answer on eth0\n");
    json_decref(backends);
}

/* What ICMP errors have told: a smaller path always, numbers with the traffic. */
static void test_paths_of_backends(void **state)
{
    static const char text[] =
        "{\"backends\": [{\"pool\": \"web\", \"name\": \"web1\", \"state\": \"up\","
        " \"path\": {\"mtu\": 1400, \"left_s\": 540, \"unreachable\": 0, \"time_exceeded\": 0,"
        "  \"too_big\": 2}, " HOP ","
        "{\"pool\": \"web\", \"name\": \"web2\", \"state\": \"up\","
        " \"path\": {\"mtu\": null, \"left_s\": null, \"unreachable\": 3, \"time_exceeded\": 1,"
        "  \"too_big\": 0}, " HOP "]}";
    json_t *backends = parse(text);
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_backends(&screen, backends, NULL, false, false);
    expect(&screen, "BACKEND  POOL  ADDRESS  STATE  SINCE  WEIGHT  SHARE  FLOWS\n"
                    "web1     web   -        up        0s       0  0.0 %      0\n"
                    "web2     web   -        up        0s       0  0.0 %      0\n"
                    "\n"
                    "web1 (pool web): its path has an MTU of 1400, tried anew in 9m 0s\n");
    screen = open_screen();
    hb_show_backends(&screen, backends, NULL, false, true);
    expect(&screen,
           "BACKEND  POOL  STATE  FLOWS  NEW FLOWS  PACKETS  BYTES  ANSWERS\n"
           "web1     web   up         0          0        0    0 B        0\n"
           "web2     web   up         0          0        0    0 B        0\n"
           "\n"
           "web1 (pool web): its path has an MTU of 1400, tried anew in 9m 0s; ICMP errors on "
           "the way: 0 unreachable, 0 time exceeded, 2 too big\n"
           "web2 (pool web): ICMP errors on the way: 3 unreachable, 1 time exceeded, 0 too "
           "big\n");
    json_decref(backends);
}

static void test_services(void **state)
{
    json_t *services = parse(
        "{\"services\": ["
        "{\"name\": \"www\", \"vip\": \"192.0.2.0/24\", \"protocol\": \"tcp\", \"port\": 80,"
        " \"ports\": \"80-81\", \"denied\": 5, \"limited\": 20000, \"too_big\": 2,"
        " \"pool\": \"web\", \"usable\": 3, \"total\": 4, \"packets\": 2147483648,"
        " \"bytes\": 18446744073709551615, \"new_flows\": 100, \"drops\": 0},"
        "{\"name\": \"bücher\", \"vip\": \"2001:db8:0:a::10\", \"protocol\": \"udp\", \"port\": "
        "443,"
        " \"pool\": \"名前\", \"usable\": 0, \"total\": 1, \"packets\": 9999, \"bytes\": 10000,"
        " \"new_flows\": 9, \"drops\": 3}]}");
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_services(&screen, services);
    expect(
        &screen,
        "SERVICE  VIP                     PROTO  POOL  USABLE  NEW FLOWS  PACKETS    BYTES  DROPS  "
        "DENIED  LIMITED  TOO BIG\n"
        "www      192.0.2.0/24:80-81      tcp    web      3/4        100    2.1 G  18.4 EB      0  "
        "     5   20.0 k        2\n"
        "bücher   [2001:db8:0:a::10]:443  udp    名前     0/1          9     9999  10.0 kB      3  "
        "     0        0        0\n");
    json_decref(services);
}

static void test_drops(void **state)
{
    json_t *drops =
        parse("{\"total\": 12348, \"drops\": ["
              "{\"reason\": \"runt\", \"text\": \"frame too short\", \"packets\": 0},"
              "{\"reason\": \"no_service\", \"text\": \"no such port\", \"packets\": 3},"
              "{\"reason\": \"tx_full\", \"text\": \"queue full\", \"packets\": 12345}]}");
    json_t *none = parse("{\"total\": 0, \"drops\": [{\"reason\": \"runt\", \"packets\": 0}]}");
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_drops(&screen, drops, false);
    expect(&screen, "REASON      PACKETS  MEANING\n"
                    "no_service        3  no such port\n"
                    "tx_full      12.3 k  queue full\n"
                    "total        12.3 k  since the start of the dataplane\n");
    screen = open_screen();
    hb_show_drops(&screen, drops, true);
    expect_part(&screen, "runt              0  frame too short\n");
    screen = open_screen();
    hb_show_drops(&screen, none, false);
    expect(&screen, "nothing was dropped since the start of the dataplane\n");
    json_decref(drops);
    json_decref(none);
}

static void test_lookup(void **state)
{
    json_t *flow = parse(
        "{\"source\": \"flow\", \"generation\": 7, \"service\": \"www\", \"pool\": \"web\","
        " \"backend\": \"web2\", \"backend_address\": \"198.51.100.12\", \"backend_state\": \"up\","
        " \"hash\": \"89abcdef01234567\", \"slot\": 4711, \"slots\": 65537, \"slot_owner\": "
        "\"web1\","
        " \"worker\": 0, \"idle_ms\": 150, \"why\": \"worker 0 has an entry for this flow\"}");
    json_t *none = parse("{\"source\": \"no_service\", \"generation\": 7, \"service\": null,"
                         " \"backend\": null, \"slot\": null, \"worker\": null,"
                         " \"why\": \"no service has 192.0.2.99, tcp, port 80\"}");
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_lookup(&screen, flow, "203.0.113.9:40000", "192.0.2.10:80", "tcp");
    expect(&screen, "203.0.113.9:40000 to 192.0.2.10:80, tcp\n"
                    "  goes to     web2 (198.51.100.12), up\n"
                    "  decided by  a flow entry (cached)\n"
                    "  why         worker 0 has an entry for this flow\n"
                    "  slot        4711 of 65537, owned by web1\n"
                    "  flow entry  worker 0, last used 150 ms ago\n"
                    "  service     www, pool web\n"
                    "  generation  7\n"
                    "  hash        89abcdef01234567\n");
    screen = open_screen();
    hb_show_lookup(&screen, none, "203.0.113.9:40000", "192.0.2.99:80", "tcp");
    expect(&screen, "203.0.113.9:40000 to 192.0.2.99:80, tcp\n"
                    "  goes to     no backend\n"
                    "  decided by  nothing\n"
                    "  why         no service has 192.0.2.99, tcp, port 80\n"
                    "  generation  7\n");
    json_decref(flow);
    json_decref(none);
}

static void test_stats(void **state)
{
    json_t *before = parse("{\"totals\": {\"rx_packets\": 1000, \"rx_bytes\": 64000}}");
    json_t *stats = parse(
        "{\"totals\": {\"rx_packets\": 21000, \"rx_bytes\": 1344000, \"tx_packets\": 20000,"
        " \"tx_bytes\": 1680000, \"punted_packets\": 900, \"dropped_packets\": 100, \"flows\": 812,"
        " \"flows_max\": 1048576, \"flow_hits\": 19000, \"flow_misses\": 1000, \"flow_inserts\": "
        "1000,"
        " \"flow_expiries\": 188, \"flow_evictions\": 0, \"flow_reselects\": 2,"
        " \"flow_overflows\": 31, \"made_packets\": 4, \"icmp_sent\": 3, \"icmp_relayed\": 5,"
        " \"fragments\": 6, \"held_packets\": 0, \"drain_resets\": 1, \"kernel_packets\": 1200,"
        " \"kernel_losses\": 2},"
        " \"steering\": {\"redirected\": 21000, \"no_socket\": 0, \"passed\": 40, \"limited\": 7},"
        " \"workers\": [{\"worker\": 0, \"lcore\": 1, \"generation\": 7, \"rx_packets\": 21000,"
        "  \"tx_packets\": 20000, \"punted_packets\": 900, \"dropped_packets\": 100, \"flows\": "
        "812}]}");
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_stats(&screen, stats, before, 2.0);
    expect(&screen, "TRAFFIC        PACKETS   BYTES  PACKETS/S  BITS/S\n"
                    "received        21.0 k  1.3 MB     10.0 k   5.1 M\n"
                    "forwarded       20.0 k  1.7 MB     10.0 k   6.7 M\n"
                    "to the kernel      900       -        450       -\n"
                    "dropped            100       -         50       -\n"
                    "\n"
                    "Flow caches  812 of 1.0 M entries in use (0.1 %)\n"
                    "Lookups      19.0 k hits, 1000 misses (95.0 % hits)\n"
                    "Entries      1000 inserted, 188 expired, 0 evicted, 2 selected anew\n"
                    "Bounded load 31 new flows passed on, their backend was at its limit\n"
                    "Made here    4 packets of the dataplane's own\n"
                    "ICMP         3 errors and echo answers made\n"
                    "ICMP         5 about flows, handed to their backends\n"
                    "Fragments    6 forwarded\n"
                    "Drains       1 flows ended by a reset at the deadline\n"
                    "Kernel       1200 packets sent by its punt port\n"
                    "Kernel       2 packets that the port did not take\n"
                    "Steering     21.0 k packets for VIPs\n"
                    "Steering     40 packets passed to the kernel\n"
                    "Steering     7 packets to the kernel above the limit, dropped\n"
                    "\n"
                    "WORKER  LCORE  GENERATION  RECEIVED  FORWARDED  PUNTED  DROPPED  FLOWS\n"
                    "     0      1           7    21.0 k     20.0 k     900      100    812\n");
    json_decref(before);
    json_decref(stats);
}

static void test_changes(void **state)
{
    json_t *drain =
        parse("{\"applied\": true, \"backends\": ["
              "{\"pool\": \"web\", \"name\": \"web3\", \"changed\": true, \"flows\": 12,"
              " \"moved\": 16402, \"ideal\": 16384},"
              "{\"pool\": \"api\", \"name\": \"web3\", \"changed\": false, \"flows\": 1},"
              "{\"pool\": \"old\", \"name\": \"web3\", \"changed\": false, \"flows\": 0, \"drain\":"
              " {\"drained\": true, \"deadline_s\": 0, \"at_deadline\": \"reassign\"}}]}");
    json_t *reload = parse("{\"applied\": true, \"changed\": true, \"generation\": 9,"
                           " \"services\": {\"added\": 1, \"removed\": 0, \"changed\": 0},"
                           " \"backends\": {\"added\": 1, \"removed\": 2, \"changed\": 3},"
                           " \"pools\": [{\"name\": \"web\", \"moved\": 13100, \"ideal\": 13107}],"
                           " \"warnings\": [\"halbach.yaml:3: odd\"]}");
    struct hb_screen screen = open_screen();

    (void)state;
    hb_show_drain(&screen, drain, true);
    hb_show_drain(&screen, drain, false);
    hb_show_reload(&screen, reload);
    expect(&screen,
           "web3 (pool web): draining, 12 flows left; 16402 slots moved (at least 16384 had to)\n"
           "web3 (pool api): drains already, 1 flow left\n"
           "web3 (pool old): drained already, its deadline has passed; 'undrain' ends that\n"
           "web3 (pool web): back in service; 16402 slots moved (at least 16384 had to)\n"
           "web3 (pool api): was not draining\n"
           "web3 (pool old): was not draining\n"
           "warning: halbach.yaml:3: odd\n"
           "services: 1 added, 0 removed, 0 changed\n"
           "backends: 1 added, 2 removed, 3 changed\n"
           "pool web: 13100 slots moved (at least 13107 had to)\n"
           "the dataplane forwards by generation 9\n");
    json_decref(drain);
    json_decref(reload);

    /* A new minimum, say: taken, and no generation comes of it. */
    reload = parse("{\"applied\": true, \"changed\": false, \"generation\": 9,"
                   " \"configuration\": 3, \"warnings\": []}");
    screen = open_screen();
    hb_show_reload(&screen, reload);
    expect(&screen, "configuration 3 is in use; what the dataplane forwards by has not changed "
                    "(generation 9)\n");
    json_decref(reload);
}

/* Waiting for a drain must believe "0 flows" only of a dataplane that can be seen. */
static void test_drain_view(void **state)
{
    json_t *backends = parse(backends_text), *good = parse(STATUS_GOOD);
    json_t *blind =
        parse("{\"dataplane\": {\"connected\": false}, \"generation\": {\"in_sync\": true}}");
    struct hb_drain_view view = hb_drain_view(backends, good, "web3", NULL);

    (void)state;
    assert_int_equal(view.members, 1);
    assert_int_equal(view.draining, 1);
    assert_int_equal(view.flows, 12345);
    assert_true(view.trusted);
    assert_false(hb_drain_view(backends, blind, "web3", "web").trusted);
    assert_int_equal(hb_drain_view(backends, good, "web3", "api").members, 0);
    assert_int_equal(hb_drain_view(backends, good, "web1", "web").draining, 0);
    json_decref(backends);
    json_decref(good);
    json_decref(blind);
}

/* A line that reached the terminal's last column could not be written over by the next one. */
static void test_drain_bar_fits_the_terminal(void **state)
{
    struct hb_drain_view view = {
        .flows = 38, .estimate_s = 70, .deadline_s = 17, .remembered = UINT64_MAX};
    char line[HB_DRAIN_LINE];

    (void)state;
    hb_drain_bar(line, &view, 53, 4, 0);
    assert_string_equal(line, "[########......................] 38 of 53 flows left, 4s, about 1m "
                              "10s more, deadline in 17s");
    hb_drain_bar(line, &view, 53, 4, 80);
    assert_string_equal(line, "[####.............] 38 of 53 flows left, 4s, about 1m 10s more, "
                              "deadline in 17s");
    assert_int_equal(strlen(line), 79);
    hb_drain_bar(line, &view, 53, 4, 67);
    assert_string_equal(line, "38 of 53 flows left, 4s, about 1m 10s more, deadline in 17s");
    for (unsigned width = 1; width < HB_DRAIN_LINE; width++) {
        hb_drain_bar(line, &view, UINT64_MAX, UINT64_MAX, width);
        assert_true(strlen(line) < width);
    }
    view.flows = 0;
    hb_drain_bar(line, &view, 0, UINT64_MAX, 0);
    assert_non_null(strstr(line, "untracked connections there"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_status_of_a_good_day),
        cmocka_unit_test(test_status_of_a_bad_night),
        cmocka_unit_test(test_status_without_a_dataplane),
        cmocka_unit_test(test_status_names_only_the_first_of_many),
        cmocka_unit_test(test_an_empty_answer_is_survived),
        cmocka_unit_test(test_backends),
        cmocka_unit_test(test_paths_of_backends),
        cmocka_unit_test(test_services),
        cmocka_unit_test(test_drops),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_stats),
        cmocka_unit_test(test_changes),
        cmocka_unit_test(test_drain_view),
        cmocka_unit_test(test_drain_bar_fits_the_terminal),
    };

    setenv("TZ", "UTC", 1);
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return 77; /* no UTF-8 locale on this machine */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
