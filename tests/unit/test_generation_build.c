/* SPDX-License-Identifier: BSD-3-Clause */
/* From a checked blob to what the workers read, and lookups in it as a person asks for them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <arpa/inet.h>
#include <stdlib.h>
#include <string.h>

#include "blob.h"
#include "generation_build.h"
#include "lookup.h"
#include "service_map.h"
#include "test_memory.h"

/* The flow entry that the one worker has; lookup.c asks for it. */
static struct hb_flow_view entry;
static bool has_entry;

bool hb_worker_peek_flow(const struct hb_worker *worker, const struct hb_flow_key *flow,
                         uint64_t hash, struct hb_flow_view *view)
{
    (void)worker, (void)flow, (void)hash;
    *view = entry;
    return has_entry;
}

static struct hb_built_generation *build(const struct blob_plan *plan, struct hb_table_store *store,
                                         const struct test_memory *memory)
{
    size_t size;
    void *blob = blob_build(plan, &size);
    struct hb_built_generation *built = hb_generation_build(blob, NULL, store, &memory->memory);

    free(blob); /* nothing of a built generation may lie in the blob */
    return built;
}

static struct hb_flow_key make_flow(const char *vip, uint8_t protocol, uint16_t port)
{
    struct hb_flow_key flow = {.protocol = protocol, .destination_port = htons(port)};

    flow.family = HB_FAMILY_IPV4;
    inet_pton(AF_INET, "10.0.0.1", flow.source);
    if (inet_pton(AF_INET, vip, flow.destination) != 1) {
        flow.family = HB_FAMILY_IPV6;
        inet_pton(AF_INET6, vip, flow.destination);
    }
    return flow;
}

/* The rewrite as it was published; where it is plain, the sum of the header's fixed part stands for
 * the checksum: with a length, an ID and so on of nothing its complement is the checksum. */
static void assert_rewrite(const struct hb_backend *backend, const struct hb_rewrite *rewrite)
{
    uint8_t bytes[HB_REWRITE_BYTES];
    uint32_t sum = 0;

    memcpy(bytes, rewrite->bytes, sizeof(bytes));
    assert_true(backend->plain == (rewrite->family == HB_FAMILY_IPV4 && rewrite->l2_size == 14));
    if (backend->plain) {
        for (uint32_t i = 14; i < 34; i += 2)
            sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
        sum = sum % 0xffff;
        bytes[24] = (uint8_t)(sum >> 8);
        bytes[25] = (uint8_t)sum;
    }
    assert_memory_equal(backend->bytes, bytes, sizeof(bytes));
}

static void everything_arrives_on_every_node(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct blob_plan plan = blob_example();
    struct hb_built_generation *built;
    struct hb_flow_key flow = make_flow("192.0.2.10", HB_PROTOCOL_TCP, 80);

    (void)state;
    test_memory_init(&memory, 0x3);
    store = hb_table_store_create(&memory.memory);
    plan.number = 77;
    plan.backend[3].id = 900;
    plan.backend[3].incarnation = 5;
    plan.backend[3].use = HB_BACKEND_DRAINING;
    plan.service[1].id = 12;
    plan.pool[1].bounded_load = 256;
    plan.service[1].mss_max = 1400;
    plan.backend[2].weight = 65535;
    plan.backend[3].weight = 0;
    built = build(&plan, store, &memory);
    assert_non_null(built);
    assert_null(built->set.node[2]);
    for (int node = 0; node < 2; node++) {
        const struct hb_generation *g = built->set.node[node];

        assert_int_equal(g->number, 77);
        assert_int_equal(g->services_count, 2);
        assert_int_equal(g->services[1].id, 12);
        assert_int_equal(g->services[1].pool, 1);
        assert_int_equal(g->mss_max[0], 0);
        assert_int_equal(g->mss_max[1], 1400);
        assert_int_equal(g->pools[0].slots, 13);
        assert_int_equal(g->pools[1].owner[1], 900);
        assert_int_equal(g->pools[0].bounded_load, 0);
        assert_int_equal(g->pools[1].bounded_load, 256);
        assert_int_equal(g->bounds[0].members, 0);
        assert_int_equal(g->bounds[1].members, 2);
        assert_int_equal(g->bounds[1].member[0], 3);
        assert_int_equal(g->bounds[1].member[1], 900);
        assert_int_equal(g->bounds[1].weights, 65535 + 1);
        assert_int_equal(g->backends[3].weight, 65535);
        assert_int_equal(g->backends[900].weight, 1); /* it owns slots, so it has a part */
        assert_int_equal(g->backends_count, 901);
        assert_int_equal(g->backends[0].use, 0);
        assert_int_equal(g->backends[899].use, 0);
        assert_int_equal(g->backends[900].use, HB_BACKEND_DRAINING);
        assert_int_equal(g->backends[900].size, 34);
        assert_rewrite(&g->backends[2], &plan.backend[1].rewrite);
        assert_true(hb_backend_serves(g, 900, 5));
        assert_false(hb_backend_serves(g, 900, 4));
        assert_int_equal(hb_service_map_find(g->map, &flow), 0);
    }
    hb_generation_free(built, store, &memory.memory);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

/* Members are the owners of slots, whoever else is of the pool; a pool without a table has none. */
static void only_owners_of_slots_are_members(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct blob_plan plan = blob_example();
    uint16_t owner[13] = {2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2};
    struct hb_built_generation *built;

    (void)state;
    test_memory_init(&memory, 0x1);
    store = hb_table_store_create(&memory.memory);
    plan.pool[0].bounded_load = HB_BOUNDED_LOAD_MAX;
    plan.pool[0].owner = owner;
    plan.pool[blob_add_pool(&plan, "none", 0)].bounded_load = 1;
    built = build(&plan, store, &memory);
    assert_int_equal(built->set.node[0]->bounds[0].members, 1);
    assert_int_equal(built->set.node[0]->bounds[0].member[0], 2);
    assert_int_equal(built->set.node[0]->bounds[0].weights, 1);
    assert_int_equal(built->set.node[0]->bounds[1].members, 0);
    assert_int_equal(built->set.node[0]->bounds[2].members, 0);
    hb_generation_free(built, store, &memory.memory);
    plan.pool[0].bounded_load = plan.pool[2].bounded_load = 0;
    built = build(&plan, store, &memory);
    assert_null(built->set.node[0]->bounds);
    hb_generation_free(built, store, &memory.memory);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

/* BL-105: after each swap every record equals the one that was published, whatever was edited
 * before. */
static void no_generation_shares_records_with_another(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct hb_built_generation *old = NULL;
    struct blob_plan plan = blob_example();

    (void)state;
    test_memory_init(&memory, 0x1);
    store = hb_table_store_create(&memory.memory);
    for (uint32_t round = 0; round < 1000; round++) {
        uint32_t changed = round * 7 % plan.backends;
        struct hb_built_generation *built;

        plan.number = round + 1;
        plan.backend[changed].rewrite.bytes[5] =
            (uint8_t)(round + 1); /* its next hop's MAC address */
        plan.pool[0].leave_out_body = plan.pool[1].leave_out_body = round > 0;
        built = build(&plan, store, &memory);
        assert_non_null(built);
        hb_generation_free(old, store, &memory.memory);
        for (uint32_t i = 0; i < plan.backends; i++)
            assert_rewrite(&built->set.node[0]->backends[plan.backend[i].id],
                           &plan.backend[i].rewrite);
        assert_int_equal(hb_table_store_count(store), 2);
        old = built;
    }
    hb_generation_free(old, store, &memory.memory);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

/* Of services that read a slot a packet, and only if the caches do not hold the tables. */
static void slots_are_fetched_where_tables_are_far(void **state)
{
    static const struct {
        uint32_t slots[2];
        uint8_t tracking;
        bool fetched;
    } rows[] = {
        {{13, 7}, HB_TRACKING_CHANGED, false},    {{524287, 1}, HB_TRACKING_CHANGED, false},
        {{524287, 2}, HB_TRACKING_CHANGED, true}, {{655373, 7}, HB_TRACKING_OFF, true},
        {{655373, 7}, HB_TRACKING_ALL, false},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct test_memory memory;
        struct hb_table_store *store;
        struct blob_plan plan = blob_example();
        struct hb_built_generation *built;

        test_memory_init(&memory, 0x1);
        store = hb_table_store_create(&memory.memory);
        plan.pool[0].slots = rows[i].slots[0];
        plan.pool[1].slots = rows[i].slots[1];
        plan.service[0].tracking = rows[i].tracking;
        built = build(&plan, store, &memory);
        assert_non_null(built);
        assert_int_equal(built->set.node[0]->fetch_slots, rows[i].fetched);
        hb_generation_free(built, store, &memory.memory);
        hb_table_store_destroy(store);
    }
}

static void short_memory_leaves_the_old_generation_whole(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct blob_plan plan = blob_example();
    struct hb_built_generation *old, *built = NULL;
    uint16_t owner[13] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2};
    int out, failures = 0;

    (void)state;
    test_memory_init(&memory, 0x3);
    store = hb_table_store_create(&memory.memory);
    old = build(&plan, store, &memory);
    out = memory.out;
    plan.pool[0].owner = owner;
    for (int k = 0; built == NULL; k++) {
        memory.fail_in = k;
        built = build(&plan, store, &memory);
        if (built != NULL)
            break;
        failures++;
        assert_int_equal(memory.out, out);
        assert_int_equal(old->set.node[1]->pools[0].owner[1], 2);
    }
    assert_int_equal(failures, 4); /* a table and a block on each of two nodes */
    hb_generation_free(old, store, &memory.memory);
    hb_generation_free(built, store, &memory.memory);
    assert_int_equal(memory.out, 0);
    hb_table_store_destroy(store);
}

static void lookups_tell_why(void **state)
{
    struct test_memory memory;
    struct hb_table_store *store;
    struct blob_plan plan = blob_example();
    struct hb_built_generation *built;
    const struct hb_generation *g;
    struct hb_worker *worker = NULL;
    struct hb_flow_key www = make_flow("192.0.2.10", HB_PROTOCOL_TCP, 80),
                       other = make_flow("192.0.2.10", HB_PROTOCOL_TCP, 81),
                       empty = make_flow("192.0.2.11", HB_PROTOCOL_UDP, 65535);
    struct hb_lookup_reply reply = {0};

    (void)state;
    test_memory_init(&memory, 0x1);
    store = hb_table_store_create(&memory.memory);
    blob_add_service(&plan, "empty", "192.0.2.11", HB_PROTOCOL_UDP, 65535,
                     blob_add_pool(&plan, "none", 0));
    built = build(&plan, store, &memory);
    g = built->set.node[0];
    has_entry = false;
    hb_lookup_flow(NULL, &worker, 1, &www, &reply);
    assert_int_equal(reply.source, HB_LOOKUP_NO_SERVICE);
    hb_lookup_flow(g, &worker, 1, &other, &reply);
    assert_int_equal(reply.source, HB_LOOKUP_NO_SERVICE);
    hb_lookup_flow(g, &worker, 1, &empty, &reply);
    assert_int_equal(reply.source, HB_LOOKUP_NO_BACKEND);
    assert_int_equal(reply.backend, 0);
    hb_lookup_flow(g, &worker, 1, &www, &reply);
    assert_int_equal(reply.source, HB_LOOKUP_TABLE);
    assert_int_equal(reply.hash, hb_flow_hash(&www, &g->hash_key));
    assert_int_equal(reply.slot, hb_slot_of(reply.hash, 13));
    assert_int_equal(reply.backend, 1 + reply.slot % 2);
    has_entry = true;
    entry = (struct hb_flow_view){
        .backend = 3 - (uint16_t)reply.backend, .incarnation = 1, .idle_ms = 9};
    hb_lookup_flow(g, &worker, 1, &www, &reply);
    assert_int_equal(reply.source, HB_LOOKUP_FLOW);
    assert_int_equal(reply.backend, entry.backend);
    assert_int_equal(reply.flow_idle_ms, 9);
    entry.incarnation = 2; /* the id is another backend's now */
    hb_lookup_flow(g, &worker, 1, &www, &reply);
    assert_int_equal(reply.source, HB_LOOKUP_FLOW_STALE);
    assert_int_equal(reply.backend, reply.table_backend);
    hb_lookup_flow(g, &worker, 1, &empty, &reply);
    assert_int_equal(reply.source, HB_LOOKUP_NO_BACKEND);
    hb_generation_free(built, store, &memory.memory);
    hb_table_store_destroy(store);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(everything_arrives_on_every_node),
        cmocka_unit_test(only_owners_of_slots_are_members),
        cmocka_unit_test(no_generation_shares_records_with_another),
        cmocka_unit_test(slots_are_fetched_where_tables_are_far),
        cmocka_unit_test(short_memory_leaves_the_old_generation_whole),
        cmocka_unit_test(lookups_tell_why),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
