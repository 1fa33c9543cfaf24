/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * id_registry.h: which small number stands for which object, for as long as the object is
 * configured.
 *
 * Tables, flow caches and counters know backends and services by id only. An object, named by its
 * key, keeps its id as long as it is claimed. A released id is given out again, the lowest first,
 * but only when the owner of the registry says that nothing refers to it any more (quarantine: flow
 * entries may outlive a backend). Each claim of an id raises its incarnation, so that what still
 * refers to the old object can never be mistaken for the new one.
 *
 * What an id was used for is remembered by two sources after a restart, the dataplane's generation
 * and the state file: hb_ids_merge() brings them together; of two claims to one id the higher
 * incarnation is the later one and wins.
 *
 * Pure: no clock, no system call. One thread. Keys are copied.
 */
#ifndef HB_CONTROL_ID_REGISTRY_H
#define HB_CONTROL_ID_REGISTRY_H

#include <stdbool.h>
#include <stdint.h>

#define HB_ID_KEY_SIZE 128
#define HB_ID_NONE     UINT32_MAX

struct hb_id_registry;

/* Says whether nothing refers to a free id. `incarnation` 0: this registry never gave it out. */
typedef bool (*hb_id_reusable)(void *context, uint32_t id, uint32_t incarnation);

/* Ids are first to first + count - 1. NULL when there is no memory. */
struct hb_id_registry *hb_ids_new(uint32_t first, uint32_t count);
void hb_ids_free(struct hb_id_registry *ids);

/* The id of a key, or HB_ID_NONE. */
uint32_t hb_ids_find(const struct hb_id_registry *ids, const char *key);
uint32_t hb_ids_incarnation(const struct hb_id_registry *ids, uint32_t id);
/* The key that holds an id, or NULL when it is free (or out of range). */
const char *hb_ids_key(const struct hb_id_registry *ids, uint32_t id);
uint32_t hb_ids_used(const struct hb_id_registry *ids);
uint32_t hb_ids_first(const struct hb_id_registry *ids);
uint32_t hb_ids_end(const struct hb_id_registry *ids); /* one after the last id */

/* The id that `key` has, or the lowest free one for which `reusable` (NULL: all) says yes, its
 * incarnation raised. HB_ID_NONE: no id is free, or no memory. */
uint32_t hb_ids_claim(struct hb_id_registry *ids, const char *key, hb_id_reusable reusable,
                      void *context);

/* Frees the id of a key; its incarnation stays. Nothing happens when the key has none. */
void hb_ids_release(struct hb_id_registry *ids, const char *key);

/* Takes a claim from another memory of the same history: `key` (NULL: free) holds `id` at
 * `incarnation`. Ignored when the registry knows a later incarnation of the id. A key never holds
 * two ids: the one it had is released. Returns false when it was ignored, out of range or out of
 * memory. */
bool hb_ids_merge(struct hb_id_registry *ids, uint32_t id, uint32_t incarnation, const char *key);

#endif
