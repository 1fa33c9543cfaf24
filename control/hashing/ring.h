/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ring.h: hash rings, for live tables and for looking at.
 *
 * Positions 0 to space - 1 lie on a circle. Every member has tokens (points) on it; a position
 * belongs to the first token at or after it, wrapping to the first token of all. When two tokens
 * share a position, the one whose member's name comes first (strcmp) has it. So a member that joins
 * takes the interval from the token before each of its own up to its own, and nothing else moves;
 * when it leaves, each of its intervals goes to the member of the next token.
 *
 * A ring is made in one of three ways: from tokens that somebody chose (small rings worked by
 * hand), from hashes of "name#0", "name#1", ... (virtual nodes: so many for each unit of weight),
 * or as libketama does it.
 *
 * How many virtual nodes. With V tokens for each of N equal members the standard deviation of the
 * shares is about sqrt((N - 1) / (N * V)) of their mean, so V = (N - 1) / (N * c^2) keeps it at c.
 * That is below 1 / c^2 for every N: the preset, 400, keeps it below 5 % and, unlike a number that
 * follows N, moves nothing when N changes.
 *
 * The live table. Slot s stands for the position (2 * j + 1) * 2^32 / (2 * M), rounded down, where
 * j = s * g mod M and g is M * 0.618 (the golden section), rounded down. So the slots cover the
 * circle evenly, each at a place that depends on nothing but M, and neighbours in the table lie far
 * apart on the circle: where bounded load passes flows on from slot to slot, they don't all fall on
 * one neighbour. Tokens are the upper 32 bits of XXH3(identity#i, seed).
 *
 * libketama makes floor(40 * N * weight / sum of weights) MD5 hashes of "identity-k" and cuts each
 * into four points (little-endian); the division is done in float, and we do the same so that a
 * quotient such as 39.999998 ends where it does there. With unequal weights the numbers depend on
 * the sum, so a change moves a few keys between old members, as it does there.
 *
 * More tokens than slots don't help a live table: each slot is one token's, and shares scatter by
 * sqrt(backends / M) then.
 *
 * Cost: 16 bytes a token while a ring is made, 8 after it. A table of 65,537 slots with 1,000
 * backends of weight 1 takes 8 ms (400,000 tokens), with ketama (160,000) the same; 655,373 slots
 * with 10,000 backends 112 and 91 ms.
 *
 * Sources: D. Karger et al., "Consistent Hashing and Random Trees", STOC 1997; R. Jones, libketama
 * (2007), ketama.c. Pure; any thread; a ring does not change once made.
 */
#ifndef HB_CONTROL_HASHING_RING_H
#define HB_CONTROL_HASHING_RING_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "hashing/table_builder.h"

#define HB_RING_VIRTUAL_NODES     400
#define HB_RING_VIRTUAL_NODES_MAX 65535
#define HB_RING_POINTS_MAX        (1 << 24) /* 128 MB and about a second */
#define HB_RING_SPACE             (UINT64_C(1) << 32)

struct hb_ring_point {
    uint32_t position;
    uint32_t member; /* index into the ring's names */
};

struct hb_ring_map {
    uint64_t space;               /* 1 to 2^32 */
    struct hb_ring_point *points; /* by position, equal ones by name */
    uint32_t points_count;        /* at least 1 */
    uint32_t members_count;
    char **names; /* by member; the ring's own copies */
};

/* A token that somebody chose. Several may have the same name. */
struct hb_ring_token {
    const char *name;
    uint64_t position; /* below space */
};

/* Members are numbered in the order in which their names first appear. Returns 0 and a ring that
 * the caller frees, or -EINVAL (no token, a position outside, a space of 0 or above 2^32), -EEXIST
 * (one name twice at one position) or -ENOMEM. */
int hb_ring_from_tokens(const struct hb_ring_token *tokens, uint32_t count, uint64_t space,
                        struct hb_ring_map **ring);

/* A hash onto 2^32 positions. */
typedef uint32_t (*hb_ring_hash)(const void *bytes, size_t size, uint64_t seed);
uint32_t hb_ring_hash_h32(const void *bytes, size_t size, uint64_t seed); /* h32.h; no seed */
uint32_t hb_ring_hash_xxh3(const void *bytes, size_t size, uint64_t seed);

/* Tokens at hash("name#i") or, with `options.ketama`, as libketama places them; `slots` is not
 * looked at. Member i of the ring is request->members[i]. Members of weight 0 have no tokens. */
enum hb_table_error hb_ring_from_members(const struct hb_table_request *request, hb_ring_hash hash,
                                         struct hb_ring_map **ring);

void hb_ring_free(struct hb_ring_map *ring);
size_t hb_ring_memory(const struct hb_ring_map *ring); /* bytes, all of it */

/* The member that a position (or hash) below space belongs to. O(log points). */
uint32_t hb_ring_owner(const struct hb_ring_map *ring, uint64_t position);

/* The same as an index into the points. */
uint32_t hb_ring_find(const struct hb_ring_map *ring, uint64_t position);

/* The first `want` distinct members from a position on, its owner first. Returns how many there
 * are: `want`, or all that have tokens; 0 when memory is short. */
uint32_t hb_ring_successors(const struct hb_ring_map *ring, uint64_t position, uint32_t want,
                            uint32_t *members);

/* Positions that change hands: those after `after`, up to and including `to`, wrapping when `to` is
 * not above `after`; when they are equal it is the whole circle. */
struct hb_ring_interval {
    uint64_t after, to;
    uint32_t from; /* member that has them now */
    bool empty;    /* nothing changes hands */
};

/* What a new token would take, and from whom. Empty when another token stands there already and its
 * name comes first, or when its own member has the positions anyway. */
struct hb_ring_interval hb_ring_join(const struct hb_ring_map *ring, const char *name,
                                     uint64_t position);

/* What the leaving of a member's point (an index) would move: `from` is that member and *heir the
 * one that inherits. Empty when nothing moves or nobody else is there; *heir is then the member. */
struct hb_ring_interval hb_ring_leave(const struct hb_ring_map *ring, uint32_t point,
                                      uint32_t *heir);

/* "(200, 260]" */
#define HB_RING_INTERVAL_TEXT 32
const char *hb_ring_print_interval(const struct hb_ring_interval *interval,
                                   char text[HB_RING_INTERVAL_TEXT]);

/* Index of the member of this name, or -1. */
int64_t hb_ring_member(const struct hb_ring_map *ring, const char *name);

/* Virtual nodes that keep the standard deviation of the shares of so many members at `permille` /
 * 10 percent of their mean: (N - 1) / (N * c^2), rounded up, at least 1. */
uint32_t hb_ring_nodes_for(uint32_t members, uint32_t permille);

/* Position of a key as libketama hashes it. */
uint32_t hb_ketama_hash(const void *bytes, size_t size);

/* The position that a slot of the live table stands for. */
uint32_t hb_ring_slot_position(uint32_t slot, uint32_t slots);

#endif
