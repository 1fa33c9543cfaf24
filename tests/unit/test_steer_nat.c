/* SPDX-License-Identifier: BSD-3-Clause */
/* The steering program with NAT: answers of backends are the dataplane's, unless they are addressed
 * to this machine; everything else that backends send is the kernel's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <linux/bpf.h>

#include "bpf_run.h"
#include "steer.h"
#include "steer_nat.h"

#define BACKEND4 "198.51.100.11"
#define BACKEND6 "2001:db8:0:b::11"
#define CLIENT4  "203.0.113.9"
#define CLIENT6  "2001:db8:0:c::9"
#define OWN4     "198.51.100.10"
#define OWN6     "2001:db8:0:1::10"

static struct bpf_object *object;
static struct hb_steer_nat nat;
static int program;

static struct hb_steer_answer answer_of(const char *address, uint8_t protocol, uint16_t port)
{
    struct hb_steer_answer answer = {.protocol = protocol, .family = strchr(address, ':') ? 6 : 4};

    answer.port = htons(port);
    assert_int_equal(inet_pton(answer.family == 6 ? AF_INET6 : AF_INET, address, answer.bytes), 1);
    return answer;
}

static struct hb_steer_vip vip_of(const char *address)
{
    struct hb_steer_vip vip = {.family = strchr(address, ':') ? 6 : 4};

    assert_int_equal(inet_pton(vip.family == 6 ? AF_INET6 : AF_INET, address, vip.bytes), 1);
    return vip;
}

struct row {
    const char *text, *source, *destination;
    uint8_t protocol;
    uint8_t first[4];  /* bytes behind the IP header: the ports, or type and code */
    uint16_t fragment; /* flags and offset word; of IPv6 as in its fragment header */
    int answer;
};

/* Port 8080 is 0x1f90; 0x8000 on top of a fragment says that there is a header of it (IPv6). */
static const struct row rows[] = {
    {"an answer", BACKEND4, CLIENT4, 6, {0x1f, 0x90, 0x9c, 0x40}, 0, 1},
    {"IPv6", BACKEND6, CLIENT6, 6, {0x1f, 0x90, 0x9c, 0x40}, 0, 1},
    {"to this machine: a health check", BACKEND4, OWN4, 6, {0x1f, 0x90, 0x9c, 0x40}, 0, 0},
    {"the same over IPv6", BACKEND6, OWN6, 6, {0x1f, 0x90, 0x9c, 0x40}, 0, 0},
    {"another port", BACKEND4, CLIENT4, 6, {0x1f, 0x91, 0x9c, 0x40}, 0, 0},
    {"another protocol", BACKEND4, CLIENT4, 17, {0x1f, 0x90, 0x9c, 0x40}, 0, 0},
    {"somebody else", CLIENT4, BACKEND4, 6, {0x1f, 0x90, 0x9c, 0x40}, 0, 0},
    {"the first fragment", BACKEND4, CLIENT4, 6, {0x1f, 0x90, 0x9c, 0x40}, 0x2000, 1},
    {"a later fragment, whatever is in it", BACKEND4, CLIENT4, 6, {1, 2, 3, 4}, 0x0010, 1},
    {"a later one of another protocol", BACKEND4, CLIENT4, 17, {1, 2, 3, 4}, 0x0010, 0},
    {"the first fragment, IPv6", BACKEND6, CLIENT6, 6, {0x1f, 0x90, 0, 0}, 0x8001, 1},
    {"a later fragment, IPv6", BACKEND6, CLIENT6, 6, {1, 2, 3, 4}, 0x8010, 1},
    {"an ICMP error", BACKEND4, CLIENT4, 1, {3, 3, 0, 0}, 0, 1},
    {"an echo request of the backend's own", BACKEND4, CLIENT4, 1, {8, 0, 0, 0}, 0, 0},
    {"an ICMP error of somebody else", CLIENT4, BACKEND4, 1, {3, 3, 0, 0}, 0, 0},
    {"an ICMPv6 error", BACKEND6, CLIENT6, 58, {1, 4, 0, 0}, 0, 1},
    {"an ICMPv6 echo", BACKEND6, CLIENT6, 58, {128, 0, 0, 0}, 0, 0},
};

static void build_row(const struct row *row, struct packet *packet)
{
    uint8_t payload[24] = {row->first[0], row->first[1], row->first[2], row->first[3]};
    uint8_t extension[8] = {row->protocol, 0, (uint8_t)(row->fragment >> 8 & 0x7f),
                            (uint8_t)row->fragment};
    bool six = strchr(row->destination, ':') != NULL, fragment6 = row->fragment >> 15;
    uint8_t *ip;

    packet->size = 0;
    put_ethernet(packet, six ? 0x86dd : 0x0800);
    if (six) {
        put_ipv6(packet, row->source, row->destination, fragment6 ? 44 : row->protocol, 0, 32);
        if (fragment6)
            put_bytes(packet, extension, sizeof(extension));
    } else {
        ip = put_ipv4(packet, row->source, row->destination, row->protocol, 0, sizeof(payload));
        put_be16(ip + 6, row->fragment);
    }
    put_bytes(packet, payload, sizeof(payload));
}

/* Without a socket what is the dataplane's is dropped; what is the kernel's passes. */
static void check_rows(bool with_answers)
{
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct packet packet, out;
        int wanted = with_answers && rows[i].answer ? XDP_DROP : XDP_PASS, got;

        build_row(&rows[i], &packet);
        got = run_program(program, &packet, &out);
        if (got != wanted)
            fail_msg("%s: verdict %d instead of %d", rows[i].text, got, wanted);
        for (uint32_t size = packet.size; size >= 14; size--) { /* cut anywhere: no complaint */
            packet.size = size;
            run_program(program, &packet, &out);
        }
    }
}

static void answers_follow_the_generation(void **state)
{
    struct hb_steer_answer answers[] = {
        answer_of(BACKEND4, 6, 8080), answer_of(BACKEND4, 6, 0), answer_of(BACKEND4, 1, 0),
        answer_of(BACKEND6, 6, 8080), answer_of(BACKEND6, 6, 0), answer_of(BACKEND6, 58, 0),
    };
    struct hb_steer_vip own[] = {vip_of(OWN4), vip_of(OWN6)};
    const struct hb_steer_nat_set all = {answers, own, 6, 2}, some = {answers, own, 1, 1};
    const struct hb_steer_nat_set none = {0};
    struct packet packet, out;

    (void)state;
    check_rows(false);
    assert_int_equal(hb_steer_nat_add(&nat, &all), 0);
    assert_int_equal(hb_steer_nat_add(&nat, &all), 0);
    check_rows(true);
    assert_int_equal(hb_steer_nat_keep_only(&nat, &all), 0);
    check_rows(true);
    assert_int_equal(hb_steer_nat_keep_only(&nat, &some), 0);
    build_row(&rows[0], &packet);
    assert_int_equal(run_program(program, &packet, &out), XDP_DROP);
    build_row(&rows[1], &packet);
    assert_int_equal(run_program(program, &packet, &out), XDP_PASS);
    assert_int_equal(hb_steer_nat_keep_only(&nat, &none), 0);
    check_rows(false);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(answers_follow_the_generation)};
    int failed;

    object = bpf_object__open_file(hb_steer_object_path(), NULL);
    if (object == NULL)
        return 1;
    program = load_program_or_skip(object);
    nat.answers_fd = bpf_object__find_map_fd_by_name(object, HB_STEER_ANSWER_MAP);
    nat.own_fd = bpf_object__find_map_fd_by_name(object, HB_STEER_OWN_MAP);
    failed = cmocka_run_group_tests_name("steer_nat", tests, NULL, NULL);
    bpf_object__close(object);
    return failed;
}
