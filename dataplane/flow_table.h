/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * flow_table.h: the flow cache of one worker: from a 5-tuple to the backend that serves it.
 *
 * What it is for. The lookup table decides for new flows; when it changes, flows that run already
 * must stay where they are. So each worker remembers its flows here. The cache is a help and never
 * a condition: a packet whose flow is not in it goes by the lookup table, and a cache that is full
 * only loses memory of flows, never packets.
 *
 * Form. A bucket is one cache line and holds three IPv4 flows whole: the full key, the time of the
 * last packet, the backend, its incarnation and the state.
 *
 *     byte  0          12           24     36       42             48       60    63
 *           source[3]  destination  ports  backend  incarnation    last_ms  meta  -
 *           4 each     4            4      2        2, the low 16  4        1     1
 *
 * meta is, from bit 0: the state (3 bits), the protocol (2), the incarnation's upper 3 bits.
 * Fields of one kind stand side by side, so three vector comparisons try all three keys at once and
 * the answer to "is it here" needs neither tags nor a second line. A hit at 90 % load reads 1.3
 * lines on average and writes one.
 *
 * An IPv6 key is 36 bytes. IPv6 flows have buckets of their own behind those for IPv4, of the same
 * form: in place of the addresses stands a fold of each, 32 bits, and the addresses themselves lie
 * apart, 32 bytes a place. A fold only says where to compare; keys of both families are compared in
 * full, so no two flows are ever mixed up, whatever their hashes. IPv4 never touches any of it.
 *
 * Two places to go. The lower half of the flow's hash names its first bucket b. The second is
 * (g - b) modulo n, where g is an odd number made of the key, n is even: so the two are never the
 * same, and either can be told from the other and the key, without the hash. A new flow takes the
 * first bucket while there is room, which keeps most look-ups to one line; the second is only
 * fetched for those that the first does not hold. When all six places hold established flows, one
 * of them is moved to its other bucket, or one there is moved first, and so on (cuckoo hashing;
 * breadth first, at most 1,024 buckets). With three places to a bucket that works up to 95.9 % of
 * the places in theory, and up to 93.9 % with that search (bench_flow_table, 1M to 16M flows).
 *
 *     hash bit   63 ........ 32 31 ........ 0
 *                slot of the    first bucket
 *                lookup table
 *
 * Size. A table of N flows takes up to N, not one more, and has places for N / 0.9: that is what
 * "works at 90 % load" means. Each bucket of 64 bytes has three, so an IPv4 flow costs 23.7 bytes.
 * IPv6 flows have an eighth of N as their own limit within N, unless told otherwise, at 59.3 bytes
 * each; with that the table takes 31.1 bytes for each of the N. test_flow_table.c checks these
 * figures.
 *
 * Two classes. An entry is on probation until the flow has shown a second packet that a spoofed
 * source would not send by chance; then it is established. A new flow takes a free place (while
 * there are fewer than N), or one whose time is over, or else that of the flow on probation that
 * was quiet longest, in its two buckets. It never takes the place of an established one, so a flood
 * of one-packet flows, however large, evicts no established flow; it only shortens the probation of
 * its like. Flows are moved only while there are fewer than N, so a flood, which fills the table
 * soon and recycles its own entries from then on, can't buy searches with its packets. When there
 * is no way at all the insert fails and the caller forwards by the lookup table.
 *
 * Limits. Times are 32-bit milliseconds and may wrap; timeouts are cut to 2^30 ms (12 days), and
 * hb_flow_table_age must pass each bucket more often than that. Of a backend's incarnation 19 bits
 * are kept: incarnations of an id count up by one, so a stale entry could only be taken for a live
 * one if its id was given away 524,288 times while the entry waited out its idle time.
 *
 * Failure modes. Who knows the key of the hash can fill one bucket; the key is secret
 * (halbach/flow_key.h). g is not keyed: flows of equal g have second buckets as random as their
 * first ones, but g - b ties the two together, so a stranger can make a set of flows less easy to
 * move, on probation only unless each answers like a client. An entry whose time is over is
 * invisible at once, but counts in hb_flow_table_used and in the caller's gauges until ageing or an
 * insert takes it out.
 *
 * Threads. One writer. Another thread may look for a flow with hb_flow_table_find and read its
 * value, but gets a snapshot that may be torn, and may miss a flow that is being moved: good for a
 * person, not for a decision.
 *
 * References: R. Pagh and F. Rodler, "Cuckoo Hashing", J. Algorithms 51(2), 2004; M. Dietzfelbinger
 * and C. Weidling, "Balanced allocation and dictionaries with tightly packed constant size bins",
 * TCS 380, 2007 (buckets); B. Fan et al., "Cuckoo Filter", CoNEXT 2014 (the other bucket without
 * the hash); J. Cain, P. Sanders and N. Wormald, "The random graph threshold for k-orientability
 * and a fast algorithm for optimal multiple-choice allocation", SODA 2007 (the 0.959).
 *
 * Pure: no DPDK.
 */
#ifndef HB_DATAPLANE_FLOW_TABLE_H
#define HB_DATAPLANE_FLOW_TABLE_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/flow_key.h"
#include "worker.h" /* struct hb_flow_timeouts */

/* Names an entry until the next insert or ageing: bucket * 4 + place. */
typedef uint32_t hb_flow_ref;
#define HB_FLOW_NONE UINT32_MAX

#define HB_FLOW_PLACES    3
#define HB_FLOW_TABLE_MAX (UINT64_C(1) << 31) /* flows */
#define HB_FLOW_FIND_MAX  64                  /* flows in one look-up */

/* The order matters: up to HB_FLOW_TCP_RESET an entry is on probation. */
enum hb_flow_state {
    HB_FLOW_FREE = 0,
    HB_FLOW_TCP_OPENING,     /* a SYN, or one packet of a flow that began elsewhere: tcp_syn_ms */
    HB_FLOW_UDP_FIRST,       /* one datagram, or packet of SCTP: udp_ms */
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

#define HB_FLOW_INCARNATION_MASK 0x7ffffu

struct hb_flow_value {
    uint32_t
        incarnation;  /* of the backend, so that a reused id inherits nothing; the low 19 bits */
    uint16_t backend; /* id */
    uint8_t state;    /* enum hb_flow_state */
    uint16_t tag;     /* see hb_flow_table_attach; not for insert */
};

enum hb_flow_insert {
    HB_FLOW_EXISTED,  /* nothing changed */
    HB_FLOW_ADDED,    /* in a free place */
    HB_FLOW_REPLACED, /* in the place of an entry whose time was over; *displaced tells which */
    HB_FLOW_EVICTED,  /* in the place of an entry on probation; *displaced tells which */
    HB_FLOW_FULL,     /* not inserted */
};

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "fields of packets are used as loaded");

/* A flow as the table is asked for it. The numbers are what stands in the packet, as loaded. */
struct hb_flow_query {
    alignas(16) uint32_t source; /* IPv4 address, or a fold of the IPv6 one */
    uint32_t destination;
    uint32_t ports;           /* the source port in the low half */
    uint32_t kind;            /* protocol | family << 8; 0: not a flow that could be in the table */
    uint64_t hash;            /* hb_flow_hash */
    const uint8_t *addresses; /* IPv6: source and destination, 32 bytes; not used for IPv4 */
};
_Static_assert(sizeof(struct hb_flow_query) == 32, "half a cache line");

#define HB_FLOW_KIND(protocol, family) ((uint32_t)(protocol) | (uint32_t)(family) << 8)

static inline bool hb_flow_is_ipv6(const struct hb_flow_query *query)
{
    return (query->kind & HB_FLOW_KIND(0, HB_FAMILY_IPV6 ^ HB_FAMILY_IPV4)) != 0;
}

/* The query for a key, whose addresses it points to. */
struct hb_flow_query hb_flow_query_of(const struct hb_flow_key *key, uint64_t hash);

struct hb_flow_table; /* flow_bucket.h */

/* Bytes of memory for a table of `flows` flows, `flows6` of which may be IPv6 (0: an eighth). */
size_t hb_flow_table_bytes(uint64_t flows, uint64_t flows6);

/* Makes an empty table of `flows` flows (1 to HB_FLOW_TABLE_MAX) in `memory`: hb_flow_table_bytes
 * bytes, aligned to 64, owned by the caller and used until it frees it. */
struct hb_flow_table *hb_flow_table_init(void *memory, uint64_t flows, uint64_t flows6,
                                         const struct hb_flow_timeouts *timeouts);

uint64_t hb_flow_table_capacity(const struct hb_flow_table *table); /* flows, both families */
uint64_t hb_flow_table_used(const struct hb_flow_table *table);
uint32_t hb_flow_table_buckets(const struct hb_flow_table *table);

/* Bytes for a number beside each entry, of a table of so many flows. */
size_t hb_flow_table_tags_bytes(uint64_t flows, uint64_t flows6);

/* From now on entries have tags: hb_flow_table_tag sets one, new entries have 0. Their memory, all
 * zero, stays the caller's and must outlive the table's use. */
void hb_flow_table_attach(struct hb_flow_table *table, uint16_t *tags);

static inline void hb_flow_table_tag(uint16_t *tags, hb_flow_ref entry, uint16_t tag)
{
    tags[entry] = tag;
}

/* Looks for up to HB_FLOW_FIND_MAX flows at once: found[i] is the entry of query[i], or
 * HB_FLOW_NONE when there is none or its time is over at `now_ms`. */
void hb_flow_table_find(const struct hb_flow_table *table,
                        const struct hb_flow_query *const query[], uint32_t count, uint32_t now_ms,
                        hb_flow_ref found[]);

/* Adds a flow. At most one entry makes way for it, and *displaced is its value then. *entry is
 * where it is, or was already; HB_FLOW_NONE if it is not. */
enum hb_flow_insert hb_flow_table_insert(struct hb_flow_table *table,
                                         const struct hb_flow_query *query,
                                         const struct hb_flow_value *value, uint32_t now_ms,
                                         struct hb_flow_value *displaced, hb_flow_ref *entry);

/* Takes one entry out. */
void hb_flow_table_remove(struct hb_flow_table *table, hb_flow_ref entry);

/* Takes out what is over in the next `buckets` buckets, round and round, and tells each one's
 * value. Returns how many it took out. */
typedef void hb_flow_expired(void *context, const struct hb_flow_value *value);
uint32_t hb_flow_table_age(struct hb_flow_table *table, uint32_t now_ms, uint32_t buckets,
                           hb_flow_expired *expired, void *context);

/* Takes all entries out, and tells each one's value. */
void hb_flow_table_flush(struct hb_flow_table *table, hb_flow_expired *expired, void *context);

#endif
