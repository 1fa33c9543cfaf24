/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow cache: cases small enough to check by hand, floods, and a random walk beside a slow
 * model. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "flow_bucket.h"

static const struct hb_flow_timeouts timeouts = {
    .tcp_syn_ms = 3000,
    .tcp_established_ms = 3600000,
    .tcp_fin_ms = 10000,
    .tcp_rst_ms = 1000,
    .udp_ms = 60000,
};
static const uint32_t timeout_of[HB_FLOW_STATES] = {0, 3000, 60000, 1000, 3600000, 10000, 60000};
static const struct hb_hash_key hash_key = {{1, 2, 3, 4, 5, 6, 7, 8}};

static uint64_t random_state = 88172645463325252ULL;

static uint32_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return (uint32_t)(random_state >> 16);
}

static void count_nothing(void *context, const struct hb_flow_value *value)
{
    (void)context;
    (void)value;
}

static struct hb_flow_table *make_table(uint64_t flows)
{
    return hb_flow_table_init(aligned_alloc(64, (hb_flow_table_bytes(flows, 0) + 63) / 64 * 64),
                              flows, 0, &timeouts);
}

/* The key of client number `n`: address and port differ. */
static struct hb_flow_key make_key(uint32_t n)
{
    struct hb_flow_key key = {
        .destination = {192, 0, 2, 10}, .protocol = HB_PROTOCOL_TCP, .family = HB_FAMILY_IPV4};

    memcpy(key.source, &n, 4);
    key.source_port = (hb_be16)(n * 7);
    key.destination_port = 0x5000;
    return key;
}

static hb_flow_ref find(const struct hb_flow_table *table, const struct hb_flow_key *key,
                        uint64_t hash, uint32_t now_ms)
{
    struct hb_flow_query query = hb_flow_query_of(key, hash);
    const struct hb_flow_query *queries[] = {&query};
    hb_flow_ref found;

    hb_flow_table_find(table, queries, 1, now_ms, &found);
    return found;
}

static hb_flow_ref find_client(const struct hb_flow_table *table, uint32_t n, uint32_t now_ms)
{
    struct hb_flow_key key = make_key(n);

    return find(table, &key, hb_flow_hash(&key, &hash_key), now_ms);
}

static enum hb_flow_insert insert(struct hb_flow_table *table, const struct hb_flow_key *key,
                                  uint64_t hash, const struct hb_flow_value *value, uint32_t now_ms,
                                  struct hb_flow_value *displaced)
{
    struct hb_flow_query query = hb_flow_query_of(key, hash);
    enum hb_flow_insert result;
    hb_flow_ref entry;

    result = hb_flow_table_insert(table, &query, value, now_ms, displaced, &entry);
    if (result == HB_FLOW_FULL)
        assert_int_equal(entry, HB_FLOW_NONE);
    else
        assert_int_equal(entry, find(table, key, hash, now_ms));
    return result;
}

static enum hb_flow_insert insert_client(struct hb_flow_table *table, uint32_t n, uint8_t state,
                                         uint32_t now_ms, struct hb_flow_value *displaced)
{
    struct hb_flow_key key = make_key(n);
    struct hb_flow_value value = {.incarnation = n, .backend = 1, .state = state};

    return insert(table, &key, hb_flow_hash(&key, &hash_key), &value, now_ms, displaced);
}

static void count_gone(void *context, const struct hb_flow_value *value)
{
    (void)value;
    ++*(uint32_t *)context;
}

static uint32_t age_all(struct hb_flow_table *table, uint32_t now_ms)
{
    uint32_t told = 0;
    uint32_t gone =
        hb_flow_table_age(table, now_ms, hb_flow_table_buckets(table), count_gone, &told);

    assert_int_equal(gone, told);
    return gone;
}

static void finds_what_was_inserted(void **state)
{
    struct hb_flow_table *table = make_table(64);
    struct hb_flow_value displaced, value;
    hb_flow_ref entry;

    (void)state;
    assert_int_equal(hb_flow_table_capacity(table), 64);
    assert_int_equal(find_client(table, 1, 0), HB_FLOW_NONE);
    assert_int_equal(insert_client(table, 1, HB_FLOW_TCP_OPENING, 0, &displaced), HB_FLOW_ADDED);
    assert_int_equal(insert_client(table, 1, HB_FLOW_UDP, 0, &displaced), HB_FLOW_EXISTED);
    entry = find_client(table, 1, 2999);
    assert_int_not_equal(entry, HB_FLOW_NONE);
    assert_int_equal(hb_flow_table_idle_ms(table, entry, 2999), 2999);
    hb_flow_table_repoint(table, entry, 77, 5);
    hb_flow_table_touch(table, entry, HB_FLOW_TCP_ESTABLISHED, 2999);
    value = hb_flow_table_get(table, entry);
    assert_int_equal(value.backend, 77);
    assert_int_equal(value.incarnation, 5);
    assert_int_equal(value.state, HB_FLOW_TCP_ESTABLISHED);
    assert_int_equal(hb_flow_table_used(table), 1);
    free(table);
}

/* Each state lives for its own time, to the millisecond, also where the clock wraps. */
static void every_state_has_its_time(void **state)
{
    static const uint32_t starts[] = {0, 12345, UINT32_MAX - 500, UINT32_MAX};

    (void)state;
    for (uint32_t s = 0; s < 4; s++) {
        for (uint8_t flow = HB_FLOW_TCP_OPENING; flow < HB_FLOW_STATES; flow++) {
            struct hb_flow_table *table = make_table(8);
            struct hb_flow_value displaced;
            uint32_t over = starts[s] + timeout_of[flow];

            insert_client(table, 1, flow, starts[s], &displaced);
            assert_int_not_equal(find_client(table, 1, over - 1), HB_FLOW_NONE);
            assert_int_equal(age_all(table, over - 1), 0);
            assert_int_equal(find_client(table, 1, over), HB_FLOW_NONE);
            assert_int_equal(hb_flow_table_used(table), 1);
            assert_int_equal(age_all(table, over), 1);
            assert_int_equal(hb_flow_table_used(table), 0);
            free(table);
        }
    }
}

/* A reader whose clock is behind the entry sees a fresh entry, not one 49 days old. */
static void an_older_clock_is_no_time_at_all(void **state)
{
    struct hb_flow_table *table = make_table(8);
    struct hb_flow_value displaced;

    (void)state;
    insert_client(table, 1, HB_FLOW_TCP_OPENING, 1000, &displaced);
    assert_int_equal(hb_flow_table_idle_ms(table, find_client(table, 1, 990), 990), 0);
    free(table);
}

/* Clients that all have the same two buckets, found by asking: with one hash for all, the first
 * bucket is the same, and where the fourth flow goes when three fill that tells the second. */
#define SAME_HASH 42
struct neighbours {
    struct hb_flow_key key[16];
    uint32_t count;
};

static struct neighbours find_neighbours(uint64_t flows)
{
    struct neighbours found = {.count = 0};
    struct hb_flow_value value = {.incarnation = 1, .backend = 1, .state = HB_FLOW_UDP};
    struct hb_flow_value displaced;
    uint32_t bucket = UINT32_MAX;

    for (uint32_t n = 1000; found.count < 16; n++) {
        struct hb_flow_table *table = make_table(flows);
        struct hb_flow_key key;

        for (uint32_t filler = 1; filler <= HB_FLOW_PLACES; filler++) {
            key = make_key(filler);
            insert(table, &key, SAME_HASH, &value, 0, &displaced);
        }
        key = make_key(n);
        insert(table, &key, SAME_HASH, &value, 0, &displaced);
        if (bucket == UINT32_MAX)
            bucket = find(table, &key, SAME_HASH, 0) >> 2;
        if (find(table, &key, SAME_HASH, 0) >> 2 == bucket)
            found.key[found.count++] = key;
        free(table);
    }
    return found;
}

/* The n-th of the neighbours comes; its number is its incarnation. */
static enum hb_flow_insert insert_neighbour(struct hb_flow_table *table,
                                            const struct neighbours *all, uint32_t n, uint8_t state,
                                            uint32_t now_ms, struct hb_flow_value *displaced)
{
    struct hb_flow_value value = {.incarnation = n, .backend = 1, .state = state};

    return insert(table, &all->key[n], SAME_HASH, &value, now_ms, displaced);
}

/* Six places that eleven flows want: who makes way can be told by hand. The table has room for six
 * flows, so nobody moves elsewhere. */
static void probation_makes_way_oldest_first(void **state)
{
    struct hb_flow_table *table = make_table(6);
    struct neighbours all = find_neighbours(6);
    struct hb_flow_value displaced;

    (void)state;
    for (uint32_t n = 1; n <= 3; n++)
        insert_neighbour(table, &all, n, HB_FLOW_TCP_ESTABLISHED, 0, &displaced);
    insert_neighbour(table, &all, 4, HB_FLOW_UDP_FIRST, 120, &displaced);
    insert_neighbour(table, &all, 5, HB_FLOW_TCP_OPENING, 100, &displaced);
    insert_neighbour(table, &all, 6, HB_FLOW_TCP_OPENING, 110, &displaced);
    assert_int_equal(hb_flow_table_used(table), 6);

    assert_int_equal(insert_neighbour(table, &all, 7, HB_FLOW_TCP_OPENING, 200, &displaced),
                     HB_FLOW_EVICTED);
    assert_int_equal(displaced.incarnation, 5);
    assert_int_equal(insert_neighbour(table, &all, 8, HB_FLOW_TCP_ESTABLISHED, 200, &displaced),
                     HB_FLOW_EVICTED);
    assert_int_equal(displaced.incarnation, 6);
    assert_int_equal(insert_neighbour(table, &all, 9, HB_FLOW_TCP_CLOSING, 200, &displaced),
                     HB_FLOW_EVICTED);
    assert_int_equal(displaced.incarnation, 4);
    assert_int_equal(insert_neighbour(table, &all, 10, HB_FLOW_UDP, 200, &displaced),
                     HB_FLOW_EVICTED);
    assert_int_equal(displaced.incarnation, 7);

    /* All six are established now: the next is refused and nothing changes. */
    assert_int_equal(insert_neighbour(table, &all, 11, HB_FLOW_TCP_OPENING, 200, &displaced),
                     HB_FLOW_FULL);
    assert_int_equal(find(table, &all.key[11], SAME_HASH, 200), HB_FLOW_NONE);
    for (uint32_t n = 1; n <= 3; n++)
        assert_int_not_equal(find(table, &all.key[n], SAME_HASH, 200), HB_FLOW_NONE);

    /* The closing one is over after 10 s; then there is a place again. */
    assert_int_equal(insert_neighbour(table, &all, 11, HB_FLOW_TCP_OPENING, 10200, &displaced),
                     HB_FLOW_REPLACED);
    assert_int_equal(displaced.incarnation, 9);
    assert_int_equal(hb_flow_table_used(table), 6);
    free(table);
}

/* The same six places, all established, in a table that is not full: one flow moves to its other
 * bucket and the newcomer gets its place; all seven are found, with what they held. */
static void established_flows_move_aside(void **state)
{
    struct hb_flow_table *table = make_table(100);
    struct neighbours all = find_neighbours(100);
    struct hb_flow_value displaced;

    (void)state;
    for (uint32_t n = 0; n < 6; n++)
        assert_int_equal(insert_neighbour(table, &all, n, HB_FLOW_UDP, n, &displaced),
                         HB_FLOW_ADDED);
    /* A stranger of the same first bucket, then as many as fit into its other one. */
    for (uint32_t n = 1; n <= HB_FLOW_PLACES; n++) {
        struct hb_flow_key key = make_key(n);
        struct hb_flow_value value = {.incarnation = 100 + n, .backend = 9, .state = HB_FLOW_UDP};

        assert_int_equal(insert(table, &key, SAME_HASH, &value, 50, &displaced), HB_FLOW_ADDED);
        assert_int_not_equal(find(table, &key, SAME_HASH, 50), HB_FLOW_NONE);
    }
    for (uint32_t n = 0; n < 6; n++) {
        hb_flow_ref entry = find(table, &all.key[n], SAME_HASH, 50);

        assert_int_not_equal(entry, HB_FLOW_NONE);
        assert_int_equal(hb_flow_table_get(table, entry).incarnation, n);
        assert_int_equal(hb_flow_table_idle_ms(table, entry, 50), 50 - n);
    }
    free(table);
}

/* An entry that is over and not aged yet is replaced in its own place: the key never stands twice.
 */
static void a_flow_that_comes_again_has_one_entry(void **state)
{
    struct hb_flow_table *table = make_table(64);
    struct hb_flow_value displaced;

    (void)state;
    insert_client(table, 1, HB_FLOW_TCP_RESET, 0, &displaced);
    assert_int_equal(insert_client(table, 1, HB_FLOW_TCP_OPENING, 5000, &displaced),
                     HB_FLOW_REPLACED);
    assert_int_equal(displaced.state, HB_FLOW_TCP_RESET);
    assert_int_equal(hb_flow_table_used(table), 1);
    assert_int_equal(age_all(table, 5001), 0);
    free(table);
}

/* Equal hashes, equal tags: keys that differ in one bit are different flows, whichever bit it is.
 */
static void keys_are_compared_in_full(void **state)
{
    struct hb_flow_table *table = make_table(1024);
    struct hb_flow_key key = make_key(1);
    struct hb_flow_value value = {.incarnation = 1, .backend = 1, .state = HB_FLOW_UDP};
    struct hb_flow_value displaced;

    (void)state;
    insert(table, &key, 42, &value, 0, &displaced);
    for (uint32_t bit = 0; bit < 8 * sizeof(key); bit++) {
        struct hb_flow_key other = key;

        ((uint8_t *)&other)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_int_equal(find(table, &other, 42, 0), HB_FLOW_NONE);
    }
    assert_int_not_equal(find(table, &key, 42, 0), HB_FLOW_NONE);
    free(table);
}

/* BL-40: IPv4, the IPv6 address of the same bits and the v4-mapped one are three flows. */
static void look_alikes_of_another_family_are_other_flows(void **state)
{
    struct hb_flow_table *table = make_table(64);
    struct hb_flow_key v4 = make_key(1), v6 = v4, mapped = v4;
    struct hb_flow_value value = {.incarnation = 1, .backend = 1, .state = HB_FLOW_UDP};
    struct hb_flow_value displaced;

    (void)state;
    v6.family = HB_FAMILY_IPV6;
    mapped.family = HB_FAMILY_IPV6;
    memset(mapped.source, 0, 16);
    mapped.source[10] = mapped.source[11] = 0xff;
    memcpy(mapped.source + 12, v4.source, 4);
    insert(table, &v4, 42, &value, 0, &displaced);
    assert_int_equal(find(table, &v6, 42, 0), HB_FLOW_NONE);
    assert_int_equal(find(table, &mapped, 42, 0), HB_FLOW_NONE);
    assert_int_not_equal(hb_flow_hash(&v4, &hash_key), hb_flow_hash(&v6, &hash_key));
    free(table);
}

/* BL-39: whatever lay in the memory of the key before. */
static void keys_do_not_depend_on_what_was_there(void **state)
{
    struct hb_flow_table *table = make_table(4096);
    struct hb_flow_value displaced;
    uint8_t memory[sizeof(struct hb_flow_key)];

    (void)state;
    for (uint32_t n = 0; n < 1000; n++)
        insert_client(table, n, HB_FLOW_UDP, 0, &displaced);
    for (uint32_t i = 0; i < 10000; i++) {
        struct hb_flow_key key;

        memset(memory, i % 3 == 0 ? 0 : i % 3 == 1 ? 0xff : (int)next_random(), sizeof(memory));
        memcpy(&key, memory, sizeof(key));
        key = make_key(i % 1000);
        assert_int_not_equal(find(table, &key, hb_flow_hash(&key, &hash_key), 0), HB_FLOW_NONE);
    }
    free(table);
}

/* BL-42: 1,000 flows in a cache of 4,096; half a million one-packet flows come by. */
static void a_flood_evicts_no_established_flow(void **state)
{
    struct hb_flow_table *table = make_table(4096);
    struct hb_flow_value displaced;
    uint32_t evicted = 0;

    (void)state;
    for (uint32_t n = 0; n < 1000; n++)
        assert_int_equal(insert_client(table, n, HB_FLOW_TCP_ESTABLISHED, 0, &displaced),
                         HB_FLOW_ADDED);
    for (uint32_t n = 0; n < 500000; n++) {
        uint8_t flow = n % 3 == 0 ? HB_FLOW_UDP_FIRST : HB_FLOW_TCP_OPENING;
        enum hb_flow_insert result =
            insert_client(table, 1000 + n, flow, 1000 + n / 2000, &displaced);

        if (result == HB_FLOW_EVICTED) {
            assert_true(hb_flow_on_probation(displaced.state));
            evicted++;
        }
    }
    assert_true(evicted > 400000);
    for (uint32_t n = 0; n < 1000; n++)
        assert_int_not_equal(find_client(table, n, 2000), HB_FLOW_NONE);
    free(table);
}

/* BL-50: twice as many flows as places, a hundred times over; the count is exact and nothing leaks.
 */
static void a_full_table_keeps_exact_count(void **state)
{
    struct hb_flow_table *table = make_table(1024);
    uint32_t now_ms = 0;

    (void)state;
    for (uint32_t round = 0; round < 100; round++) {
        struct hb_flow_value displaced;
        uint32_t added = 0, full = 0;

        for (uint32_t n = 0; n < 2048; n++) {
            enum hb_flow_insert result =
                insert_client(table, round * 5000 + n, HB_FLOW_UDP, now_ms, &displaced);

            added += result == HB_FLOW_ADDED;
            full += result == HB_FLOW_FULL;
        }
        assert_int_equal(added + full, 2048);
        assert_int_equal(hb_flow_table_used(table), added);
        assert_int_equal(added, 1024);
        now_ms += 60000;
        assert_int_equal(age_all(table, now_ms), added);
        assert_int_equal(hb_flow_table_used(table), 0);
    }
    free(table);
}

/* BL-73: the same addresses and ports under three protocols are three flows. */
static void protocols_do_not_mix(void **state)
{
    static const uint8_t protocols[] = {HB_PROTOCOL_TCP, HB_PROTOCOL_UDP, HB_PROTOCOL_SCTP};
    static const uint8_t states[] = {HB_FLOW_TCP_ESTABLISHED, HB_FLOW_UDP, HB_FLOW_UDP};
    struct hb_flow_table *table = make_table(64);
    struct hb_flow_value displaced;

    (void)state;
    for (uint32_t i = 0; i < 3; i++) {
        struct hb_flow_value value = {.backend = (uint16_t)(i + 1), .state = states[i]};
        struct hb_flow_key key = make_key(5);

        key.protocol = protocols[i];
        /* One hash for all, so that they stand in one bucket. */
        assert_int_equal(find(table, &key, 77, 0), HB_FLOW_NONE);
        assert_int_equal(insert(table, &key, 77, &value, 0, &displaced), HB_FLOW_ADDED);
    }
    for (uint32_t i = 0; i < 3; i++) {
        struct hb_flow_key key = make_key(5);

        key.protocol = protocols[i];
        assert_int_equal(hb_flow_table_get(table, find(table, &key, 77, 0)).backend, i + 1);
    }
    free(table);
}

static void check_tag(void *context, const struct hb_flow_value *value)
{
    uint64_t *sum = context;

    assert_int_equal(value->tag, value->incarnation + 1);
    *sum += value->tag;
}

/* Tags stay with their flows, however these are moved, and are told when they end. */
static void tags_move_with_their_flows(void **state)
{
    enum { FLOWS = 3000 };
    struct hb_flow_table *table = make_table(FLOWS);
    uint16_t *tags = calloc(1, hb_flow_table_tags_bytes(FLOWS, 0));
    struct hb_flow_value displaced;
    uint64_t sum = 0;

    (void)state;
    for (uint32_t n = 0; n < 100; n++) /* from before: untagged */
        insert_client(table, n, HB_FLOW_TCP_OPENING, 0, &displaced);
    hb_flow_table_attach(table, tags);
    assert_int_equal(hb_flow_table_get(table, find_client(table, 50, 0)).tag, 0);
    hb_flow_table_age(table, 3000, hb_flow_table_buckets(table), count_nothing, NULL);
    assert_int_equal(hb_flow_table_used(table), 0);
    for (uint32_t n = 0; n < FLOWS; n++) {
        assert_int_equal(insert_client(table, n, HB_FLOW_TCP_ESTABLISHED, 3000, &displaced),
                         HB_FLOW_ADDED);
        hb_flow_table_tag(tags, find_client(table, n, 3000), (uint16_t)(n + 1));
    }
    for (uint32_t n = 0; n < FLOWS; n++)
        assert_int_equal(hb_flow_table_get(table, find_client(table, n, 3000)).tag, n + 1);
    hb_flow_table_flush(table, check_tag, &sum);
    assert_int_equal(sum, FLOWS * (FLOWS + 1) / 2);
    insert_client(table, 1, HB_FLOW_UDP, 3000, &displaced);
    assert_int_equal(hb_flow_table_get(table, find_client(table, 1, 3000)).tag, 0);
    free(tags);
    free(table);
}

/* The figures in the essay of flow_table.h: a table of N flows takes N, whatever their keys, before
 * the first is refused; and its memory. */
static void a_table_takes_all_its_flows(void **state)
{
    (void)state;
    for (uint32_t flows = 1; flows <= 300000; flows = flows * 3 + 1) {
        struct hb_flow_table *table = make_table(flows);
        struct hb_flow_value displaced;

        for (uint32_t n = 0; n < flows; n++)
            assert_int_equal(insert_client(table, n, HB_FLOW_TCP_ESTABLISHED, 0, &displaced),
                             HB_FLOW_ADDED);
        assert_int_equal(insert_client(table, flows, HB_FLOW_UDP, 0, &displaced), HB_FLOW_FULL);
        for (uint32_t n = 0; n < flows; n++) {
            hb_flow_ref entry = find_client(table, n, 0);

            assert_int_not_equal(entry, HB_FLOW_NONE);
            assert_int_equal(hb_flow_table_get(table, entry).incarnation,
                             n & HB_FLOW_INCARNATION_MASK);
        }
        assert_int_equal(hb_flow_table_used(table), flows);
        free(table);
    }
    /* All of it, an eighth as many IPv6 flows included; then the IPv4 part alone. */
    assert_true(hb_flow_table_bytes(10000000, 0) <= 10000000 * 31.2);
    assert_true(hb_flow_table_bytes(10000000, 1) <= 10000000 * 23.8);
}

/* IPv6 flows have a limit of their own and don't take IPv4's places; equal folds are no equal
 * flows. */
static struct hb_flow_key make_key6(uint32_t n)
{
    struct hb_flow_key key = make_key(n);

    key.family = HB_FAMILY_IPV6;
    memcpy(key.source + 8, &n, 4);
    return key;
}

static void ipv6_flows_stand_beside(void **state)
{
    const uint32_t flows = 80000, flows6 = flows / 8;
    struct hb_flow_table *table = make_table(flows);
    struct hb_flow_value displaced;
    struct hb_flow_value value = {.backend = 1, .state = HB_FLOW_UDP};

    (void)state;
    for (uint32_t n = 0; n <= flows6; n++) {
        struct hb_flow_key key = make_key6(n);

        value.incarnation = n;
        assert_int_equal(insert(table, &key, hb_flow_hash(&key, &hash_key), &value, 0, &displaced),
                         n < flows6 ? HB_FLOW_ADDED : HB_FLOW_FULL);
    }
    for (uint32_t n = 0; n <= flows - flows6; n++)
        assert_int_equal(insert_client(table, n, HB_FLOW_UDP, 0, &displaced),
                         n < flows - flows6 ? HB_FLOW_ADDED : HB_FLOW_FULL);
    for (uint32_t n = 0; n < flows6; n++) {
        struct hb_flow_key key = make_key6(n);
        hb_flow_ref entry = find(table, &key, hb_flow_hash(&key, &hash_key), 0);

        assert_int_not_equal(entry, HB_FLOW_NONE);
        assert_int_equal(hb_flow_table_get(table, entry).incarnation, n);
    }
    assert_int_equal(age_all(table, 60000), flows);
    free(table);
}

/* Addresses whose folds are equal: the low half is made such that the product is the same. */
static void ipv6_addresses_are_compared_in_full(void **state)
{
    struct hb_flow_table *table = make_table(1000);
    struct hb_flow_value value = {.backend = 1, .state = HB_FLOW_UDP};
    struct hb_flow_value displaced;

    (void)state;
    for (uint32_t n = 0; n < 20; n++) {
        struct hb_flow_key key = make_key(1);
        uint64_t high = 0x9e3779b97f4a7c15, low = n; /* high ^ constant is 0: so is the product */

        key.family = HB_FAMILY_IPV6;
        memcpy(key.source, &high, 8);
        memcpy(key.source + 8, &low, 8);
        assert_int_equal(hb_flow_fold(key.source), 0);
        assert_int_equal(find(table, &key, 42, 0), HB_FLOW_NONE);
        value.incarnation = n;
        if (insert(table, &key, 42, &value, 0, &displaced) == HB_FLOW_FULL)
            continue;
        assert_int_equal(hb_flow_table_get(table, find(table, &key, 42, 0)).incarnation, n);
    }
    assert_int_equal(hb_flow_table_used(table), 2 * HB_FLOW_PLACES);
    free(table);
}

/* Ageing in slices passes every bucket once in a round. */
static void slices_reach_every_bucket(void **state)
{
    struct hb_flow_table *table = make_table(800);
    struct hb_flow_value displaced;
    uint32_t told = 0;

    (void)state;
    for (uint32_t n = 0; n < 500; n++)
        insert_client(table, n, HB_FLOW_TCP_OPENING, 0, &displaced);
    for (uint32_t bucket = 0; bucket < hb_flow_table_buckets(table); bucket += 7)
        hb_flow_table_age(table, 3000, 7, count_gone, &told);
    assert_int_equal(told, 500);
    assert_int_equal(hb_flow_table_used(table), 0);
    free(table);
}

/* The slow model: one record a client, found by its number. */
#define CLIENTS 3000
struct model {
    struct {
        uint32_t last_ms;
        uint32_t incarnation;
        uint16_t backend;
        uint8_t state; /* HB_FLOW_FREE: not in the table */
    } client[CLIENTS];
    uint32_t used;
    uint32_t now_ms;
};

static bool model_is_over(const struct model *model, uint32_t n)
{
    return model->now_ms - model->client[n].last_ms >= timeout_of[model->client[n].state];
}

/* Incarnations are unique here, so they tell which entry the table gave up. */
static uint32_t model_remove(struct model *model, const struct hb_flow_value *gone)
{
    for (uint32_t n = 0; n < CLIENTS; n++) {
        if (model->client[n].state != HB_FLOW_FREE &&
            model->client[n].incarnation == gone->incarnation) {
            assert_int_equal(gone->backend, model->client[n].backend);
            assert_int_equal(gone->state, model->client[n].state);
            model->used--;
            return n;
        }
    }
    fail_msg("the table gave up a flow that it did not hold");
    return 0;
}

static void model_expire(void *context, const struct hb_flow_value *gone)
{
    struct model *model = context;
    uint32_t n = model_remove(model, gone);

    assert_true(model_is_over(model, n));
    model->client[n].state = HB_FLOW_FREE;
}

static void step_insert(struct hb_flow_table *table, struct model *model, uint32_t n, uint64_t hash,
                        uint32_t incarnation)
{
    struct hb_flow_key key = make_key(n);
    struct hb_flow_value displaced;
    struct hb_flow_value value = {
        .incarnation = incarnation,
        .backend = (uint16_t)(1 + next_random() % 10),
        .state = (uint8_t)(HB_FLOW_TCP_OPENING + next_random() % 6),
    };
    enum hb_flow_insert result = insert(table, &key, hash, &value, model->now_ms, &displaced);
    uint32_t gone;

    assert_int_not_equal(result, HB_FLOW_EXISTED);
    if (result == HB_FLOW_FULL)
        return;
    if (result != HB_FLOW_ADDED) {
        gone = model_remove(model, &displaced);
        assert_int_equal(model_is_over(model, gone), result == HB_FLOW_REPLACED);
        assert_true(result == HB_FLOW_REPLACED || hb_flow_on_probation(displaced.state));
        model->client[gone].state = HB_FLOW_FREE;
    }
    assert_int_equal(model->client[n].state, HB_FLOW_FREE);
    model->client[n].last_ms = model->now_ms;
    model->client[n].incarnation = incarnation;
    model->client[n].backend = value.backend;
    model->client[n].state = value.state;
    model->used++;
}

static void step_flow(struct hb_flow_table *table, struct model *model, uint64_t hash_mask,
                      uint32_t step)
{
    uint32_t n = next_random() % CLIENTS;
    struct hb_flow_key key = make_key(n);
    uint64_t hash = hb_flow_hash(&key, &hash_key) & hash_mask;
    hb_flow_ref entry = find(table, &key, hash, model->now_ms);
    bool known = model->client[n].state != HB_FLOW_FREE && !model_is_over(model, n);

    assert_int_equal(entry != HB_FLOW_NONE, known);
    if (!known) {
        step_insert(table, model, n, hash, step);
        return;
    }
    assert_int_equal(hb_flow_table_get(table, entry).backend, model->client[n].backend);
    assert_int_equal(hb_flow_table_get(table, entry).incarnation, model->client[n].incarnation);
    model->client[n].last_ms = model->now_ms;
    model->client[n].state = (uint8_t)(HB_FLOW_TCP_OPENING + next_random() % 6);
    hb_flow_table_touch(table, entry, model->client[n].state, model->now_ms);
    if (next_random() % 4 == 0) {
        model->client[n].incarnation = step;
        model->client[n].backend = (uint16_t)(1 + next_random() % 10);
        hb_flow_table_repoint(table, entry, model->client[n].backend, step);
    }
}

static void walk_beside_model(uint64_t hash_mask)
{
    struct hb_flow_table *table = make_table(2048);
    struct model *model = calloc(1, sizeof(*model));

    model->now_ms = UINT32_MAX - 100000; /* wraps on the way */
    for (uint32_t step = 1; step <= 200000; step++) {
        if (next_random() % 50 == 0)
            hb_flow_table_age(table, model->now_ms, next_random() % 40, model_expire, model);
        else
            step_flow(table, model, hash_mask, step);
        model->now_ms += next_random() % 8;
        if (next_random() % 20000 == 0)
            model->now_ms += 30000;
        assert_int_equal(hb_flow_table_used(table), model->used);
    }
    model->now_ms += 3600000;
    hb_flow_table_age(table, model->now_ms, hb_flow_table_buckets(table), model_expire, model);
    assert_int_equal(model->used, 0);
    assert_int_equal(hb_flow_table_used(table), 0);
    free(model);
    free(table);
}

static void agrees_with_a_slow_model(void **state)
{
    (void)state;
    walk_beside_model(UINT64_MAX);
}

/* Hashes that hit few buckets and share one tag: every look-up is decided by the key. */
static void agrees_with_the_model_when_hashes_collide(void **state)
{
    (void)state;
    walk_beside_model(0xf8000000);
}

/* Taken out: not found, not counted, its place free for another. */
static void one_is_removed(void **state)
{
    struct hb_flow_table *table = make_table(64);
    struct hb_flow_value displaced;

    (void)state;
    for (uint32_t n = 1; n <= 64; n++)
        assert_int_equal(insert_client(table, n, HB_FLOW_TCP_ESTABLISHED, 0, &displaced),
                         HB_FLOW_ADDED);
    assert_int_equal(insert_client(table, 65, HB_FLOW_TCP_ESTABLISHED, 0, &displaced),
                     HB_FLOW_FULL);
    hb_flow_table_remove(table, find_client(table, 7, 0));
    assert_int_equal(find_client(table, 7, 0), HB_FLOW_NONE);
    assert_int_equal(hb_flow_table_used(table), 63);
    for (uint32_t n = 1; n <= 64; n++)
        assert_int_equal(find_client(table, n, 0) != HB_FLOW_NONE, n != 7);
    assert_int_equal(insert_client(table, 65, HB_FLOW_TCP_ESTABLISHED, 0, &displaced),
                     HB_FLOW_ADDED);
    free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(finds_what_was_inserted),
        cmocka_unit_test(one_is_removed),
        cmocka_unit_test(every_state_has_its_time),
        cmocka_unit_test(an_older_clock_is_no_time_at_all),
        cmocka_unit_test(probation_makes_way_oldest_first),
        cmocka_unit_test(a_flow_that_comes_again_has_one_entry),
        cmocka_unit_test(keys_are_compared_in_full),
        cmocka_unit_test(look_alikes_of_another_family_are_other_flows),
        cmocka_unit_test(keys_do_not_depend_on_what_was_there),
        cmocka_unit_test(a_flood_evicts_no_established_flow),
        cmocka_unit_test(a_full_table_keeps_exact_count),
        cmocka_unit_test(established_flows_move_aside),
        cmocka_unit_test(protocols_do_not_mix),
        cmocka_unit_test(tags_move_with_their_flows),
        cmocka_unit_test(a_table_takes_all_its_flows),
        cmocka_unit_test(ipv6_flows_stand_beside),
        cmocka_unit_test(ipv6_addresses_are_compared_in_full),
        cmocka_unit_test(slices_reach_every_bucket),
        cmocka_unit_test(agrees_with_a_slow_model),
        cmocka_unit_test(agrees_with_the_model_when_hashes_collide),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
