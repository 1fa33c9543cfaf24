/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * nat_session.h: the connections of full NAT on one worker.
 *
 * A session ties two 5-tuples together: client to VIP, and one of the pool's source addresses to
 * the backend. Without it neither a request nor an answer can be translated, so here, other than in
 * the flow cache, nothing may be forgotten that lives, and what does not fit is refused.
 *
 * Ports. Each worker takes source ports of its own, those that are its index modulo the number of
 * workers, so no port is ever taken twice and nothing is shared. One port serves as many
 * connections at a time as there are backends: what must be unique is the whole tuple. A pool's
 * addresses and ports are taken in turn, so one that has become free is used again as late as can
 * be. At most HB_NAT_TRIES tuples are tried for a new session: with 95 % of them taken one in 700
 * new sessions fails though there is a free one.
 *
 * Time. A session ends by the time since its last packet in either direction:
 *
 *     opening (SYN seen, no later packet of the client)      tcp_syn_ms
 *     established                                            tcp_established_ms
 *     closing (a FIN of either end was seen)                 HB_NAT_LINGER_MS
 *     reset                                                  tcp_fin_ms
 *     UDP                                                    udp_ms
 *
 * The port of a closed connection is not taken for another one while its backend may hold it in
 * TIME-WAIT (RFC 9293: twice the maximum segment lifetime, 60 seconds with Linux): it lingers. A
 * client that opens a new connection on its old ports gets a new session at once; the old one
 * goes on holding its source port (hb_nat_sessions_detach).
 *
 * Room. Fixed memory for `max` sessions, two chained hash indexes. When all are in use the session
 * that has been opening longest makes way; sessions that both ends have used never do. So a flood
 * of SYNs ends no connection.
 *
 * One thread: the worker that owns it. Pure.
 */
#ifndef HB_DATAPLANE_NAT_SESSION_H
#define HB_DATAPLANE_NAT_SESSION_H

#include <stdalign.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/counters.h"
#include "halbach/flow_key.h"
#include "nat_map.h"
#include "worker.h" /* struct hb_flow_timeouts */

#define HB_NAT_LINGER_MS 60000
#define HB_NAT_TRIES     128
#define HB_NAT_NONE      UINT32_MAX

enum hb_nat_state {
    HB_NAT_FREE = 0,
    HB_NAT_OPENING,
    HB_NAT_UDP_FIRST, /* one datagram of the client */
    HB_NAT_ESTABLISHED,
    HB_NAT_CLOSING,
    HB_NAT_RESET,
    HB_NAT_UDP,
    HB_NAT_STATES,
};

enum hb_nat_event {
    HB_NAT_SAW_SYN,  /* without ACK */
    HB_NAT_SAW_DATA, /* anything else that neither ends nor opens */
    HB_NAT_SAW_FIN,
    HB_NAT_SAW_RST,
};

struct hb_nat_session {
    alignas(64) struct hb_flow_key request; /* client to VIP */
    struct hb_flow_key answer;              /* backend to source address, as an answer comes in */
    uint32_t last_ms;
    uint32_t incarnation;
    uint16_t backend; /* id */
    uint8_t state;
    bool detached;         /* its client has moved on: only its answers' tuple is taken */
    uint32_t next[2];      /* in the chains by request and by answer; next[0] of the free ones */
    uint32_t older, newer; /* of those on probation */
    uint32_t generation;   /* low bits of the number of the one that is known to have the source */
    /* What the backend is told of the client (nat_client.h). */
    uint32_t first_byte;         /* the client's first sequence number behind the SYN */
    uint8_t shift;               /* bytes of ours in the stream before it; 0: none */
    bool shift_sent, shift_seen; /* on its way; acknowledged */
};
_Static_assert(sizeof(struct hb_nat_session) == 128, "two cache lines");

struct hb_nat_sessions; /* opaque */

enum hb_nat_result { HB_NAT_ADDED, HB_NAT_FULL, HB_NAT_NO_PORT };

/* A session to be. */
struct hb_nat_wish {
    const struct hb_flow_key *request;
    const uint8_t *backend_address; /* 4 or 16 bytes, of the request's family */
    hb_be16 backend_port;
    uint16_t backend;
    uint32_t incarnation;
    uint32_t pool; /* index: whose turn it is among the ports is kept for each pool */
    const struct hb_nat_source *sources;
    uint32_t sources_count;
    uint32_t workers, worker;
};

/* Bytes of memory for `max` sessions. */
size_t hb_nat_sessions_bytes(uint32_t max);

/* Makes an empty table in `memory`: hb_nat_sessions_bytes bytes, aligned to 64, the caller's.
 * `seed` is random: it keeps strangers from aiming at chains, and a dataplane that was started anew
 * from taking the ports of the one before it first. */
struct hb_nat_sessions *hb_nat_sessions_init(void *memory, uint32_t max,
                                             const struct hb_flow_timeouts *timeouts,
                                             const struct hb_hash_key *seed);

/* Where it counts, by backend id, from now on: as many entries as there are ids. The caller's. */
void hb_nat_sessions_count_in(struct hb_nat_sessions *sessions, struct hb_nat_counters *counters);

/* The session of a request or an answer; NULL when there is none, or its time is over. */
struct hb_nat_session *hb_nat_sessions_by_request(struct hb_nat_sessions *sessions,
                                                  const struct hb_flow_key *request,
                                                  uint32_t now_ms);
struct hb_nat_session *hb_nat_sessions_by_answer(struct hb_nat_sessions *sessions,
                                                 const struct hb_flow_key *answer, uint32_t now_ms);

/* Adds a session for a request that has none. */
struct hb_nat_session *hb_nat_sessions_add(struct hb_nat_sessions *sessions,
                                           const struct hb_nat_wish *wish, uint32_t now_ms,
                                           enum hb_nat_result *result);

/* A packet of the session, from the client or else from the backend: moves its state and time. */
void hb_nat_sessions_touch(struct hb_nat_sessions *sessions, struct hb_nat_session *session,
                           bool from_client, enum hb_nat_event event, uint32_t now_ms);

/* The client is free to begin anew; the source port stays taken until the session's time is over.
 */
void hb_nat_sessions_detach(struct hb_nat_sessions *sessions, struct hb_nat_session *session);

void hb_nat_sessions_end(struct hb_nat_sessions *sessions, struct hb_nat_session *session);

/* Ends those of the next `count` places, round and round, whose time is over. */
void hb_nat_sessions_age(struct hb_nat_sessions *sessions, uint32_t count, uint32_t now_ms);

uint32_t hb_nat_sessions_used(const struct hb_nat_sessions *sessions);
uint32_t hb_nat_sessions_max(const struct hb_nat_sessions *sessions);

#endif
