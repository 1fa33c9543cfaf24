/* SPDX-License-Identifier: BSD-3-Clause */
/* The flow cache; flow_table.h tells how it works and why. */
#include <string.h>

#include "flow_bucket.h"

#define PLACES         HB_FLOW_PLACES
#define TIMEOUT_MAX_MS (UINT32_C(1) << 30)
#define SPARE_BUCKETS  16   /* so that small tables hold theirs too */
#define SEARCH_MAX     1024 /* buckets */
#define EVERY_PLACE    0x00070707u
#define IS_OVER        (UINT32_C(1) << 31)

/* ceil(flows / 0.9 / PLACES) and a few more, even. */
static uint32_t count_buckets(uint64_t flows)
{
    return (uint32_t)(((flows * 10 + 26) / 27 + SPARE_BUCKETS + 1) & ~UINT64_C(1));
}

static uint64_t share_of_ipv6(uint64_t flows, uint64_t flows6)
{
    return flows6 != 0 ? flows6 : (flows + 7) / 8;
}

size_t hb_flow_table_bytes(uint64_t flows, uint64_t flows6)
{
    size_t ipv4 = count_buckets(flows);
    size_t ipv6 = count_buckets(share_of_ipv6(flows, flows6));

    return sizeof(struct hb_flow_table) + (ipv4 + ipv6) * sizeof(struct hb_flow_bucket) +
           ipv6 * PLACES * 2 * HB_ADDRESS_SIZE;
}

size_t hb_flow_table_tags_bytes(uint64_t flows, uint64_t flows6)
{
    size_t buckets = (size_t)count_buckets(flows) + count_buckets(share_of_ipv6(flows, flows6));

    return 4 * buckets * sizeof(uint16_t);
}

void hb_flow_table_attach(struct hb_flow_table *table, uint16_t *tags)
{
    table->tags = tags;
}

static uint32_t cut_timeout(uint32_t timeout_ms)
{
    return timeout_ms < TIMEOUT_MAX_MS ? timeout_ms : TIMEOUT_MAX_MS;
}

struct hb_flow_table *hb_flow_table_init(void *memory, uint64_t flows, uint64_t flows6,
                                         const struct hb_flow_timeouts *timeouts)
{
    struct hb_flow_table *table = memory;
    uint32_t ipv4 = count_buckets(flows);

    flows6 = share_of_ipv6(flows, flows6);
    memset(memory, 0, hb_flow_table_bytes(flows, flows6));
    table->buckets = (struct hb_flow_bucket *)(table + 1);
    table->shelf[0] = (struct hb_flow_shelf){.count = ipv4, .limit = flows};
    table->shelf[1] =
        (struct hb_flow_shelf){.first = ipv4, .count = count_buckets(flows6), .limit = flows6};
    table->limit = flows;
    table->bucket_count = ipv4 + table->shelf[1].count;
    table->addresses = (void *)(table->buckets + table->bucket_count);
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
    return table->limit;
}

uint64_t hb_flow_table_used(const struct hb_flow_table *table)
{
    return table->used;
}

uint32_t hb_flow_table_buckets(const struct hb_flow_table *table)
{
    return table->bucket_count;
}

struct hb_flow_query hb_flow_query_of(const struct hb_flow_key *key, uint64_t hash)
{
    static const uint8_t zero[HB_ADDRESS_SIZE];
    struct hb_flow_query query = {.hash = hash, .addresses = key->source};
    bool fit =
        key->zero == 0 && (key->protocol == HB_PROTOCOL_TCP || key->protocol == HB_PROTOCOL_UDP ||
                           key->protocol == HB_PROTOCOL_SCTP);

    query.ports = (uint32_t)hb_load64(&key->source_port);
    if (key->family == HB_FAMILY_IPV6) {
        query.source = hb_flow_fold(key->source);
        query.destination = hb_flow_fold(key->destination);
    } else {
        query.source = (uint32_t)hb_load64(key->source);
        query.destination = (uint32_t)hb_load64(key->destination);
        fit = fit && key->family == HB_FAMILY_IPV4 && memcmp(key->source + 4, zero, 12) == 0 &&
              memcmp(key->destination + 4, zero, 12) == 0;
    }
    query.kind = fit ? HB_FLOW_KIND(key->protocol, key->family) : 0;
    return query;
}

static uint8_t *addresses_of(const struct hb_flow_table *table, hb_flow_ref at)
{
    return table->addresses[((at >> 2) - table->shelf[1].first) * PLACES + (at & 3)];
}

/* The IPv6 flow, compared in full: any place whose fold is right may be the one. */
static hb_flow_ref find_ipv6(const struct hb_flow_table *table, const uint32_t bucket[2],
                             const struct hb_flow_query *query)
{
    for (uint32_t choice = 0; choice < 2; choice++) {
        const struct hb_flow_bucket *line = &table->buckets[bucket[choice]];

        for (uint32_t place = 0; place < PLACES; place++) {
            hb_flow_ref at = bucket[choice] << 2 | place;

            if ((hb_flow_compare(line, query) >> place & 1) != 0 &&
                hb_flow_is_kind(line, place, query->kind) &&
                memcmp(addresses_of(table, at), query->addresses, 2 * HB_ADDRESS_SIZE) == 0)
                return at;
        }
    }
    return HB_FLOW_NONE;
}

/* The place that holds the flow, whether its time is over or not. */
static hb_flow_ref find_key(const struct hb_flow_table *table, const uint32_t bucket[2],
                            const struct hb_flow_query *query)
{
    hb_flow_ref at;

    if (hb_flow_is_ipv6(query))
        return find_ipv6(table, bucket, query);
    at = hb_flow_match(table, bucket[0], query);
    return at != HB_FLOW_NONE ? at : hb_flow_match(table, bucket[1], query);
}

/* Folds that agree are almost always those of the flow; where they are not, the slow way finds out.
 * The addresses of the whole burst are fetched before the first is compared. */
static void confirm_ipv6(const struct hb_flow_table *table,
                         const struct hb_flow_query *const query[], uint32_t count, uint32_t now_ms,
                         hb_flow_ref found[])
{
    for (uint32_t i = 0; i < count; i++) {
        if (hb_flow_is_ipv6(query[i]) && found[i] != HB_FLOW_NONE)
            __builtin_prefetch(addresses_of(table, found[i]));
    }
    for (uint32_t i = 0; i < count; i++) {
        uint32_t bucket[2];

        if (!hb_flow_is_ipv6(query[i]) || found[i] == HB_FLOW_NONE)
            continue;
        if (memcmp(addresses_of(table, found[i]), query[i]->addresses, 2 * HB_ADDRESS_SIZE) != 0) {
            bucket[0] = hb_flow_first_bucket(&table->shelf[1], query[i]->hash);
            bucket[1] = hb_flow_other_bucket_of(&table->shelf[1], bucket[0], query[i]);
            found[i] = find_ipv6(table, bucket, query[i]);
        }
        if (found[i] != HB_FLOW_NONE && hb_flow_is_over(table, found[i], now_ms))
            found[i] = HB_FLOW_NONE;
    }
}

/* The entry found, unless its time is over. Of IPv6 it is not sure yet whose entry it is. */
static inline hb_flow_ref hb_flow_drop_over(const struct hb_flow_table *table, hb_flow_ref at,
                                            const struct hb_flow_query *query, uint32_t now_ms)
{
    if (__builtin_expect(hb_flow_is_over(table, at, now_ms), 0) && !hb_flow_is_ipv6(query))
        return HB_FLOW_NONE;
    return at;
}

/* A key that no flow can have is not in the table, whatever its addresses and ports. */
static inline hb_flow_ref find_fit(const struct hb_flow_table *table, uint32_t bucket,
                                   const struct hb_flow_query *query)
{
    return query->kind != 0 ? hb_flow_match(table, bucket, query) : HB_FLOW_NONE;
}

void hb_flow_table_find(const struct hb_flow_table *table,
                        const struct hb_flow_query *const query[], uint32_t count, uint32_t now_ms,
                        hb_flow_ref found[])
{
    uint32_t bucket[HB_FLOW_FIND_MAX];
    uint8_t missed[HB_FLOW_FIND_MAX];
    uint32_t misses = 0;
    bool ipv6 = false;

    for (uint32_t i = 0; i < count; i++) {
        bucket[i] = hb_flow_first_bucket(hb_flow_shelf_of(table, query[i]), query[i]->hash);
        ipv6 |= hb_flow_is_ipv6(query[i]);
        found[i] = find_fit(table, bucket[i], query[i]);
        if (__builtin_expect(found[i] != HB_FLOW_NONE, 1)) {
            found[i] = hb_flow_drop_over(table, found[i], query[i], now_ms);
            continue;
        }
        missed[misses++] = (uint8_t)i;
        bucket[i] = hb_flow_other_bucket_of(hb_flow_shelf_of(table, query[i]), bucket[i], query[i]);
        __builtin_prefetch(&table->buckets[bucket[i]], 1);
    }
    for (uint32_t m = 0; m < misses; m++) {
        uint32_t i = missed[m];

        found[i] = find_fit(table, bucket[i], query[i]);
        if (found[i] != HB_FLOW_NONE)
            found[i] = hb_flow_drop_over(table, found[i], query[i], now_ms);
    }
    if (ipv6)
        confirm_ipv6(table, query, count, now_ms, found);
}

/* A free place in a bucket. */
static hb_flow_ref find_free(const struct hb_flow_table *table, uint32_t bucket)
{
    uint32_t meta, free;

    memcpy(&meta, table->buckets[bucket].meta, sizeof(meta));
    free = ~((meta & EVERY_PLACE) + EVERY_PLACE) & (EVERY_PLACE + 0x010101);
    return free != 0 ? bucket << 2 | (uint32_t)__builtin_ctz(free) >> 3 : HB_FLOW_NONE;
}

/* How good a claim a newcomer has to a place: the highest bit when its time is over; else how long
 * the flow on probation there was quiet; 0: none. Who is it of six is a matter of chance, which
 * branches would guess wrong, so there are none. */
static inline uint32_t weigh(const struct hb_flow_table *table, const struct hb_flow_bucket *bucket,
                             uint32_t place, uint32_t now_ms)
{
    uint32_t state = bucket->meta[place] & HB_FLOW_META_STATE;
    uint32_t idle_ms = now_ms - bucket->last_ms[place];
    uint32_t over = -(uint32_t)(idle_ms >= table->timeout_ms[state]);
    uint32_t young = -(uint32_t)hb_flow_on_probation((uint8_t)state);
    uint32_t taken = -(uint32_t)(state != HB_FLOW_FREE); /* free places are not given away here */
    uint32_t claim = ((idle_ms + 1) & (IS_OVER - 1)) | (over & IS_OVER);

    return claim & (over | young) & taken;
}

/* Who makes way in two full buckets: an entry whose time is over, else the one on probation that
 * was quiet longest, else nobody. */
static hb_flow_ref find_victim(const struct hb_flow_table *table, const uint32_t bucket[2],
                               uint32_t now_ms, enum hb_flow_insert *result)
{
    uint64_t best = 0; /* claim << 32 | entry */

    for (uint32_t choice = 0; choice < 2; choice++) {
        const struct hb_flow_bucket *line = &table->buckets[bucket[choice]];

        for (uint32_t place = 0; place < PLACES; place++) {
            uint64_t claim = weigh(table, line, place, now_ms);
            uint64_t bid = claim << 32 | (bucket[choice] << 2 | place);

            best = bid > best ? bid : best;
        }
    }
    if (best >> 32 == 0) {
        *result = HB_FLOW_FULL;
        return HB_FLOW_NONE;
    }
    *result = (best >> 32) >= IS_OVER ? HB_FLOW_REPLACED : HB_FLOW_EVICTED;
    return (hb_flow_ref)best;
}

static void move(struct hb_flow_table *table, hb_flow_ref from, hb_flow_ref to)
{
    struct hb_flow_bucket *a = &table->buckets[from >> 2], *b = &table->buckets[to >> 2];
    uint32_t i = from & 3, j = to & 3;

    b->source[j] = a->source[i];
    b->destination[j] = a->destination[i];
    b->ports[j] = a->ports[i];
    b->last_ms[j] = a->last_ms[i];
    b->backend[j] = a->backend[i];
    b->incarnation[j] = a->incarnation[i];
    if (from >> 2 >= table->shelf[1].first)
        memcpy(addresses_of(table, to), addresses_of(table, from), 2 * HB_ADDRESS_SIZE);
    if (table->tags != NULL)
        table->tags[to] = table->tags[from];
    b->meta[j] = a->meta[i];
    a->meta[i] = HB_FLOW_FREE;
}

/* A step of the search: the flow at `from` could go to `bucket`. */
struct step {
    uint32_t bucket;
    hb_flow_ref from;
    int32_t before; /* the step that leads to the bucket of `from`; negative: one to begin with */
};

/* Makes the last step of a way first, then the one before it, until a place in one of the two
 * buckets to begin with is free. */
static hb_flow_ref walk_back(struct hb_flow_table *table, const struct step *steps, int32_t last,
                             hb_flow_ref free)
{
    for (int32_t at = last; at >= 0; at = steps[at].before) {
        move(table, steps[at].from, free);
        free = steps[at].from;
    }
    return free;
}

/* Frees a place in one of two buckets by moving flows to their other buckets, breadth first, so
 * that few are moved. */
static hb_flow_ref make_free(struct hb_flow_table *table, const struct hb_flow_shelf *shelf,
                             const uint32_t bucket[2])
{
    struct step steps[SEARCH_MAX];
    int32_t count = 0;

    for (int32_t at = -2; at < count; at++) {
        /* cppcheck-suppress uninitvar ; steps below `count` are written */
        uint32_t here = at < 0 ? bucket[at + 2] : steps[at].bucket;
        const struct hb_flow_bucket *line = &table->buckets[here];
        hb_flow_ref free = at < 0 ? HB_FLOW_NONE : find_free(table, here);

        if (free != HB_FLOW_NONE)
            return walk_back(table, steps, at, free);
        for (uint32_t place = 0; place < PLACES && count < SEARCH_MAX; place++) {
            uint32_t other = hb_flow_other_bucket(shelf, here, line->source[place],
                                                  line->destination[place], line->ports[place]);

            steps[count++] = (struct step){other, here << 2 | place, at < 0 ? -1 : at};
            __builtin_prefetch(&table->buckets[other], 1);
        }
    }
    return HB_FLOW_NONE;
}

static void fill(struct hb_flow_table *table, hb_flow_ref at, const struct hb_flow_query *query,
                 const struct hb_flow_value *value, uint32_t now_ms)
{
    struct hb_flow_bucket *bucket = &table->buckets[at >> 2];
    uint32_t place = at & 3;

    bucket->source[place] = query->source;
    bucket->destination[place] = query->destination;
    bucket->ports[place] = query->ports;
    bucket->last_ms[place] = now_ms;
    bucket->backend[place] = value->backend;
    bucket->incarnation[place] = (uint16_t)value->incarnation;
    bucket->meta[place] = (uint8_t)(value->state | hb_flow_protocol_bits(query->kind) |
                                    hb_flow_incarnation_bits(value->incarnation));
    if (table->tags != NULL)
        table->tags[at] = 0;
    if (hb_flow_is_ipv6(query))
        memcpy(addresses_of(table, at), query->addresses, 2 * HB_ADDRESS_SIZE);
}

/* A place for a flow that has none yet, and how it came by it. */
static hb_flow_ref find_place(struct hb_flow_table *table, const struct hb_flow_shelf *shelf,
                              const uint32_t bucket[2], uint32_t now_ms,
                              enum hb_flow_insert *result)
{
    bool full = table->used >= table->limit || shelf->used >= shelf->limit;
    hb_flow_ref at = HB_FLOW_NONE, victim;

    if (!full) {
        *result = HB_FLOW_ADDED;
        at = find_free(table, bucket[0]);
        if (at == HB_FLOW_NONE)
            at = find_free(table, bucket[1]);
        if (at != HB_FLOW_NONE)
            return at;
    }
    victim = find_victim(table, bucket, now_ms, result);
    if (full || *result == HB_FLOW_REPLACED)
        return victim;
    at = make_free(table, shelf, bucket);
    if (at == HB_FLOW_NONE)
        return victim;
    *result = HB_FLOW_ADDED;
    return at;
}

enum hb_flow_insert hb_flow_table_insert(struct hb_flow_table *table,
                                         const struct hb_flow_query *query,
                                         const struct hb_flow_value *value, uint32_t now_ms,
                                         struct hb_flow_value *displaced, hb_flow_ref *entry)
{
    struct hb_flow_shelf *shelf = &table->shelf[hb_flow_is_ipv6(query)];
    uint32_t bucket[2] = {hb_flow_first_bucket(shelf, query->hash)};
    enum hb_flow_insert result = HB_FLOW_REPLACED;

    bucket[1] = hb_flow_other_bucket_of(shelf, bucket[0], query);
    *entry = find_key(table, bucket, query);
    if (*entry == HB_FLOW_NONE)
        *entry = find_place(table, shelf, bucket, now_ms, &result);
    /* An old entry of this very flow: its place is the one to use, or the key would stand twice. */
    else if (!hb_flow_is_over(table, *entry, now_ms))
        return HB_FLOW_EXISTED;
    if (result == HB_FLOW_FULL)
        return result;
    if (result == HB_FLOW_ADDED) {
        table->used++;
        shelf->used++;
    } else {
        *displaced = hb_flow_table_get(table, *entry);
    }
    fill(table, *entry, query, value, now_ms);
    return result;
}

void hb_flow_table_remove(struct hb_flow_table *table, hb_flow_ref entry)
{
    table->buckets[entry >> 2].meta[entry & 3] = HB_FLOW_FREE;
    table->shelf[entry >> 2 >= table->shelf[1].first].used--;
    table->used--;
}

uint32_t hb_flow_table_age(struct hb_flow_table *table, uint32_t now_ms, uint32_t buckets,
                           hb_flow_expired *expired, void *context)
{
    uint32_t gone = 0;

    for (uint32_t i = 0; i < buckets; i++) {
        uint32_t bucket = table->next_aged;
        uint8_t *meta = table->buckets[bucket].meta;

        for (uint32_t place = 0; place < PLACES; place++) {
            hb_flow_ref at = bucket << 2 | place;
            struct hb_flow_value value;

            if ((meta[place] & HB_FLOW_META_STATE) == HB_FLOW_FREE ||
                !hb_flow_is_over(table, at, now_ms))
                continue;
            value = hb_flow_table_get(table, at);
            meta[place] = HB_FLOW_FREE;
            table->shelf[bucket >= table->shelf[1].first].used--;
            expired(context, &value);
            gone++;
        }
        table->next_aged = bucket + 1 < table->bucket_count ? bucket + 1 : 0;
    }
    table->used -= gone;
    return gone;
}

void hb_flow_table_flush(struct hb_flow_table *table, hb_flow_expired *expired, void *context)
{
    for (hb_flow_ref at = 0; at < table->bucket_count << 2; at++) {
        struct hb_flow_value value;

        if ((at & 3) == PLACES ||
            (table->buckets[at >> 2].meta[at & 3] & HB_FLOW_META_STATE) == HB_FLOW_FREE)
            continue;
        value = hb_flow_table_get(table, at);
        table->buckets[at >> 2].meta[at & 3] = HB_FLOW_FREE;
        expired(context, &value);
    }
    table->shelf[0].used = table->shelf[1].used = table->used = 0;
}
