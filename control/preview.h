/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * preview.h: what a configuration would change, before it is applied.
 *
 * The running model is compared with what it would become once the change has settled: backends
 * that stay keep the health, drain and reachability that they have now, those that are new to their
 * pool count as up. Tables are built by the code that builds the real ones from the same inputs,
 * so the numbers of slots are those that a reload reports (BL-83); tables whose inputs do not
 * change are not built at all.
 *
 * Flows. A flow entry decides for a packet while its backend serves and belongs to the pool that
 * serves the VIP. So a flow stays when both will be so after the change. Else the lookup table
 * selects anew, and the flow stays only if its slot leads to the same address: counted slot by slot
 * where the tables have the same size (a pool that is renamed keeps all its flows), by the share of
 * slots otherwise (another seed, another size). Entries name backends, not services, so where the
 * services of a pool fare differently, it is not known how many flows of a backend do: `unsure`.
 *
 * A preview borrows from the model and the configuration and is good until one of them changes.
 * Pure. One thread.
 */
#ifndef HB_CONTROL_PREVIEW_H
#define HB_CONTROL_PREVIEW_H

#include <stdbool.h>
#include <stdint.h>

#include "model.h"

/* live = kept + broken + unsure */
struct hb_preview_flows {
    uint64_t live;
    uint64_t kept;
    uint64_t broken; /* they go on at another backend, or to nowhere: for TCP that is the end */
    uint64_t unsure; /* one or the other */
};

struct hb_preview_backend {
    const struct hb_model_backend *before; /* NULL: new to this pool */
    const struct hb_backend_config *after; /* NULL: removed */
    uint32_t id;                           /* in the new table */
    bool usable;                           /* stands in it, if it has a slot */
    uint32_t slots;                        /* of it */
    /* The part of its flows, 0 to 1, that stay with it, for the service that fares worst and the
     * one that fares best. Of a backend without flows (new, down, no service): 1. */
    double kept_least, kept_most;
    struct hb_preview_flows flows;
};

struct hb_preview_pool {
    const struct hb_model_pool *before; /* NULL: new */
    const struct hb_pool_config *after; /* NULL: removed */
    const uint16_t *owner;              /* the new table; NULL: none */
    uint16_t *built;                    /* the same if it is the preview's own */
    uint32_t slots;
    uint8_t owners[HB_DIGEST_SIZE];
    struct hb_pool_change change; /* `any` false: the table stays as it is */
    char problem[HB_TABLE_EXPLANATION];
    struct hb_preview_backend *backends; /* before and after, sorted by address */
    uint32_t backends_count;
    uint32_t usable;
    bool settings_changed; /* it stays, with others than its backends' */
    struct hb_preview_flows flows;
};

struct hb_preview {
    const struct hb_model *model;
    const struct hb_config *config;
    struct hb_preview_pool *pools; /* before and after, sorted by name */
    uint32_t pools_count;
    struct hb_model_diff diff; /* counts of services and backends, as a reload tells them */
    bool reseeded;             /* the seed differs: every flow is hashed anew */
    bool settings_changed;     /* those that are no pool's and no service's */
    bool changed;              /* anything at all, settings included */
    bool flows_known;
    struct hb_preview_flows flows;
};

/* How many live flows a backend has. */
typedef uint64_t (*hb_flows_of)(void *context, uint32_t id);

/* Compares. `flows` NULL: not known; only the parts are computed. The model must have been
 * reconciled at least once. 0, -ENOMEM, or -ENOSPC when old and new members of a pool are more than
 * there can be; then *preview is empty. */
int hb_preview_make(const struct hb_model *model, const struct hb_config *config, hb_flows_of flows,
                    void *context, struct hb_preview *preview);
void hb_preview_clear(struct hb_preview *preview);

/* NULL when the pool has no such member, before or after. */
struct hb_preview_backend *hb_preview_backend_at(const struct hb_preview_pool *pool,
                                                 const struct hb_address *address);
struct hb_preview_pool *hb_preview_pool_named(const struct hb_preview *preview, const char *name);

/* Parts of hb_preview_make(): preview_flows.c fills in what becomes of the flows (-ENOMEM),
 * preview_diff.c what is added, removed and changed. */
int hb_preview_flows(struct hb_preview *preview, hb_flows_of flows, void *context);
void hb_preview_diff(struct hb_preview *preview);

#endif
