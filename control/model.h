/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model.h: everything control knows about services, pools and backends while it runs.
 *
 * The configuration says what should be; the model adds what is: ids, health, drains, next hops,
 * tables. A backend is a member of one pool, known by (pool name, address): the same address in two
 * pools is two backends with two ids, so removing it from one pool says nothing about the other
 * (BL-52). A service is known by (VIP or prefix, protocol, port or ports). What is known by the
 * same identity before and after a reload is the same object and keeps all its state, whatever else
 * changed and wherever it moved in the file.
 *
 * Order never matters: pools are sorted by name, the backends of a pool by address.
 *
 * Leaving. When a reload removes the last usable members of a pool while new ones have not been
 * probed yet, the old ones go on serving (`leaving`) until one new member is usable or all have
 * proved to be down; reconcile.h has the rule (BL-79).
 *
 * Pure: time comes in, no clock is read. One thread.
 */
#ifndef HB_CONTROL_MODEL_H
#define HB_CONTROL_MODEL_H

#include <stdbool.h>
#include <stdint.h>

#include "backend_state.h"
#include "config.h"
#include "drain.h"
#include "hashing/table_builder.h"
#include "health/damping.h"
#include "id_registry.h"
#include "next_hop.h"
#include "path_mtu.h"
#include "pool_policy.h"
#include "slot_history.h"
#include "tally.h"

struct hb_probe; /* probes.h */

#define HB_REASON_SIZE 256

struct hb_model_backend {
    char name[HB_NAME_SIZE];
    struct hb_address address;
    uint32_t pool;                  /* index in the model */
    char identity[HB_ADDRESS_TEXT]; /* canonical text of the address: the input of table builders */
    uint32_t weight;                /* in use */
    uint32_t configured_weight;     /* in the file; an operator may have set another one */
    bool weight_is_set;             /* by an operator */
    uint32_t bucket;                /* jump only, else HB_BUCKET_NONE */
    char zone[HB_NAME_SIZE];        /* "": not said */
    uint8_t server_id[15];          /* of QUIC connection ids */
    uint8_t server_id_length;
    uint32_t id;
    uint32_t incarnation;
    bool unused;     /* it has not forwarded a packet in any history that is known */
    bool remembered; /* it owned slots before this control began */
    bool leaving;    /* no longer configured, serves until a new member can */
    bool backup;     /* of the pool's backup pool */
    bool stands;     /* in the pool's table */
    struct hb_backend_state state;
    char reason[HB_REASON_SIZE];       /* of the last probe, for people */
    char last_failure[HB_REASON_SIZE]; /* why the last probe that failed did; "": none has */
    uint64_t last_failure_ms;
    struct hb_damping damping;
    struct hb_drain drain; /* while state.draining */

    struct hb_next_hop hop;
    struct hb_path path;       /* beyond the hop, as far as ICMP errors have told */
    struct hb_rewrite rewrite; /* size 0: it cannot be forwarded to, and `problem` says why */
    char problem[192];
    uint32_t slots;         /* of the pool's table */
    uint32_t slots_to_come; /* after all slow starts */
    struct hb_tally tally;

    /* Slow start, see hb_model_ramp(). */
    bool was_usable;
    bool ramps;                  /* the next time it becomes usable it starts slowly */
    uint64_t ramp_since_ms;      /* 0: it is in none */
    uint64_t ramp_since_unix_ms; /* the same moment in the calendar */

    /* Of control's wiring. */
    struct hb_probe *probe;
    struct hb_model_backend *probe_next; /* sharer of the same probe */
    bool watched;                        /* its next hop is */
};

/* What the last rebuild of a table moved; `generation` is filled in by the publisher's side. */
struct hb_pool_change {
    bool any;
    uint32_t moved;
    uint32_t ideal;
    uint32_t collateral;
    uint64_t generation;
};

struct hb_model_pool {
    char name[HB_NAME_SIZE];
    enum hb_algorithm algorithm;
    uint32_t table_size;
    struct hb_table_options options;
    uint32_t bounded_load; /* how far above its part a backend may go, in 1/1024; 0: no bound */
    enum hb_forwarding forwarding;
    struct hb_nat_config nat;
    struct hb_forwarding_options encap;
    struct hb_health_config health; /* its port found: 0 only when nothing says which */
    struct hb_failure_config failure;
    uint32_t slow_start_ms;
    struct hb_model_backend **backends; /* sorted by address; each is owned and does not move */
    uint32_t backends_count;

    /* The table and what it was built from, so that it is rebuilt only when an input changed. */
    struct hb_table_input *input;
    const uint16_t *owner; /* of `history`; NULL: no usable member */
    uint32_t slots;
    struct hb_slot_history history; /* outlives the table */
    bool members_left;              /* the history may name them yet */
    uint8_t digest[HB_DIGEST_SIZE]; /* of all columns */
    uint8_t owners[HB_DIGEST_SIZE];
    uint32_t usable; /* members that take new flows: those in the table, none of a closed pool */
    enum hb_pool_mode mode;
    enum hb_pool_mode told_mode; /* in the log */
    struct hb_pool_strength strength;
    struct hb_pool_change change;
    bool changed;                       /* in the last reconcile */
    bool touched;                       /* since then; see hb_pool_touch() */
    bool ramps;                         /* a member is in its slow start: it changes by itself */
    uint64_t next_ms;                   /* as hb_pool_next_ms() said it then */
    char problem[HB_TABLE_EXPLANATION]; /* why a table cannot be built, "" when it can */
};

struct hb_model_service {
    char name[HB_NAME_SIZE];
    struct hb_address vip;
    uint8_t prefix_length;
    uint8_t protocol;
    uint16_t port, port_last;
    uint32_t pool;    /* index */
    uint8_t tracking; /* enum hb_tracking */
    uint16_t mss_max;
    struct hb_service_rules rules;
    uint32_t id;
    struct hb_tally tally;
    struct hb_quic_tally quic;
};

/* Called before a backend that has left the configuration is freed. */
typedef void (*hb_backend_left)(void *context, struct hb_model_backend *backend);
/* What an id has counted until now, when an object gets it; *instance stays 0 when that is not
 * known. */
typedef struct hb_counts (*hb_raw_counts)(void *context, bool service, uint32_t id,
                                          uint64_t *instance);
typedef struct hb_quic_counters (*hb_raw_quic)(void *context, uint32_t id, uint64_t *instance);

struct hb_model {
    struct hb_model_pool *pools; /* sorted by name */
    uint32_t pools_count;
    struct hb_model_service *services; /* in the order of the file */
    uint32_t services_count;
    uint16_t service_at[HB_SERVICES_MAX]; /* by id: its index, once hb_model_index_services() ran */
    struct hb_hash_key hash_key;
    uint64_t table_seed;
    struct hb_address tunnel_source, tunnel_source6;
    struct hb_icmp_config icmp;
    struct hb_address_prefix tunnel_prefix, tunnel_prefix6;
    uint32_t punt_rate;       /* as in struct hb_settings */
    uint32_t settle_after_ms; /* 0: as the dataplane says */
    struct hb_maintenance_config maintenance;
    uint64_t now_ms, now_unix_ms; /* of the next reconcile; set by the owner */

    /* For NAT (control_nat.c): the route to `client` leads to clients; IPv4, IPv6. */
    struct hb_address client[2];
    struct hb_next_hop to_clients[2];
    struct hb_address own[HB_NAT_OWN_MAX]; /* addresses of this machine, sorted */
    uint32_t own_count;

    struct hb_id_registry *backend_ids;
    struct hb_id_registry *service_ids;
    bool touched; /* all of it; see hb_model_touch() */

    /* Set by the owner before the first configuration; each may be NULL. */
    hb_backend_left left;
    hb_id_reusable reusable; /* of a backend id */
    hb_raw_counts raw_counts;
    hb_raw_quic raw_quic; /* of a service */
    void *context;
};

struct hb_model_diff {
    uint32_t services_added, services_removed, services_changed;
    uint32_t backends_added, backends_removed, backends_changed;
    char error[512]; /* why it was refused, with the remedy */
};

/* NULL when there is no memory. */
struct hb_model *hb_model_new(void);
void hb_model_free(struct hb_model *model); /* calls `left` for every backend */

/* What speaks against a configuration beside what the file says itself, without applying it.
 * -EINVAL: a pool's algorithm does not allow this change. -ENOSPC: ids would run out. Then
 * diff->error says why, else it is "". */
int hb_model_check(const struct hb_model *model, const struct hb_config *config,
                   struct hb_model_diff *diff);

/* Makes the model follow a configuration, all or nothing: on an error (-ENOMEM, or as
 * hb_model_check()) diff->error says why and the model is as before. Fresh ids are claimed for what
 * is new; ids of what went are free (in quarantine) from the next call on. */
int hb_model_apply(struct hb_model *model, const struct hb_config *config, uint64_t now_ms,
                   struct hb_model_diff *diff);

/* Takes the ids that the registries hold for the model's keys, claiming what is missing. After ids
 * were merged from a dataplane's generation. -ENOSPC when ids ran out, -ENOMEM: then the model is
 * as before. */
int hb_model_assign_ids(struct hb_model *model);

/* Frees the ids of keys that the model does not have. After ids were taken over. */
void hb_model_release_unused(struct hb_model *model);

/* Removes one backend (by index) for good. */
void hb_model_drop(struct hb_model *model, struct hb_model_pool *pool, uint32_t index);

struct hb_model_pool *hb_model_pool(const struct hb_model *model, const char *name);
struct hb_model_backend *hb_pool_backend(const struct hb_model_pool *pool,
                                         const struct hb_address *address);
/* The backend with an id, and its pool if `pool` is not NULL; NULL when there is none. */
struct hb_model_backend *hb_model_backend_by_id(const struct hb_model *model, uint32_t id,
                                                struct hb_model_pool **pool);
/* After services or their ids have changed. */
void hb_model_index_services(struct hb_model *model);
const struct hb_model_service *hb_model_service_by_id(const struct hb_model *model, uint32_t id);

/* What the pool's policy sees of a member. */
struct hb_member_view hb_member_view(const struct hb_model_backend *backend);

/* What would be left of a pool's strength if the members marked in `without` (by id) took no new
 * flows. */
struct hb_pool_strength hb_model_strength_without(const struct hb_model_pool *pool,
                                                  const bool *without);

/* Sets or, with `set` false, takes back an operator's weight. */
void hb_backend_set_weight(struct hb_model_backend *backend, bool set, uint32_t weight);

/* Something has changed that a generation may depend on: of one pool or its members (state, weight,
 * drain, next hop), or of anything. hb_model_apply(), hb_model_assign_ids() and hb_model_drop()
 * touch the model themselves. hb_reconcile_touched() looks at nothing else. */
static inline void hb_pool_touch(struct hb_model_pool *pool)
{
    pool->touched = true;
}
static inline void hb_model_touch(struct hb_model *model)
{
    model->touched = true;
}
/* Whether the next reconcile looks at a pool. */
static inline bool hb_pool_is_due(const struct hb_model *model, const struct hb_model_pool *pool)
{
    return model->touched || pool->touched || pool->ramps;
}

/* When the next thing happens by itself: a drain's deadline or a step of a slow start; UINT64_MAX:
 * nothing will. */
uint64_t hb_pool_next_ms(const struct hb_model_pool *pool, uint64_t now_ms);
uint64_t hb_model_next_ms(const struct hb_model *model, uint64_t now_ms);

/* Deadlines and the beginnings of slow starts are moments of the calendar; this says where they are
 * on the clock of `now_ms`. After the state file was taken over. */
void hb_model_set_clock(struct hb_model *model, uint64_t now_ms, uint64_t now_unix_ms);

/* Does what a drain's deadline asks for, once it has passed; `flows` are those that are left.
 * Returns whether it has just passed. */
bool hb_backend_deadline(struct hb_model_backend *backend, uint64_t flows, uint64_t now_ms);

/* Whether the next reconcile finds that a slow start begins. */
bool hb_backend_begins_ramp(const struct hb_model_pool *pool,
                            const struct hb_model_backend *backend);

/* Slots whose previous owner a backend is: established TCP flows without an entry may go there. */
uint32_t hb_pool_remembered_slots(const struct hb_model_pool *pool, uint32_t id);
/* Whether the pool has a service whose TCP flows need no entry (tracking: changed). */
bool hb_model_tracks_changed(const struct hb_model *model, const struct hb_model_pool *pool);

/* Keys of the id registries: "web 198.51.100.11", "tcp 192.0.2.10 80", "udp 192.0.2.0/24 any". Into
 * HB_ID_KEY_SIZE bytes. */
const char *hb_backend_key(char *key, const char *pool, const struct hb_address *address);
const char *hb_service_key(char *key, const struct hb_address *vip, uint8_t prefix_length,
                           uint8_t protocol, uint16_t port, uint16_t port_last);
static inline const char *hb_model_service_key(char *key, const struct hb_model_service *service)
{
    return hb_service_key(key, &service->vip, service->prefix_length, service->protocol,
                          service->port, service->port_last);
}

const char *hb_algorithm_name(enum hb_algorithm algorithm);
const char *hb_protocol_name(uint8_t protocol);

#endif
