/* SPDX-License-Identifier: BSD-3-Clause */
/* See talkers.h. */
#include "talkers.h"

#include <string.h>

void hb_talkers_init(struct hb_talkers *talkers, struct hb_talker *entries, uint32_t entries_max,
                     uint64_t seed)
{
    *talkers = (struct hb_talkers){
        .entry = entries,
        .entries_max = entries_max < HB_TALKERS_MAX ? entries_max : HB_TALKERS_MAX,
        .seed = seed,
        .random = seed | 1, /* never 0 */
    };
    memset(talkers->first, 0xff, sizeof(talkers->first));
}

/* A sample's key, wide enough for both families. */
struct key {
    uint64_t high, low;
    uint8_t family;
    uint16_t service;
};

static struct key make_key(uint8_t family, const void *source, uint16_t service)
{
    struct key key = {.family = family, .service = service};

    if (family == HB_FAMILY_IPV6) {
        memcpy(&key.high, source, sizeof(key.high));
        memcpy(&key.low, (const uint8_t *)source + sizeof(key.high), sizeof(key.low));
    } else {
        memcpy(&key.high, source, sizeof(uint32_t)); /* the first four bytes of an entry's source */
    }
    return key;
}

static uint32_t chain_of(const struct hb_talkers *talkers, const struct key *key)
{
    uint64_t hash = (key->high ^ talkers->seed) * UINT64_C(0x9e3779b97f4a7c15);

    hash = (hash ^ (hash >> 32) ^ key->low) * UINT64_C(0xd6e8feb86659fd93);
    hash = (hash ^ (hash >> 32) ^ key->service) * UINT64_C(0x9e3779b97f4a7c15);
    return (uint32_t)(hash >> 56);
}
_Static_assert(HB_TALKERS_CHAINS == 256, "the chain is the first byte of the hash");

static bool is_of(const struct hb_talker *entry, const struct key *key)
{
    uint64_t words[2];

    memcpy(words, entry->source, sizeof(words));
    return words[0] == key->high && words[1] == key->low && entry->service == key->service &&
           entry->family == key->family;
}

static uint16_t find(const struct hb_talkers *talkers, uint32_t chain, const struct key *key)
{
    uint16_t e = talkers->first[chain];

    while (e != HB_TALKERS_NONE && !is_of(&talkers->entry[e], key))
        e = talkers->next[e];
    return e;
}

static void unlink_entry(struct hb_talkers *talkers, uint16_t e)
{
    struct key key =
        make_key(talkers->entry[e].family, talkers->entry[e].source, talkers->entry[e].service);
    uint16_t *link = &talkers->first[chain_of(talkers, &key)];

    while (*link != e)
        link = &talkers->next[*link];
    *link = talkers->next[e];
}

/* All counts are above the least there was: the next least, and begin with the first entry again.
 */
static void find_least(struct hb_talkers *talkers)
{
    uint64_t least = UINT64_MAX;

    for (uint32_t e = 0; e < talkers->entries_max; e++)
        least = talkers->count[e] < least ? talkers->count[e] : least;
    talkers->least = least;
    talkers->cursor = 0;
}

/* The entry that makes way: one with the least count. */
static uint16_t choose_victim(struct hb_talkers *talkers)
{
    for (;;) {
        while (talkers->cursor < talkers->entries_max) {
            uint32_t e = talkers->cursor++;

            if (talkers->count[e] == talkers->least)
                return (uint16_t)e;
        }
        find_least(talkers);
    }
}

/* Readers take an entry whose version is even and does not change while they read. */
static void begin_write(struct hb_talker *entry)
{
    __atomic_store_n(&entry->version, entry->version + 1, __ATOMIC_RELAXED);
    __atomic_thread_fence(__ATOMIC_RELEASE);
}

static void end_write(struct hb_talker *entry)
{
    __atomic_store_n(&entry->version, entry->version + 1, __ATOMIC_RELEASE);
}

static uint16_t take_entry(struct hb_talkers *talkers, uint32_t chain, const struct key *key)
{
    bool is_new = talkers->used < talkers->entries_max;
    uint16_t e = is_new ? (uint16_t)talkers->used++ : choose_victim(talkers);
    struct hb_talker *entry = &talkers->entry[e];
    uint64_t words[2] = {key->high, key->low};

    if (!is_new)
        unlink_entry(talkers, e);
    begin_write(entry);
    memcpy(entry->source, words, sizeof(entry->source));
    entry->family = key->family;
    entry->service = key->service;
    entry->error = talkers->count[e];
    entry->count = talkers->count[e];
    entry->bytes = 0;
    end_write(entry);
    talkers->next[e] = talkers->first[chain];
    talkers->first[chain] = e;
    return e;
}

void hb_talkers_add(struct hb_talkers *talkers, uint8_t family, const void *source,
                    uint16_t service, uint32_t bytes)
{
    const struct key key = make_key(family, source, service);
    uint32_t chain = chain_of(talkers, &key);
    uint16_t e = find(talkers, chain, &key);
    struct hb_talker *entry;

    if (e == HB_TALKERS_NONE)
        e = take_entry(talkers, chain, &key);
    entry = &talkers->entry[e];
    begin_write(entry);
    entry->count = ++talkers->count[e];
    entry->bytes += bytes;
    end_write(entry);
}
