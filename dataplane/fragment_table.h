/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fragment_table.h: which datagram a fragment belongs to, so that it can follow its first one.
 *
 * Only the first fragment of a datagram has ports. One worker gets all fragments of a datagram
 * (NICs hash them by addresses alone) and remembers, by addresses, identification and (IPv4)
 * protocol, the ports that the first one had. Fragments that come before it are held back.
 *
 *   - HB_FRAGMENTS_MAX datagrams are known at a time. Another one takes the place of the oldest. A
 *     datagram is forgotten when it is complete, and not believed HB_FRAGMENT_KEEP_MS after its
 *     first packet.
 *   - HB_FRAGMENTS_HELD packets are held at a time, each at most HB_FRAGMENT_HOLD_MS. Another one
 *     takes the place of the one that was held longest: fragments out of order are close to each
 *     other, so a flood of others only makes the patience shorter. A datagram whose first
 *     fragment has not come has a place as long as a packet of it is held, and not one of those
 *     above: such a flood takes nothing from datagrams that are known.
 *   - What a datagram has had is kept as HB_FRAGMENT_RUNS runs of bytes without a gap. A fragment
 *     that lies within one of them is a duplicate (networks make some). One that overlaps them
 * else, or is behind the end, makes the whole datagram bad (RFC 5722; RFC 8200, section 4.5): it is
 *     remembered as long as others, so that nothing more of it passes. What would need one more
 *     run is refused alone.
 *   - A first fragment with other ports, or one that comes HB_FRAGMENT_REUSE_MS after the one
 *     before, begins a new datagram: the identification was used again.
 *
 * Memory: fixed, hb_fragment_table_bytes(); 128 bytes a datagram. Held packets are the caller's:
 * pointers to it, handed out again one by one by hb_fragment_next_out.
 *
 * Pure: no DPDK. One thread.
 */
#ifndef HB_DATAPLANE_FRAGMENT_TABLE_H
#define HB_DATAPLANE_FRAGMENT_TABLE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/flow_key.h"
#include "halbach/types.h"

#define HB_FRAGMENTS_MAX     4096
#define HB_FRAGMENTS_HELD    256
#define HB_FRAGMENT_RUNS     8
#define HB_FRAGMENT_KEEP_MS  15000
#define HB_FRAGMENT_HOLD_MS  500
#define HB_FRAGMENT_REUSE_MS 1000

/* 40 bytes, no padding. */
struct hb_fragment_key {
    uint64_t address[4]; /* source, destination, as loaded; IPv4: the two in address[0] */
    uint32_t id;
    uint8_t protocol; /* IPv4 only */
    uint8_t family;
    uint16_t zero;
};
_Static_assert(sizeof(struct hb_fragment_key) == 40, "no padding");

struct hb_fragment_run {
    uint16_t start, end; /* bytes, from start to before end */
};

struct hb_datagram {
    alignas(64) struct hb_fragment_key key;
    uint32_t begun_ms;
    uint32_t ports; /* as in struct hb_flow_query, when `known` */
    uint32_t incarnation;
    uint16_t backend; /* of the flow's entry on another worker; HB_BACKEND_NONE: there is none */
    uint8_t protocol; /* of the ports */
    bool known;       /* the first fragment was here */
    uint16_t total;   /* bytes; 0: the last fragment was not here */
    uint16_t held, held_last; /* its held packets; HB_FRAGMENT_NONE */
    uint16_t chain;           /* next with the same head */
    uint16_t head;
    uint16_t older, newer; /* in the order in which they became known */
    uint8_t runs;
    bool bad; /* fragments overlapped */
    struct hb_fragment_run run[HB_FRAGMENT_RUNS];
};
_Static_assert(sizeof(struct hb_datagram) == 128, "two cache lines");

#define HB_FRAGMENT_NONE UINT16_MAX
_Static_assert(HB_FRAGMENTS_MAX < HB_FRAGMENT_NONE, "an index is never the sign for none");

struct hb_fragment_table;

size_t hb_fragment_table_bytes(void);
/* In `memory`: that many bytes, aligned to 64, zeroed, owned by the caller. */
struct hb_fragment_table *hb_fragment_table_init(void *memory);

/* The datagram, or NULL. `hash`: hb_fragment_hash of the key. */
struct hb_datagram *hb_fragment_find(struct hb_fragment_table *table,
                                     const struct hb_fragment_key *key, uint64_t hash,
                                     uint32_t now_ms);
/* Begins one that hb_fragment_find did not find. It is known, or holds a packet, before the next
 * one is begun. */
struct hb_datagram *hb_fragment_begin(struct hb_fragment_table *table,
                                      const struct hb_fragment_key *key, uint64_t hash,
                                      uint32_t now_ms);
/* Its first fragment is here: it is known from now on, and another one may have to go. */
void hb_fragment_know(struct hb_fragment_table *table, struct hb_datagram *datagram);
/* Forgets one; what it held goes out as lost. */
void hb_fragment_forget(struct hb_fragment_table *table, struct hb_datagram *datagram);

/* Holds a packet for the first fragment of its datagram. False when there is no place, which can't
 * be if what goes out was taken after each burst. */
bool hb_fragment_hold(struct hb_fragment_table *table, struct hb_datagram *datagram, void *packet,
                      uint32_t now_ms);
/* The first fragment is here: what the datagram held goes out as ready, in the order it came. */
void hb_fragment_release(struct hb_fragment_table *table, struct hb_datagram *datagram);
/* What has waited too long goes out as late. */
void hb_fragment_expire(struct hb_fragment_table *table, uint32_t now_ms);
/* Everything goes out as lost. */
void hb_fragment_flush(struct hb_fragment_table *table);

uint32_t hb_fragment_held(const struct hb_fragment_table *table); /* packets, not those going out */

enum hb_fragment_out {
    HB_FRAGMENT_READY, /* its datagram's first fragment is here */
    HB_FRAGMENT_LATE,  /* it did not come in time */
    HB_FRAGMENT_LOST,  /* its place was needed */
    HB_FRAGMENT_OUTS,
};

/* Takes the next packet that goes out for this cause; NULL when there is none. */
void *hb_fragment_next_out(struct hb_fragment_table *table, enum hb_fragment_out cause);

enum hb_fragment_verdict {
    HB_FRAGMENT_GOOD,
    HB_FRAGMENT_COMPLETE,  /* and nothing of the datagram is missing now: the caller forgets it */
    HB_FRAGMENT_DUPLICATE, /* its bytes were all there, side by side */
    HB_FRAGMENT_OVERLAPS,  /* the datagram is bad from now on */
    HB_FRAGMENT_REFUSED,   /* the datagram is bad */
    HB_FRAGMENT_TOO_MANY_RUNS,
};

/* Notes the bytes of a fragment, `last` if none follow. No bytes are noted unless it is good. */
enum hb_fragment_verdict hb_fragment_note(struct hb_datagram *datagram, uint32_t start,
                                          uint32_t end, bool last);

static inline uint64_t hb_fragment_hash(const struct hb_fragment_key *key,
                                        const struct hb_hash_key *secret)
{
    const uint64_t *k = secret->word;
    uint64_t rest = key->id | (uint64_t)key->protocol << 32 | (uint64_t)key->family << 40;
    __uint128_t sum = (__uint128_t)(key->address[0] + k[0]) * (key->address[1] + k[1]);

    sum += (__uint128_t)(key->address[2] + k[2]) * (key->address[3] + k[3]);
    sum += (__uint128_t)(rest + k[4]) * k[5];
    return hb_mix((uint64_t)sum ^ k[6], (uint64_t)(sum >> 64) ^ k[7]);
}

#endif
