/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * take_over.h: what a control that was just started, or met its dataplane again, learns from
 * others.
 *
 * Two memories exist: the generation that the dataplane serves, which is what traffic really
 * follows, and the state file, which has drains, health and free ids as well. Ids and incarnations
 * are merged from both (id_registry.h); health comes from the dataplane's generation where that
 * says it plainly, else from the state file; drains from the state file, or, when there is none,
 * from the generation. Rewrites of the generation serve until the kernel has told the next hops
 * again. So a restarted control that wants the same thing builds the same content, and a working
 * pool is never withdrawn.
 *
 * Pure: time comes in.
 */
#ifndef HB_CONTROL_TAKE_OVER_H
#define HB_CONTROL_TAKE_OVER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"
#include "state_file.h"

/* True when every offset and count of a blob stays within `size`, so that it may be read. */
bool hb_blob_readable(const void *blob, size_t size);

/* Merges ids into the model's registries. Before the first configuration is applied, or any time
 * later: then hb_model_assign_ids() makes the model follow. */
void hb_take_over_state_ids(struct hb_model *model, const struct hb_state *state);
void hb_take_over_blob_ids(struct hb_model *model, const void *blob);

/* After hb_model_apply(): health that is not known yet, rewrites where there are none, and drains
 * if `drains` (at the start only; later control knows better). `blob` (readable) and `state` may be
 * NULL. Where the blob is later than the state, as its number says, it decides who is up and who is
 * down: a fall that the state does not know counts for damping, and a slow start begins anew. */
void hb_take_over_backends(struct hb_model *model, const void *blob, const struct hb_state *state,
                           bool drains, uint64_t now_ms, uint64_t now_unix_ms);

/* The histories of slots of pools that have no table yet, from the bodies that the blob carries.
 * After hb_model_apply(). */
void hb_take_over_tables(struct hb_model *model, const void *blob);

/* Gives new ids to backends whose id the blob (or NULL) does not confirm although flows name it:
 * those flows are of a history that this control does not know. `in_use` says whether flows name an
 * id. Returns whether any was freed; then hb_model_assign_ids() follows. */
bool hb_take_over_doubt_ids(struct hb_model *model, const void *blob,
                            bool (*in_use)(void *context, uint32_t id), void *context);

/* Fills *state with what the model knows; cleared by hb_state_clear(). -ENOMEM. */
int hb_state_of_model(const struct hb_model *model, uint64_t generation, uint64_t now_ms,
                      uint64_t now_unix_ms, struct hb_state *state);

#endif
