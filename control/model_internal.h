/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_internal.h: what model.c and model_apply.c share, for nobody else.
 */
#ifndef HB_CONTROL_MODEL_INTERNAL_H
#define HB_CONTROL_MODEL_INTERNAL_H

#include "model.h"

/* Frees what the pool owns, but not its backends. */
void hb_pool_clear(struct hb_model_pool *pool);
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

#endif
