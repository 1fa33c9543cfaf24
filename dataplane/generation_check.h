/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation_check.h: every check of a generation blob, before anything of it is used.
 *
 * Control may be buggy, of another version, or not control at all. So nothing in a blob is
 * believed: seals, sizes, offsets, counts, indexes, ids, names, rewrites and digests are all
 * checked here, in the order of enum hb_reject, and the first failure is reported with the
 * offending record and offset. After HB_REJECT_NONE the blob may be read without further checks.
 *
 * Pure: no DPDK. Reads only; any thread.
 */
#ifndef HB_DATAPLANE_GENERATION_CHECK_H
#define HB_DATAPLANE_GENERATION_CHECK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/generation.h"
#include "halbach/protocol.h"

/* A table the dataplane holds, for records that name one without carrying it. */
struct hb_held_table {
    struct hb_table_columns column;
    uint32_t slots;
    uint32_t flags; /* of its record */
    /* Each id that the owners name, once, and the same of the previous ones; NULL: the
     * columns are read instead. */
    const uint16_t *ids, *previous_ids;
    uint32_t ids_count, previous_ids_count;
};

struct hb_generation_limits {
    uint32_t services_max;        /* service ids are below this */
    uint32_t backends_max;        /* backend ids are below this */
    uint16_t ports[HB_PORTS_MAX]; /* ids of the ports that a rewrite may name */
    uint32_t ports_count;
    /* Fills *table when a table with this digest is held; NULL: none are. */
    bool (*find_table)(void *context, const uint8_t digest[HB_DIGEST_SIZE],
                       struct hb_held_table *table);
    void *context;
};

struct hb_generation_fault {
    enum hb_reject reason;
    uint32_t record;         /* index in its section */
    uint64_t offset;         /* of the offending field in the blob */
    char text[HB_TEXT_SIZE]; /* for a person: which record and what is wrong, and the remedy */
};

/* The seals and the size of a received memfd. On success *size is its size in bytes. */
enum hb_reject hb_generation_check_fd(int fd, uint64_t *size, struct hb_generation_fault *fault);

/* The whole blob of `size` bytes at `blob` (aligned to HB_SECTION_ALIGN, as a mapping is). Fills
 * *fault and returns its reason; HB_REJECT_NONE when all holds. */
enum hb_reject hb_generation_check(const void *blob, uint64_t size,
                                   const struct hb_generation_limits *limits,
                                   struct hb_generation_fault *fault);

#endif
