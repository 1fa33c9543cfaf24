/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_internal.h: what the API's handlers need of its server.
 */
#ifndef HB_CONTROL_API_INTERNAL_H
#define HB_CONTROL_API_INTERNAL_H

#include <event2/http.h>
#include <event2/keyvalq_struct.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "control.h"

/* One request, from its arrival to its answer. A handler answers it exactly once, now or later. */
struct hb_api_call {
    struct hb_api_call *next, **link;
    struct hb_api *api;
    struct hb_control *control;
    struct evhttp_request *http; /* NULL: the client has gone */
    struct evkeyvalq query;
    char argument[4 * HB_NAME_SIZE]; /* NAME of the path, decoded */

    /* While it waits for the dataplane to adopt a change. */
    json_t *answer;
    uint64_t wanted;
    struct event *deadline;
};

/* Each answers and ends the call; `body` is taken over. NULL as a body: out of memory. */
void hb_api_answer(struct hb_api_call *call, int status, json_t *body);
void hb_api_refuse(struct hb_api_call *call, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Adds `applied` and `generation` and answers: once generation `wanted` serves, or after two
 * seconds. */
void hb_api_answer_applied(struct hb_api_call *call, json_t *body);

/* The value of a query argument, or NULL. */
const char *hb_api_argument(const struct hb_api_call *call, const char *name);

json_t *hb_json_address(const struct hb_address *address);
json_t *hb_json_hex(const uint8_t *bytes, size_t size);
json_t *hb_json_text_or_null(const char *text);
/* moved, ideal, collateral of the last change; zeros when the last reconcile changed nothing. */
void hb_json_set_moves(json_t *object, const struct hb_model_pool *pool);

/* api_life.c: how a backend's drain goes; null when it does not drain. */
json_t *hb_json_drain(const struct hb_control *control, const struct hb_model_pool *pool,
                      const struct hb_model_backend *backend);
/* Adds what pool_policy.h and drains say to a pool's entry of the status, and to a backend's. */
void hb_json_set_pool_life(json_t *object, const struct hb_model_pool *pool);
void hb_json_set_backend_life(json_t *object, const struct hb_control *control,
                              const struct hb_model_pool *pool,
                              const struct hb_model_backend *backend);

/* api_handlers_status.c */
void hb_api_get_status(struct hb_api_call *call);
void hb_api_get_services(struct hb_api_call *call);
void hb_api_get_backends(struct hb_api_call *call);
/* api_handlers_stats.c */
void hb_api_get_stats(struct hb_api_call *call);
void hb_api_get_drops(struct hb_api_call *call);
/* api_handlers_change.c */
void hb_api_post_drain(struct hb_api_call *call);
void hb_api_post_undrain(struct hb_api_call *call);
void hb_api_post_weight(struct hb_api_call *call);
void hb_api_post_reload(struct hb_api_call *call);
/* api_handlers_plan.c */
void hb_api_post_plan(struct hb_api_call *call);
/* api_handlers_lookup.c */
void hb_api_get_lookup(struct hb_api_call *call);

#endif
