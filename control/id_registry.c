/* SPDX-License-Identifier: BSD-3-Clause */
#include "id_registry.h"

#include <stdlib.h>
#include <string.h>

#define END_OF_CHAIN UINT32_MAX

struct entry {
    char *key; /* NULL: free */
    uint32_t incarnation;
    uint32_t next; /* entry of the same bucket */
};

struct hb_id_registry {
    uint32_t first;
    uint32_t count;
    uint32_t used;
    uint32_t lowest; /* every entry below it is in use */
    uint32_t mask;
    uint32_t *buckets; /* index of an entry, or END_OF_CHAIN */
    struct entry *entries;
};

/* FNV-1a (Fowler, Noll, Vo): keys come from the operator's own file, so no secret is needed. */
static uint32_t hash_key(const char *key)
{
    uint32_t hash = 2166136261u;

    for (; *key; key++)
        hash = (hash ^ (uint8_t)*key) * 16777619u;
    return hash;
}

static uint32_t *bucket_of(const struct hb_id_registry *ids, const char *key)
{
    return &ids->buckets[hash_key(key) & ids->mask];
}

static struct entry *entry_of(const struct hb_id_registry *ids, uint32_t id)
{
    if (id < ids->first || id - ids->first >= ids->count)
        return NULL;
    return &ids->entries[id - ids->first];
}

struct hb_id_registry *hb_ids_new(uint32_t first, uint32_t count)
{
    struct hb_id_registry *ids = calloc(1, sizeof(*ids));
    uint32_t buckets = 16;

    if (ids == NULL)
        return NULL;
    while (buckets < count)
        buckets *= 2;
    ids->first = first;
    ids->count = count;
    ids->mask = buckets - 1;
    ids->entries = calloc(count, sizeof(*ids->entries));
    ids->buckets = malloc(buckets * sizeof(*ids->buckets));
    if (ids->entries == NULL || ids->buckets == NULL) {
        hb_ids_free(ids);
        return NULL;
    }
    memset(ids->buckets, 0xff, buckets * sizeof(*ids->buckets));
    return ids;
}

void hb_ids_free(struct hb_id_registry *ids)
{
    if (ids == NULL)
        return;
    for (uint32_t i = 0; ids->entries != NULL && i < ids->count; i++)
        free(ids->entries[i].key);
    free(ids->entries);
    free(ids->buckets);
    free(ids);
}

uint32_t hb_ids_find(const struct hb_id_registry *ids, const char *key)
{
    uint32_t at = *bucket_of(ids, key);

    while (at != END_OF_CHAIN && strcmp(ids->entries[at].key, key) != 0)
        at = ids->entries[at].next;
    return at == END_OF_CHAIN ? HB_ID_NONE : ids->first + at;
}

uint32_t hb_ids_incarnation(const struct hb_id_registry *ids, uint32_t id)
{
    const struct entry *entry = entry_of(ids, id);

    return entry ? entry->incarnation : 0;
}

const char *hb_ids_key(const struct hb_id_registry *ids, uint32_t id)
{
    const struct entry *entry = entry_of(ids, id);

    return entry ? entry->key : NULL;
}

uint32_t hb_ids_used(const struct hb_id_registry *ids)
{
    return ids->used;
}

uint32_t hb_ids_first(const struct hb_id_registry *ids)
{
    return ids->first;
}

uint32_t hb_ids_end(const struct hb_id_registry *ids)
{
    return ids->first + ids->count;
}

static bool link_entry(struct hb_id_registry *ids, uint32_t at, const char *key)
{
    struct entry *entry = &ids->entries[at];
    uint32_t *bucket = bucket_of(ids, key);

    entry->key = strdup(key);
    if (entry->key == NULL)
        return false;
    entry->next = *bucket;
    *bucket = at;
    ids->used++;
    return true;
}

static void unlink_entry(struct hb_id_registry *ids, uint32_t at)
{
    struct entry *entry = &ids->entries[at];
    uint32_t *link = bucket_of(ids, entry->key);

    while (*link != at)
        link = &ids->entries[*link].next;
    *link = entry->next;
    free(entry->key);
    entry->key = NULL;
    ids->used--;
    if (at < ids->lowest)
        ids->lowest = at;
}

uint32_t hb_ids_claim(struct hb_id_registry *ids, const char *key, hb_id_reusable reusable,
                      void *context)
{
    uint32_t id = hb_ids_find(ids, key);
    bool skipped = false;

    if (id != HB_ID_NONE)
        return id;
    for (uint32_t at = ids->lowest; at < ids->count; at++) {
        struct entry *entry = &ids->entries[at];

        if (entry->key != NULL)
            continue;
        id = ids->first + at;
        if (reusable != NULL && !reusable(context, id, entry->incarnation)) {
            skipped = true;
            continue;
        }
        if (!link_entry(ids, at, key))
            return HB_ID_NONE;
        entry->incarnation++;
        if (!skipped)
            ids->lowest = at + 1;
        return id;
    }
    return HB_ID_NONE;
}

void hb_ids_release(struct hb_id_registry *ids, const char *key)
{
    uint32_t id = hb_ids_find(ids, key);

    if (id != HB_ID_NONE)
        unlink_entry(ids, id - ids->first);
}

bool hb_ids_merge(struct hb_id_registry *ids, uint32_t id, uint32_t incarnation, const char *key)
{
    struct entry *entry = entry_of(ids, id);

    if (entry == NULL || incarnation < entry->incarnation)
        return false;
    if (key == NULL) {
        /* "Free at this incarnation" says nothing against a claim of the same incarnation. */
        if (incarnation > entry->incarnation && entry->key != NULL)
            unlink_entry(ids, id - ids->first);
        entry->incarnation = incarnation;
        return true;
    }
    entry->incarnation = incarnation;
    if (entry->key != NULL && strcmp(entry->key, key) == 0)
        return true;
    hb_ids_release(ids, key);
    if (entry->key != NULL)
        unlink_entry(ids, id - ids->first);
    return link_entry(ids, id - ids->first, key);
}
