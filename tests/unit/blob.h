/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * blob.h: builds generations for tests.
 *
 * What control does in earnest, by the shortest way: add services, pools and backends, and take the
 * blob. Defaults are valid, so a test changes the one thing that it is about, by hand in the blob
 * or before.
 */
#ifndef HB_TESTS_BLOB_H
#define HB_TESTS_BLOB_H

#include <stddef.h>
#include <stdint.h>

#include "halbach/generation.h"

#define BLOB_POOLS_MAX    16
#define BLOB_SERVICES_MAX 64
#define BLOB_BACKENDS_MAX 64
#define BLOB_PREFIXES_MAX 16
#define BLOB_QUIC_MAX     8

struct blob_pool {
    const char *name;
    uint32_t slots; /* 0: no table */
    uint32_t bounded_load;
    int leave_out_body; /* name the table, do not carry it */
    uint16_t *owner;    /* NULL: its backends that are not down, in turn */
    uint16_t *previous; /* NULL: all slots have settled. Else each slot is unsettled that has a
                         * previous owner, and so are those in `unsettled` (NULL: none) */
    uint64_t *unsettled;
};

/* The plan of a generation. Zero it, fill it with blob_add_*, change what the test needs. */
struct blob_plan {
    uint64_t number;
    uint32_t services, pools, backends;
    struct hb_service_record service[BLOB_SERVICES_MAX];
    struct blob_pool pool[BLOB_POOLS_MAX];
    struct hb_backend_record backend[BLOB_BACKENDS_MAX];
    uint32_t prefixes, quics; /* as they stand here, unsorted */
    struct hb_prefix_record prefix[BLOB_PREFIXES_MAX];
    const struct hb_prefix_record *many; /* instead of `prefix`; NULL: no more than fit there */
    struct hb_quic_record quic[BLOB_QUIC_MAX];
};

/* Address texts are IPv4 or IPv6. Each returns the index of the new record. */
uint32_t blob_add_pool(struct blob_plan *plan, const char *name, uint32_t slots);
uint32_t blob_add_service(struct blob_plan *plan, const char *name, const char *vip,
                          uint8_t protocol, uint16_t port, uint32_t pool);
/* With an IPIP rewrite from 198.51.100.10 or 2001:db8:0:1::10 by port 0. */
uint32_t blob_add_backend(struct blob_plan *plan, const char *name, const char *address,
                          uint32_t pool);

/* A plan with two pools of two backends each, one IPv4 and one IPv6 service; number 1. */
struct blob_plan blob_example(void);

/* The blob, aligned to 64, its checksum right; *size is its size. The caller frees it with free().
 */
void *blob_build(const struct blob_plan *plan, size_t *size);

/* Makes checksum and table digests right after a test has changed a blob by hand. */
void blob_repair_checksum(void *blob, size_t size);
void blob_digest(const uint16_t *owner, uint32_t slots, uint8_t digest[HB_DIGEST_SIZE]);
void blob_body_digest(const void *body, uint32_t slots, uint32_t flags,
                      uint8_t digest[HB_DIGEST_SIZE]);

/* A memfd with these bytes and these seals (F_SEAL_...); aborts when the kernel gives none. */
int blob_memfd(const void *blob, size_t size, int seals);
int blob_sealed_memfd(const void *blob, size_t size); /* with all seals that a generation needs */

#endif
