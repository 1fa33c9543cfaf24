/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * protocol.h: the messages between a control and the dataplane. With generation.h and counters.h
 * this is all that is needed to write another control.
 *
 * The dataplane listens on a Unix SOCK_SEQPACKET socket (HB_DATAPLANE_SOCKET unless told
 * otherwise). One message is one packet: struct hb_message_header, then the body of its type, of
 * exactly the size given here. Control sends requests; each gets one reply with the request's
 * sequence number, in the order of the requests. The dataplane sends nothing unasked, but for one
 * HB_MSG_REFUSED before it closes a connection it will not serve.
 *
 * A session:
 *   1. control connects and sends HELLO with its HB_PROTOCOL_VERSION.
 *   2. the dataplane answers HELLO_REPLY with what it is and holds, and passes (SCM_RIGHTS) the
 *      counters region and, when `generation_number` is not 0, the memfd of the adopted generation;
 *      or it answers REFUSED (another version: both are named; another control is connected: its
 *      pid is named).
 *   3. control compares `content` with what it wants, and sends PUBLISH with a sealed memfd if they
 *      differ. PUBLISH_REPLY comes once every worker is on the new generation and the old one is
 *      freed, or at once with the reason of a reject; then the old one keeps serving.
 *   4. LOOKUP, SETTLE and FLUSH at any time.
 * One control at a time holds the connection; it is free again as soon as that control's process
 * ends. If the connection breaks, the dataplane goes on with what it has. Publishing a generation
 * that may have been adopted already is harmless.
 */
#ifndef HB_API_PROTOCOL_H
#define HB_API_PROTOCOL_H

#include "halbach/flow_key.h"
#include "halbach/types.h"

#define HB_PROTOCOL_MAGIC   UINT32_C(0x504c4248) /* "HBLP", little-endian */
#define HB_PROTOCOL_VERSION 3
#define HB_DATAPLANE_SOCKET "/run/halbach/dataplane.sock"
#define HB_MESSAGE_MAX      8192 /* bytes; the largest message of any type */
#define HB_TEXT_SIZE        256

enum hb_message_type {
    HB_MSG_REFUSED = 1,
    HB_MSG_HELLO = 2,
    HB_MSG_HELLO_REPLY = 3,
    HB_MSG_PUBLISH = 4,
    HB_MSG_PUBLISH_REPLY = 5,
    HB_MSG_LOOKUP = 6,
    HB_MSG_LOOKUP_REPLY = 7,
    HB_MSG_SETTLE = 8,
    HB_MSG_SETTLE_REPLY = 9,
    HB_MSG_FLUSH = 10,
    HB_MSG_FLUSH_REPLY = 11,
};

struct hb_message_header {
    uint32_t magic;
    uint16_t version; /* HB_PROTOCOL_VERSION of the sender; checked on every message */
    uint16_t type;    /* enum hb_message_type */
    uint32_t length;  /* of the whole message, this header included */
    uint32_t sequence;
};
_Static_assert(sizeof(struct hb_message_header) == 16, "no padding");

struct hb_hello {
    struct hb_message_header header;
    uint32_t pid;
    uint32_t reserved;
    char name[HB_NAME_SIZE]; /* of the program, for logs */
};

/* A DPDK port that rewrites may name. */
struct hb_port_info {
    uint16_t id;
    uint16_t mtu; /* largest IP packet, bytes */
    uint8_t mac[6];
    uint8_t link_up;
    uint8_t reserved;
    uint32_t ifindex; /* of the kernel interface with the same link, in the dataplane's network
                       * namespace; 0 when there is none (memif, pcap, null) */
    char ifname[16];  /* the same by name, or "" */
    char driver[16];  /* "net_af_xdp" */
};
_Static_assert(sizeof(struct hb_port_info) == 48, "no padding");

struct hb_hello_reply {
    struct hb_message_header header;
    uint64_t instance;               /* random for each start of the dataplane */
    uint64_t generation_number;      /* 0: nothing adopted yet */
    uint8_t content[HB_DIGEST_SIZE]; /* of the adopted generation */
    uint64_t flows_max;              /* of all flow caches together */
    uint32_t pid;
    uint32_t workers;
    uint32_t ports;
    uint32_t tcp_idle_ms; /* idle time after which an established TCP flow is forgotten */
    char version[32];     /* of the program, "0.1.0" */
    struct hb_port_info port[HB_PORTS_MAX];
};

struct hb_publish {
    struct hb_message_header header;
    uint64_t number; /* equal to the header of the blob, so that both ends log the same */
};

struct hb_publish_reply {
    struct hb_message_header header;
    uint32_t reason;         /* enum hb_reject; HB_REJECT_NONE: adopted */
    uint32_t record;         /* index of the offending record in its section */
    uint64_t offset;         /* of the offending field in the blob */
    uint64_t number;         /* the generation that serves now */
    uint64_t adopt_ns;       /* check, copy and pointer store */
    uint64_t grace_ns;       /* until every worker was on it */
    char text[HB_TEXT_SIZE]; /* for a person: names the record and what is wrong with it */
};

enum hb_lookup_source {
    HB_LOOKUP_NO_SERVICE = 0, /* not a service of this generation */
    HB_LOOKUP_NO_BACKEND = 1, /* the pool has no usable backend */
    HB_LOOKUP_TABLE = 2,      /* no flow entry: what the table says for a new flow */
    HB_LOOKUP_FLOW = 3,       /* a worker has an entry for the flow */
    HB_LOOKUP_FLOW_STALE =
        4, /* it has one, but the backend is gone or down: the table's choice holds */
};

struct hb_lookup {
    struct hb_message_header header;
    struct hb_flow_key flow;
};

struct hb_lookup_reply {
    struct hb_message_header header;
    uint64_t generation_number;
    uint64_t hash;
    uint32_t source;  /* enum hb_lookup_source */
    uint32_t service; /* id */
    uint32_t pool;    /* index in the generation */
    uint32_t slots;   /* M */
    uint32_t slot;
    uint32_t table_backend;    /* id of the slot's owner */
    uint32_t backend;          /* id of the backend the next packet goes to; without an entry, that
                                * of a new flow */
    uint32_t unsettled;        /* 1: the slot is; without an entry, packets of an established TCP
                                * flow go to `previous_backend` while that is up or draining */
    uint32_t previous_backend; /* id, or HB_BACKEND_NONE */
    uint32_t tracking;         /* enum hb_tracking of the service */
    uint32_t flow_backend;     /* id in the flow entry, when there is one */
    uint32_t worker;           /* index of the worker that has the entry */
    uint32_t flow_idle_ms;     /* since its last packet */
};

/*
 * Which unsettled slots of a table have not needed their mark lately: no packet went to another
 * backend than the owner for `idle_ms`, counted from when the slot became unsettled, or got its
 * owner, in this dataplane. Control takes their marks away by the next generation. One reply holds
 * HB_SETTLE_WORDS * 64 slots; a larger table takes several requests.
 */
#define HB_SETTLE_WORDS 1000

struct hb_settle {
    struct hb_message_header header;
    uint8_t digest[HB_DIGEST_SIZE]; /* of a table of the generation that serves */
    uint32_t idle_ms;
    uint32_t first; /* slot, a multiple of 64 */
};

struct hb_settle_reply {
    struct hb_message_header header;
    uint32_t known; /* 0: no such table serves, or all of it has settled */
    uint32_t first; /* as asked for */
    uint32_t count; /* of slots from there on that this reply is about */
    uint32_t reserved;
    uint64_t idle[HB_SETTLE_WORDS]; /* bit i % 64 of word i / 64: slot first + i has settled */
};

/* Empties the flow caches: what follows is as after a restart of the dataplane. The workers do it
 * in one go, which holds a large cache up for some milliseconds: for tests and emergencies. */
struct hb_flush {
    struct hb_message_header header;
};

struct hb_flush_reply {
    struct hb_message_header header;
    uint64_t flows;   /* entries that were removed */
    uint32_t workers; /* that have done it; the others did not answer within a second, and will */
    uint32_t reserved;
};

/* Refused: the dataplane closes the connection after it. */
struct hb_refused {
    struct hb_message_header header;
    uint32_t error; /* errno value */
    uint32_t reserved;
    char text[HB_TEXT_SIZE]; /* names the cause and the remedy */
};

_Static_assert(sizeof(struct hb_hello_reply) <= HB_MESSAGE_MAX, "a large message fits");
_Static_assert(sizeof(struct hb_settle_reply) <= HB_MESSAGE_MAX, "the largest message fits");

#endif
