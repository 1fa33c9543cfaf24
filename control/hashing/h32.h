/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * h32.h: the plain 32-bit hash and the made-up keys of explanations, tests and `halbachctl hash`.
 *
 * h32 is FNV-1a of 32 bits over the bytes, then the last mixing step of MurmurHash3. It is easy to
 * write down in any language, so that anybody can check our figures. It has no secret: live tables
 * use XXH3 with the pool's seed instead.
 *
 * Keys come from mulberry32, a generator of 32 bits of state: key number i is "user:" and the i-th
 * number, taken as r from 0 to 1, times 10^9, rounded down.
 *
 * Sources: G. Fowler, L. C. Noll, K.-P. Vo, "The FNV Non-Cryptographic Hash Algorithm"; A. Appleby,
 * MurmurHash3; T. Ettinger, mulberry32. Pure; any thread.
 */
#ifndef HB_CONTROL_HASHING_H32_H
#define HB_CONTROL_HASHING_H32_H

#include <stddef.h>
#include <stdint.h>

#define HB_FNV1A_START UINT32_C(2166136261)

/* More bytes into an FNV-1a hash that began as HB_FNV1A_START. */
uint32_t hb_fnv1a(uint32_t state, const void *bytes, size_t size);
uint32_t hb_fmix32(uint32_t state);

uint32_t hb_h32(const void *bytes, size_t size);
uint32_t hb_h32_text(const char *text);
/* Of "first|second", as rendezvous hashing of a key and a name needs it. */
uint32_t hb_h32_pair(const char *first, size_t size, const char *second);

struct hb_key_source {
    uint32_t state; /* the seed at first */
};
#define HB_KEY_SEED 16 /* what the published figures were made with */
#define HB_KEY_TEXT 16 /* "user:999999999" and its end */

uint32_t hb_mulberry32(struct hb_key_source *source);
/* Writes the next key and returns its length. */
size_t hb_next_key(struct hb_key_source *source, char text[HB_KEY_TEXT]);

#endif
