/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow cache; flow_table.h tells how it works and why. */
#include <stdalign.h>
#include <string.h>

#include "flow_table.h"

#define PLACES          8
#define TIMEOUT_MAX_MS  (UINT32_C(1) << 30)
#define OTHER_BUCKET_BY UINT64_C(0x9e3779b97f4a7c15)

struct bucket {
    alignas(64) uint16_t tag[PLACES];
    uint32_t last_ms[PLACES];
    uint8_t state[PLACES];
    uint8_t reserved[8];
};
_Static_assert(sizeof(struct bucket) == 64, "a bucket is one cache line");

struct entry {
    alignas(64) struct hb_flow_key key;
    uint32_t incarnation;
    uint16_t backend;
    uint8_t reserved[18];
};
_Static_assert(sizeof(struct entry) == 64, "an entry is one cache line");

struct hb_flow_table {
    alignas(64) struct bucket *buckets;
    struct entry *entries; /* PLACES to a bucket, in the order of the buckets */
    uint64_t used;
    uint32_t bucket_count;
    uint32_t next_aged; /* bucket that ageing looks at next */
    uint32_t timeout_ms[HB_FLOW_STATES];
};
_Static_assert(sizeof(struct hb_flow_table) == 64, "the table's own fields are one cache line");

/* Where a flow may stand. */
struct home {
    uint32_t bucket[2];
    uint16_t tag;
};

static uint64_t count_buckets(uint64_t flows)
{
    return (flows + PLACES - 1) / PLACES;
}

size_t hb_flow_table_bytes(uint64_t flows)
{
    return sizeof(struct hb_flow_table) +
           count_buckets(flows) * (sizeof(struct bucket) + PLACES * sizeof(struct entry));
}

static uint32_t cut_timeout(uint32_t timeout_ms)
{
    return timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS;
}

struct hb_flow_table *hb_flow_table_init(void *memory, uint64_t flows,
                                         const struct hb_flow_timeouts *timeouts)
{
    struct hb_flow_table *table = memory;

    memset(memory, 0, hb_flow_table_bytes(flows));
    table->bucket_count = (uint32_t)count_buckets(flows);
    table->buckets = (struct bucket *)(table + 1);
    table->entries = (struct entry *)(table->buckets + table->bucket_count);
    table->timeout_ms[HB_FLOW_TCP_OPENING] = cut_timeout(timeouts->tcp_syn_ms);
    table->timeout_ms[HB_FLOW_UDP_FIRST] = cut_timeout(timeouts->udp_ms);
    table->timeout_ms[HB_FLOW_TCP_RESET] = cut_timeout(timeouts->tcp_rst_ms);
    table->timeout_ms[HB_FLOW_TCP_ESTABLISHED] = cut_timeout(timeouts->tcp_established_ms);
    table->timeout_ms[HB_FLOW_TCP_CLOSING] = cut_timeout(timeouts->tcp_fin_ms);
    table->timeout_ms[HB_FLOW_UDP] = cut_timeout(timeouts->udp_ms);
    return table;
}

uint64_t hb_flow_table_capacity(const struct hb_flow_table *table)
{
    return (uint64_t)table->bucket_count * PLACES;
}

uint64_t hb_flow_table_used(const struct hb_flow_table *table)
{
    return table->used;
}

uint32_t hb_flow_table_buckets(const struct hb_flow_table *table)
{
    return table->bucket_count;
}

/* A hash half scaled to the number of buckets, which need not be a power of two. */
static uint32_t scale(uint32_t half, uint32_t buckets)
{
    return (uint32_t)(((uint64_t)half * buckets) >> 32);
}

static struct home find_home(const struct hb_flow_table *table, uint64_t hash)
{
    return (struct home){
        .bucket = {scale((uint32_t)hash, table->bucket_count),
                   scale((uint32_t)((hash * OTHER_BUCKET_BY) >> 32), table->bucket_count)},
        .tag = (uint16_t)(hash >> 32),
    };
}

/* Milliseconds since the last packet. A reader on another lcore may have an older clock than the
 * entry: that is no time at all, not 49 days. */
static uint32_t get_idle_ms(const struct bucket *bucket, uint32_t place, uint32_t now_ms)
{
    uint32_t idle = now_ms - bucket->last_ms[place];

    return (int32_t)idle < 0 ? 0 : idle;
}

static bool is_over(const struct hb_flow_table *table, const struct bucket *bucket, uint32_t place,
                    uint32_t now_ms)
{
    return get_idle_ms(bucket, place, now_ms) >= table->timeout_ms[bucket->state[place]];
}

static bool equals(const struct hb_flow_key *a, const struct hb_flow_key *b)
{
    uint64_t difference = 0;

    for (size_t i = 0; i < sizeof(*a); i += sizeof(uint64_t))
        difference |= hb_load64((const uint8_t *)a + i) ^ hb_load64((const uint8_t *)b + i);
    return difference == 0;
}

/* The place that holds the key, whether its time is over or not. */
static hb_flow_ref find_key(const struct hb_flow_table *table, const struct home *home,
                            const struct hb_flow_key *key)
{
    for (uint32_t choice = 0; choice < 2; choice++) {
        const struct bucket *bucket = &table->buckets[home->bucket[choice]];

        for (uint32_t place = 0; place < PLACES; place++) {
            hb_flow_ref at = home->bucket[choice] * PLACES + place;

            if (bucket->tag[place] == home->tag && bucket->state[place] != HB_FLOW_FREE &&
                equals(&table->entries[at].key, key))
                return at;
        }
    }
    return HB_FLOW_NONE;
}

/* Starts loading the entries whose tags match, so that the comparison of a whole burst waits once.
 */
static void prefetch_entries(const struct hb_flow_table *table, const struct home *home)
{
    for (uint32_t choice = 0; choice < 2; choice++) {
        const struct bucket *bucket = &table->buckets[home->bucket[choice]];

        for (uint32_t place = 0; place < PLACES; place++) {
            if (bucket->tag[place] == home->tag && bucket->state[place] != HB_FLOW_FREE)
                __builtin_prefetch(&table->entries[home->bucket[choice] * PLACES + place]);
        }
    }
}

void hb_flow_table_find(const struct hb_flow_table *table, const struct hb_flow_key *const key[],
                        const uint64_t hash[], uint32_t count, uint32_t now_ms, hb_flow_ref found[])
{
    struct home home[HB_FLOW_FIND_MAX];

    for (uint32_t i = 0; i < count; i++) {
        home[i] = find_home(table, hash[i]);
        __builtin_prefetch(&table->buckets[home[i].bucket[0]]);
        __builtin_prefetch(&table->buckets[home[i].bucket[1]]);
    }
    for (uint32_t i = 0; i < count; i++)
        prefetch_entries(table, &home[i]);
    for (uint32_t i = 0; i < count; i++) {
        hb_flow_ref at = find_key(table, &home[i], key[i]);

        if (at != HB_FLOW_NONE && is_over(table, &table->buckets[at / PLACES], at % PLACES, now_ms))
            at = HB_FLOW_NONE;
        found[i] = at;
    }
}

struct hb_flow_value hb_flow_table_get(const struct hb_flow_table *table, hb_flow_ref entry)
{
    return (struct hb_flow_value){
        .incarnation = table->entries[entry].incarnation,
        .backend = table->entries[entry].backend,
        .state = table->buckets[entry / PLACES].state[entry % PLACES],
    };
}

uint32_t hb_flow_table_idle_ms(const struct hb_flow_table *table, hb_flow_ref entry,
                               uint32_t now_ms)
{
    return get_idle_ms(&table->buckets[entry / PLACES], entry % PLACES, now_ms);
}

void hb_flow_table_touch(struct hb_flow_table *table, hb_flow_ref entry, uint8_t state,
                         uint32_t now_ms)
{
    struct bucket *bucket = &table->buckets[entry / PLACES];

    bucket->last_ms[entry % PLACES] = now_ms;
    bucket->state[entry % PLACES] = state;
}

void hb_flow_table_repoint(struct hb_flow_table *table, hb_flow_ref entry, uint16_t backend,
                           uint32_t incarnation)
{
    table->entries[entry].backend = backend;
    table->entries[entry].incarnation = incarnation;
}

static uint32_t count_free(const struct bucket *bucket)
{
    uint32_t free = 0;

    for (uint32_t place = 0; place < PLACES; place++)
        free += bucket->state[place] == HB_FLOW_FREE;
    return free;
}

/* A free place, in the emptier bucket of the two: that keeps both from filling early. */
static hb_flow_ref find_free(const struct hb_flow_table *table, const struct home *home)
{
    uint32_t free[2] = {count_free(&table->buckets[home->bucket[0]]),
                        count_free(&table->buckets[home->bucket[1]])};
    uint32_t bucket = home->bucket[free[1] > free[0]];
    uint32_t place = 0;

    if (free[0] + free[1] == 0)
        return HB_FLOW_NONE;
    while (table->buckets[bucket].state[place] != HB_FLOW_FREE)
        place++;
    return bucket * PLACES + place;
}

/* Who makes way in two full buckets: an entry whose time is over, else the one on probation that
 * was quiet longest, else nobody. */
static hb_flow_ref find_victim(const struct hb_flow_table *table, const struct home *home,
                               uint32_t now_ms, enum hb_flow_insert *result)
{
    hb_flow_ref oldest = HB_FLOW_NONE;
    uint32_t oldest_ms = 0;

    for (uint32_t i = 0; i < 2 * PLACES; i++) {
        const struct bucket *bucket = &table->buckets[home->bucket[i / PLACES]];
        hb_flow_ref at = home->bucket[i / PLACES] * PLACES + i % PLACES;
        uint32_t idle_ms = get_idle_ms(bucket, i % PLACES, now_ms);

        if (is_over(table, bucket, i % PLACES, now_ms)) {
            *result = HB_FLOW_REPLACED;
            return at;
        }
        if (hb_flow_on_probation(bucket->state[i % PLACES]) &&
            (oldest == HB_FLOW_NONE || idle_ms > oldest_ms)) {
            oldest = at;
            oldest_ms = idle_ms;
        }
    }
    *result = oldest == HB_FLOW_NONE ? HB_FLOW_FULL : HB_FLOW_EVICTED;
    return oldest;
}

static void fill(struct hb_flow_table *table, hb_flow_ref at, uint16_t tag,
                 const struct hb_flow_key *key, const struct hb_flow_value *value, uint32_t now_ms)
{
    struct bucket *bucket = &table->buckets[at / PLACES];
    struct entry *entry = &table->entries[at];

    entry->key = *key;
    entry->incarnation = value->incarnation;
    entry->backend = value->backend;
    bucket->tag[at % PLACES] = tag;
    bucket->last_ms[at % PLACES] = now_ms;
    bucket->state[at % PLACES] = value->state;
}

enum hb_flow_insert hb_flow_table_insert(struct hb_flow_table *table, const struct hb_flow_key *key,
                                         uint64_t hash, const struct hb_flow_value *value,
                                         uint32_t now_ms, struct hb_flow_value *displaced)
{
    struct home home = find_home(table, hash);
    hb_flow_ref at = find_key(table, &home, key);
    enum hb_flow_insert result;

    if (at != HB_FLOW_NONE) {
        /* An old entry of this very flow: its place is the one to use, or the key would stand
         * twice. */
        if (!is_over(table, &table->buckets[at / PLACES], at % PLACES, now_ms))
            return HB_FLOW_EXISTED;
        result = HB_FLOW_REPLACED;
    } else {
        at = find_free(table, &home);
        result = HB_FLOW_ADDED;
        if (at == HB_FLOW_NONE)
            at = find_victim(table, &home, now_ms, &result);
    }
    if (result == HB_FLOW_FULL)
        return result;
    if (result == HB_FLOW_ADDED)
        table->used++;
    else
        *displaced = hb_flow_table_get(table, at);
    fill(table, at, home.tag, key, value, now_ms);
    return result;
}

uint32_t hb_flow_table_age(struct hb_flow_table *table, uint32_t now_ms, uint32_t buckets,
                           hb_flow_expired *expired, void *context)
{
    uint32_t gone = 0;

    for (uint32_t i = 0; i < buckets; i++) {
        uint32_t at = table->next_aged;
        struct bucket *bucket = &table->buckets[at];

        for (uint32_t place = 0; place < PLACES; place++) {
            struct hb_flow_value value;

            if (bucket->state[place] == HB_FLOW_FREE || !is_over(table, bucket, place, now_ms))
                continue;
            value = hb_flow_table_get(table, at * PLACES + place);
            bucket->state[place] = HB_FLOW_FREE;
            expired(context, &value);
            gone++;
        }
        table->next_aged = at + 1 < table->bucket_count ? at + 1 : 0;
    }
    table->used -= gone;
    return gone;
}
