/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ketama.c: the points of libketama.
 *
 * MD5 is libmd's: it needs no provider and works where a policy forbids MD5 for security (this use
 * is none), so that all balancers of a fleet can build the table.
 */
#include <float.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include <md5.h>

#include "hashing/ketama.h"

/* Floats are computed as floats, so that a quotient rounds as it does in the original. */
_Static_assert(FLT_EVAL_METHOD == 0, "a float is rounded to a float at each step");

static void hash_text(const void *bytes, size_t size, uint8_t digest[MD5_DIGEST_LENGTH])
{
    MD5_CTX md5;

    MD5Init(&md5);
    MD5Update(&md5, bytes, size);
    MD5Final(digest, &md5);
}

/* The part-th four bytes of a digest, little-endian. */
static uint32_t take_point(const uint8_t digest[MD5_DIGEST_LENGTH], unsigned part)
{
    const uint8_t *b = digest + part * 4;

    return b[0] | b[1] << 8 | b[2] << 16 | (uint32_t)b[3] << 24;
}

uint32_t hb_ketama_hash(const void *bytes, size_t size)
{
    uint8_t digest[MD5_DIGEST_LENGTH];

    hash_text(bytes, size, digest);
    return take_point(digest, 0);
}

uint32_t hb_ketama_hashes(uint32_t weight, uint64_t weights, uint32_t members)
{
    float part = (float)weight / (float)weights;

    return (uint32_t)(float)((double)part * HB_KETAMA_HASHES * (double)(float)members);
}

static bool add_member(struct hb_ring_map *ring, const char *name, uint32_t member, uint32_t hashes,
                       uint64_t room)
{
    for (uint32_t k = 0; k < hashes; k++) {
        uint8_t digest[MD5_DIGEST_LENGTH];
        char number[16];
        MD5_CTX md5;

        if (ring->points_count + UINT64_C(4) > room)
            return false;
        snprintf(number, sizeof(number), "-%" PRIu32, k);
        MD5Init(&md5);
        MD5Update(&md5, (const uint8_t *)name, strlen(name));
        MD5Update(&md5, (const uint8_t *)number, strlen(number));
        MD5Final(digest, &md5);
        for (unsigned part = 0; part < 4; part++)
            ring->points[ring->points_count++] =
                (struct hb_ring_point){.position = take_point(digest, part), .member = member};
    }
    return true;
}

bool hb_ketama_add(struct hb_ring_map *ring, const struct hb_table_request *request,
                   const uint32_t *order)
{
    uint64_t weights = 0;
    uint32_t members = 0;

    for (uint32_t i = 0; i < request->count; i++) {
        weights += request->members[i].weight;
        members += request->members[i].weight > 0;
    }
    for (uint32_t i = 0; i < request->count; i++) {
        const struct hb_table_member *member = &request->members[order[i]];

        if (!add_member(ring, member->identity, order[i],
                        hb_ketama_hashes(member->weight, weights, members),
                        members * (uint64_t)HB_KETAMA_ROOM))
            return false;
    }
    return true;
}
