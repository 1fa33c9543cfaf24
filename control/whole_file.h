/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * whole_file.h: files that are replaced as a whole, so that after a crash at any moment there is
 * the old one or the new one.
 */
#ifndef HB_CONTROL_WHOLE_FILE_H
#define HB_CONTROL_WHOLE_FILE_H

#include <stddef.h>

/* Written to PATH.new (mode 0600), synced, renamed, and the folder synced. 0 or negative errno;
 * then `path` is as it was. Logs nothing. */
int hb_whole_file_replace(const char *path, const void *bytes, size_t size);

/* Moves a file that cannot be used to PATH.bad and logs why, and what control does without it. */
void hb_whole_file_set_aside(const char *path, const char *why, const char *without);

#endif
