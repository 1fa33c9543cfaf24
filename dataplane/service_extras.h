/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * service_extras.h: what only some services have: affinity, a list of sources, limits, QUIC.
 *
 * A service that has any says which by the flags of struct hb_service, and the generation says
 * which of them any of its services has, so that the packet path asks once a burst and reads
 * nothing of this where there is none. What belongs to them stands apart, indexed as the services
 * are, in one piece of memory. Pure; built on the main lcore, then read by the workers.
 */
#ifndef HB_DATAPLANE_SERVICE_EXTRAS_H
#define HB_DATAPLANE_SERVICE_EXTRAS_H

#include "generation.h"
#include "prefix_set.h"
#include "quic_lb.h"
#include "quic_servers.h"
#include "token_bucket.h"

/* A flow's token, in the unit of the limits on new flows: small enough for the smallest share of a
 * worker. */
#define HB_FLOW_TOKEN (UINT64_C(1) << 24)

struct hb_service_extra {
    uint64_t source_mask[2];    /* affinity: as hb_load64 gives addresses */
    uint8_t affinity;           /* enum hb_affinity */
    uint8_t quic_config[8];     /* by an id's first three bits: configuration + 1; 0: none */
    uint32_t quic_first;        /* of the service's configurations, in `quic` */
    uint32_t flows_share;       /* of each worker; at least 1 */
    uint32_t flows_rest;        /* workers below this one have one more; */
    bool limits_flows;          /* else there is no limit, */
    bool limits_rate;           /* and the same here */
    struct hb_token_rate rate;  /* of new flows, of each worker */
    struct hb_prefix_set *list; /* NULL: all sources are allowed */
};

struct hb_service_extras {
    uint8_t features;                     /* HB_HAS_..., of all services */
    const struct hb_service_extra *extra; /* by service; NULL when there are no features */
    const struct hb_quic_config *quic;
    const struct hb_quic_servers *servers;
};

/* Sections of a checked generation. */
struct hb_service_sections {
    const struct hb_service_record *services;
    const struct hb_prefix_record *prefixes;
    const struct hb_quic_record *quic;
    const struct hb_backend_record *backends;
    uint32_t services_count, prefixes_count, quic_count, backends_count;
    uint32_t workers; /* who share the limits */
};

/* The features of one record. */
uint8_t hb_service_features(const struct hb_service_record *record);

/* Bytes of memory for all extras; 0 when no service has any. */
size_t hb_service_extras_bytes(const struct hb_service_sections *sections);

/* Builds them in `memory` (64-byte aligned; the caller owns it). */
struct hb_service_extras hb_service_extras_build(void *memory,
                                                 const struct hb_service_sections *sections);

#endif
