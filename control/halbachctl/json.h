/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * json.h: reading the API's answers without surprises.
 *
 * Counters are unsigned and have 64 bits; jansson's integers are signed. Integers above 2^63 - 1
 * are therefore turned into strings of digits before jansson sees them, and hb_json_count() reads
 * both, so every value from 0 to 2^64 - 1 arrives exactly. (`--json` prints the answer as it came.)
 * Members are named by path, "dataplane.connected". A member that is missing, null or of another
 * type reads as "-", 0, false: an answer of another release must not end the command.
 */
#ifndef HB_CTL_JSON_H
#define HB_CTL_JSON_H

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Returns the document (the caller's), or NULL with the reason in `why`. */
json_t *hb_json_parse(const char *text, size_t size, char *why, size_t why_size);

/* The member, or NULL when it is missing or null. Borrowed. */
const json_t *hb_json_at(const json_t *object, const char *path);

bool hb_json_has(const json_t *object, const char *path);
const char *hb_json_text(const json_t *object, const char *path);
uint64_t hb_json_count(const json_t *object, const char *path);
bool hb_json_flag(const json_t *object, const char *path);
double hb_json_real(const json_t *object, const char *path);

/* A list's rows by "pool" and "name", numbers in names by value: web2 before web10. The caller's;
 * NULL without memory, or when it is no list. */
json_t *hb_json_by_name(const json_t *list);

#endif
