/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation_builder.h: a plan laid out as the blob of halbach/generation.h.
 * Pure.
 */
#ifndef HB_CONTROL_GENERATION_BUILDER_H
#define HB_CONTROL_GENERATION_BUILDER_H

#include <stddef.h>
#include <stdint.h>

#include "reconcile.h"

/* The digests of tables that the receiver holds already. */
struct hb_held_tables {
    uint8_t (*digest)[HB_DIGEST_SIZE];
    uint32_t count;
};

/* Builds the blob of generation `number`; the bodies of tables in `held` are left out. *blob is
 * aligned to HB_SECTION_ALIGN and freed by the caller with free(). -ENOMEM, or -EFBIG when it would
 * exceed HB_GENERATION_SIZE_MAX. */
int hb_generation_encode(const struct hb_plan *plan, uint64_t number,
                         const struct hb_held_tables *held, void **blob, size_t *size);

#endif
