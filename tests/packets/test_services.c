/* SPDX-License-Identifier: BSD-3-Clause */
/* What services may be beside one address and one port: prefixes, ranges, SCTP, affinity, lists of
 * sources, limits. */
#include <arpa/inet.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lookup.h"
#include "rig.h"

static const struct hb_worker_counters *counters(const struct rig *rig)
{
    return hb_counters_worker(rig->region, 0);
}

static const struct hb_service_counters *service_counters(const struct rig *rig, uint32_t id)
{
    return &hb_counters_services(rig->region, 0)[id];
}

static uint64_t drops(const struct rig *rig, enum hb_drop_reason reason)
{
    return counters(rig)->drops[reason];
}

/* Pool n has backend n + 1 alone. */
static void make_pools(struct rig *rig, uint16_t count)
{
    for (uint16_t n = 0; n < count; n++) {
        add_backend(rig, n + 1, n, 4);
        share_table(rig, n);
    }
}

/* Pool 0 has ten backends. */
static void make_big_pool(struct rig *rig)
{
    for (uint16_t id = 1; id <= 10; id++)
        add_backend(rig, id, 0, 4);
    share_table(rig, 0);
}

static struct hb_service_record *last_service(struct rig *rig)
{
    return &rig->service[rig->services - 1];
}

static void add_range(struct rig *rig, const char *vip, uint8_t length, uint8_t protocol,
                      uint16_t first, uint16_t last, uint32_t pool)
{
    uint8_t family = strchr(vip, ':') != NULL ? 6 : 4;

    add_service(rig, family, protocol, 1, pool);
    inet_pton(family == 6 ? AF_INET6 : AF_INET, vip, last_service(rig)->address);
    last_service(rig)->prefix_length = length;
    last_service(rig)->port = htons(first);
    last_service(rig)->port_last = htons(last);
}

/* An SCTP packet: ports, verification tag, checksum, a chunk. */
static struct frame sctp(uint16_t source_port, uint16_t destination_port)
{
    struct frame frame = IP4(132, .payload = 24);

    frame = poke16(frame, L4_OF_4, source_port);
    return poke16(frame, L4_OF_4 + 2, destination_port);
}

static void the_most_specific_service(void **state)
{
    struct rig *rig = *state;

    make_pools(rig, 4);
    add_range(rig, "192.0.2.0", 24, 6, 0, 65535, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 1);
    add_range(rig, "192.0.2.10", 32, 6, 8000, 8999, 2);
    add_range(rig, "2001:db8::", 32, 17, 0, 65535, 3);
    publish(rig);
    assert_int_equal(B(rig, TCP4(.destination_port = 80)), 2);
    assert_int_equal(B(rig, TCP4(.destination_port = 8500)), 3);
    assert_int_equal(B(rig, TCP4(.destination_port = 9000)), 1);
    assert_int_equal(B(rig, TCP4(.destination = "192.0.2.11")), 1);
    assert_int_equal(B(rig, UDP6(.destination = "2001:db8:ffff::9", .destination_port = 9)), 4);
    assert_int_equal(B(rig, UDP4(.destination = "192.0.2.11")), 0);
    assert_int_equal(drops(rig, HB_DROP_NO_SERVICE), 1);
    assert_int_equal(B(rig, TCP4(.destination = "192.0.3.11")), 0);
    assert_int_equal(drops(rig, HB_DROP_NOT_VIP), 1);
    for (uint32_t id = 0; id < 4; id++)
        assert_int_equal(service_counters(rig, id)->packets, id == 0 ? 2 : 1);
}

/* What is wrong with a packet to an address of a prefix is said as for any VIP. */
static void faults_within_a_prefix(void **state)
{
    struct rig *rig = *state;
    const struct row rows[] = {
        {"ICMP of no type", IP4(1, .destination = "192.0.2.77"), DROP(ICMP_TYPE)},
        {"TTL 0", fix4(poke8(TCP4(.destination = "192.0.2.77"), IP4_TTL, 0)), DROP(TTL_EXPIRED)},
        {"ping of another", IP4(1, .destination = "192.0.3.77"), PUNT(NOT_VIP)},
    };

    make_pools(rig, 1);
    add_range(rig, "192.0.2.0", 24, 6, 0, 65535, 0);
    publish(rig);
    RUN_ROWS(rig, rows, 4);
}

/* BL-73 for three protocols: a service and flows for each. */
/* Handed on to a backend of the VIP's first service, in whatever form that is. */
static void pings_of_prefixes_and_ranges(void **state)
{
    struct rig *rig = *state;
    struct hb_service_record range;

    make_pools(rig, 4);
    add_range(rig, "192.0.2.0", 24, 6, 80, 90, 0);
    add_range(rig, "192.0.2.0", 28, 6, 443, 443, 1);
    add_range(rig, "192.0.2.10", 32, 17, 1000, 1999, 2);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 3);
    add_range(rig, "2001:db8:0:a::", 64, 17, 0, 65535, 0);
    add_range(rig, "2001:db8:0:a::20", 128, 6, 1, 2, 1);
    rig->settings.echo = HB_ECHO_FORWARD;
    publish(rig);
    assert_int_equal(B(rig, ICMP4(.type = 8, .destination = "192.0.2.99")), 1);
    assert_int_equal(B(rig, ICMP4(.type = 8, .destination = "192.0.2.9")), 2);
    assert_int_equal(B(rig, ICMP4(.type = 8)), 3);
    assert_int_equal(B(rig, ICMP6(.type = 128)), 1);
    assert_int_equal(B(rig, ICMP6(.type = 128, .destination = "2001:db8:0:a::20")), 2);
    range = rig->service[2]; /* the other way round */
    rig->service[2] = rig->service[3];
    rig->service[3] = range;
    publish(rig);
    assert_int_equal(B(rig, ICMP4(.type = 8)), 4);
}

static void sctp_is_a_protocol_of_its_own(void **state)
{
    struct rig *rig = *state;
    struct frame in = sctp(40000, 80);

    make_pools(rig, 3);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_UDP, 80, 1);
    add_service(rig, 4, HB_PROTOCOL_SCTP, 80, 2);
    publish(rig);
    for (uint32_t twice = 0; twice < 2; twice++) {
        assert_int_equal(B(rig, TCP4(.source_port = 40000)), 1);
        assert_int_equal(B(rig, UDP4(.source_port = 40000, .destination_port = 80)), 2);
        assert_int_equal(backend_of(rig, &in), 3);
    }
    assert_int_equal(counters(rig)->flows, 3);
    assert_int_equal(counters(rig)->flow_hits, 3);
    advance(rig, 60000);
    assert_int_equal(live_flows(rig, 3), 0);
}

/* How many backends the clients of ports 1000 to 1200 reach; *first is that of the first. */
static uint32_t count_backends(struct rig *rig, uint8_t protocol, uint16_t destination_port,
                               const char *source, uint16_t *first)
{
    bool got[RIG_BACKENDS] = {false};
    uint32_t count = 0;

    for (uint16_t port = 1000; port < 1200; port++) {
        struct spec spec = {.family = 4,
                            .protocol = protocol,
                            .source = source,
                            .source_port = port,
                            .destination_port = destination_port};
        struct frame frame = build(&spec);
        uint16_t id = backend_of(rig, &frame);

        if (port == 1000)
            *first = id;
        count += !got[id];
        got[id] = true;
    }
    assert_false(got[0]);
    return count;
}

/* BL-70: each service has its own affinity, in whatever order they are configured. */
static void affinity_is_of_one_service(void **state)
{
    static const uint8_t orders[6][3] = {{0, 1, 2}, {0, 2, 1}, {1, 0, 2},
                                         {1, 2, 0}, {2, 0, 1}, {2, 1, 0}};
    struct rig *rig = *state;
    uint16_t first, again;

    make_big_pool(rig);
    for (uint32_t order = 0; order < 6; order++) {
        rig->services = 0;
        for (uint32_t i = 0; i < 3; i++) {
            switch (orders[order][i]) {
            case 0:
                add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
                last_service(rig)->affinity = HB_AFFINITY_SOURCE;
                last_service(rig)->affinity_prefix = 32;
                break;
            case 1:
                add_service(rig, 4, HB_PROTOCOL_TCP, 443, 0);
                break;
            default:
                add_service(rig, 4, HB_PROTOCOL_UDP, 53, 0);
                last_service(rig)->affinity = HB_AFFINITY_SOURCE_PORT;
                last_service(rig)->affinity_prefix = 32;
            }
        }
        publish(rig);
        assert_int_equal(count_backends(rig, 6, 80, "203.0.113.9", &first), 1);
        assert_int_equal(count_backends(rig, 6, 443, "203.0.113.9", &again), 10);
        assert_int_equal(count_backends(rig, 17, 53, "203.0.113.9", &again), 10);
    }
    /* By source and port: another destination port does not matter, but there is only one; the
     * flow itself is kept. */
    assert_int_equal(B(rig, UDP4(.source_port = 1000, .destination_port = 53)), again);
}

/* A prefix of sources goes to one backend; so do TCP and UDP of one source; sources spread. */
static void affinity_by_prefix(void **state)
{
    struct rig *rig = *state;
    uint16_t first, other, udp;
    uint32_t differ = 0;

    make_big_pool(rig);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->affinity = HB_AFFINITY_SOURCE;
    last_service(rig)->affinity_prefix = 24;
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    last_service(rig)->affinity = HB_AFFINITY_SOURCE;
    last_service(rig)->affinity_prefix = 24;
    add_service(rig, 6, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->affinity = HB_AFFINITY_SOURCE;
    last_service(rig)->affinity_prefix = 64;
    publish(rig);
    for (uint32_t n = 0; n < 20; n++) {
        char low[32], high[32];

        snprintf(low, sizeof(low), "203.0.%u.1", n + 100);
        snprintf(high, sizeof(high), "203.0.%u.254", n + 100);
        assert_int_equal(count_backends(rig, 6, 80, low, &first), 1);
        assert_int_equal(count_backends(rig, 6, 80, high, &other), 1);
        assert_int_equal(count_backends(rig, 17, 443, high, &udp), 1);
        assert_int_equal(first, other);
        assert_int_equal(first, udp);
        differ += n > 0 && first != B(rig, TCP4(.source = "203.0.100.1"));
    }
    assert_true(differ > 10);
    for (uint32_t n = 0; n < 20; n++) {
        char low[48], high[48];

        snprintf(low, sizeof(low), "2001:db8:7:%x::1", n);
        snprintf(high, sizeof(high), "2001:db8:7:%x:ffff::2", n);
        assert_int_equal(B(rig, TCP6(.source = low)), B(rig, TCP6(.source = high)));
    }
}

/* `halbachctl lookup` says where packets go, with and without tracking. */
static void lookup_knows_affinity(void **state)
{
    struct rig *rig = *state;

    make_big_pool(rig);
    for (uint16_t i = 0; i < 3; i++) {
        add_service(rig, 4, HB_PROTOCOL_TCP, (uint16_t)(80 + i), 0);
        last_service(rig)->affinity = HB_AFFINITY_SOURCE;
        last_service(rig)->affinity_prefix = 32;
        last_service(rig)->tracking = i;
    }
    publish(rig);
    for (uint16_t n = 0; n < 200; n++) {
        struct hb_flow_key key = {.destination = {192, 0, 2, 10},
                                  .source = {203, 0, 113, (uint8_t)n},
                                  .source_port = htons(n + 1),
                                  .destination_port = htons(80 + n % 3),
                                  .protocol = HB_PROTOCOL_TCP,
                                  .family = HB_FAMILY_IPV4};
        struct hb_lookup_reply reply = {0};
        char source[32];

        snprintf(source, sizeof(source), "203.0.113.%u", n);
        hb_lookup_flow(rig->head.current->node[0], &rig->worker, 1, &key, &reply);
        assert_int_equal(reply.source, HB_LOOKUP_TABLE);
        assert_int_equal(
            B(rig, TCP4(.source = source, .source_port = n + 1, .destination_port = 80 + n % 3)),
            reply.backend);
        hb_lookup_flow(rig->head.current->node[0], &rig->worker, 1, &key, &reply);
        assert_int_equal(reply.source, n % 3 == 0 ? HB_LOOKUP_FLOW : HB_LOOKUP_TABLE);
    }
}

/* BL-55: an affinity that changes moves no flow that has an entry, and decides for new ones;
 * without tracking an entry is used no more and goes in its time. */
static void changed_options(void **state)
{
    struct rig *rig = *state;
    uint16_t before[100], first;

    make_big_pool(rig);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    publish(rig);
    for (uint16_t n = 0; n < 100; n++) {
        before[n] = B(rig, UDP4(.source_port = 2000 + n));
        B(rig, UDP4(.source_port = 2000 + n));
    }
    last_service(rig)->affinity = HB_AFFINITY_SOURCE;
    last_service(rig)->affinity_prefix = 32;
    publish(rig);
    for (uint16_t n = 0; n < 100; n++)
        assert_int_equal(B(rig, UDP4(.source_port = 2000 + n)), before[n]);
    assert_int_equal(count_backends(rig, 17, 443, NULL, &first), 1);
    last_service(rig)->tracking = HB_TRACKING_OFF;
    publish(rig);
    for (uint16_t n = 0; n < 100; n++)
        assert_int_equal(B(rig, UDP4(.source_port = 2000 + n)), first);
    assert_int_equal(counters(rig)->flows, 300);
    rig->now_ms += 59000;
    B(rig, UDP4(.source_port = 2000));
    advance(rig, 1000);
    assert_int_equal(counters(rig)->flows, 0);
}

static void sources_are_allowed_and_denied(void **state)
{
    struct rig *rig = *state;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->prefix_list = 1;
    add_service(rig, 6, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->prefix_list = 2;
    last_service(rig)->flags = HB_SERVICE_DENY_OTHERS;
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 0);
    add_source(rig, 1, "203.0.113.0/24", false);
    add_source(rig, 1, "203.0.113.9/32", true);
    add_source(rig, 2, "2001:db8:7::/48", true);
    add_source(rig, 2, "0.0.0.0/0", false);
    publish(rig);
    assert_int_equal(B(rig, TCP4(.source = "203.0.113.9")), 1);
    assert_int_equal(B(rig, TCP4(.source = "203.0.112.1")), 1);
    assert_int_equal(B(rig, TCP4(.source = "203.0.113.8")), 0);
    assert_int_equal(drops(rig, HB_DROP_DENIED), 1);
    assert_int_equal(B(rig, TCP4(.source = "203.0.113.8", .destination_port = 81)), 1);
    assert_int_equal(B(rig, TCP6(.source = "2001:db8:7::1")), 1);
    assert_int_equal(B(rig, TCP6(.source = "2001:db8:8::1")), 0);
    assert_int_equal(drops(rig, HB_DROP_DENIED), 2);
    assert_int_equal(service_counters(rig, 0)->denied, 1);
    assert_int_equal(service_counters(rig, 0)->drops, 1);
    assert_int_equal(service_counters(rig, 1)->denied, 1);
    assert_int_equal(service_counters(rig, 2)->denied, 0);

    /* A new prefix ends flows that run: at their next packet. */
    assert_int_equal(B(rig, TCP4(.source = "203.0.113.9", .flags = ACK)), 1);
    add_source(rig, 1, "203.0.113.8/31", false);
    rig->prefix[2].allow = false;
    publish(rig);
    assert_int_equal(B(rig, TCP4(.source = "203.0.113.9", .flags = ACK)), 0);
    assert_int_equal(drops(rig, HB_DROP_DENIED), 3);
}

/* A burst in which every other packet is denied: the others leave, in their order. */
static void a_burst_of_both(void **state)
{
    struct rig *rig = *state;
    struct frame out;
    uint32_t sent = 0;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->prefix_list = 1;
    add_service(rig, 6, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->prefix_list = 1;
    add_source(rig, 1, "203.0.113.8/32", false);
    add_source(rig, 1, "2001:db8:8::/48", false);
    publish(rig);
    for (uint16_t i = 0; i < 64; i++) {
        struct frame frames[] = {TCP4(.source_port = 100 + i),
                                 TCP4(.source = "203.0.113.8", .source_port = 100 + i),
                                 TCP6(.source_port = 100 + i), TCP6(.source = "2001:db8:8::9")};

        send_frame(rig, &frames[i % 4]);
    }
    turn(rig);
    while (receive(rig, PORT, &out)) {
        uint32_t l4 = out.bytes[34] >> 4 == 4 ? 34 + 20 : 34 + 40;

        assert_int_equal(out.bytes[l4] << 8 | out.bytes[l4 + 1], 100 + sent * 2);
        sent++;
    }
    assert_int_equal(sent, 32);
    assert_int_equal(drops(rig, HB_DROP_DENIED), 32);
}

/* How many of `count` new connections from `port` on get through. */
static uint32_t connect_many(struct rig *rig, uint16_t destination_port, uint16_t port,
                             uint32_t count)
{
    uint32_t through = 0;

    for (uint32_t i = 0; i < count; i++)
        through += B(rig, TCP4(.source_port = (uint16_t)(port + i),
                               .destination_port = destination_port)) != 0;
    return through;
}

/* A flood on one service: it gets what it may have, its connections go on, and the other service
 * does not notice. */
static void new_flows_are_limited(void **state)
{
    struct rig *rig = *state;
    const uint16_t first = 1000;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->new_flows_rate = 50;
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 0);
    publish(rig);
    assert_int_equal(connect_many(rig, 80, first, 300), 50); /* what a second may bring */
    assert_int_equal(drops(rig, HB_DROP_LIMIT_NEW_FLOWS), 250);
    assert_int_equal(service_counters(rig, 0)->limited, 250);
    assert_int_equal(service_counters(rig, 0)->new_flows, 50);
    for (uint16_t i = 0; i < 50; i++) /* established: never */
        assert_int_equal(B(rig, TCP4(.source_port = first + i, .flags = ACK)), 1);
    assert_int_equal(connect_many(rig, 81, first, 300), 300);
    rig->now_ms += 100;
    assert_int_equal(connect_many(rig, 80, 2000, 300), 5);
    rig->now_ms += 10000; /* credit is not saved up without end */
    assert_int_equal(connect_many(rig, 80, 3000, 300), 50);
    assert_int_equal(service_counters(rig, 1)->limited, 0);

    /* A connection that may have begun elsewhere goes on, but makes no entry. */
    assert_int_equal(B(rig, TCP4(.source_port = 9, .flags = ACK)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 9, .flags = ACK)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 9, .flags = RST)), 1);
    assert_int_equal(service_counters(rig, 0)->new_flows, 105);
    rig->now_ms += 20;
    assert_int_equal(B(rig, TCP4(.source_port = 9, .flags = ACK)), 1);
    assert_int_equal(service_counters(rig, 0)->new_flows, 106);
}

/* The datagrams of one flow in one burst are one flow, with the last credit there is. */
static void one_burst_of_one_flow(void **state)
{
    struct rig *rig = *state;
    struct frame in = UDP4(), out;
    uint32_t sent = 0;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_UDP, 443, 0);
    last_service(rig)->new_flows_rate = 1;
    last_service(rig)->flows_max = 1;
    publish(rig);
    for (uint32_t i = 0; i < 10; i++)
        send_frame(rig, &in);
    turn(rig);
    while (receive(rig, PORT, &out))
        sent++;
    assert_int_equal(sent, 10);
    assert_int_equal(service_counters(rig, 0)->flows, 1);
}

/* Without entries every SYN counts, and nothing else. */
static void new_flows_without_tracking(void **state)
{
    struct rig *rig = *state;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->new_flows_rate = 10;
    last_service(rig)->tracking = HB_TRACKING_OFF;
    publish(rig);
    assert_int_equal(connect_many(rig, 80, 1000, 30), 10);
    for (uint16_t i = 0; i < 30; i++)
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = ACK)), 1);
    assert_int_equal(drops(rig, HB_DROP_LIMIT_NEW_FLOWS), 20);
}

static uint64_t service_flows(const struct rig *rig, uint32_t id)
{
    return service_counters(rig, id)->flows;
}

/* So many at a time: the gauge is exact however flows end, and whatever the configuration makes of
 * their service meanwhile. */
static void flows_are_limited(void **state)
{
    struct rig *rig = *state;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 0);
    publish(rig);
    assert_int_equal(connect_many(rig, 80, 1, 3), 3); /* before there was a limit */
    rig->service[0].flows_max = 20;
    publish(rig);
    assert_int_equal(connect_many(rig, 80, 1000, 100), 20);
    assert_int_equal(service_flows(rig, 0), 20);
    assert_int_equal(drops(rig, HB_DROP_LIMIT_FLOWS), 80);
    assert_int_equal(service_counters(rig, 0)->limited, 80);
    assert_int_equal(connect_many(rig, 81, 1000, 100), 100);
    assert_int_equal(service_flows(rig, 1), 0);
    for (uint16_t i = 0; i < 20; i++)
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = ACK)), 1);
    assert_int_equal(B(rig, TCP4(.source_port = 7, .flags = ACK)), 1); /* without an entry */
    assert_int_equal(service_flows(rig, 0), 20);

    /* Five end; a connection on the ports of one of them is no further flow. */
    for (uint16_t i = 0; i < 5; i++)
        B(rig, TCP4(.source_port = 1000 + i, .flags = FIN));
    assert_int_equal(B(rig, TCP4(.source_port = 1000)), 1);
    assert_int_equal(service_flows(rig, 0), 20);
    advance(rig, 10000);
    assert_int_equal(service_flows(rig, 0), 15);

    /* The service is gone, then another one has its ports: flows count where they did. */
    rig->service[0].flows_max = 0;
    publish(rig);
    assert_int_equal(connect_many(rig, 80, 2000, 30), 30);
    assert_int_equal(service_flows(rig, 0), 15);
    rig->service[0].id = 9;
    rig->service[0].flows_max = 40;
    publish(rig);
    assert_int_equal(connect_many(rig, 80, 3000, 50), 40);
    assert_int_equal(service_flows(rig, 9), 40);
    assert_int_equal(service_flows(rig, 0), 15);
    hb_worker_flush(rig->worker);
    turn(rig);
    assert_int_equal(service_flows(rig, 0), 0);
    assert_int_equal(service_flows(rig, 9), 0);
}

/* A cache that is full: flows on probation make way, and are counted off. */
static void flows_that_make_way(void **state)
{
    struct rig *rig = *state;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->flows_max = 100000;
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 0);
    publish(rig);
    connect_many(rig, 80, 1, 1500);
    assert_true(counters(rig)->flow_evictions > 0);
    assert_int_equal(service_flows(rig, 0), counters(rig)->flows);
    connect_many(rig, 81, 1, 3000);
    assert_true(service_flows(rig, 0) < counters(rig)->flows);
    advance(rig, 5000);
    assert_int_equal(service_flows(rig, 0), 0);
}

/* Connections from ports `from` on that are established: a SYN and an ACK each. */
static void establish_many(struct rig *rig, uint16_t destination_port, uint16_t from,
                           uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        B(rig, TCP4(.source_port = (uint16_t)(from + i), .destination_port = destination_port));
        B(rig, TCP4(.source_port = (uint16_t)(from + i), .destination_port = destination_port,
                    .flags = ACK));
    }
}

/* A flood of whole connections to one service, more than the cache holds. With a limit the other
 * service finds its room: every connection of it has an entry. Without one there is none left for
 * it. */
static void a_flood_leaves_the_cache_to_others(void **state)
{
    struct rig *rig = *state;
    uint64_t entries, hits;

    make_pools(rig, 1);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->flows_max = 100;
    add_service(rig, 4, HB_PROTOCOL_TCP, 81, 0);
    publish(rig);
    entries = counters(rig)->flows_max;
    establish_many(rig, 80, 1, (uint32_t)entries);
    establish_many(rig, 81, 1, 300);
    establish_many(rig, 80, (uint16_t)(1 + entries), (uint32_t)entries);
    assert_int_equal(service_flows(rig, 0), 100);
    assert_int_equal(counters(rig)->flow_insert_failures, 0);
    assert_int_equal(counters(rig)->flow_evictions, 0);
    hits = counters(rig)->flow_hits;
    for (uint16_t i = 0; i < 300; i++)
        assert_int_equal(B(rig, TCP4(.source_port = 1 + i, .destination_port = 81, .flags = ACK)),
                         1);
    assert_int_equal(counters(rig)->flow_hits - hits, 300);
    assert_int_equal(service_counters(rig, 1)->drops, 0);

    rig->service[0].flows_max = 0;
    publish(rig);
    hb_worker_flush(rig->worker);
    turn(rig);
    establish_many(rig, 80, 1, 2 * (uint32_t)entries);
    entries = counters(rig)->flow_inserts;
    establish_many(rig, 81, 1000, 300);
    assert_true(counters(rig)->flow_inserts - entries < 150);
}

/* A flow whose backend is down is selected anew, limit or not. */
static void limits_and_backends_that_go_down(void **state)
{
    struct rig *rig = *state;

    add_backend(rig, 1, 0, 4);
    add_backend(rig, 2, 0, 4);
    share_table(rig, 0);
    add_service(rig, 4, HB_PROTOCOL_TCP, 80, 0);
    last_service(rig)->flows_max = 50;
    last_service(rig)->new_flows_rate = 50;
    publish(rig);
    assert_int_equal(connect_many(rig, 80, 1000, 60), 50);
    for (uint16_t i = 0; i < 50; i++)
        B(rig, TCP4(.source_port = 1000 + i, .flags = ACK));
    rig->backend[2].use = HB_BACKEND_DOWN;
    share_table(rig, 0);
    publish(rig);
    for (uint16_t i = 0; i < 50; i++)
        assert_int_equal(B(rig, TCP4(.source_port = 1000 + i, .flags = ACK)), 1);
    assert_int_equal(service_flows(rig, 0), 50);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)
    const struct CMUnitTest tests[] = {
        TEST(the_most_specific_service),
        TEST(faults_within_a_prefix),
        TEST(pings_of_prefixes_and_ranges),
        TEST(sctp_is_a_protocol_of_its_own),
        TEST(affinity_is_of_one_service),
        TEST(affinity_by_prefix),
        TEST(lookup_knows_affinity),
        TEST(changed_options),
        TEST(sources_are_allowed_and_denied),
        TEST(a_burst_of_both),
        TEST(new_flows_are_limited),
        TEST(one_burst_of_one_flow),
        TEST(new_flows_without_tracking),
        TEST(flows_are_limited),
        TEST(flows_that_make_way),
        TEST(a_flood_leaves_the_cache_to_others),
        TEST(limits_and_backends_that_go_down),
    };
    int failed = rig_open();

    if (failed == 0)
        failed = cmocka_run_group_tests(tests, NULL, NULL);
    rig_close();
    return failed;
}
