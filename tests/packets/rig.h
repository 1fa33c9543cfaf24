/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * rig.h: a worker and its pipeline in this process, with ports made of rings and a clock the test
 * sets.
 *
 *     struct rig *rig = *state;                  made by rig_setup before each test
 *     add_backend(rig, 1, 0, 4);                 backend 1 of pool 0, reached over IPv4
 *     set_table(rig, 0, 7, (uint16_t[]){...});   or share_table(rig, 0) among the pool's backends
 *     add_service(rig, 4, 6, 80, 0);             TCP port 80 of the IPv4 VIP, by pool 0
 *     publish(rig);                              one atomic swap
 *     send_frame(rig, &frame); turn(rig); receive(rig, PORT, &out);
 *
 * The draft may be changed and published again. rig_teardown checks after each test that no mbuf is
 * lost, that received + made = sent + punted + dropped + held, and that the gauges of live flows
 * add up. All memory of mbufs is filled with 0xff before a packet is put in (BL-06).
 */
#ifndef HB_TEST_RIG_H
#define HB_TEST_RIG_H

#include <stdbool.h>
#include <stdint.h>

#include <rte_mbuf.h>
#include <rte_ring.h>

#include "nat_map.h"
#include "packet.h"
#include "service_map.h"
#include "worker_state.h"
#include "wrap.h"

enum { PORT, NARROW_PORT, PUNT_PORT, PORTS }; /* the narrow ports take 3 packets at a time */

#define MBUFS        511
#define RIG_SERVICES 16
#define RIG_PREFIXES 32
#define RIG_QUIC     8
#define RIG_POOLS    4
#define RIG_BACKENDS 32 /* ids 1 to 31 */
#define RIG_SOURCES  8
#define RIG_SESSIONS 64
#define RIG_SLOTS    1021
#define RIG_WORDS    ((RIG_SLOTS + 63) / 64)

struct rig {
    struct hb_worker *worker;
    struct hb_counters_header *region;
    struct hb_generation_head head;
    uint32_t now_ms;
    bool tight; /* send_frame: buffers from the heap that end with the frame, for sanitizers to
                   watch */

    /* The draft of the next generation. */
    struct hb_service_record service[RIG_SERVICES];
    uint32_t services;
    struct {
        uint16_t owner[RIG_SLOTS], previous[RIG_SLOTS];
        uint64_t unsettled[RIG_WORDS];
        uint32_t slots;
        uint32_t bounded_load;
        uint16_t flags; /* HB_POOL_... */
    } pool[RIG_POOLS];
    uint32_t *used[RIG_POOLS]; /* the worker's notes (slot_uses.h); own_used unless changed */
    uint32_t own_used[RIG_POOLS][RIG_SLOTS];
    struct hb_backend backend[RIG_BACKENDS];
    struct hb_source_record source[RIG_SOURCES]; /* of full NAT, for all pools; and own addresses */
    uint32_t sources, own_sources;               /* the latter behind the former */
    uint32_t workers;                            /* that share its ports; 0: as 1 */
    struct hb_client_hop to_clients[2];
    /* What services may have beside: see add_source, add_quic and name_server. */
    struct hb_prefix_record prefix[RIG_PREFIXES];
    uint32_t prefixes;
    struct hb_quic_record quic[RIG_QUIC];
    uint32_t quics;
    struct hb_backend_record server[RIG_BACKENDS];
    uint32_t servers;
    struct hb_settings settings; /* zero: no ICMP of its own, none relayed */
    uint64_t number;

    struct hb_worker *siblings[2]; /* both workers, when the test has asked for two */
    struct hb_counters_header *other_region;
    uint16_t *tags; /* of the flow cache (hb_flow_table_attach) */

    struct generation_copy *published; /* the newest, which names the one before it */
};

/* Once a program: EAL and the ports. Returns 0, or what main must return. */
int rig_open(void);
int rig_open_ports(void); /* the ports alone, on an EAL that runs */
struct rte_mempool *rig_pool(void);
void rig_close(void);

/* A second worker beside the first, with its own counters and flow cache; change_worker makes the
 * other one of the two that which `turn` drives. */
void add_worker(struct rig *rig);
void change_worker(struct rig *rig);

/* For cmocka. The flow cache has 1,024 entries; rig_setup_with asks for others. */
int rig_setup(void **state);
int rig_setup_with(void **state, uint64_t flows);
int rig_teardown(void **state);

void add_backend(struct rig *rig, uint16_t id, uint32_t pool, uint8_t outer_family);
/* Makes it one that NAT reaches (HB_FORWARDING_...), and knows a way to clients. */
void translate_backend(struct rig *rig, uint16_t id, uint8_t forwarding);
void set_table(struct rig *rig, uint32_t pool, uint32_t slots, const uint16_t *owner);
/* Marks a slot as unsettled. */
void unsettle(struct rig *rig, uint32_t pool, uint32_t slot, uint16_t previous);
/* A table of RIG_SLOTS that the pool's active backends share equally and in turn. */
void share_table(struct rig *rig, uint32_t pool);
/* `vip_family` 4: 192.0.2.10, 6: 2001:db8:0:a::10. */
void add_service(struct rig *rig, uint8_t vip_family, uint8_t protocol, uint16_t port,
                 uint32_t pool);
/* Allows or denies a prefix of sources, "203.0.113.0/24", to those who name that list. Prefixes may
 * be added in any order. */
void add_source(struct rig *rig, uint32_t list, const char *prefix, bool allow);
/* One more QUIC configuration, for the service added last. */
void add_quic(struct rig *rig, const struct hb_quic_record *record);
/* The server id of a backend in connection ids. */
void name_server(struct rig *rig, uint16_t backend, const uint8_t *server_id, uint8_t length);
void publish(struct rig *rig);
/* Fills a generation that is no longer published with 0xff: nobody may read it any more. */
void forget_generation(struct generation_copy *old);

/* The common state of most rows: pool 0 has backend 1 alone, over `outer_family`, and serves TCP 80
 * and UDP 443 of both VIPs. Published. */
void publish_one_backend(struct rig *rig, uint8_t outer_family);

/* The same, or what is there, with backend 1 of this mode on a link of 1,500 bytes. Published. */
void use_mode(struct rig *rig, const struct wrap *wrap);

/* Sending: `headroom` bytes in front of the frame; `split` puts what is behind that byte into a
 * second segment (0: one segment). */
struct rte_mbuf *make_mbuf(const struct frame *frame, uint32_t headroom, uint32_t split);
void send_mbuf(struct rig *rig, struct rte_mbuf *mbuf);
void send_frame(struct rig *rig, const struct frame *frame);
void send_from_kernel(const struct frame *frame);                /* by PUNT_PORT */
void turn(struct rig *rig);                                      /* one turn of the worker's loop */
bool receive(struct rig *rig, unsigned port, struct frame *out); /* what left by a port */
struct rte_mbuf *take_mbuf(struct rig *rig, unsigned port);      /* the same as it is, or NULL */
void take_all(struct rig *rig, unsigned port);                   /* the same, unseen */
void advance(struct rig *rig, uint32_t ms); /* the clock; every bucket is aged once after it */

/* Sends one frame that must leave, and returns it as it left. */
struct frame exchange(struct rig *rig, const struct frame *in);

/* Sends one frame and returns the backend that got it; 0 when none did. */
uint16_t backend_of(struct rig *rig, const struct frame *frame);
#define B(rig, call) backend_of((rig), &(struct frame[]){call}[0])

uint64_t count_drops(const struct rig *rig);
uint64_t live_flows(const struct rig *rig, uint16_t backend);

/* Packet tests as rows. */
enum verdict { FORWARDED, DROPPED, PUNTED };
struct row {
    const char *text;
    struct frame in;
    enum verdict verdict;
    unsigned reason; /* of a drop; of a punt when there is no punt port */
};
#define SENT         FORWARDED, HB_DROP_COUNT
#define DROP(reason) DROPPED, HB_DROP_##reason
#define PUNT(reason) PUNTED, HB_DROP_##reason

/* Each row: the verdict, the one counter that moves, and the bytes that leave. Sent ones go to
 * backend 1 over `outer_family`. */
void run_rows(struct rig *rig, const struct row *rows, uint32_t count, uint8_t outer_family);
#define RUN_ROWS(rig, rows, outer_family)                                                          \
    run_rows((rig), (rows), sizeof(rows) / sizeof((rows)[0]), (outer_family))

/* Fails the test with a dump of both when they differ. */
void assert_frame(const char *text, const struct frame *got, const struct frame *want);

#endif
