/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_internal.h: what the model's own files and reconcile.c share, for nobody else.
 */
#ifndef HB_CONTROL_MODEL_INTERNAL_H
#define HB_CONTROL_MODEL_INTERNAL_H

#include "model.h"

/* Frees what the pool owns, but not its backends. */
void hb_pool_clear(struct hb_model_pool *pool);
/* With their rules. */
void hb_services_free(struct hb_model_service *services, uint32_t count);
/* Tells the owner and frees. */
void hb_backend_end(struct hb_model *model, struct hb_model_backend *backend);
void hb_backend_start_tally(struct hb_model *model, struct hb_model_backend *backend);
/* A pool's check, with what the file leaves to the first service that uses the pool: the port, and
 * the VIP of a check through the tunnel. */
struct hb_health_config hb_model_health(const struct hb_config *config, uint32_t pool);
/* Fills diff->error. */
void hb_model_refuse_id(const struct hb_model *model, const char *identity, const char *pool,
                        struct hb_model_diff *diff);
void hb_service_start_tally(struct hb_model *model, struct hb_model_service *service);

/* Whether a configuration changes a backend that it keeps. */
bool hb_backend_differs(const struct hb_model_backend *backend,
                        const struct hb_backend_config *config);

/* model_life.c, for reconcile.c: starts and ends slow starts, when it is known who stands in the
 * table. */
void hb_pool_follow_ramps(const struct hb_model *model, struct hb_model_pool *pool);
/* Progress as struct hb_table_entry has it. */
uint32_t hb_backend_ramp(const struct hb_model_pool *pool, const struct hb_model_backend *backend,
                         uint64_t now_ms);

#endif
