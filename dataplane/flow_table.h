/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow_table.h: the flow cache of one worker: from a 5-tuple to the backend that serves it.
 *
 * What it is for. The lookup table decides for new flows; when it changes, flows that run already
 * must stay where they are. So each worker remembers its flows here. The cache is a help and never
 * a condition: a packet whose flow is not in it goes by the lookup table, and a cache that is full
 * only loses memory of flows, never packets.
 *
 * Form. Buckets of eight places, one cache line each: a 16-bit tag, the time of the last packet and
 * the state of each place. The entries themselves (full key, backend, incarnation) lie apart, one
 * cache line each, and a place and its entry share one index. A flow may stand in either of two
 * buckets that its hash names; it never moves. A look-up reads two lines, and a third only where a
 * tag matches (a wrong match: about 16 in 65,536). Ageing reads the bucket lines alone. Keys are
 * compared in full, all 40 bytes with family and protocol, so no two flows are ever mixed up,
 * whatever their hashes.
 *
 *     hash bit   63 ........ 48 47 .... 32 31 .......... 0
 *                slot of the     tag        bucket; the other bucket comes from all
 *                lookup table               bits by one more multiplication
 *
 * Two classes. An entry is on probation until the flow has shown a second packet that a spoofed
 * source would not send by chance; then it is established. A new flow takes a free place, or one
 * whose time is over, or else that of the flow on probation that was quiet longest. It never takes
 * the place of an established one, so a flood of one-packet flows, however large, evicts no
 * established flow; it only shortens the probation of its like. When sixteen places hold
 * established flows, the insert fails and the caller forwards by the lookup table.
 *
 * Limits. Memory is what the caller gives, fixed: 72 bytes for each entry. With random hashes the
 * first new flow that finds its sixteen places taken comes at about three quarters of the capacity,
 * and of as many flows as there are entries about 96 % find a place (test_flow_table.c measures
 * both). Times are 32-bit milliseconds and may wrap; timeouts are cut to 2^30 ms (12 days), and
 * hb_flow_table_age must pass each bucket more often than that.
 *
 * Failure modes. Who knows the key of the hash can fill one pair of buckets and make flows there
 * untracked; the key is secret (halbach/flow_key.h). An entry whose time is over is invisible at
 * once, but counts in hb_flow_table_used and in the caller's gauges until ageing or an insert takes
 * it out.
 *
 * Threads. One writer. Another thread may look for a flow with hb_flow_table_find and read its
 * value, but gets a snapshot that may be torn: good for a person, not for a decision.
 *
 * References: A. Broder and M. Mitzenmacher, "Using Multiple Hash Functions to Improve IP Lookups",
 * INFOCOM 2001 (two choices, buckets of one cache line); Y. Azar et al., "Balanced Allocations",
 * SIAM J. Comput. 29(1), 1999.
 *
 * Pure: no DPDK.
 */
#ifndef HB_DATAPLANE_FLOW_TABLE_H
#define HB_DATAPLANE_FLOW_TABLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/flow_key.h"
#include "worker.h" /* struct hb_flow_timeouts */

struct hb_flow_table;

/* Names an entry until the next insert or ageing. */
typedef uint32_t hb_flow_ref;
#define HB_FLOW_NONE UINT32_MAX

#define HB_FLOW_TABLE_MAX (UINT64_C(1) << 31) /* entries */
#define HB_FLOW_FIND_MAX  64                  /* keys in one look-up */

/* The order matters: up to HB_FLOW_TCP_RESET an entry is on probation. */
enum hb_flow_state {
    HB_FLOW_FREE = 0,
    HB_FLOW_TCP_OPENING,     /* a SYN, or one packet of a flow that began elsewhere: tcp_syn_ms */
    HB_FLOW_UDP_FIRST,       /* one datagram: udp_ms */
    HB_FLOW_TCP_RESET,       /* tcp_rst_ms */
    HB_FLOW_TCP_ESTABLISHED, /* tcp_established_ms */
    HB_FLOW_TCP_CLOSING,     /* a FIN was seen: tcp_fin_ms */
    HB_FLOW_UDP,             /* udp_ms */
    HB_FLOW_STATES,
};

static inline bool hb_flow_on_probation(uint8_t state)
{
    return state <= HB_FLOW_TCP_RESET;
}

struct hb_flow_value {
    uint32_t incarnation; /* of the backend, so that a reused id inherits nothing */
    uint16_t backend;     /* id */
    uint8_t state;        /* enum hb_flow_state */
};

enum hb_flow_insert {
    HB_FLOW_EXISTED,  /* nothing changed */
    HB_FLOW_ADDED,    /* in a free place */
    HB_FLOW_REPLACED, /* in the place of an entry whose time was over; *displaced tells which */
    HB_FLOW_EVICTED,  /* in the place of an entry on probation; *displaced tells which */
    HB_FLOW_FULL,     /* not inserted */
};

/* Bytes of memory for a table of `flows` entries, rounded up to whole buckets. */
size_t hb_flow_table_bytes(uint64_t flows);

/* Makes an empty table of `flows` entries (1 to HB_FLOW_TABLE_MAX) in `memory`:
 * hb_flow_table_bytes(flows) bytes, aligned to 64, owned by the caller and used until it frees it.
 */
struct hb_flow_table *hb_flow_table_init(void *memory, uint64_t flows,
                                         const struct hb_flow_timeouts *timeouts);

uint64_t hb_flow_table_capacity(const struct hb_flow_table *table);
uint64_t hb_flow_table_used(const struct hb_flow_table *table);
uint32_t hb_flow_table_buckets(const struct hb_flow_table *table);

/* Looks for up to HB_FLOW_FIND_MAX flows at once: found[i] is the entry of key[i] (whose
 * hb_flow_hash is hash[i]), or HB_FLOW_NONE when there is none or its time is over at `now_ms`. */
void hb_flow_table_find(const struct hb_flow_table *table, const struct hb_flow_key *const key[],
                        const uint64_t hash[], uint32_t count, uint32_t now_ms,
                        hb_flow_ref found[]);

/* What an entry holds, and how long ago its last packet came. */
struct hb_flow_value hb_flow_table_get(const struct hb_flow_table *table, hb_flow_ref entry);
uint32_t hb_flow_table_idle_ms(const struct hb_flow_table *table, hb_flow_ref entry,
                               uint32_t now_ms);

/* A packet of the flow came: the state it is in now (not HB_FLOW_FREE), its idle time starts anew.
 */
void hb_flow_table_touch(struct hb_flow_table *table, hb_flow_ref entry, uint8_t state,
                         uint32_t now_ms);

/* Gives the flow to another backend. */
void hb_flow_table_repoint(struct hb_flow_table *table, hb_flow_ref entry, uint16_t backend,
                           uint32_t incarnation);

/* Adds a flow. At most one entry makes way for it, and *displaced is its value then. */
enum hb_flow_insert hb_flow_table_insert(struct hb_flow_table *table, const struct hb_flow_key *key,
                                         uint64_t hash, const struct hb_flow_value *value,
                                         uint32_t now_ms, struct hb_flow_value *displaced);

/* Takes out what is over in the next `buckets` buckets, round and round, and tells each one's
 * value. Returns how many it took out. */
typedef void hb_flow_expired(void *context, const struct hb_flow_value *value);
uint32_t hb_flow_table_age(struct hb_flow_table *table, uint32_t now_ms, uint32_t buckets,
                           hb_flow_expired *expired, void *context);

#endif
