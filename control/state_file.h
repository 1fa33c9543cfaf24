/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * state_file.h: what control must not forget when it is restarted.
 *
 * Operator actions (drains, weights, maintenance), ids with their incarnations, the generation's
 * number, the last known health with what damping holds against it, and slow starts, as one JSON
 * file. It is replaced as a whole: written to a
 * temporary file beside it, fsync, rename, fsync of the folder; so after a crash at any moment
 * there is the old one or the new one. A file that cannot be understood (torn, foreign, of a newer
 * version) is set aside as FILE.bad, and control starts without it: the dataplane's generation and
 * the first probes tell most of it again.
 */
#ifndef HB_CONTROL_STATE_FILE_H
#define HB_CONTROL_STATE_FILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"
#include "backend_state.h"
#include "drain.h"
#include "halbach/generation.h"

/* A backend id: held by a backend, or free (pool "") with an incarnation to remember. */
struct hb_state_backend {
    uint32_t id;
    uint32_t incarnation;
    char pool[HB_NAME_SIZE];
    struct hb_address address;
    enum hb_backend_health health;
    uint64_t health_since_unix; /* seconds; 0: not known */
    bool draining;
    uint64_t drain_since_unix; /* seconds; 0 when not draining */
    struct hb_drain drain;     /* while draining; of its times the one of the calendar only */
    bool disabled, reset;      /* as in struct hb_backend_state */
    bool in_panic;             /* it is down and serves all the same */
    bool weight_is_set;        /* by an operator */
    uint32_t weight;
    uint64_t ramp_since_unix_ms; /* 0: it is in no slow start */
    double penalty;              /* of damping, in falls; 0: none */
    uint64_t penalty_unix_ms;    /* as of when */
    bool held;                   /* down, for the penalty */
};

struct hb_state_service {
    uint32_t id;
    uint32_t incarnation;
    struct hb_address vip; /* family 0: the id is free */
    uint8_t prefix_length;
    uint8_t protocol;
    uint16_t port, port_last;
};

struct hb_state {
    uint64_t generation;
    struct hb_state_backend *backends; /* sorted by id */
    uint32_t backends_count;
    struct hb_state_service *services;
    uint32_t services_count;
    bool withdrawn;                /* the whole balancer is under maintenance */
    uint64_t withdrawn_since_unix; /* seconds */
};

/* Reads a file. 0; -ENOENT when there is none; -EBADMSG when it was set aside (logged); another
 * negative errno when it could not be read (logged). *state is empty unless 0 is returned. */
int hb_state_load(const char *path, struct hb_state *state);

/* Replaces the file. 0 or negative errno; then `path` is as it was. Logs nothing. */
int hb_state_save(const char *path, const struct hb_state *state);

void hb_state_clear(struct hb_state *state);

#endif
