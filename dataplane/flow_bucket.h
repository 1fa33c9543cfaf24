/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow_bucket.h: the inside of the flow cache, for flow_table.c and for the stage that walks over
 * it packet by packet. flow_table.h tells what it all is.
 */
#ifndef HB_DATAPLANE_FLOW_BUCKET_H
#define HB_DATAPLANE_FLOW_BUCKET_H

#include "flow_table.h"

#if defined(__AVX2__) && !defined(HB_PLAIN_C)
#include <immintrin.h>
#elif defined(__SSE2__) && !defined(HB_PLAIN_C)
#include <emmintrin.h>
#endif

struct hb_flow_bucket {
    alignas(64) uint32_t source[HB_FLOW_PLACES];
    uint32_t destination[HB_FLOW_PLACES];
    uint32_t ports[HB_FLOW_PLACES];
    uint16_t backend[HB_FLOW_PLACES];
    uint16_t incarnation[HB_FLOW_PLACES];
    uint32_t last_ms[HB_FLOW_PLACES];
    uint8_t meta[HB_FLOW_PLACES + 1];
};
_Static_assert(sizeof(struct hb_flow_bucket) == 64, "a bucket is one cache line");
_Static_assert(offsetof(struct hb_flow_bucket, meta) == 60, "four bytes, read as one word");
/* A wide load of what a narrow store has just written waits for that to reach the cache. */
_Static_assert(offsetof(struct hb_flow_bucket, last_ms) == 48,
               "what every packet writes lies behind what is loaded by 16 bytes");

enum {
    HB_FLOW_META_STATE = 0x07,
    HB_FLOW_META_PROTOCOL = 0x18, /* the two low bits of the protocol's number */
    HB_FLOW_META_INCARNATION = 0xe0,
};

/* Where they stand in meta, of a query's kind and of an incarnation. */
static inline uint32_t hb_flow_protocol_bits(uint32_t kind)
{
    return kind << 3 & HB_FLOW_META_PROTOCOL;
}

static inline uint32_t hb_flow_incarnation_bits(uint32_t incarnation)
{
    return incarnation >> 11 & HB_FLOW_META_INCARNATION;
}

static inline uint32_t hb_flow_incarnation_of(uint16_t low, uint32_t meta)
{
    return low | (meta & HB_FLOW_META_INCARNATION) << 11;
}
_Static_assert(HB_FLOW_STATES <= HB_FLOW_META_STATE + 1, "a state fits its bits");

/* The buckets of one family: a run of them, of even length. */
struct hb_flow_shelf {
    uint32_t first, count; /* buckets */
    uint64_t used, limit;  /* flows */
};

struct hb_flow_table {
    alignas(64) struct hb_flow_bucket *buckets;
    uint8_t (*addresses)[2 * HB_ADDRESS_SIZE]; /* of IPv6 flows, by place */
    struct hb_flow_shelf shelf[2];             /* IPv4, IPv6 */
    uint64_t used, limit;                      /* flows of both */
    uint32_t bucket_count;
    uint32_t next_aged; /* bucket that ageing looks at next */
    uint32_t timeout_ms[HB_FLOW_STATES + 1];
    uint16_t *tags; /* four to a bucket; NULL until hb_flow_table_attach */
};
_Static_assert(sizeof(struct hb_flow_table) == 128, "the table's own fields are two cache lines");

/* What stands in a bucket's line for an IPv6 address. */
static inline uint32_t hb_flow_fold(const uint8_t address[HB_ADDRESS_SIZE])
{
    return (uint32_t)hb_mix(hb_load64(address) ^ 0x9e3779b97f4a7c15,
                            hb_load64(address + 8) ^ 0xc2b2ae3d27d4eb4f);
}

/* hb_flow_hash of an IPv4 flow whose query begins with these two words. */
static inline uint64_t hb_flow_hash_words(uint64_t addresses, uint64_t ports,
                                          const struct hb_hash_key *key)
{
    __uint128_t sum =
        (__uint128_t)((addresses << 32 | addresses >> 32) + key->word[0]) * (ports + key->word[1]);

    return hb_mix(hb_mix((uint64_t)sum ^ key->word[6], (uint64_t)(sum >> 64) ^ key->word[7]) ^
                      key->word[6],
                  0x9e3779b97f4a7c15);
}

static inline uint64_t hb_flow_hash_ipv4(const struct hb_flow_query *query,
                                         const struct hb_hash_key *key)
{
    return hb_flow_hash_words(hb_load64(&query->source), hb_load64(&query->ports), key);
}

static inline uint64_t hb_flow_hash_ipv6(const struct hb_flow_query *query,
                                         const struct hb_hash_key *key)
{
    const uint64_t *k = key->word;
    const uint8_t *at = query->addresses;
    uint64_t ports = query->ports | (uint64_t)query->kind << 32;
    __uint128_t sum = (__uint128_t)(hb_load64(at) + k[0]) * (hb_load64(at + 8) + k[1]);

    sum += (__uint128_t)(hb_load64(at + 16) + k[2]) * (hb_load64(at + 24) + k[3]);
    sum += (__uint128_t)(ports + k[4]) * k[5];
    return hb_mix(hb_mix((uint64_t)sum ^ k[6], (uint64_t)(sum >> 64) ^ k[7]) ^ k[6],
                  0x9e3779b97f4a7c15);
}

/* A 32-bit number scaled to a count, which need not be a power of two. */
static inline uint32_t hb_flow_scale(uint32_t number, uint32_t count)
{
    return (uint32_t)(((uint64_t)number * count) >> 32);
}

static inline uint32_t hb_flow_first_bucket(const struct hb_flow_shelf *shelf, uint64_t hash)
{
    return shelf->first + hb_flow_scale((uint32_t)hash, shelf->count);
}

static inline const struct hb_flow_shelf *hb_flow_shelf_of(const struct hb_flow_table *table,
                                                           const struct hb_flow_query *query)
{
    return &table->shelf[hb_flow_is_ipv6(query)];
}

/* The other bucket of a flow that may stand in `bucket`: see the essay. */
static inline uint32_t hb_flow_other_bucket(const struct hb_flow_shelf *shelf, uint32_t bucket,
                                            uint32_t source, uint32_t destination, uint32_t ports)
{
    uint64_t mixed = hb_mix(((uint64_t)destination << 32 | source) ^ 0x9e3779b97f4a7c15,
                            ports ^ 0xc2b2ae3d27d4eb4f);
    uint32_t odd = hb_flow_scale((uint32_t)mixed, shelf->count / 2) * 2 + 1;
    uint32_t from = bucket - shelf->first;

    return shelf->first + odd - from + (odd < from ? shelf->count : 0);
}

static inline uint32_t hb_flow_other_bucket_of(const struct hb_flow_shelf *shelf, uint32_t bucket,
                                               const struct hb_flow_query *query)
{
    return hb_flow_other_bucket(shelf, bucket, query->source, query->destination, query->ports);
}

/* A bit for each place whose addresses and ports are those asked for. */
static inline uint32_t hb_flow_compare(const struct hb_flow_bucket *bucket,
                                       const struct hb_flow_query *query)
{
#if defined(__AVX2__) && !defined(HB_PLAIN_C)
    /* The nine numbers are s s s d d d p p | p: the last three from 16 bytes of their own. */
    __m256i key = _mm256_broadcastsi128_si256(_mm_load_si128((const __m128i *)query));
    __m256i spread = _mm256_permutevar8x32_epi32(key, _mm256_setr_epi32(0, 0, 0, 1, 1, 1, 2, 2));
    __m256i a = _mm256_cmpeq_epi32(*(const __m256i_u *)bucket, spread);
    __m128i b = _mm_cmpeq_epi32(_mm_loadu_si128((const __m128i_u *)bucket->ports),
                                _mm_set1_epi32((int)query->ports));
    uint32_t addresses = (uint32_t)_mm256_movemask_ps((__m256)a);

    return addresses & addresses >> 3 & (uint32_t)_mm_movemask_ps((__m128)b) & 7;
#elif defined(__SSE2__) && !defined(HB_PLAIN_C)
    /* The twelve numbers are s s s d | d d p p | p - - -, as the bucket holds them. */
    __m128i key = _mm_load_si128((const __m128i *)query);
    const __m128i *line = (const __m128i *)bucket;
    __m128i a = _mm_cmpeq_epi32(line[0], _mm_shuffle_epi32(key, _MM_SHUFFLE(1, 0, 0, 0)));
    __m128i b = _mm_cmpeq_epi32(line[1], _mm_shuffle_epi32(key, _MM_SHUFFLE(2, 2, 1, 1)));
    __m128i c = _mm_cmpeq_epi32(line[2], _mm_shuffle_epi32(key, _MM_SHUFFLE(2, 2, 2, 2)));
    __m128i all = _mm_packs_epi16(_mm_packs_epi32(a, b), _mm_packs_epi32(c, c));
    uint32_t same = (uint32_t)_mm_movemask_epi8(all);

    return same & same >> 3 & same >> 6 & 7;
#else
    uint32_t same = 0;

    for (uint32_t place = 0; place < HB_FLOW_PLACES; place++)
        same |= (uint32_t)(((bucket->source[place] ^ query->source) |
                            (bucket->destination[place] ^ query->destination) |
                            (bucket->ports[place] ^ query->ports)) == 0)
                << place;
    return same;
#endif
}

/* TCP, UDP and SCTP flows of the same addresses and ports are three; a free place holds an old key.
 * So the protocol's bits must agree, and the state must not be HB_FLOW_FREE: what is left is 1
 * to 7.
 */
static inline bool hb_flow_is_kind(const struct hb_flow_bucket *bucket, uint32_t place,
                                   uint32_t kind)
{
    uint32_t bits = (bucket->meta[place] ^ hb_flow_protocol_bits(kind)) &
                    (HB_FLOW_META_STATE | HB_FLOW_META_PROTOCOL);

    return bits - 1 < HB_FLOW_META_STATE;
}
_Static_assert((HB_PROTOCOL_TCP & 3) == 2 && (HB_PROTOCOL_UDP & 3) == 1 &&
                   (HB_PROTOCOL_SCTP & 3) == 0,
               "two bits tell the protocols apart");

/* The place in a bucket that the key of an IPv4 flow, or the fold of an IPv6 flow's, is found at.
 */
static inline hb_flow_ref hb_flow_match(const struct hb_flow_table *table, uint32_t bucket,
                                        const struct hb_flow_query *query)
{
    const struct hb_flow_bucket *line = &table->buckets[bucket];

    for (uint32_t same = hb_flow_compare(line, query); same != 0; same &= same - 1) {
        uint32_t place = (uint32_t)__builtin_ctz(same);

        if (hb_flow_is_kind(line, place, query->kind))
            return bucket << 2 | place;
    }
    return HB_FLOW_NONE;
}

/* What an entry holds. */
static inline struct hb_flow_value hb_flow_table_get(const struct hb_flow_table *table,
                                                     hb_flow_ref entry)
{
    const struct hb_flow_bucket *bucket = &table->buckets[entry >> 2];
    uint32_t place = entry & 3, meta = bucket->meta[place];

    return (struct hb_flow_value){
        .incarnation = hb_flow_incarnation_of(bucket->incarnation[place], meta),
        .backend = bucket->backend[place],
        .state = meta & HB_FLOW_META_STATE,
        .tag = table->tags != NULL ? table->tags[entry] : 0,
    };
}

/* Milliseconds since the last packet. A reader on another lcore may have an older clock than the
 * entry: that is no time at all, not 49 days. */
static inline uint32_t hb_flow_table_idle_ms(const struct hb_flow_table *table, hb_flow_ref entry,
                                             uint32_t now_ms)
{
    uint32_t idle = now_ms - table->buckets[entry >> 2].last_ms[entry & 3];

    return (int32_t)idle < 0 ? 0 : idle;
}

static inline bool hb_flow_is_over(const struct hb_flow_table *table, hb_flow_ref at,
                                   uint32_t now_ms)
{
    uint32_t state = table->buckets[at >> 2].meta[at & 3] & HB_FLOW_META_STATE;

    return hb_flow_table_idle_ms(table, at, now_ms) >= table->timeout_ms[state];
}

/* The entry of an IPv4 flow if it stands in this bucket and its time is not over, else
 * HB_FLOW_NONE. For the writer: its clock is not behind. */
static inline hb_flow_ref hb_flow_find_in(const struct hb_flow_table *table, uint32_t bucket,
                                          const struct hb_flow_query *query, uint32_t now_ms)
{
    const struct hb_flow_bucket *line = &table->buckets[bucket];
    hb_flow_ref at = hb_flow_match(table, bucket, query);
    uint32_t place = at & 3;

    if (__builtin_expect(at == HB_FLOW_NONE, 0))
        return HB_FLOW_NONE;
    if (__builtin_expect(now_ms - line->last_ms[place] >=
                             table->timeout_ms[line->meta[place] & HB_FLOW_META_STATE],
                         0))
        return HB_FLOW_NONE;
    return at;
}

/* A packet of the flow came: the state it is in now (not HB_FLOW_FREE), its idle time starts anew.
 */
static inline void hb_flow_table_touch(struct hb_flow_table *table, hb_flow_ref entry,
                                       uint8_t state, uint32_t now_ms)
{
    struct hb_flow_bucket *bucket = &table->buckets[entry >> 2];
    uint8_t *meta = &bucket->meta[entry & 3];

    bucket->last_ms[entry & 3] = now_ms;
    *meta = (uint8_t)((*meta & ~HB_FLOW_META_STATE) | state);
}

/* Gives the flow to another backend. */
static inline void hb_flow_table_repoint(struct hb_flow_table *table, hb_flow_ref entry,
                                         uint16_t backend, uint32_t incarnation)
{
    struct hb_flow_bucket *bucket = &table->buckets[entry >> 2];
    uint8_t *meta = &bucket->meta[entry & 3];

    bucket->backend[entry & 3] = backend;
    bucket->incarnation[entry & 3] = (uint16_t)incarnation;
    *meta = (uint8_t)((*meta & ~HB_FLOW_META_INCARNATION) | hb_flow_incarnation_bits(incarnation));
}

/* Starts loading what a look-up will read first. Memory takes 100 ns and more, and a core can wait
 * for about two dozen lines at a time: so this is for a loop over a burst that has other work to do
 * as well, before hb_flow_table_find. */
static inline void hb_flow_prefetch(const struct hb_flow_table *table,
                                    const struct hb_flow_shelf *shelf, uint64_t hash)
{
    __builtin_prefetch(&table->buckets[hb_flow_first_bucket(shelf, hash)], 1);
}

#endif
