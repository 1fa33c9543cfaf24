/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * slot_files.h: the pools' slot histories on disk, so that a restart of control forgets no previous
 * owner, even if the dataplane is restarted just then.
 *
 * One file a pool, in the folder STATE.slots beside the state file: after a change of one pool in a
 * thousand one file is written, of 2 bytes a slot (4 and a bit while some are unsettled). Its name
 * is a hash of the pool's. It says by address whom each id stands for, so ids may have changed when
 * it is read. A file is written to a temporary one, synced and renamed, so after a crash or a power
 * cut there is the old or the new one; it carries a checksum all the same, and a damaged one is
 * taken for missing. Host byte order; 0600.
 *
 *     struct header, `members` * struct member, the columns as in struct hb_table_record
 */
#ifndef HB_CONTROL_SLOT_FILES_H
#define HB_CONTROL_SLOT_FILES_H

#include "model.h"

/* The contents of the file of a pool that has a history, for free(); NULL without memory. */
void *hb_slot_file_make(const struct hb_model_pool *pool, size_t *size);
/* Replaces the pool's file. 0 or negative errno. Makes the folder when it is missing. On any
 * thread. */
int hb_slot_file_put(const char *folder, const char *pool, const void *file, size_t size);

/* Reads it into pool->history: ids become those of the pool's backends, of others nobody's. 0;
 * -ENOENT; -EBADMSG: torn, of another pool, version or seed; -ENOMEM or another negative errno.
 * Unless it returns 0 the history is as before. */
int hb_slot_file_load(const char *folder, struct hb_model_pool *pool, uint64_t seed);

/* Removes the files of pools that the model does not have. */
void hb_slot_files_prune(const char *folder, const struct hb_model *model);

#endif
