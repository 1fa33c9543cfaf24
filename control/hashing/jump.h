/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * jump.h: jump consistent hashing.
 *
 * Keys are numbers of 64 bits, backends are buckets 0 to n - 1, and there is nothing to store. When
 * n grows by one, exactly the keys that the new bucket gets move. That works at the end only: no
 * bucket but the last can go. So each backend of a pool carries its number, `bucket`, and its order
 * is part of what the pool means. There are no weights.
 *
 * Live pools lose backends in any order. Two ways out:
 *
 *   without jump_replacement  a table whose buckets are not 0 to n - 1 is refused
 *                             (HB_TABLE_BUCKET_EMPTY), so the old one keeps serving
 *   with jump_replacement     the bucket stays, and each of its slots is handed on: its key is
 * hashed again and jumps again, until it meets a bucket that has somebody. So only the slots of the
 * missing one move, they spread evenly over all others, and all come back with it. (A key that
 * meets nobody in HB_JUMP_TRIES tries, as when most buckets are empty, goes to the usable one with
 * the highest hash of key and bucket.)
 *
 * Live tables are always built with replacement, so that a backend which fails or is drained takes
 * no flows with it; there, the pool's option decides which changes of the file are taken
 * (pool_table.h, model.h).
 *
 * n is the largest bucket listed, plus one. With jump_replacement members of weight 0 count for it,
 * so list a backend that is down with weight 0; if it were left out and had the last bucket, n
 * would shrink, and slots that had been handed on could move again. Without replacement n ends at
 * the last bucket that is usable.
 *
 * The live table: slot s stands for the key XXH3(s as 64 bits little-endian, seed).
 *
 * The published algorithm computes with doubles, and ours gives the same buckets as every other
 * implementation. One division and one multiplication, each rounded correctly as IEEE 754 demands,
 * are the same on every machine.
 *
 * Cost: about ln(n) steps of 5 ns a key; a table of 65,537 slots with 1,000 buckets 3.6 ms, with
 * half of the buckets empty 7.1 ms; 655,373 slots with 10,000 buckets 43 and 87 ms.
 *
 * Source: J. Lamping, E. Veach, "A Fast, Minimal Memory, Consistent Hash Algorithm", 2014. Pure;
 * any thread.
 */
#ifndef HB_CONTROL_HASHING_JUMP_H
#define HB_CONTROL_HASHING_JUMP_H

#include <stdint.h>

#include "hashing/table_builder.h"

#define HB_JUMP_TRIES 64

/* The bucket of a key, below `buckets` (1 to 2^31 - 1). */
uint32_t hb_jump_bucket(uint64_t key, uint32_t buckets);

#define HB_JUMP_BUCKETS_MAX 65536

struct hb_jump_map {
    uint32_t buckets;      /* n */
    uint32_t usable_count; /* at least 1 */
    uint32_t *by_bucket;   /* index of each bucket's member; UINT32_MAX: none that has a weight */
    uint32_t *usable;      /* the buckets that have one, ascending */
};

/* Checks the buckets and puts the members into them. Returns HB_TABLE_OK and a map that the caller
 * frees, or one of HB_TABLE_NO_MEMBERS, _BUCKETS, _BUCKET_EMPTY, _WEIGHTS_DIFFER, _NO_MEMORY. */
enum hb_table_error hb_jump_make(const struct hb_table_request *request, struct hb_jump_map *map);
void hb_jump_free(struct hb_jump_map *map);

/* The member that has a key, with the rule for empty buckets, as an index. */
uint32_t hb_jump_owner(const struct hb_jump_map *map, uint64_t key);

/* All usable members, the owner of the key first, then in the order in which they would take over.
 * Returns how many; 0 when memory is short. */
uint32_t hb_jump_rank(const struct hb_jump_map *map, uint64_t key, uint32_t *members);

#endif
