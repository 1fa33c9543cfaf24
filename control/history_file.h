/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * history_file.h: the index of the history as a JSON file.
 */
#ifndef HB_CONTROL_HISTORY_FILE_H
#define HB_CONTROL_HISTORY_FILE_H

#include <jansson.h>

#include "history.h"

/* Fills an empty history from its index. One that cannot be used is set aside, and the history
 * stays empty. */
void hb_history_file_load(struct hb_history *history);

/* A whole file. 0 and a text that the caller frees, or negative errno. */
int hb_history_file_read(const char *path, char **text, size_t *size);

/* {"by": "unix", "uid": 0, "pid": 4711}, or null. */
json_t *hb_actor_json(const struct hb_actor *actor);

const char *hb_outcome_name(enum hb_outcome outcome);

#endif
