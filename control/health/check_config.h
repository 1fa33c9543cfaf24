/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * check_config.h: what a pool's `health:` says about the checks of its backends.
 *
 * Plain data without pointers: it is copied, compared and kept as it is. Read and checked by
 * config_health.c. Pure.
 */
#ifndef HB_CONTROL_HEALTH_CHECK_CONFIG_H
#define HB_CONTROL_HEALTH_CHECK_CONFIG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "address.h"

enum hb_health_type {
    HB_HEALTH_NONE = 1,  /* always up */
    HB_HEALTH_TCP = 2,   /* a TCP connection is accepted */
    HB_HEALTH_HTTP = 3,  /* a GET is answered as expected */
    HB_HEALTH_HTTPS = 4, /* the same over TLS */
    HB_HEALTH_UDP = 5,   /* a datagram is answered as expected, or at least not refused */
    HB_HEALTH_ICMP = 6,  /* an echo request is answered */
    HB_HEALTH_GRPC = 7,  /* grpc.health.v1.Health says SERVING */
    HB_HEALTH_EXEC = 8,  /* a command on this machine ends with status 0 */
    HB_HEALTH_GRPCS = 9, /* grpc over TLS */
    HB_HEALTH_TYPES,
};

/* Which way a probe goes. */
enum hb_health_via {
    HB_VIA_DIRECT = 0, /* to the backend's own address */
    HB_VIA_TUNNEL = 1, /* to the VIP, inside the same tunnel as the traffic */
};

#define HB_CHECK_BYTES_MAX   254
#define HB_CHECK_PATH_SIZE   256
#define HB_CHECK_HOST_SIZE   254
#define HB_CHECK_FILE_SIZE   256
#define HB_CHECK_GRPC_SIZE   128
#define HB_CHECK_COMMAND_MAX 512
#define HB_CHECK_STATUSES    8

/* Bytes that are sent or looked for. */
struct hb_check_bytes {
    uint16_t length; /* 0: none */
    uint8_t bytes[HB_CHECK_BYTES_MAX];
};

/* HTTP status codes that are accepted. */
struct hb_check_statuses {
    uint32_t count; /* 0: 200 to 299 */
    struct hb_check_status_range {
        uint16_t first, last;
    } range[HB_CHECK_STATUSES];
};

/* See damping.h. Falls are in 1/1024. */
struct hb_damping_config {
    bool enabled;
    uint32_t half_life_ms;
    uint32_t suppress;
    uint32_t reuse;
    uint32_t max_hold_ms;
};

struct hb_health_config {
    enum hb_health_type type;
    uint16_t port;        /* 0: the port of the first service that uses the pool */
    uint32_t interval_ms; /* from the start of one probe to the start of the next */
    uint32_t timeout_ms;  /* less than the interval */
    uint32_t rise;        /* successes in a row until up */
    uint32_t fall;        /* failures in a row until down */
    uint32_t jitter_ms;   /* each start is moved by a random part of this; at most interval / 2 */
    enum hb_health_via via;
    struct hb_address vip; /* tunnel only; family 0: of the first service that uses the pool */

    /* http, https */
    char path[HB_CHECK_PATH_SIZE]; /* "": "/" */
    char host[HB_CHECK_HOST_SIZE]; /* "": the address */
    struct hb_check_statuses statuses;
    struct hb_check_bytes body; /* somewhere in the answer's body */
    bool verify;                /* https: the certificate */
    char ca[HB_CHECK_FILE_SIZE];

    /* udp */
    struct hb_check_bytes send;
    struct hb_check_bytes expect; /* the answer begins with them */

    char grpc_service[HB_CHECK_GRPC_SIZE]; /* grpc, grpcs; "": the server as a whole */
    char command[HB_CHECK_COMMAND_MAX];    /* exec: an absolute path and arguments */

    struct hb_damping_config damping;
};

/* "tcp", "http", ...; the word of the configuration. */
const char *hb_health_type_name(enum hb_health_type type);

/* Whether checks of this type connect or send to a port. */
bool hb_health_type_has_port(enum hb_health_type type);

/* Whether two checks ask the same question in the same rhythm, so that one probe answers both. What
 * is made of the answer (rise, fall, damping) may differ. */
bool hb_health_alike(const struct hb_health_config *a, const struct hb_health_config *b);

/* True when silence counts as success: such a backend is only assumed to be up. */
bool hb_health_only_assumes(const struct hb_health_config *config);

/* Accepted by `statuses`? */
bool hb_check_status_accepted(const struct hb_check_statuses *statuses, long status);

#endif
