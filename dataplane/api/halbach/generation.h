/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * generation.h: the blob that carries one generation from control to the dataplane.
 *
 * A generation is one complete, immutable state: all services, pools, backends and lookup tables.
 * It travels as one memfd that its writer has sealed with F_SEAL_WRITE, F_SEAL_SHRINK, F_SEAL_GROW
 * and F_SEAL_SEAL, so that nobody can change it after it was checked.
 *
 *     offset 0   struct hb_generation_header
 *                services   count * struct hb_service_record    sorted by id, ids unique
 *                pools      count * struct hb_pool_record       a service names one by index
 *                backends   count * struct hb_backend_record    sorted by id, ids unique
 *                tables     count * struct hb_table_record      a pool names one by index
 *                prefixes   count * struct hb_prefix_record     sorted by list, then address
 *                quic       count * struct hb_quic_record       a service names a run of them
 *                sources    count * struct hb_source_record     a pool names a run of them
 *                slots      the bodies of the carried tables: see struct hb_table_record
 *
 * Every section starts at a multiple of HB_SECTION_ALIGN; gaps are zero. Offsets count from the
 * start of the blob. Nothing in it is a pointer, so it can be mapped anywhere.
 *
 * Content-addressed tables. A table record names its contents by digest. Its body may be left out
 * (`offset` 0) when the receiver holds it already: the dataplane holds exactly the tables that its
 * adopted generation names. If it does not have the table, it rejects with HB_REJECT_TABLE_UNKNOWN
 * and the sender repeats the generation with all bodies.
 *
 * Backend ids. Control gives every backend (a member of a pool) a small id that it keeps as long as
 * the backend is configured. Tables and flow caches hold ids. When an id is given to another
 * backend later, its incarnation grows, so that no flow of the old one is inherited.
 *
 * What the receiver checks before it adopts anything: enum hb_reject, in that order.
 */
#ifndef HB_API_GENERATION_H
#define HB_API_GENERATION_H

#include <stdbool.h>

#include "halbach/flow_key.h"
#include "halbach/types.h"

#define HB_GENERATION_MAGIC    UINT64_C(0x314e454748434c42) /* "BLCHGEN1", little-endian */
#define HB_GENERATION_VERSION  3
#define HB_GENERATION_SIZE_MAX (UINT64_C(1) << 32)
#define HB_SECTION_ALIGN       64
#define HB_TABLE_SLOTS_MIN     7
#define HB_TABLE_SLOTS_MAX     5000011 /* the largest prime that control accepts for table_size */
#define HB_POOL_NO_TABLE       UINT32_MAX
#define HB_BOUNDED_LOAD_ONE    1024 /* bounds are in units of 1/1024 */
#define HB_BOUNDED_LOAD_MAX    (10 * HB_BOUNDED_LOAD_ONE)

struct hb_section {
    uint64_t offset;
    uint32_t count;
    uint32_t record_size; /* sizeof the record; another value is another version */
};

/* What becomes of echo requests to a VIP. */
enum hb_echo {
    HB_ECHO_ANSWER = 0, /* the balancer answers, whatever the backends do */
    HB_ECHO_FORWARD =
        1, /* to the backend of the slot of its addresses, by the VIP's first service */
    HB_ECHO_DROP = 2,
    HB_ECHOS,
};

/* The way to clients, for packets that go back to them through here (NAT). */
struct hb_client_hop {
    uint8_t size; /* of the Ethernet header, VLAN tag included; 0: no way is known */
    uint8_t reserved;
    uint16_t port; /* the dataplane's port to send on */
    uint16_t mtu;  /* largest IP packet, bytes */
    uint16_t reserved16;
    uint8_t bytes[24]; /* the Ethernet header as it goes out */
};
_Static_assert(sizeof(struct hb_client_hop) == 32, "half a cache line");

/* What holds for the whole balancer. Rates are of each worker; 0 means none. */
struct hb_settings {
    uint8_t icmp_source4[4];               /* of ICMP errors to IPv4 senders; 0: the VIP */
    uint32_t icmp_rate;                    /* own ICMP messages a second */
    uint8_t icmp_source6[HB_ADDRESS_SIZE]; /* the same for IPv6 */
    uint32_t icmp_relay_rate;              /* ICMP errors about flows handed on, a second */
    uint16_t mtu_floor4, mtu_floor6;       /* packet-too-big messages below are dropped; 0: none */
    uint8_t echo;                          /* enum hb_echo */
    uint8_t reserved[3];
    uint32_t punt_rate;                 /* packets a second to the kernel, 0: no limit; neighbour
                                         * discovery and routing protocols have as many again */
    struct hb_client_hop to_clients[2]; /* IPv4, IPv6 */
    uint64_t reserved64[3];
};
_Static_assert(sizeof(struct hb_settings) == 128, "two cache lines, no padding");

struct hb_generation_header {
    uint64_t magic;
    uint16_t version;
    uint16_t header_size; /* sizeof(struct hb_generation_header) */
    uint32_t flags;       /* 0 */
    uint64_t total_size;  /* of the blob, equal to the size of the memfd */
    uint64_t checksum;    /* XXH3, 64 bits, of the whole blob with this field zero */
    uint64_t number;      /* grows with each generation of one control; for people and logs */
    /* What this generation means, without `number`: equal contents, equal digest, whether tables
     * are carried or only named. The sender's word; the receiver only hands it back in the hello.
     */
    uint8_t content[HB_DIGEST_SIZE];
    struct hb_hash_key hash_key;
    struct hb_section services;
    struct hb_section pools;
    struct hb_section backends;
    struct hb_section tables;
    struct hb_section prefixes;
    struct hb_section quic;
    struct hb_section sources;
    uint64_t reserved[3]; /* 0 */
    struct hb_settings settings;
};
_Static_assert(sizeof(struct hb_generation_header) == 384, "six cache lines, no padding");

/* Which flows of a service get an entry in the flow cache. */
enum hb_tracking {
    HB_TRACKING_ALL = 0,
    HB_TRACKING_CHANGED = 1, /* UDP, and TCP on unsettled slots */
    HB_TRACKING_OFF = 2,     /* none: the slot's owner serves, whoever served before */
    HB_TRACKINGS,
};

/* What of a packet picks the slot of the lookup table. The flow cache goes by the 5-tuple always.
 */
enum hb_affinity {
    HB_AFFINITY_FLOW = 0,        /* the 5-tuple */
    HB_AFFINITY_SOURCE = 1,      /* the source's first `affinity_prefix` bits */
    HB_AFFINITY_SOURCE_PORT = 2, /* these and the source port */
    HB_AFFINITIES,
};

enum {
    HB_SERVICE_DENY_OTHERS = 1u, /* sources that no prefix of its list matches are denied */
};

/*
 * One VIP, protocol and port: an address or a prefix of addresses, and a port or a range of ports
 * (0 to 65535: any). For a packet that several services match, the longest prefix decides, then the
 * smallest range. Two of one protocol with equal prefixes may have ranges that lie within each
 * other, not ranges that overlap in part.
 */
struct hb_service_record {
    uint8_t address[HB_ADDRESS_SIZE]; /* bits behind the prefix are zero */
    hb_be16 port;                     /* the first */
    uint8_t protocol;                 /* enum hb_protocol */
    uint8_t family;                   /* enum hb_family */
    uint8_t prefix_length;            /* bits; 32 or 128: one address */
    uint8_t affinity;                 /* enum hb_affinity */
    uint8_t affinity_prefix;          /* bits; 0 with HB_AFFINITY_FLOW */
    uint8_t quic_count;               /* connection id configurations; UDP only */
    hb_be16 port_last;                /* equal to `port`: one port */
    uint16_t mss_max;        /* SYNs are told to use no larger MSS, bytes; 0: as they are */
    uint32_t id;             /* index of its counters, kept while the service is configured */
    uint32_t pool;           /* index into pools */
    uint32_t tracking;       /* enum hb_tracking; HB_TRACKING_ALL if its pool bounds the load */
    uint32_t flags;          /* HB_SERVICE_... */
    uint32_t prefix_list;    /* `list` of its prefix records; 0: all sources are allowed */
    uint32_t quic_first;     /* index into quic */
    uint32_t new_flows_rate; /* at most so many a second; 0: no limit */
    uint64_t flows_max;      /* at most so many at a time; 0: no limit */
    uint64_t reserved[8];
    char name[HB_NAME_SIZE];
};
_Static_assert(sizeof(struct hb_service_record) == 192, "three cache lines, no padding");

static inline uint8_t hb_address_bits(uint8_t family)
{
    return family == HB_FAMILY_IPV4 ? 32 : 128;
}

/* One prefix of source addresses. The longest one of its list that matches decides. */
struct hb_prefix_record {
    uint8_t address[HB_ADDRESS_SIZE]; /* bits behind the prefix are zero */
    uint32_t list;                    /* 1 on */
    uint8_t family;                   /* enum hb_family */
    uint8_t length;                   /* bits */
    uint8_t allow;                    /* 1: allow, 0: deny */
    uint8_t reserved[5];
    uint32_t reserved32;
};
_Static_assert(sizeof(struct hb_prefix_record) == 32, "two to a cache line");

/* How the connection ids of a QUIC service name their backend (QUIC-LB: draft-ietf-quic-load-
 * balancers): one configuration, told from others of the service by the id's first three bits. */
struct hb_quic_record {
    uint8_t config_id;        /* 0 to 6 */
    uint8_t server_id_length; /* bytes, 1 to 15: that of the backends' ids */
    uint8_t nonce_length;     /* bytes, 4 to 18; both together at most 19 */
    uint8_t encrypted;        /* 1: by `key`; 0: plaintext, `key` is zero */
    uint32_t reserved;
    uint8_t key[16]; /* AES-128 */
    uint64_t reserved64;
};
_Static_assert(sizeof(struct hb_quic_record) == 32, "two to a cache line");

/* Addresses and ports that full NAT takes for its connections to the backends of a pool. Beside
 * them stand the balancer's own addresses, which no pool names: what backends send there (answers
 * to health checks) is the kernel's. */
struct hb_source_record {
    uint8_t address[HB_ADDRESS_SIZE];
    uint8_t family; /* enum hb_family */
    uint8_t own;    /* 1: an own address of the balancer; its ports are 0 */
    uint8_t reserved[2];
    uint16_t port_first, port_last; /* host byte order */
    uint64_t reserved64;
};
_Static_assert(sizeof(struct hb_source_record) == 32, "two to a cache line");

/*
 * Bounded load. With `bounded_load` above 0 no backend may have many more flows than its part. Each
 * worker keeps to it by itself when it sets up a flow: with m flows of the pool on this worker, the
 * new one included, a backend of weight w among the pool's table owners, whose weights sum up to W,
 * may have
 *
 *     ceil((HB_BOUNDED_LOAD_ONE + bounded_load) * m * w / (HB_BOUNDED_LOAD_ONE * W))
 *
 * of them. A full one passes the flow on to the owner of the next slot, and so on; when all within
 * 256 slots are full, the least loaded of the pool takes it. Summed over the workers no backend is
 * above its bound by more than one flow a worker, without a word between them. Only flows that get
 * an entry are passed on, and only those that begin here: not a TCP flow whose first packet seen is
 * an ACK. An owner's weight of 0 counts as 1. (V. Mirrokni, M. Thorup, M. Zadimoghaddam,
 * "Consistent Hashing with Bounded Loads", SODA 2018.)
 */
enum {
    /* Takes no new flows: they are dropped (no_backend). Flows that have an entry and TCP flows
     * that began before go on, by entry and by table. */
    HB_POOL_CLOSED = 1u,
};

struct hb_pool_record {
    uint32_t table; /* index into tables, or HB_POOL_NO_TABLE: no usable backend, drop */
    uint32_t flags; /* HB_POOL_... */
    uint8_t owners[HB_DIGEST_SIZE]; /* digest of the slots' owners by identity, not by id: what is
                                     * compared over a fleet. The dataplane only keeps it */
    uint32_t bounded_load;          /* 0: no bound; else how far above its part a backend may go */
    uint32_t sources_first;         /* index into sources; full NAT only */
    uint32_t sources_count;
    uint32_t reserved32;
    uint64_t reserved[3];
    char name[HB_NAME_SIZE];
};
_Static_assert(sizeof(struct hb_pool_record) == 128, "two cache lines, no padding");

/* What the dataplane may do with a backend. Whether it takes new flows is the table's business
 * alone. */
enum hb_backend_use {
    HB_BACKEND_ACTIVE = 1,   /* flows that have an entry stay */
    HB_BACKEND_DRAINING = 2, /* the same; counted and shown apart */
    HB_BACKEND_DOWN = 3,     /* flows that have an entry are selected anew */
    HB_BACKEND_RESET = 4,    /* TCP flows that have an entry end at their next packet: both ends get
                              * a reset; others are selected anew */
};

enum hb_forwarding {
    HB_FORWARDING_IPIP = 1, /* RFC 2003, RFC 2473, RFC 4213: the outer family follows the backend */
    HB_FORWARDING_GUE = 2,  /* variant 0: UDP, then four bytes (draft-ietf-intarea-gue) */
    HB_FORWARDING_GUE1 = 3, /* variant 1: UDP, then the packet */
    HB_FORWARDING_GRE = 4,  /* RFC 2784, no options */
    HB_FORWARDING_VXLAN = 5, /* RFC 7348 */
    HB_FORWARDING_L2 = 6,    /* the backend's MAC address, the packet as it came */
    HB_FORWARDING_L3DSR = 7, /* destination becomes the backend, its DSCP names the VIP */
    HB_FORWARDING_NAT = 8,   /* destination becomes the backend; answers come back through here */
    HB_FORWARDING_FULL_NAT = 9, /* the source becomes one of the pool's as well */
    HB_FORWARDINGS,
};

#define HB_REWRITE_BYTES 96

/*
 * The ready-made outer headers for one backend. Forwarding copies `bytes` (Ethernet header of
 * `l2_size` bytes, then the tunnel header) in front of the inner packet and patches what depends on
 * the packet: lengths, TOS or traffic class, DF, protocol (4 or 41), the IPv4 checksum. Fields that
 * are patched hold zero; the TTL is as it goes out.
 *
 * Modes without a tunnel (L2, L3DSR, NAT, full NAT) have the Ethernet header alone in `bytes` up to
 * `size`; behind it, where the packet gets a new destination, stands the backend's address (4 or 16
 * bytes).
 */
enum {
    HB_REWRITE_UDP_CHECKSUM = 1u, /* of GUE and VXLAN over IPv4; over IPv6 always unless the next */
    HB_REWRITE_NO_UDP_CHECKSUM6 = 2u, /* zero over IPv6 (RFC 6935) */
    HB_REWRITE_FRAGMENT_OUTER =
        4u, /* an IPv4 packet without DF that does not fit: the tunnel packet
             * goes in fragments; without either flag it is dropped */
    HB_REWRITE_FRAGMENT_INNER = 8u, /* each fragment of the packet goes in a tunnel packet */
    HB_REWRITE_PROXY_V2 = 16u,      /* full NAT: a PROXY header before a connection's first byte */
    HB_REWRITE_TCP_OPTION = 32u,    /* full NAT: the client's address as TCP option 254 */
    HB_REWRITE_TCP_OPTION_28 = 64u, /* the same as option 28 */
};

struct hb_rewrite {
    uint8_t size;    /* bytes to prepend, the Ethernet header included */
    uint8_t l2_size; /* of which Ethernet and VLAN */
    uint8_t family;  /* enum hb_family of the outer header */
    uint8_t forwarding;
    uint16_t port;      /* the dataplane's port to send on */
    uint16_t inner_max; /* largest inner packet, bytes, that fits the link */
    uint8_t flags;      /* HB_REWRITE_... */
    uint8_t
        spread;   /* so many low bits of the outer source are taken from the flow's hash; 0: none */
    uint8_t dscp; /* of L3DSR */
    uint8_t reserved;
    hb_be16 nat_port; /* of the backend, for NAT and full NAT; 0: the service's */
    uint16_t reserved16;
    uint8_t bytes[HB_REWRITE_BYTES];
};
_Static_assert(sizeof(struct hb_rewrite) == 112, "no padding");

struct hb_backend_record {
    uint32_t id; /* 1 to HB_BACKENDS_MAX */
    uint32_t incarnation;
    uint32_t pool; /* index into pools */
    uint8_t use;   /* enum hb_backend_use */
    uint8_t family;
    uint16_t weight; /* as used for the table; its part of a bounded load */
    uint8_t address[HB_ADDRESS_SIZE];
    struct hb_rewrite rewrite; /* size 0 only when `use` is HB_BACKEND_DOWN and no slot names it */
    char name[HB_NAME_SIZE];
    uint8_t server_id[15]; /* for connection ids of QUIC; the rest is zero */
    uint8_t server_id_length;
    uint64_t reserved[4];
};
_Static_assert(sizeof(struct hb_backend_record) == 256, "four cache lines, no padding");

/*
 * Two owners a slot. A slot whose owner changed lately is unsettled: flows that began before the
 * change may still run on the owner that it had then. A table with such slots says so by
 * HB_TABLE_TWO_OWNERS and carries two more columns. Its body is then
 *
 *     owner      uint16_t[M]  backend ids, who serves new flows; never HB_BACKEND_NONE
 *     previous   uint16_t[M]  the owner before the slot became unsettled; HB_BACKEND_NONE when that
 *                             is not a backend any more, and on settled slots
 *     unsettled  uint64_t[(M + 63) / 64]  bit slot % 64 of word slot / 64
 *
 * each column at a multiple of 8 bytes from the body's start; gaps and bits beyond M are zero. The
 * mark stands for itself: after a drain that was taken back `previous` is the owner again, and
 * flows made in between live elsewhere. At least one slot is marked; a table that has settled
 * has the first column alone.
 */
#define HB_TABLE_TWO_OWNERS 1u

struct hb_table_record {
    uint8_t digest[HB_DIGEST_SIZE]; /* XXH3, 128 bits canonical form, of the body's bytes, seeded
                                     * with `flags` */
    uint64_t offset;                /* of the body, or 0: the receiver holds this table already */
    uint32_t slots;                 /* M */
    uint32_t flags;                 /* HB_TABLE_TWO_OWNERS or 0 */
};
_Static_assert(sizeof(struct hb_table_record) == 32, "no padding");

/* Where the columns of a body are. `previous` and `unsettled` are NULL when all slots have settled.
 */
struct hb_table_columns {
    const uint16_t *owner;
    const uint16_t *previous;
    const uint64_t *unsettled;
};

static inline uint64_t hb_table_previous_offset(uint32_t slots)
{
    return ((uint64_t)slots * sizeof(uint16_t) + 7) & ~UINT64_C(7);
}

static inline uint64_t hb_table_unsettled_bytes(uint32_t slots)
{
    return ((uint64_t)slots + 63) / 64 * sizeof(uint64_t);
}

static inline uint64_t hb_table_body_bytes(uint32_t slots, uint32_t flags)
{
    if ((flags & HB_TABLE_TWO_OWNERS) == 0)
        return (uint64_t)slots * sizeof(uint16_t);
    return 2 * hb_table_previous_offset(slots) + hb_table_unsettled_bytes(slots);
}

/* `body` is aligned to 8 bytes, NULL is allowed. */
static inline struct hb_table_columns hb_table_columns(const void *body, uint32_t slots,
                                                       uint32_t flags)
{
    struct hb_table_columns columns = {.owner = (const uint16_t *)body};
    uint64_t offset = hb_table_previous_offset(slots);

    if (body != NULL && (flags & HB_TABLE_TWO_OWNERS) != 0) {
        columns.previous = (const uint16_t *)((const uint8_t *)body + offset);
        columns.unsettled = (const uint64_t *)((const uint8_t *)body + 2 * offset);
    }
    return columns;
}

static inline bool hb_slot_is_unsettled(const uint64_t *unsettled, uint32_t slot)
{
    return (unsettled[slot / 64] >> slot % 64 & 1) != 0;
}

/*
 * Why a generation is refused, in the order of the checks. X(ENUM, "text"). The reply names the
 * record and the offset of the offending field as well.
 */
/* clang-format off */
#define HB_REJECT_REASONS(X) \
    X(NONE,             "accepted") \
    X(NO_FD,            "no file descriptor came with the message") \
    X(SEALS,            "the memfd is not sealed against writing, growing, shrinking and new seals") \
    X(SIZE,             "the size is not what the header says, or out of range") \
    X(MAGIC,            "this is not a generation") \
    X(VERSION,          "another version of the generation format") \
    X(CHECKSUM,         "the checksum does not match the contents") \
    X(SECTION,          "a section lies outside the blob, is misaligned or has too many records") \
    X(NAME,             "a name is empty or not terminated") \
    X(SETTINGS,         "the settings of the header are out of range") \
    X(SERVICE,          "a service record has a bad family, address, protocol, port, id, affinity or flag") \
    X(SERVICE_DUPLICATE,"two services share an address, protocol and port, or overlap in part") \
    X(PREFIX,           "a prefix record has a bad list, address, length or order, or no list has the name") \
    X(QUIC,             "a QUIC record has bad lengths or a bad id, or a service names one that is not there") \
    X(SOURCE,           "a source record has a bad address or ports, or a pool names one that is not there") \
    X(POOL_INDEX,       "a record names a pool that is not there") \
    X(BACKEND,          "a backend record has a bad id, family, use or order") \
    X(REWRITE,          "a rewrite has a bad size, port or header") \
    X(TABLE_INDEX,      "a pool has a bad bound or flag, or names a table that is not there") \
    X(TABLE,            "a table record has a bad size or offset") \
    X(TABLE_DIGEST,     "a table's contents do not match its digest") \
    X(TABLE_UNKNOWN,    "a table is named but not carried, and not held here") \
    X(SLOT,             "a slot names a backend that is missing, has no rewrite or is of another pool") \
    X(PREVIOUS,         "a slot's previous owner or its mark is not as it must be") \
    X(NO_MEMORY,        "not enough memory to adopt it")
/* clang-format on */

#define HB_REJECT_ENUM(id, text) HB_REJECT_##id,
enum hb_reject { HB_REJECT_REASONS(HB_REJECT_ENUM) HB_REJECT_COUNT };
#undef HB_REJECT_ENUM

static inline const char *hb_reject_text(unsigned reason)
{
#define HB_REJECT_TEXT(id, text) text,
    static const char *const texts[] = {HB_REJECT_REASONS(HB_REJECT_TEXT)};
#undef HB_REJECT_TEXT
    return reason < HB_REJECT_COUNT ? texts[reason] : "a reason of a newer dataplane";
}

#endif
