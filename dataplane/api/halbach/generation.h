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
#define HB_GENERATION_VERSION  2
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
    uint64_t reserved[1]; /* 0 */
};
_Static_assert(sizeof(struct hb_generation_header) == 192, "three cache lines, no padding");

/* Which flows of a service get an entry in the flow cache. */
enum hb_tracking {
    HB_TRACKING_ALL = 0,
    HB_TRACKING_CHANGED = 1, /* UDP, and TCP on unsettled slots */
    HB_TRACKING_OFF = 2,     /* none: the slot's owner serves, whoever served before */
    HB_TRACKINGS,
};

/* One VIP, protocol and port. (family, address, protocol, port) is unique in a generation. */
struct hb_service_record {
    uint8_t address[HB_ADDRESS_SIZE];
    hb_be16 port;
    uint8_t protocol;  /* enum hb_protocol */
    uint8_t family;    /* enum hb_family */
    uint32_t id;       /* index of its counters, kept while the service is configured */
    uint32_t pool;     /* index into pools */
    uint32_t tracking; /* enum hb_tracking; HB_TRACKING_ALL if its pool bounds the load */
    uint64_t reserved[4];
    char name[HB_NAME_SIZE];
};
_Static_assert(sizeof(struct hb_service_record) == 128, "two cache lines, no padding");

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
struct hb_pool_record {
    uint32_t table; /* index into tables, or HB_POOL_NO_TABLE: no usable backend, drop */
    uint32_t flags; /* 0 */
    uint8_t owners[HB_DIGEST_SIZE]; /* digest of the slots' owners by identity, not by id: what is
                                     * compared over a fleet. The dataplane only keeps it */
    uint32_t bounded_load;          /* 0: no bound; else how far above its part a backend may go */
    uint32_t reserved32;
    uint64_t reserved[4];
    char name[HB_NAME_SIZE];
};
_Static_assert(sizeof(struct hb_pool_record) == 128, "two cache lines, no padding");

/* What the dataplane may do with a backend. Whether it takes new flows is the table's business
 * alone. */
enum hb_backend_use {
    HB_BACKEND_ACTIVE = 1,   /* flows that have an entry stay */
    HB_BACKEND_DRAINING = 2, /* the same; counted and shown apart */
    HB_BACKEND_DOWN = 3,     /* flows that have an entry are selected anew */
};

enum hb_forwarding {
    HB_FORWARDING_IPIP = 1, /* RFC 2003, RFC 2473, RFC 4213: the outer family follows the backend */
};

#define HB_REWRITE_BYTES 96

/*
 * The ready-made outer headers for one backend. Forwarding copies `bytes` (Ethernet header of
 * `l2_size` bytes, then the tunnel header) in front of the inner packet and patches what depends on
 * the packet: lengths, TOS or traffic class, DF, protocol (4 or 41), the IPv4 checksum. Fields that
 * are patched hold zero; the TTL is as it goes out.
 */
struct hb_rewrite {
    uint8_t size;    /* bytes to prepend, the Ethernet header included */
    uint8_t l2_size; /* of which Ethernet and VLAN */
    uint8_t family;  /* enum hb_family of the outer header */
    uint8_t forwarding;
    uint16_t port;      /* the dataplane's port to send on */
    uint16_t inner_max; /* largest inner packet, bytes, that fits the link */
    uint8_t bytes[HB_REWRITE_BYTES];
};

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
    uint64_t reserved[7];
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
    X(SERVICE,          "a service record has a bad family, protocol, port, id or flag") \
    X(SERVICE_DUPLICATE,"two services share an address, protocol and port") \
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
