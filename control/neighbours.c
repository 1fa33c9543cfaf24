/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * neighbours.c: see neighbours.h.
 */
#include "neighbours.h"

#include <linux/neighbour.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

/* Pauses between two questions about one entry, ms. An unresolved entry moves one on with each
 * question; resolved entries stay in the last queue. */
static const uint32_t pauses_ms[] = {0, 100, 200, 400, 800, 1600, 3200, 5000, 15000};
#define QUEUES        (sizeof(pauses_ms) / sizeof(pauses_ms[0]))
#define QUEUE_AT_ONCE 0
#define QUEUE_LONGEST (QUEUES - 2)
#define QUEUE_CONFIRM (QUEUES - 1)

TAILQ_HEAD(neighbour_queue, hb_neighbour);

struct hb_neighbours {
    void *tree;                            /* tsearch(3), by link and address */
    LIST_HEAD(, hb_neighbour) all;         /* to walk them while some are removed */
    struct neighbour_queue queues[QUEUES]; /* all used entries */
    uint32_t round;                        /* of the last dump begun */
    bool dumping;
};

static int compare_entries(const void *a, const void *b)
{
    const struct hb_neighbour *x = a, *y = b;

    if (x->ifindex != y->ifindex)
        return x->ifindex < y->ifindex ? -1 : 1;
    return memcmp(&x->address, &y->address, sizeof(x->address));
}

static struct hb_neighbour *find_entry(const struct hb_neighbours *neighbours, uint32_t ifindex,
                                       const struct hb_address *address)
{
    struct hb_neighbour key = {.ifindex = ifindex, .address = *address};
    void *node = tfind(&key, &neighbours->tree, compare_entries);

    return node ? *(struct hb_neighbour **)node : NULL;
}

static struct hb_neighbour *add_entry(struct hb_neighbours *neighbours, uint32_t ifindex,
                                      const struct hb_address *address)
{
    struct hb_neighbour *neighbour = calloc(1, sizeof(*neighbour));

    if (!neighbour)
        return NULL;
    neighbour->ifindex = ifindex;
    neighbour->address = *address;
    LIST_INIT(&neighbour->users);
    if (!tsearch(neighbour, &neighbours->tree, compare_entries)) {
        free(neighbour);
        return NULL;
    }
    LIST_INSERT_HEAD(&neighbours->all, neighbour, all);
    return neighbour;
}

/* Removes an entry that nobody needs any more. During a dump the entries that events have removed
 * stay until its end, so that an older word of the dump does not bring them back. */
static void drop_if_unneeded(struct hb_neighbours *neighbours, struct hb_neighbour *neighbour)
{
    if (neighbour->uses > 0 || neighbour->state != 0 || neighbours->dumping)
        return;
    tdelete(neighbour, &neighbours->tree, compare_entries);
    LIST_REMOVE(neighbour, all);
    free(neighbour);
}

static void enqueue(struct hb_neighbours *neighbours, struct hb_neighbour *neighbour, size_t queue,
                    uint64_t now_ms)
{
    neighbour->queue = (uint8_t)queue;
    neighbour->due_ms = now_ms + pauses_ms[queue];
    TAILQ_INSERT_TAIL(&neighbours->queues[queue], neighbour, waiting);
}

static void requeue(struct hb_neighbours *neighbours, struct hb_neighbour *neighbour, size_t queue,
                    uint64_t now_ms)
{
    if (neighbour->uses == 0)
        return;
    TAILQ_REMOVE(&neighbours->queues[neighbour->queue], neighbour, waiting);
    enqueue(neighbours, neighbour, queue, now_ms);
}

/* Sets what the kernel says of an entry; true when its users see a difference. */
static bool set_entry(struct hb_neighbours *neighbours, struct hb_neighbour *neighbour,
                      const struct hb_netlink_neighbour *news, uint64_t now_ms)
{
    const bool was_valid = neighbour->valid, was_silent = neighbour->silent;
    const int had_error = neighbour->ask_error;
    bool moved = news->has_mac && (!neighbour->known || memcmp(neighbour->mac, news->mac, 6) != 0);

    neighbour->state = news->state;
    neighbour->valid = news->has_mac;
    if (news->has_mac) {
        neighbour->known = true;
        neighbour->silent = false;
        memcpy(neighbour->mac, news->mac, 6);
    } else if (news->state & NUD_FAILED) {
        neighbour->silent = !neighbour->known;
    }
    if (news->state != 0)
        neighbour->ask_error = 0; /* the kernel has the entry, so it took the question */
    if (neighbour->valid && !was_valid)
        requeue(neighbours, neighbour, QUEUE_CONFIRM, now_ms);
    else if (!neighbour->valid && was_valid)
        requeue(neighbours, neighbour, QUEUE_AT_ONCE, now_ms);
    return moved || neighbour->silent != was_silent || neighbour->ask_error != had_error;
}

struct hb_neighbours *hb_neighbours_new(void)
{
    struct hb_neighbours *neighbours = calloc(1, sizeof(*neighbours));

    if (!neighbours)
        return NULL;
    LIST_INIT(&neighbours->all);
    for (size_t i = 0; i < QUEUES; i++)
        TAILQ_INIT(&neighbours->queues[i]);
    return neighbours;
}

void hb_neighbours_free(struct hb_neighbours *neighbours)
{
    if (!neighbours)
        return;
    tdestroy(neighbours->tree, free);
    free(neighbours);
}

struct hb_neighbour *hb_neighbours_apply(struct hb_neighbours *neighbours,
                                         const struct hb_netlink_neighbour *news, uint64_t now_ms)
{
    struct hb_neighbour *neighbour = find_entry(neighbours, news->ifindex, &news->address);
    bool seen;

    if (!neighbour && news->gone && !neighbours->dumping)
        return NULL;
    if (!neighbour)
        neighbour = add_entry(neighbours, news->ifindex, &news->address);
    if (!neighbour)
        return NULL;
    neighbour->round = neighbours->round;
    seen = set_entry(neighbours, neighbour, news, now_ms) && neighbour->uses > 0;
    drop_if_unneeded(neighbours, neighbour);
    return seen ? neighbour : NULL;
}

void hb_neighbours_dump_begin(struct hb_neighbours *neighbours)
{
    neighbours->round++;
    neighbours->dumping = true;
}

struct hb_neighbour *hb_neighbours_apply_dumped(struct hb_neighbours *neighbours,
                                                const struct hb_netlink_neighbour *news,
                                                uint64_t now_ms)
{
    const struct hb_neighbour *neighbour = find_entry(neighbours, news->ifindex, &news->address);

    if (neighbour && neighbour->round == neighbours->round)
        return NULL; /* an event came first */
    return hb_neighbours_apply(neighbours, news, now_ms);
}

void hb_neighbours_dump_end(struct hb_neighbours *neighbours, uint64_t now_ms)
{
    static const struct hb_netlink_neighbour nothing = {.gone = true};
    struct hb_neighbour *neighbour, *next;

    neighbours->dumping = false;
    for (neighbour = LIST_FIRST(&neighbours->all); neighbour; neighbour = next) {
        next = LIST_NEXT(neighbour, all);
        if (neighbour->round != neighbours->round)
            set_entry(neighbours, neighbour, &nothing, now_ms); /* users keep the MAC address */
        drop_if_unneeded(neighbours, neighbour);
    }
}

struct hb_neighbour *hb_neighbours_refused(struct hb_neighbours *neighbours, uint32_t ifindex,
                                           const struct hb_address *address, int error)
{
    struct hb_neighbour *neighbour = find_entry(neighbours, ifindex, address);

    if (!neighbour || neighbour->ask_error == error)
        return NULL;
    neighbour->ask_error = error;
    return neighbour;
}

void hb_neighbours_forget_link(struct hb_neighbours *neighbours, uint32_t ifindex, uint64_t now_ms,
                               void (*changed)(void *context, struct hb_neighbour *neighbour),
                               void *context)
{
    static const struct hb_netlink_neighbour nothing = {.gone = true};
    struct hb_neighbour *neighbour, *next;

    for (neighbour = LIST_FIRST(&neighbours->all); neighbour; neighbour = next) {
        next = LIST_NEXT(neighbour, all);
        if (neighbour->ifindex != ifindex)
            continue;
        set_entry(neighbours, neighbour, &nothing, now_ms);
        neighbour->known = false;
        neighbour->silent = false;
        if (neighbour->uses > 0)
            changed(context, neighbour);
        drop_if_unneeded(neighbours, neighbour);
    }
}

struct hb_neighbour *hb_neighbours_use(struct hb_neighbours *neighbours, uint32_t ifindex,
                                       const struct hb_address *address, uint64_t now_ms)
{
    struct hb_neighbour *neighbour = find_entry(neighbours, ifindex, address);

    if (!neighbour)
        neighbour = add_entry(neighbours, ifindex, address);
    if (!neighbour)
        return NULL;
    /* A valid entry may be hours old: it is asked about as well, at once and then at leisure. */
    if (neighbour->uses++ == 0)
        enqueue(neighbours, neighbour, QUEUE_AT_ONCE, now_ms);
    return neighbour;
}

void hb_neighbours_release(struct hb_neighbours *neighbours, struct hb_neighbour *neighbour)
{
    if (--neighbour->uses == 0)
        TAILQ_REMOVE(&neighbours->queues[neighbour->queue], neighbour, waiting);
    drop_if_unneeded(neighbours, neighbour);
}

uint64_t hb_neighbours_next_due(const struct hb_neighbours *neighbours)
{
    uint64_t due_ms = UINT64_MAX;

    for (size_t i = 0; i < QUEUES; i++) {
        const struct hb_neighbour *first = TAILQ_FIRST(&neighbours->queues[i]);

        if (first && first->due_ms < due_ms)
            due_ms = first->due_ms;
    }
    return due_ms;
}

/* The queue to wait in after a question. */
static size_t next_queue(const struct hb_neighbour *neighbour)
{
    if (neighbour->valid)
        return QUEUE_CONFIRM;
    return neighbour->queue < QUEUE_LONGEST ? neighbour->queue + 1u : QUEUE_LONGEST;
}

struct hb_neighbour *hb_neighbours_next_question(struct hb_neighbours *neighbours, uint64_t now_ms)
{
    for (size_t i = 0; i < QUEUES; i++) {
        struct hb_neighbour *neighbour;

        while ((neighbour = TAILQ_FIRST(&neighbours->queues[i])) && neighbour->due_ms <= now_ms) {
            requeue(neighbours, neighbour, next_queue(neighbour), now_ms);
            /* What an operator has set by hand, and what has no address resolution, stays as it is.
             */
            if (!(neighbour->state & (NUD_PERMANENT | NUD_NOARP)))
                return neighbour;
        }
    }
    return NULL;
}
