/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * counters.h: the shared-memory region that workers count in and control reads.
 *
 * The dataplane makes it once at start (memfd, sealed against growing, shrinking and later writable
 * mappings) and passes it with the hello; control maps it read-only. It lives as long as the
 * process of the dataplane: `instance` tells one life from the next.
 *
 *     struct hb_counters_header
 *     workers * block of `worker_stride` bytes, the first at `worker_offset`:
 *         struct hb_worker_counters
 *         services_max * struct hb_service_counters   indexed by service id
 *         backends_max * struct hb_backend_counters   indexed by backend id, 0 unused
 *         talkers_max * struct hb_talker              in no order; see there
 *         services_max * struct hb_quic_counters      indexed by service id
 *         nat_max * struct hb_nat_counters            indexed by backend id
 *
 * Every field is 64 bits, written by exactly one worker with plain stores and never reset, so a
 * reader sees each value whole, without a lock. Sums over workers and fields are not one instant;
 * each value alone only grows (gauges are marked). An id that is given to another object keeps its
 * counts: control notes a baseline and subtracts it.
 *
 * Accounting, exact when no packet is under way:
 *     rx_packets + made_packets = tx_packets + punted_packets + sum of drops + held_packets
 * and a drop counts under exactly one reason. Packets that the dataplane makes itself (ICMP errors,
 * resets, further fragments) count as made; the packet that gave cause for one counts for itself.
 */
#ifndef HB_API_COUNTERS_H
#define HB_API_COUNTERS_H

#include "halbach/drop_reasons.h"
#include "halbach/types.h"

#define HB_COUNTERS_MAGIC   UINT64_C(0x31544e4348434c42) /* "BLCHCNT1", little-endian */
#define HB_COUNTERS_VERSION 4
#define HB_TALKERS_MAX      128

struct hb_counters_header {
    uint64_t magic;
    uint32_t version;
    uint32_t header_size;
    uint64_t total_size;
    uint64_t instance; /* as in the hello */
    uint64_t started_unix_ns;
    uint32_t workers;
    uint32_t services_max;
    uint32_t backends_max; /* entries, so ids 0 to backends_max - 1 */
    uint32_t drop_reasons; /* entries of `drops` in use */
    uint64_t worker_offset;
    uint64_t worker_stride;
    uint32_t talkers_max;
    uint32_t nat_max; /* entries: backends_max, or 0 */
    /* By the steering programs of AF_XDP ports, before anything else sees a packet; written about
     * once a second by the main lcore. */
    uint64_t steer_redirected; /* for a VIP */
    uint64_t steer_no_socket;  /* for a VIP, while nobody could take it; dropped */
    uint64_t steer_passed;     /* the kernel's */
    uint64_t steer_limited;    /* the kernel's, above the rate limit; dropped */
    uint64_t reserved[2];
};
_Static_assert(sizeof(struct hb_counters_header) == 128, "two cache lines");

struct hb_worker_counters {
    uint64_t lcore;
    uint64_t generation_number; /* gauge: what this worker forwards by */
    uint64_t loops;
    uint64_t busy_loops; /* that received something */
    uint64_t rx_packets, rx_bytes;
    uint64_t tx_packets, tx_bytes; /* bytes of the frames as sent, tunnel header included */
    uint64_t punted_packets, punted_bytes;
    uint64_t flow_hits;
    uint64_t flow_misses;
    uint64_t flow_inserts;
    uint64_t flow_insert_failures; /* the cache was full of younger or established flows */
    uint64_t flow_expiries;
    uint64_t flow_evictions;   /* probation entries that made way */
    uint64_t flow_reselects;   /* an entry's backend was gone or down */
    uint64_t flows;            /* gauge: entries in use */
    uint64_t flows_max;        /* gauge: entries there are */
    uint64_t flow_overflows;   /* new flows passed on because their backend was at its limit */
    uint64_t made_packets;     /* by the dataplane itself */
    uint64_t held_packets;     /* gauge: fragments that wait for the first of their datagram */
    uint64_t drain_resets;     /* flows ended by reset at the end of a drain */
    uint64_t icmp_sent;        /* ICMP errors and echo answers */
    uint64_t icmp_relayed;     /* ICMP errors about flows, handed to their backends */
    uint64_t icmp_elsewhere;   /* of them: no entry on this worker, sent by the table */
    uint64_t fragments;        /* for VIPs, forwarded */
    uint64_t quic_routed;      /* packets whose connection id named their backend */
    uint64_t quic_unroutable;  /* with an id of a server's that did not: 5-tuple */
    uint64_t sampled;          /* packets that the talkers' sketch has seen */
    uint64_t nat_sessions;     /* gauge */
    uint64_t nat_sessions_max; /* gauge */
    uint64_t
        kernel_packets; /* that the kernel sent by a punt port, on to the wire; not of rx or tx */
    uint64_t kernel_losses; /* the same, that the port did not take */
    uint64_t nat_resets;    /* connections of full NAT that were reset: their backend is gone */
    uint64_t nat_handovers; /* answers given to the worker that has their session */
    uint64_t reserved[4];
    uint64_t drops[HB_DROPS_MAX]; /* by enum hb_drop_reason */
};
_Static_assert(sizeof(struct hb_worker_counters) % 64 == 0, "whole cache lines");

struct hb_service_counters {
    uint64_t packets, bytes; /* forwarded; bytes of the inner packets */
    uint64_t new_flows;
    uint64_t drops;   /* after the service was known: no_backend, oversize, ... */
    uint64_t flows;   /* gauge: entries of its flows; counted only while the service limits them */
    uint64_t too_big; /* of the drops: told to send smaller packets */
    uint64_t denied;  /* of the drops: by its list of prefixes */
    uint64_t limited; /* of the drops: by its limits on flows */
};
_Static_assert(sizeof(struct hb_service_counters) == 64, "one cache line");

struct hb_backend_counters {
    uint64_t packets, bytes;
    uint64_t new_flows;
    uint64_t flows;                            /* gauge: entries that name this id */
    uint64_t returned_packets, returned_bytes; /* answers that came back through here (NAT) */
    uint64_t unreachable; /* ICMP unreachable errors on the way to it that passed here (NAT) */
    uint64_t reserved;
};
_Static_assert(sizeof(struct hb_backend_counters) == 64, "one cache line");

/* What a datagram of a service with QUIC configurations was, by its connection id. All but ROUTED
 * go by the 5-tuple. X(ENUM, "name", "description"). */
/* clang-format off */
#define HB_QUIC_OUTCOMES(X) \
    X(ROUTED,                "routed",                "to the backend that its connection id names") \
    X(OF_CLIENT,             "of_client",             "the client may have made the id up: Initial, 0-RTT, other versions") \
    X(NO_ID,                 "no_id",                 "too short to hold a connection id, or not QUIC") \
    X(TOO_SHORT,             "too_short",             "the id is shorter than its configuration says, or not all of it can be read") \
    X(UNKNOWN_CONFIGURATION, "unknown_configuration", "made by a configuration that the service does not have") \
    X(NOT_ROUTABLE,          "not_routable",          "the server says that the id names nobody (configuration 7)") \
    X(UNKNOWN_SERVER,        "unknown_server",        "names a server id that no backend of the pool has") \
    X(BACKEND_DOWN,          "backend_down",          "names a backend that is down")
/* clang-format on */

#define HB_QUIC_ENUM(id, name, text) HB_QUIC_##id,
enum hb_quic_outcome { HB_QUIC_OUTCOMES(HB_QUIC_ENUM) HB_QUIC_OUTCOME_COUNT };
#undef HB_QUIC_ENUM

struct hb_quic_counters {
    uint64_t packets[HB_QUIC_OUTCOME_COUNT]; /* by enum hb_quic_outcome */
};
_Static_assert(sizeof(struct hb_quic_counters) == 64, "one cache line");

static inline const char *hb_quic_outcome_name(unsigned outcome)
{
#define HB_QUIC_NAME(id, name, text) name,
    static const char *const names[] = {HB_QUIC_OUTCOMES(HB_QUIC_NAME)};
#undef HB_QUIC_NAME
    return outcome < HB_QUIC_OUTCOME_COUNT ? names[outcome] : "of_a_newer_dataplane";
}

/* A source address that sends much to one service: an entry of a worker's sketch (A. Metwally et
 * al., "Efficient Computation of Frequent and Top-k Elements in Data Streams", ICDT 2005) over
 * sampled packets. True count: `count` - `error` to `count`, of `sampled` packets. `version` is odd
 * while the worker writes the entry: a reader takes an entry whose version was even and the same
 * before and after. */
struct hb_talker {
    uint32_t version;
    uint16_t service; /* id */
    uint8_t family;   /* enum hb_family; 0: free */
    uint8_t reserved;
    uint8_t source[HB_ADDRESS_SIZE];
    uint64_t count;
    uint64_t error;
    uint64_t bytes; /* of the sampled packets since it is in the sketch */
    uint64_t reserved64[2];
};
_Static_assert(sizeof(struct hb_talker) == 64, "one cache line");

/* Of a backend, full NAT only; apart from the others because few packets touch them. */
struct hb_nat_counters {
    uint64_t sessions;  /* gauge: each one holds a source port toward this backend */
    uint64_t exhausted; /* new connections that found no free source port; they were dropped */
};

/* Bytes of a worker's block. */
static inline uint64_t hb_counters_block_bytes(uint32_t services_max, uint32_t backends_max,
                                               uint32_t talkers_max, uint32_t nat_max)
{
    return sizeof(struct hb_worker_counters) +
           services_max * (sizeof(struct hb_service_counters) + sizeof(struct hb_quic_counters)) +
           backends_max * sizeof(struct hb_backend_counters) +
           talkers_max * sizeof(struct hb_talker) + nat_max * sizeof(struct hb_nat_counters);
}

/* Where things are in a mapped region. The caller has checked magic, version and total_size. */
static inline const struct hb_worker_counters *
hb_counters_worker(const struct hb_counters_header *region, uint32_t worker)
{
    return (const void *)((const uint8_t *)region + region->worker_offset +
                          worker * region->worker_stride);
}

static inline const struct hb_service_counters *
hb_counters_services(const struct hb_counters_header *region, uint32_t worker)
{
    return (const void *)(hb_counters_worker(region, worker) + 1);
}

static inline const struct hb_backend_counters *
hb_counters_backends(const struct hb_counters_header *region, uint32_t worker)
{
    return (const void *)(hb_counters_services(region, worker) + region->services_max);
}

static inline const struct hb_talker *hb_counters_talkers(const struct hb_counters_header *region,
                                                          uint32_t worker)
{
    return (const void *)(hb_counters_backends(region, worker) + region->backends_max);
}

static inline const struct hb_quic_counters *
hb_counters_quic(const struct hb_counters_header *region, uint32_t worker)
{
    return (const void *)(hb_counters_talkers(region, worker) + region->talkers_max);
}

static inline const struct hb_nat_counters *hb_counters_nat(const struct hb_counters_header *region,
                                                            uint32_t worker)
{
    return (const void *)(hb_counters_quic(region, worker) + region->services_max);
}

#endif
