/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * format.h: numbers, times and names as people read them.
 *
 * Each writes into the caller's buffer and returns it, so that calls fit into the arguments of a
 * printf.
 */
#ifndef HB_CTL_FORMAT_H
#define HB_CTL_FORMAT_H

#include <jansson.h>
#include <stdint.h>

struct hb_text {
    char text[128];
};

/* Exact below 10,000, then "12.3 k", "4.1 M" (powers of 1000, rounded). */
const char *hb_format_count(struct hb_text *buffer, uint64_t count);

/* The same with a unit: "9999 bit", "12.3 kbit"; "9999 B", "12.3 kB". */
const char *hb_format_bits(struct hb_text *buffer, uint64_t bits);
const char *hb_format_bytes(struct hb_text *buffer, uint64_t bytes);

/* "45s", "12m 5s", "3h 12m", "5d 2h". */
const char *hb_format_duration(struct hb_text *buffer, uint64_t seconds);

/* Local time, "2026-11-29 22:10:01". */
const char *hb_format_time(struct hb_text *buffer, uint64_t unix_seconds);

/* Who asked, from the API's "actor": "root (pid 4711)", "uid 1000 (pid 12)", "TCP", "SIGHUP", "-".
 */
const char *hb_format_actor(struct hb_text *buffer, const json_t *actor);

/* "192.0.2.10:80", "[2001:db8::10]:80". */
const char *hb_format_endpoint(struct hb_text *buffer, const char *address, uint64_t port);

/* The same for a VIP that may be a prefix, and ports: "192.0.2.0/24:8000-8999",
 * "[2001:db8::/32]:any". */
const char *hb_format_service(struct hb_text *buffer, const char *vip, const char *ports);

/* "" or "s". */
const char *hb_plural(uint64_t count);

/* `part` of `whole` in percent: "0.1 %"; "-" when `whole` is 0. */
const char *hb_format_percent(struct hb_text *buffer, double part, double whole);

#endif
