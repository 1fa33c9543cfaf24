/* SPDX-License-Identifier: BSD-3-Clause */
#include "take_over.h"

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halbach/generation.h"

static bool section_readable(struct hb_section section, uint32_t record_size, size_t size)
{
    return section.record_size == record_size && section.offset % HB_SECTION_ALIGN == 0 &&
           section.offset <= size && section.count <= (size - section.offset) / record_size;
}

bool hb_blob_readable(const void *blob, size_t size)
{
    const struct hb_generation_header *header = blob;

    return blob != NULL && size >= sizeof(*header) && header->magic == HB_GENERATION_MAGIC &&
           header->version == HB_GENERATION_VERSION &&
           section_readable(header->services, sizeof(struct hb_service_record), size) &&
           section_readable(header->pools, sizeof(struct hb_pool_record), size) &&
           section_readable(header->backends, sizeof(struct hb_backend_record), size) &&
           section_readable(header->tables, sizeof(struct hb_table_record), size) &&
           section_readable(header->prefixes, sizeof(struct hb_prefix_record), size) &&
           section_readable(header->quic, sizeof(struct hb_quic_record), size) &&
           section_readable(header->sources, sizeof(struct hb_source_record), size);
}

static const void *section_of(const void *blob, struct hb_section section)
{
    return (const uint8_t *)blob + section.offset;
}

static struct hb_address record_address(uint8_t family, const uint8_t *bytes)
{
    struct hb_address address = {.family = family};

    memcpy(address.bytes, bytes, sizeof(address.bytes));
    return address;
}

/* The name of a backend's pool, or NULL when the index is bad. */
static const char *pool_name(const void *blob, const struct hb_backend_record *record)
{
    const struct hb_generation_header *header = blob;
    const struct hb_pool_record *pools = section_of(blob, header->pools);
    const char *name;

    if (record->pool >= header->pools.count)
        return NULL;
    name = pools[record->pool].name;
    return memchr(name, '\0', HB_NAME_SIZE) ? name : NULL;
}

void hb_take_over_state_ids(struct hb_model *model, const struct hb_state *state)
{
    char key[HB_ID_KEY_SIZE];

    for (uint32_t b = 0; b < state->backends_count; b++) {
        const struct hb_state_backend *known = &state->backends[b];

        hb_ids_merge(model->backend_ids, known->id, known->incarnation,
                     known->pool[0] ? hb_backend_key(key, known->pool, &known->address) : NULL);
    }
    for (uint32_t s = 0; s < state->services_count; s++) {
        const struct hb_state_service *known = &state->services[s];

        hb_ids_merge(model->service_ids, known->id, known->incarnation,
                     known->vip.family
                         ? hb_service_key(key, &known->vip, known->prefix_length, known->protocol,
                                          known->port, known->port_last)
                         : NULL);
    }
}

void hb_take_over_blob_ids(struct hb_model *model, const void *blob)
{
    const struct hb_generation_header *header = blob;
    const struct hb_backend_record *backends = section_of(blob, header->backends);
    const struct hb_service_record *services = section_of(blob, header->services);
    char key[HB_ID_KEY_SIZE];

    for (uint32_t b = 0; b < header->backends.count; b++) {
        const struct hb_backend_record *record = &backends[b];
        struct hb_address address = record_address(record->family, record->address);
        const char *pool = pool_name(blob, record);

        if (pool != NULL)
            hb_ids_merge(model->backend_ids, record->id, record->incarnation,
                         hb_backend_key(key, pool, &address));
    }
    for (uint32_t s = 0; s < header->services.count; s++) {
        const struct hb_service_record *record = &services[s];
        struct hb_address vip = record_address(record->family, record->address);
        uint32_t incarnation = hb_ids_incarnation(model->service_ids, record->id);

        /* Records of services carry no incarnation, since no flow names a service. */
        hb_ids_merge(model->service_ids, record->id, incarnation ? incarnation : 1,
                     hb_service_key(key, &vip, record->prefix_length, record->protocol,
                                    be16toh(record->port), be16toh(record->port_last)));
    }
}

static int compare_record_id(const void *key, const void *record)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct hb_backend_record *)record)->id;

    return (id > other) - (id < other);
}

static int compare_known_id(const void *key, const void *known)
{
    uint32_t id = *(const uint32_t *)key, other = ((const struct hb_state_backend *)known)->id;

    return (id > other) - (id < other);
}

static const struct hb_backend_record *find_record(const void *blob, const char *pool,
                                                   const struct hb_model_backend *backend)
{
    const struct hb_generation_header *header = blob;
    const struct hb_backend_record *record;
    const char *name;

    if (blob == NULL)
        return NULL;
    record = bsearch(&backend->id, section_of(blob, header->backends), header->backends.count,
                     sizeof(*record), compare_record_id);
    if (record == NULL || record->incarnation != backend->incarnation ||
        record->family != backend->address.family ||
        memcmp(record->address, backend->address.bytes, HB_ADDRESS_SIZE) != 0)
        return NULL;
    name = pool_name(blob, record);
    return name != NULL && strcmp(name, pool) == 0 ? record : NULL;
}

static bool is_known(const struct hb_state_backend *known, const char *pool,
                     const struct hb_model_backend *backend)
{
    return hb_address_compare(&known->address, &backend->address) == 0 &&
           strcmp(known->pool, pool) == 0;
}

/* Entries are sorted by id, and nearly always the id is the same. */
static const struct hb_state_backend *find_known(const struct hb_state *state, const char *pool,
                                                 const struct hb_model_backend *backend)
{
    const struct hb_state_backend *found;

    if (state == NULL || state->backends_count == 0)
        return NULL;
    found = bsearch(&backend->id, state->backends, state->backends_count, sizeof(*found),
                    compare_known_id);
    if (found != NULL && is_known(found, pool, backend))
        return found;
    for (uint32_t b = 0; b < state->backends_count; b++) {
        if (is_known(&state->backends[b], pool, backend))
            return &state->backends[b];
    }
    return NULL;
}

/* One backend before the restart: what the dataplane serves and what the state file says, where
 * they have it. The file is written within a second of what a check finds, so the generation may be
 * later than the file. */
struct past {
    const struct hb_backend_record *record;
    const struct hb_state_backend *known;
    bool record_is_later;
};

/* A record says DOWN also of a backend that was never probed, had no next hop or was disabled, and
 * ACTIVE also of one that is down in a pool in panic; then the state file knows better, and without
 * one nothing is known. */
static enum hb_backend_health past_health(const struct past *past)
{
    const struct hb_backend_record *record = past->record;
    const struct hb_state_backend *known = past->known;
    bool works =
        record != NULL && (record->use == HB_BACKEND_ACTIVE || record->use == HB_BACKEND_DRAINING);
    bool failed = record != NULL && record->use == HB_BACKEND_DOWN && record->rewrite.size > 0;

    if (works && !(known != NULL && known->in_panic))
        return HB_BACKEND_UP;
    if (known == NULL)
        return failed ? HB_BACKEND_FAILED : HB_BACKEND_UNKNOWN;
    if (failed && past->record_is_later && known->health == HB_BACKEND_UP && !known->disabled)
        return HB_BACKEND_FAILED;
    return known->health;
}

/* Now, on both clocks. */
struct moment {
    uint64_t ms, unix_ms;
};

/* A moment of the calendar on this boot's clock; now when it is not known or lies ahead. */
static uint64_t monotonic_of(uint64_t since_unix_ms, const struct moment *now)
{
    uint64_t ago_ms;

    if (since_unix_ms == 0 || since_unix_ms > now->unix_ms)
        return now->ms;
    ago_ms = now->unix_ms - since_unix_ms;
    return ago_ms < now->ms ? now->ms - ago_ms : 0;
}

/* With what the file does not know yet: that it fell, or that it came back and has begun its slow
 * start, which begins anew. */
static void take_over_late_news(const struct hb_health_config *health,
                                struct hb_model_backend *backend, const struct past *past,
                                const struct moment *now)
{
    bool up = backend->state.health == HB_BACKEND_UP;

    if (!past->record_is_later || past->known == NULL)
        return;
    if (!up && past->known->health == HB_BACKEND_UP)
        hb_damping_fall(&backend->damping, &health->damping, now->ms);
    if (up && past->known->health == HB_BACKEND_FAILED && !past->known->in_panic)
        backend->ramps = true;
}

static void take_over_health(const struct hb_health_config *health,
                             struct hb_model_backend *backend, const struct past *past,
                             const struct moment *now)
{
    const struct hb_state_backend *known = past->known;
    enum hb_backend_health last = past_health(past);
    uint64_t since_ms = now->ms;

    if (known != NULL && known->penalty > 0)
        backend->damping = (struct hb_damping){
            known->penalty, monotonic_of(known->penalty_unix_ms, now), known->held};
    if (backend->state.health != HB_BACKEND_UNKNOWN || last == HB_BACKEND_UNKNOWN)
        return;
    if (known != NULL && known->health == last)
        since_ms = monotonic_of(known->health_since_unix * 1000, now);
    hb_backend_state_apply(&backend->state,
                           last == HB_BACKEND_UP ? HB_EVENT_TAKE_OVER_UP : HB_EVENT_TAKE_OVER_DOWN,
                           health->rise, health->fall, since_ms, since_ms);
    take_over_late_news(health, backend, past, now);
    snprintf(backend->reason, sizeof(backend->reason), "as before control was restarted");
}

/* The details of a drain are in the state file alone. */
static void take_over_drain_details(struct hb_model_backend *backend,
                                    const struct hb_state_backend *known)
{
    backend->drain = known->drain;
    backend->state.disabled = known->disabled;
    backend->state.reset = known->reset;
}

static void take_over_drain(const struct hb_health_config *health, struct hb_model_backend *backend,
                            const struct past *past, const struct moment *now)
{
    const struct hb_backend_record *record = past->record;
    const struct hb_state_backend *known = past->known;
    bool in_record =
        record != NULL && (record->use == HB_BACKEND_DRAINING || record->use == HB_BACKEND_RESET);
    uint64_t since_ms = now->ms;

    if (known ? !known->draining : !in_record)
        return;
    if (known != NULL)
        since_ms = monotonic_of(known->drain_since_unix * 1000, now);
    hb_backend_state_apply(&backend->state, HB_EVENT_DRAIN, health->rise, health->fall, since_ms,
                           since_ms);
    backend->ramps = true; /* when it comes back */
    if (known != NULL)
        take_over_drain_details(backend, known);
    else
        backend->state.disabled = backend->state.reset = record->use == HB_BACKEND_RESET;
}

/* An operator's weight, and a slow start that is under way. Who is up and in none has done it. */
static void take_over_share(struct hb_model_backend *backend, const struct hb_state_backend *known)
{
    if (known == NULL)
        return;
    if (known->weight_is_set)
        hb_backend_set_weight(backend, true, known->weight);
    backend->ramps = backend->ramps || (known->weight_is_set && known->weight == 0);
    if (known->ramp_since_unix_ms == 0 || backend->state.health != HB_BACKEND_UP)
        return;
    backend->was_usable = true;
    backend->ramp_since_unix_ms = known->ramp_since_unix_ms; /* hb_model_set_clock() follows */
}

void hb_take_over_backends(struct hb_model *model, const void *blob, const struct hb_state *state,
                           bool drains, uint64_t now_ms, uint64_t now_unix_ms)
{
    const struct hb_generation_header *header = blob;
    const struct moment now = {now_ms, now_unix_ms};
    struct past past = {.record_is_later =
                            header != NULL && state != NULL && header->number > state->generation};

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            struct hb_model_backend *backend = pool->backends[b];

            past.record = find_record(blob, pool->name, backend);
            past.known = find_known(state, pool->name, backend);
            take_over_health(&pool->health, backend, &past, &now);
            if (drains) {
                take_over_drain(&pool->health, backend, &past, &now);
                take_over_share(backend, past.known);
            }
            if (past.record != NULL && past.record->rewrite.size > 0 && backend->rewrite.size == 0)
                backend->rewrite = past.record->rewrite;
        }
    }
}

bool hb_take_over_doubt_ids(struct hb_model *model, const void *blob,
                            bool (*in_use)(void *context, uint32_t id), void *context)
{
    char key[HB_ID_KEY_SIZE];
    bool any = false;

    for (uint32_t p = 0; p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++) {
            const struct hb_model_backend *backend = pool->backends[b];

            if (!in_use(context, backend->id) || find_record(blob, pool->name, backend) != NULL)
                continue;
            hb_ids_release(model->backend_ids, hb_backend_key(key, pool->name, &backend->address));
            any = true;
        }
    }
    return any;
}

struct member {
    const struct hb_model_pool *pool;
    const struct hb_model_backend *backend;
};

/* A moment of the monotonic clock in the calendar. */
static uint64_t unix_of(uint64_t at_ms, const struct moment *now)
{
    uint64_t ago_ms = now->ms > at_ms ? now->ms - at_ms : 0;

    return now->unix_ms > ago_ms ? now->unix_ms - ago_ms : 0;
}

/* A slow start that the next generation begins is as good as begun: the file is written first. */
static void describe_ramp(struct member member, const struct moment *now,
                          struct hb_state_backend *known)
{
    if (member.backend->ramp_since_ms != 0)
        known->ramp_since_unix_ms = member.backend->ramp_since_unix_ms;
    else if (hb_backend_begins_ramp(member.pool, member.backend))
        known->ramp_since_unix_ms = now->unix_ms;
}

static void describe_backend(struct member member, const struct moment *now,
                             struct hb_state_backend *known)
{
    const struct hb_damping *damping = &member.backend->damping;

    memcpy(known->pool, member.pool->name, sizeof(known->pool));
    known->address = member.backend->address;
    known->health = member.backend->state.health;
    if (known->health != HB_BACKEND_UNKNOWN)
        known->health_since_unix = unix_of(member.backend->state.health_since_ms, now) / 1000;
    known->draining = member.backend->state.draining;
    describe_ramp(member, now, known);
    known->penalty = damping->penalty;
    known->penalty_unix_ms = unix_of(damping->since_ms, now);
    known->held = damping->held;
    known->in_panic = member.backend->stands && known->health == HB_BACKEND_FAILED;
    known->weight_is_set = member.backend->weight_is_set;
    known->weight = member.backend->weight;
    if (!known->draining)
        return;
    known->drain_since_unix = unix_of(member.backend->state.drain_since_ms, now) / 1000;
    known->drain = member.backend->drain;
    known->disabled = member.backend->state.disabled;
    known->reset = member.backend->state.reset;
}

/* The model's backends by id; NULL when there is no memory. */
static struct member *index_members(const struct hb_model *model)
{
    struct member *members = calloc(HB_BACKENDS_MAX + 1, sizeof(*members));

    for (uint32_t p = 0; members != NULL && p < model->pools_count; p++) {
        const struct hb_model_pool *pool = &model->pools[p];

        for (uint32_t b = 0; b < pool->backends_count; b++)
            members[pool->backends[b]->id] = (struct member){pool, pool->backends[b]};
    }
    return members;
}

static void describe_service(const struct hb_model *model, struct hb_state_service *known)
{
    const struct hb_model_service *service = hb_model_service_by_id(model, known->id);

    if (service == NULL)
        return;
    known->vip = service->vip;
    known->prefix_length = service->prefix_length;
    known->protocol = service->protocol;
    known->port = service->port;
    known->port_last = service->port_last;
}

static uint32_t count_known(const struct hb_id_registry *ids)
{
    uint32_t count = 0;

    for (uint32_t id = hb_ids_first(ids); id < hb_ids_end(ids); id++)
        count += hb_ids_incarnation(ids, id) > 0;
    return count;
}

int hb_state_of_model(const struct hb_model *model, uint64_t generation, uint64_t now_ms,
                      uint64_t now_unix_ms, struct hb_state *state)
{
    const struct hb_id_registry *backends = model->backend_ids, *services = model->service_ids;
    const struct moment now = {now_ms, now_unix_ms};
    struct member *members = index_members(model);
    int error = -ENOMEM;

    memset(state, 0, sizeof(*state));
    state->generation = generation;
    state->backends = calloc(count_known(backends) + 1, sizeof(*state->backends));
    state->services = calloc(count_known(services) + 1, sizeof(*state->services));
    if (members == NULL || state->backends == NULL || state->services == NULL) {
        hb_state_clear(state);
        goto free_members;
    }
    for (uint32_t id = hb_ids_first(backends); id < hb_ids_end(backends); id++) {
        struct hb_state_backend *known = &state->backends[state->backends_count];

        known->id = id;
        known->incarnation = hb_ids_incarnation(backends, id);
        if (known->incarnation == 0)
            continue;
        if (members[id].backend != NULL)
            describe_backend(members[id], &now, known);
        state->backends_count++;
    }
    for (uint32_t id = hb_ids_first(services); id < hb_ids_end(services); id++) {
        struct hb_state_service *known = &state->services[state->services_count];

        known->id = id;
        known->incarnation = hb_ids_incarnation(services, id);
        if (known->incarnation == 0)
            continue;
        describe_service(model, known);
        state->services_count++;
    }
    error = 0;
free_members:
    free(members);
    return error;
}
