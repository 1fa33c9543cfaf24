/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hop_table.c: see hop_table.h.
 */
#include "hop_table.h"

#include <errno.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

#include "hop_compute.h"

/* What is known of the route to a watched address. */
enum asking {
    ASKING_NOT,       /* nothing under way */
    ASKING_SOON,      /* in the queue `to_ask` */
    ASKING_NOW,       /* in the queue `asked`: the kernel's answer is under way */
    ASKING_NOW_AGAIN, /* the same, but the answer may be out of date already */
};

struct hb_hop_watch {
    struct hb_address address; /* first: the key of the tree */
    uint32_t count;            /* of watches */
    enum asking asking;
    bool answered;                  /* `route` is set */
    struct hb_netlink_route route;  /* the kernel's last answer */
    struct hb_neighbour *neighbour; /* NULL while there is no usable route */
    bool marked;                    /* in the list `marked` */
    struct hb_next_hop hop;         /* as told last */
    LIST_ENTRY(hb_hop_watch) of_neighbour;
    TAILQ_ENTRY(hb_hop_watch) turn; /* to_ask or asked */
    TAILQ_ENTRY(hb_hop_watch) mark;
    LIST_ENTRY(hb_hop_watch) all;
};

struct hop_link {
    uint32_t ifindex; /* first: the key of the tree */
    uint32_t round;   /* of the dump or event that showed it last */
    struct hb_netlink_link is;
    LIST_ENTRY(hop_link) all;
};

TAILQ_HEAD(watch_queue, hb_hop_watch);

struct hb_hop_table {
    struct hb_neighbours *neighbours;
    void *watch_tree; /* tsearch(3) by address */
    void *link_tree;  /* by index */
    LIST_HEAD(, hb_hop_watch) watches;
    LIST_HEAD(, hop_link) links;
    struct watch_queue to_ask;
    struct watch_queue asked;
    struct watch_queue marked; /* their next hops are to be worked out anew */
    uint32_t round;            /* of the last dump begun */
    bool dumping;
};

static int compare_watches(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hb_address));
}

static int compare_links(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;

    return (x > y) - (x < y);
}

static struct hb_hop_watch *find_watch(const struct hb_hop_table *table,
                                       const struct hb_address *address)
{
    void *node = tfind(address, &table->watch_tree, compare_watches);

    return node ? *(struct hb_hop_watch **)node : NULL;
}

static struct hop_link *find_link(const struct hb_hop_table *table, uint32_t ifindex)
{
    void *node = tfind(&ifindex, &table->link_tree, compare_links);

    return node ? *(struct hop_link **)node : NULL;
}

static void mark_watch(struct hb_hop_table *table, struct hb_hop_watch *watch)
{
    if (watch->marked)
        return;
    watch->marked = true;
    TAILQ_INSERT_TAIL(&table->marked, watch, mark);
}

static void mark_users(struct hb_hop_table *table, struct hb_neighbour *neighbour)
{
    struct hb_hop_watch *watch;

    LIST_FOREACH(watch, &neighbour->users, of_neighbour)
    {
        mark_watch(table, watch);
    }
}

static void mark_users_of(void *context, struct hb_neighbour *neighbour)
{
    mark_users(context, neighbour);
}

static void mark_link(struct hb_hop_table *table, uint32_t ifindex)
{
    struct hb_hop_watch *watch;

    LIST_FOREACH(watch, &table->watches, all)
    {
        if (watch->answered && watch->route.ifindex == ifindex)
            mark_watch(table, watch);
    }
}

/* --- Watches --- */

static void ask_soon(struct hb_hop_table *table, struct hb_hop_watch *watch)
{
    if (watch->asking == ASKING_NOW) {
        watch->asking = ASKING_NOW_AGAIN;
    } else if (watch->asking == ASKING_NOT) {
        watch->asking = ASKING_SOON;
        TAILQ_INSERT_TAIL(&table->to_ask, watch, turn);
    }
}

static void stop_asking(struct hb_hop_table *table, struct hb_hop_watch *watch)
{
    if (watch->asking == ASKING_SOON)
        TAILQ_REMOVE(&table->to_ask, watch, turn);
    else if (watch->asking != ASKING_NOT)
        TAILQ_REMOVE(&table->asked, watch, turn);
    watch->asking = ASKING_NOT;
}

static void leave_neighbour(struct hb_hop_table *table, struct hb_hop_watch *watch)
{
    if (!watch->neighbour)
        return;
    LIST_REMOVE(watch, of_neighbour);
    hb_neighbours_release(table->neighbours, watch->neighbour);
    watch->neighbour = NULL;
}

static void compute_hop(const struct hb_hop_table *table, const struct hb_hop_watch *watch,
                        struct hb_next_hop *hop);

int hb_hop_table_watch(struct hb_hop_table *table, const struct hb_address *address)
{
    struct hb_hop_watch *watch = find_watch(table, address);

    if (watch) {
        watch->count++;
        return 0;
    }
    watch = calloc(1, sizeof(*watch));
    if (!watch)
        return -ENOMEM;
    watch->address = *address;
    watch->count = 1;
    if (!tsearch(watch, &table->watch_tree, compare_watches)) {
        free(watch);
        return -ENOMEM;
    }
    LIST_INSERT_HEAD(&table->watches, watch, all);
    compute_hop(table, watch, &watch->hop);
    ask_soon(table, watch);
    return 0;
}

void hb_hop_table_unwatch(struct hb_hop_table *table, const struct hb_address *address)
{
    struct hb_hop_watch *watch = find_watch(table, address);

    if (!watch || --watch->count > 0)
        return;
    stop_asking(table, watch);
    leave_neighbour(table, watch);
    if (watch->marked)
        TAILQ_REMOVE(&table->marked, watch, mark);
    LIST_REMOVE(watch, all);
    tdelete(watch, &table->watch_tree, compare_watches);
    free(watch);
}

bool hb_hop_table_get(const struct hb_hop_table *table, const struct hb_address *address,
                      struct hb_next_hop *hop)
{
    const struct hb_hop_watch *watch = find_watch(table, address);

    if (watch)
        *hop = watch->hop;
    return watch != NULL;
}

/* --- Routes --- */

void hb_hop_table_ask_all(struct hb_hop_table *table)
{
    struct hb_hop_watch *watch;

    LIST_FOREACH(watch, &table->watches, all)
    {
        ask_soon(table, watch);
    }
}

bool hb_hop_table_has_route_question(const struct hb_hop_table *table)
{
    return !TAILQ_EMPTY(&table->to_ask);
}

bool hb_hop_table_next_route_question(struct hb_hop_table *table, struct hb_address *address)
{
    struct hb_hop_watch *watch = TAILQ_FIRST(&table->to_ask);

    if (!watch)
        return false;
    TAILQ_REMOVE(&table->to_ask, watch, turn);
    TAILQ_INSERT_TAIL(&table->asked, watch, turn);
    watch->asking = ASKING_NOW;
    *address = watch->address;
    return true;
}

bool hb_hop_table_awaits_routes(const struct hb_hop_table *table)
{
    return !TAILQ_EMPTY(&table->asked);
}

void hb_hop_table_answers_lost(struct hb_hop_table *table)
{
    struct hb_hop_watch *watch;

    while ((watch = TAILQ_FIRST(&table->asked))) {
        stop_asking(table, watch);
        ask_soon(table, watch);
    }
}

void hb_hop_table_route(struct hb_hop_table *table, const struct hb_netlink_route *answer,
                        uint64_t now_ms)
{
    struct hb_hop_watch *watch = find_watch(table, &answer->destination);
    struct hb_neighbour *neighbour = NULL;
    bool again;

    if (!watch)
        return;
    again = watch->asking == ASKING_NOW_AGAIN;
    if (watch->asking == ASKING_NOW || again)
        stop_asking(table, watch);
    if (again)
        ask_soon(table, watch);
    watch->answered = true;
    watch->route = *answer;
    if (hb_next_hop_usable(answer)) {
        const struct hb_address *gateway =
            answer->gateway.family ? &answer->gateway : &answer->destination;

        neighbour = hb_neighbours_use(table->neighbours, answer->ifindex, gateway, now_ms);
    }
    /* The new one is used before the old one is left: they may be the same. */
    leave_neighbour(table, watch);
    watch->neighbour = neighbour;
    if (neighbour)
        LIST_INSERT_HEAD(&neighbour->users, watch, of_neighbour);
    mark_watch(table, watch);
}

/* --- Links and neighbours --- */

static struct hop_link *add_link(struct hb_hop_table *table, uint32_t ifindex)
{
    struct hop_link *link = calloc(1, sizeof(*link));

    if (!link)
        return NULL;
    link->ifindex = ifindex;
    link->is.gone = true;
    if (!tsearch(link, &table->link_tree, compare_links)) {
        free(link);
        return NULL;
    }
    LIST_INSERT_HEAD(&table->links, link, all);
    return link;
}

static void set_link(struct hb_hop_table *table, struct hop_link *link,
                     const struct hb_netlink_link *news, uint64_t now_ms)
{
    if (memcmp(&link->is, news, sizeof(*news)) == 0)
        return;
    link->is = *news;
    if (news->gone)
        hb_neighbours_forget_link(table->neighbours, news->ifindex, now_ms, mark_users_of, table);
    mark_link(table, news->ifindex);
}

/* During a dump links that events have removed stay, so that an older word of the dump does not
 * bring them back. */
static void drop_link_if_gone(struct hb_hop_table *table, struct hop_link *link)
{
    if (!link->is.gone || table->dumping)
        return;
    tdelete(link, &table->link_tree, compare_links);
    LIST_REMOVE(link, all);
    free(link);
}

void hb_hop_table_link(struct hb_hop_table *table, const struct hb_netlink_link *news, bool dumped,
                       uint64_t now_ms)
{
    struct hop_link *link = find_link(table, news->ifindex);

    if (dumped && link && link->round == table->round)
        return; /* an event came first, and is newer */
    if (!link)
        link = add_link(table, news->ifindex);
    if (!link)
        return; /* no memory: its users say "unknown interface", and the next re-read tries again */
    link->round = table->round;
    set_link(table, link, news, now_ms);
    drop_link_if_gone(table, link);
}

void hb_hop_table_neighbour(struct hb_hop_table *table, const struct hb_netlink_neighbour *news,
                            bool dumped, uint64_t now_ms)
{
    struct hb_neighbour *changed = dumped
                                       ? hb_neighbours_apply_dumped(table->neighbours, news, now_ms)
                                       : hb_neighbours_apply(table->neighbours, news, now_ms);

    if (changed)
        mark_users(table, changed);
}

void hb_hop_table_dump_begin(struct hb_hop_table *table)
{
    table->round++;
    table->dumping = true;
    hb_neighbours_dump_begin(table->neighbours);
}

void hb_hop_table_dump_end(struct hb_hop_table *table, uint64_t now_ms)
{
    struct hop_link *link, *next;

    table->dumping = false;
    hb_neighbours_dump_end(table->neighbours, now_ms);
    for (link = LIST_FIRST(&table->links); link; link = next) {
        const struct hb_netlink_link gone = {.ifindex = link->ifindex, .gone = true};

        next = LIST_NEXT(link, all);
        if (link->round != table->round)
            set_link(table, link, &gone, now_ms);
        drop_link_if_gone(table, link);
    }
}

uint64_t hb_hop_table_next_due(const struct hb_hop_table *table)
{
    return hb_neighbours_next_due(table->neighbours);
}

bool hb_hop_table_next_neighbour_question(struct hb_hop_table *table, uint64_t now_ms,
                                          uint32_t *ifindex, struct hb_address *address)
{
    const struct hb_neighbour *neighbour = hb_neighbours_next_question(table->neighbours, now_ms);

    if (!neighbour)
        return false;
    *ifindex = neighbour->ifindex;
    *address = neighbour->address;
    return true;
}

void hb_hop_table_neighbour_refused(struct hb_hop_table *table, uint32_t ifindex,
                                    const struct hb_address *address, int error)
{
    struct hb_neighbour *changed =
        hb_neighbours_refused(table->neighbours, ifindex, address, error);

    if (changed)
        mark_users(table, changed);
}

/* --- Next hops --- */

static void compute_hop(const struct hb_hop_table *table, const struct hb_hop_watch *watch,
                        struct hb_next_hop *hop)
{
    const struct hop_link *link = watch->answered ? find_link(table, watch->route.ifindex) : NULL;

    hb_next_hop_compute(hop, &watch->address, watch->answered ? &watch->route : NULL,
                        link && !link->is.gone ? &link->is : NULL, watch->neighbour);
}

bool hb_hop_table_next_change(struct hb_hop_table *table, struct hb_address *address)
{
    struct hb_hop_watch *watch;
    struct hb_next_hop hop;

    while ((watch = TAILQ_FIRST(&table->marked))) {
        TAILQ_REMOVE(&table->marked, watch, mark);
        watch->marked = false;
        compute_hop(table, watch, &hop);
        if (memcmp(&hop, &watch->hop, sizeof(hop)) == 0)
            continue;
        memcpy(&watch->hop, &hop, sizeof(hop));
        *address = watch->address;
        return true;
    }
    return false;
}

/* --- The table --- */

struct hb_hop_table *hb_hop_table_new(void)
{
    struct hb_hop_table *table = calloc(1, sizeof(*table));

    if (!table)
        return NULL;
    table->neighbours = hb_neighbours_new();
    if (!table->neighbours) {
        free(table);
        return NULL;
    }
    LIST_INIT(&table->watches);
    LIST_INIT(&table->links);
    TAILQ_INIT(&table->to_ask);
    TAILQ_INIT(&table->asked);
    TAILQ_INIT(&table->marked);
    return table;
}

void hb_hop_table_free(struct hb_hop_table *table)
{
    if (!table)
        return;
    tdestroy(table->watch_tree, free);
    tdestroy(table->link_tree, free);
    hb_neighbours_free(table->neighbours);
    free(table);
}
