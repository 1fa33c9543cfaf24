/* SPDX-License-Identifier: BSD-3-Clause */
#include "preview_json.h"

#include <stdio.h>
#include <string.h>

static json_t *text_or_null(const char *text)
{
    return text[0] ? json_string(text) : json_null();
}

static json_t *digest_to_json(const uint8_t *digest)
{
    char text[2 * HB_DIGEST_SIZE + 1];

    for (size_t i = 0; i < HB_DIGEST_SIZE; i++)
        snprintf(text + 2 * i, 3, "%02x", digest[i]);
    return json_string(text);
}

static const char *change_name(const void *before, const void *after)
{
    return before == NULL ? "added" : after == NULL ? "removed" : "stays";
}

/* {"before": ..., "after": ...}, each null where the object does not exist. */
static json_t *pair(bool before, json_int_t old, bool after, json_int_t new)
{
    return json_pack("{s:o, s:o}", "before", before ? json_integer(old) : json_null(), "after",
                     after ? json_integer(new) : json_null());
}

static json_t *describe_flows(const struct hb_preview *preview,
                              const struct hb_preview_flows *flows)
{
    if (!preview->flows_known)
        return json_null();
    return json_pack("{s:I, s:I, s:I, s:I}", "live", (json_int_t)flows->live, "kept",
                     (json_int_t)flows->kept, "broken", (json_int_t)flows->broken, "unsure",
                     (json_int_t)flows->unsure);
}

/* What a flow of the backend may expect. */
static const char *fate_name(const struct hb_preview_backend *backend)
{
    if (backend->before == NULL || backend->kept_least == 1.0)
        return "keep";
    return backend->kept_most == 0.0 ? "break" : "some";
}

static double share(uint32_t slots, uint32_t of)
{
    return of ? (double)slots / (double)of : 0.0;
}

static json_t *describe_backend(const struct hb_preview *preview,
                                const struct hb_preview_pool *pool,
                                const struct hb_preview_backend *backend)
{
    const struct hb_model_backend *before = backend->before;
    const struct hb_backend_config *after = backend->after;
    const char *name, *state = "new";
    char address[HB_ADDRESS_TEXT];
    json_t *object;

    if (before != NULL)
        state = hb_backend_state_name(&before->state);
    if (after != NULL) {
        name = after->name;
        hb_address_print(&after->address, address);
    } else {
        name = before->name;
        hb_address_print(&before->address, address);
    }
    object = json_pack("{s:s, s:s, s:s, s:s}", "name", name, "address", address, "change",
                       change_name(before, after), "state", state);
    json_object_set_new(
        object, "weight",
        pair(before, before ? before->weight : 0, after, after ? after->weight : 0));
    json_object_set_new(object, "slots",
                        pair(before, before ? before->slots : 0, after, backend->slots));
    json_object_set_new(object, "share",
                        json_pack("{s:f, s:f}", "before",
                                  before ? share(before->slots, pool->before->slots) : 0.0, "after",
                                  share(backend->slots, pool->slots)));
    json_object_set_new(object, "flow_fate", json_string(fate_name(backend)));
    json_object_set_new(object, "flows", describe_flows(preview, &backend->flows));
    return object;
}

static json_t *algorithm_or_null(bool known, enum hb_algorithm algorithm)
{
    return known ? json_string(hb_algorithm_name(algorithm)) : json_null();
}

static const char *pool_name(const struct hb_preview_pool *pool)
{
    return pool->before ? pool->before->name : pool->after->name;
}

static json_t *describe_pool(const struct hb_preview *preview, const struct hb_preview_pool *pool)
{
    const struct hb_model_pool *before = pool->before;
    const struct hb_pool_config *after = pool->after;
    json_t *backends = json_array();
    json_t *object =
        json_pack("{s:s, s:s}", "name", pool_name(pool), "change", change_name(before, after));

    json_object_set_new(object, "algorithm",
                        json_pack("{s:o, s:o}", "before",
                                  algorithm_or_null(before, before ? before->algorithm : 0),
                                  "after", algorithm_or_null(after, after ? after->algorithm : 0)));
    json_object_set_new(
        object, "table_size",
        pair(before, before ? before->table_size : 0, after, after ? after->table_size : 0));
    json_object_set_new(object, "usable",
                        pair(before, before ? before->usable : 0, after, pool->usable));
    json_object_set_new(
        object, "digest",
        json_pack("{s:o, s:o}", "before",
                  before && before->owner ? digest_to_json(before->owners) : json_null(), "after",
                  pool->owner ? digest_to_json(pool->owners) : json_null()));
    json_object_set_new(object, "settings_changed", json_boolean(pool->settings_changed));
    json_object_set_new(object, "moved", json_integer(pool->change.moved));
    json_object_set_new(object, "ideal", json_integer(pool->change.ideal));
    json_object_set_new(object, "collateral", json_integer(pool->change.collateral));
    json_object_set_new(object, "problem", text_or_null(pool->problem));
    json_object_set_new(object, "flows", describe_flows(preview, &pool->flows));
    for (uint32_t b = 0; b < pool->backends_count; b++)
        json_array_append_new(backends, describe_backend(preview, pool, &pool->backends[b]));
    json_object_set_new(object, "backends", backends);
    return object;
}

static const char *breaks_name(const struct hb_preview *preview)
{
    bool perhaps = false;

    if (preview->flows_known)
        return preview->flows.broken > 0 ? "yes" : preview->flows.unsure > 0 ? "perhaps" : "no";
    for (uint32_t p = 0; p < preview->pools_count; p++) {
        for (uint32_t b = 0; b < preview->pools[p].backends_count; b++)
            perhaps = perhaps || strcmp(fate_name(&preview->pools[p].backends[b]), "keep") != 0;
    }
    return perhaps ? "perhaps" : "no";
}

json_t *hb_preview_json(const struct hb_preview *preview)
{
    const struct hb_model_diff *diff = &preview->diff;
    json_t *pools = json_array();

    for (uint32_t p = 0; p < preview->pools_count; p++)
        json_array_append_new(pools, describe_pool(preview, &preview->pools[p]));
    return json_pack("{s:b, s:b, s:b, s:s, s:o, s:{s:i, s:i, s:i}, s:{s:i, s:i, s:i}, s:o}",
                     "changed", preview->changed, "reseeded", preview->reseeded, "settings_changed",
                     preview->settings_changed, "breaks", breaks_name(preview), "flows",
                     describe_flows(preview, &preview->flows), "services", "added",
                     diff->services_added, "removed", diff->services_removed, "changed",
                     diff->services_changed, "backends", "added", diff->backends_added, "removed",
                     diff->backends_removed, "changed", diff->backends_changed, "pools", pools);
}
