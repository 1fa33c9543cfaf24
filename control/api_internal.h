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

#include "api_server.h"
#include "control.h"

/* One request, from its arrival to its answer. A handler answers it exactly once, now or later. */
struct hb_api_call {
    struct hb_api_call *next, **link;
    struct hb_api *api;
    struct hb_control *control;
    struct evhttp_request *http; /* NULL: the client has gone */
    struct evkeyvalq query;
    struct hb_actor actor;           /* who asks */
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

/* An integer of 64 bits without a sign, which jansson has not: hb_api_answer() prints it exactly.
 */
json_t *hb_json_count(uint64_t count);

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

/* api_nat.c: of a pool's full NAT. */
struct hb_nat_use {
    uint64_t sessions;  /* to all backends */
    uint64_t ports;     /* addresses times ports: so many connections each backend can have */
    uint64_t most;      /* sessions of the backend that has most: ports in use */
    uint64_t exhausted; /* new connections that found none */
};
/* False, and zeroes, for a pool without it. */
bool hb_pool_nat_use(struct hb_control *control, const struct hb_model_pool *pool,
                     struct hb_nat_use *use);
/* The member `nat` of a pool and of a backend; null without full NAT. */
json_t *hb_json_pool_nat(struct hb_control *control, const struct hb_model_pool *pool);
json_t *hb_json_backend_nat(struct hb_control *control, const struct hb_model_pool *pool,
                            struct hb_model_backend *backend);

/* api_life.c */
void hb_api_get_maintenance(struct hb_api_call *call);
void hb_api_post_maintenance(struct hb_api_call *call);
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
/* api_handlers_reload.c */
void hb_api_post_reload(struct hb_api_call *call);
/* What a configuration that was taken has changed; takes `warnings` over. */
json_t *hb_json_reload(const struct hb_control *control, const uint8_t before[HB_DIGEST_SIZE],
                       const struct hb_model_diff *diff, json_t *warnings);
/* api_handlers_plan.c */
void hb_api_post_plan(struct hb_api_call *call);
/* api_handlers_flush.c */
void hb_api_post_flush(struct hb_api_call *call);
/* api_handlers_lookup.c */
void hb_api_get_lookup(struct hb_api_call *call);
/* api_handlers_events.c */
void hb_api_get_events(struct hb_api_call *call);
/* api_handlers_history.c */
void hb_api_get_history(struct hb_api_call *call);
void hb_api_post_rollback(struct hb_api_call *call);
json_t *hb_json_rollback(const struct hb_history *history); /* null: none */
/* api_handlers_metrics.c */
void hb_api_get_metrics(struct hb_api_call *call);
/* api_handlers_talkers.c */
void hb_api_get_talkers(struct hb_api_call *call);
/* api_server.c */
void hb_api_get_routes(struct hb_api_call *call);

/* --- for streams (api_handlers_events.c) --- */

/* Ends a call without an answer: somebody else has answered it, or will. */
void hb_api_release(struct hb_api_call *call);
/* Answers with text that is no JSON; `text` is copied. */
void hb_api_answer_text(struct hb_api_call *call, const char *type, const char *text, size_t size);
/* A number argument of at most `most`; `otherwise` when it is not given. False after a refusal. */
bool hb_api_number(struct hb_api_call *call, const char *name, uint64_t most, uint64_t otherwise,
                   uint64_t *number);
struct hb_api_streams;
struct hb_api_streams *hb_api_streams_of(struct hb_api *api);

/* api_health.c: the members check, last_failure and damping of a backend. */
void hb_json_set_health(json_t *object, const struct hb_model_pool *pool,
                        const struct hb_model_backend *backend);

#endif
