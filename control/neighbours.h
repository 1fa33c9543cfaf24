/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbours.h: control's copy of the kernel's neighbour table, and which entries to ask about
 * when.
 *
 * An entry is one address on one link. It is kept while the kernel has it or somebody here uses it,
 * and thousands of users may share one. Its MAC address, once learned, stays until another one is
 * learned. Used entries that the kernel has not resolved are asked for at once and then after
 * growing pauses; resolved ones are confirmed every 15 s, because the traffic of the dataplane
 * bypasses the kernel, which would otherwise never notice that a gateway has changed its address.
 *
 * Entries wait in one queue for each length of pause. In a queue of equal pauses the order of
 * arrival is the order of falling due, so the next one is always at the head: nothing is sorted,
 * nothing is scanned.
 *
 * Pure: no socket, no clock; messages and time (CLOCK_MONOTONIC, ms) come in. One thread.
 */
#ifndef HB_CONTROL_NEIGHBOURS_H
#define HB_CONTROL_NEIGHBOURS_H

#include <stdbool.h>
#include <stdint.h>

#include <sys/queue.h>

#include "address.h"
#include "netlink.h"

struct hb_neighbours;
struct hb_hop_watch; /* of the next hop table, which keeps the lists of users */

struct hb_neighbour {
    /* Read by users; written only in neighbours.c. */
    uint32_t ifindex;
    struct hb_address address;
    bool known; /* `mac` is set */
    uint8_t mac[6];
    bool silent;   /* asked for, and there was no answer; until a MAC address is learned */
    int ask_error; /* errno if the kernel refused to ask for it, else 0 */
    LIST_HEAD(, hb_hop_watch) users;

    /* Of neighbours.c alone. */
    uint32_t uses;
    uint16_t state; /* NUD_*, 0: the kernel has no such entry */
    bool valid;     /* the kernel has it resolved */
    uint8_t queue;  /* index of the pause it waits for */
    uint32_t round; /* of the dump that saw it last */
    uint64_t due_ms;
    TAILQ_ENTRY(hb_neighbour) waiting; /* while used */
    LIST_ENTRY(hb_neighbour) all;
};

struct hb_neighbours *hb_neighbours_new(void); /* NULL: no memory */
void hb_neighbours_free(struct hb_neighbours *neighbours);

/* Takes in a message of the kernel. Returns the entry when something that its users see has changed
 * (it is valid until the next call), else NULL. An entry that does not fit into memory is left out:
 * it is asked for when it is used. */
struct hb_neighbour *hb_neighbours_apply(struct hb_neighbours *neighbours,
                                         const struct hb_netlink_neighbour *news, uint64_t now_ms);

/* The same for a message that is part of a dump. What events have said since
 * hb_neighbours_dump_begin() is newer than the dump and wins. Entries that neither has shown by
 * hb_neighbours_dump_end() are gone. */
void hb_neighbours_dump_begin(struct hb_neighbours *neighbours);
struct hb_neighbour *hb_neighbours_apply_dumped(struct hb_neighbours *neighbours,
                                                const struct hb_netlink_neighbour *news,
                                                uint64_t now_ms);
void hb_neighbours_dump_end(struct hb_neighbours *neighbours, uint64_t now_ms);

/* Notes why the kernel refused a question (errno); returns as hb_neighbours_apply(). */
struct hb_neighbour *hb_neighbours_refused(struct hb_neighbours *neighbours, uint32_t ifindex,
                                           const struct hb_address *address, int error);

/* A link is gone: what was learned on it is worth nothing. Calls `changed` for each used entry. */
void hb_neighbours_forget_link(struct hb_neighbours *neighbours, uint32_t ifindex, uint64_t now_ms,
                               void (*changed)(void *context, struct hb_neighbour *neighbour),
                               void *context);

/* Uses an entry, made if need be; NULL: no memory. Each use needs its release. */
struct hb_neighbour *hb_neighbours_use(struct hb_neighbours *neighbours, uint32_t ifindex,
                                       const struct hb_address *address, uint64_t now_ms);
void hb_neighbours_release(struct hb_neighbours *neighbours, struct hb_neighbour *neighbour);

/* When hb_neighbours_next_question() will have something; UINT64_MAX: not foreseeable. */
uint64_t hb_neighbours_next_due(const struct hb_neighbours *neighbours);

/* The next entry to ask the kernel about, or NULL when none is due. Its next turn is set. */
struct hb_neighbour *hb_neighbours_next_question(struct hb_neighbours *neighbours, uint64_t now_ms);

#endif
