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
 *   4. LOOKUP at any time.
 * One control at a time holds the connection; it is free again as soon as that control's process
 * ends. If the connection breaks, the dataplane goes on with what it has. Publishing a generation
 * that may have been adopted already is harmless.
 */
#ifndef HB_API_PROTOCOL_H
#define HB_API_PROTOCOL_H

#include "halbach/flow_key.h"
#include "halbach/types.h"

#define HB_PROTOCOL_MAGIC   UINT32_C(0x504c4248) /* "HBLP", little-endian */
#define HB_PROTOCOL_VERSION 1
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
    uint32_t reserved;
    char version[32]; /* of the program, "0.1.0" */
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
    uint32_t table_backend; /* id of the slot's owner */
    uint32_t backend;       /* id of the backend the next packet goes to */
    uint32_t flow_backend;  /* id in the flow entry, when there is one */
    uint32_t worker;        /* index of the worker that has the entry */
    uint32_t flow_idle_ms;  /* since its last packet */
};

/* Refused: the dataplane closes the connection after it. */
struct hb_refused {
    struct hb_message_header header;
    uint32_t error; /* errno value */
    uint32_t reserved;
    char text[HB_TEXT_SIZE]; /* names the cause and the remedy */
};

_Static_assert(sizeof(struct hb_hello_reply) <= HB_MESSAGE_MAX, "the largest message fits");

#endif
