/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * next_hop.c: the way between the kernel (rtnetlink) and the next hop table.
 *
 * Two sockets. `events` hears of every change; when it overruns, everything is read again.
 * `queries` asks and reads the answers: the dumps of a re-read, one after the other, and otherwise
 * routes in batches that fit its receive buffer. Answers need no bookkeeping, because each says
 * what it is about: a route names its destination, and an error quotes the request. What to ask,
 * and what the answers mean, is decided in hop_table.c and neighbours.c.
 *
 * A thousand route events cost one pass over the watched addresses: the first starts a short delay,
 * and the delay grows with the time that a pass takes, so that passes never fill more than a fifth
 * of the time.
 */
#include "next_hop.h"

#include <errno.h>
#include <linux/rtnetlink.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <event2/event.h>
#include <libmnl/libmnl.h>

#include "hop_table.h"
#include "netlink.h"
#include "netlink_socket.h"

#define COALESCE_MS       20   /* from a first route event to the pass */
#define PASS_SHARE        4    /* a pause is at least this many times as long as the last pass */
#define PASS_PAUSE_MAX_MS 1000 /* and at most this long */
#define BATCH             64   /* questions at once: their answers fit the default receive buffer */
#define BATCH_PAUSE_MS    10 /* between batches of neighbours: each makes the kernel send a packet */
#define ANSWER_LIMIT_MS   1000 /* after which answers count as lost */
#define READ_PAUSE_MS     100 /* between re-reads: questions have their turn in any storm of events */
#define OPEN_LIMIT_MS     3000
#define READS_MAX         64 /* datagrams in one go, then others on the event loop have their turn */

enum reading { READING_NOTHING, READING_LINKS, READING_NEIGHBOURS };

struct hb_next_hops {
    hb_next_hop_changed changed;
    void *context;
    struct hb_hop_table *table;
    struct mnl_socket *events;
    struct mnl_socket *queries;
    struct event *events_readable;
    struct event *queries_readable;
    struct event *pass_timer; /* then a pass over all watched addresses begins */
    struct event *work_timer; /* then there is something to ask */
    uint32_t seq;

    enum reading reading; /* stage of the re-read */
    bool read_again;      /* what is being read may miss something */
    bool overrun;         /* events were lost, and the queue still holds older ones */
    uint32_t dump_seq;
    uint64_t read_due_ms; /* when to begin (again); UINT64_MAX: no need */
    uint64_t read_ended_ms;

    bool passing;
    uint64_t pass_began_ms;
    uint64_t pass_took_ms;
    uint64_t asked_ms; /* when the last batch of routes was asked for */

    char buffer[65536] __attribute__((aligned(NLMSG_ALIGNTO))); /* one datagram */
};

static uint64_t read_clock_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

static void set_timer(struct event *timer, uint64_t delay_ms)
{
    struct timeval delay = {.tv_sec = (time_t)(delay_ms / 1000),
                            .tv_usec = (suseconds_t)(delay_ms % 1000 * 1000)};

    evtimer_add(timer, &delay);
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

static void schedule_pass(struct hb_next_hops *hops)
{
    uint64_t pause_ms = hops->pass_took_ms * PASS_SHARE;

    if (pause_ms < COALESCE_MS)
        pause_ms = COALESCE_MS;
    if (!evtimer_pending(hops->pass_timer, NULL))
        set_timer(hops->pass_timer, earlier(pause_ms, PASS_PAUSE_MAX_MS));
}

/* --- Re-reading links and neighbours --- */

static int send_dump(struct hb_next_hops *hops, enum reading reading)
{
    char buffer[HB_NETLINK_REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
    uint16_t type = reading == READING_LINKS ? RTM_GETLINK : RTM_GETNEIGH;
    struct nlmsghdr *message = hb_netlink_build_dump(buffer, type, ++hops->seq);

    hops->reading = reading;
    hops->dump_seq = hops->seq;
    hops->read_due_ms = read_clock_ms() + ANSWER_LIMIT_MS; /* unless it is done by then */
    return mnl_socket_sendto(hops->queries, message, message->nlmsg_len) < 0 ? -errno : 0;
}

/* A failure to send needs nothing more: the time limit of the dump tries again. */
static int begin_reading(struct hb_next_hops *hops)
{
    hops->read_again = false;
    hb_hop_table_dump_begin(hops->table);
    return send_dump(hops, READING_LINKS);
}

static void want_reading(struct hb_next_hops *hops)
{
    if (hops->reading != READING_NOTHING)
        hops->read_again = true;
    else
        hops->read_due_ms = earlier(hops->read_due_ms, hops->read_ended_ms + READ_PAUSE_MS);
}

static void end_dump(struct hb_next_hops *hops)
{
    if (hops->reading == READING_LINKS) {
        send_dump(hops, READING_NEIGHBOURS);
        return;
    }
    hops->reading = READING_NOTHING;
    hops->read_due_ms = UINT64_MAX;
    hops->read_ended_ms = read_clock_ms();
    /* An incomplete dump does not end for the table: nothing may be thought gone because of it. */
    if (hops->read_again)
        want_reading(hops);
    else
        hb_hop_table_dump_end(hops->table, hops->read_ended_ms);
    hb_hop_table_ask_all(hops->table);
}

/* --- Messages in --- */

static void take_link(struct hb_next_hops *hops, const struct nlmsghdr *message, bool dumped)
{
    struct hb_netlink_link link;

    if (hb_netlink_parse_link(message, &link) == 0)
        hb_hop_table_link(hops->table, &link, dumped, read_clock_ms());
}

static void take_neighbour(struct hb_next_hops *hops, const struct nlmsghdr *message, bool dumped)
{
    struct hb_netlink_neighbour neighbour;

    if (hb_netlink_parse_neighbour(message, &neighbour) == 0)
        hb_hop_table_neighbour(hops->table, &neighbour, dumped, read_clock_ms());
}

static void take_event(struct hb_next_hops *hops, const struct nlmsghdr *message)
{
    switch (message->nlmsg_type) {
    case RTM_NEWLINK:
    case RTM_DELLINK:
        take_link(hops, message, false);
        schedule_pass(hops);
        break;
    case RTM_NEWNEIGH:
    case RTM_DELNEIGH:
        take_neighbour(hops, message, false);
        break;
    default: /* a route, a rule, a nexthop object or an address of this machine */
        schedule_pass(hops);
    }
}

/* A request was refused, and is quoted. */
static void take_error(struct hb_next_hops *hops, const struct nlmsghdr *message)
{
    const struct nlmsghdr *request;
    struct hb_netlink_route route;
    struct hb_netlink_neighbour neighbour;
    int error = hb_netlink_parse_error(message, &request);

    if (hops->reading != READING_NOTHING && message->nlmsg_seq == hops->dump_seq)
        hops->read_again = true; /* at its time limit */
    if (!request || error == 0)
        return;
    if (request->nlmsg_type == RTM_GETROUTE && hb_netlink_parse_route(request, &route) == 0) {
        route.error = error;
        hb_hop_table_route(hops->table, &route, read_clock_ms());
    } else if (request->nlmsg_type == RTM_NEWNEIGH &&
               hb_netlink_parse_neighbour(request, &neighbour) == 0) {
        hb_hop_table_neighbour_refused(hops->table, neighbour.ifindex, &neighbour.address, error);
    }
}

static void take_answer(struct hb_next_hops *hops, const struct nlmsghdr *message)
{
    bool dumped = hops->reading != READING_NOTHING && message->nlmsg_seq == hops->dump_seq;
    struct hb_netlink_route route;

    if (dumped && (message->nlmsg_flags & NLM_F_DUMP_INTR))
        hops->read_again = true; /* the table changed while it was read */
    if (message->nlmsg_type == NLMSG_ERROR)
        take_error(hops, message);
    else if (message->nlmsg_type == RTM_NEWROUTE && hb_netlink_parse_route(message, &route) == 0)
        hb_hop_table_route(hops->table, &route, read_clock_ms());
    else if (message->nlmsg_type == RTM_NEWLINK && dumped)
        take_link(hops, message, true);
    else if (message->nlmsg_type == RTM_NEWNEIGH && dumped)
        take_neighbour(hops, message, true);
    else if (message->nlmsg_type == NLMSG_DONE && dumped)
        end_dump(hops);
}

/* What became of reading a socket, as bits. */
#define READ_ALL     1 /* nothing is left */
#define READ_OVERRUN 2 /* the kernel had to throw something away */

static int read_socket(struct hb_next_hops *hops, struct mnl_socket *socket,
                       void (*take)(struct hb_next_hops *hops, const struct nlmsghdr *message))
{
    int result = 0;

    for (int i = 0; i < READS_MAX; i++) {
        ssize_t size = mnl_socket_recvfrom(socket, hops->buffer, sizeof(hops->buffer));
        const struct nlmsghdr *message = (const struct nlmsghdr *)hops->buffer;
        int left = (int)size;

        if (size < 0 && errno == EINTR)
            continue;
        if (size < 0 && (errno == ENOBUFS || errno == ENOSPC)) /* ENOSPC: larger than the buffer */
            result |= READ_OVERRUN;
        else if (size < 0)
            return result | READ_ALL;
        for (; left > 0 && mnl_nlmsg_ok(message, left); message = mnl_nlmsg_next(message, &left))
            take(hops, message);
    }
    return result;
}

/* After an overrun the queue holds what was before the loss, and until it is empty the kernel
 * throws every other event away, too, without another word. So the re-read begins when it is empty:
 * from then on each event is newer than what is read. */
static void read_events(struct hb_next_hops *hops)
{
    int result = read_socket(hops, hops->events, take_event);

    if (result & READ_OVERRUN)
        hops->overrun = true;
    if (hops->overrun && (result & READ_ALL)) {
        hops->overrun = false;
        want_reading(hops);
    }
}

static void read_answers(struct hb_next_hops *hops)
{
    if (read_socket(hops, hops->queries, take_answer) & READ_OVERRUN) {
        hb_hop_table_answers_lost(hops->table);
        if (hops->reading != READING_NOTHING)
            hops->read_again = true;
    }
}

/* --- Questions out --- */

struct batch {
    size_t size;
    unsigned count;
    char bytes[BATCH * HB_NETLINK_REQUEST_MAX] __attribute__((aligned(NLMSG_ALIGNTO)));
};

static void add_to_batch(struct batch *batch, const struct nlmsghdr *message)
{
    batch->size += message->nlmsg_len;
    batch->count++;
}

static void ask_routes(struct hb_next_hops *hops, uint64_t now_ms)
{
    struct batch batch = {.size = 0};
    struct hb_address address;

    if (hb_hop_table_awaits_routes(hops->table)) {
        if (now_ms < hops->asked_ms + ANSWER_LIMIT_MS)
            return;
        hb_hop_table_answers_lost(hops->table);
    }
    while (batch.count < BATCH && hb_hop_table_next_route_question(hops->table, &address))
        add_to_batch(&batch,
                     hb_netlink_build_get_route(batch.bytes + batch.size, &address, ++hops->seq));
    if (batch.count > 0) {
        hops->asked_ms = now_ms;
        /* What cannot be sent is asked for again when its answer is overdue. */
        mnl_socket_sendto(hops->queries, batch.bytes, batch.size);
    } else if (hops->passing) {
        hops->passing = false;
        hops->pass_took_ms = now_ms - hops->pass_began_ms;
    }
}

/* Returns whether there may be more that are due. What cannot be sent has its turn later. */
static bool ask_neighbours(struct hb_next_hops *hops, uint64_t now_ms)
{
    struct batch batch = {.size = 0};
    struct hb_address address;
    uint32_t ifindex;

    while (batch.count < BATCH &&
           hb_hop_table_next_neighbour_question(hops->table, now_ms, &ifindex, &address))
        add_to_batch(&batch, hb_netlink_build_use_neighbour(batch.bytes + batch.size, ifindex,
                                                            &address, ++hops->seq));
    if (batch.count > 0)
        mnl_socket_sendto(hops->queries, batch.bytes, batch.size);
    return batch.count == BATCH;
}

/* When there will be something to ask again; answers and events come by themselves. */
static uint64_t find_next_time(const struct hb_next_hops *hops, uint64_t now_ms)
{
    uint64_t due_ms = hops->read_due_ms;

    if (hops->reading != READING_NOTHING)
        return due_ms;
    if (hb_hop_table_awaits_routes(hops->table))
        due_ms = earlier(due_ms, hops->asked_ms + ANSWER_LIMIT_MS);
    else if (hb_hop_table_has_route_question(hops->table))
        due_ms = now_ms;
    return earlier(due_ms, hb_hop_table_next_due(hops->table));
}

/* Asks what is to be asked now, tells what has changed, and sets the timer for the next time. */
static void work(struct hb_next_hops *hops)
{
    uint64_t now_ms = read_clock_ms(), due_ms;
    struct hb_address address;
    bool more = false;

    if (now_ms >= hops->read_due_ms)
        begin_reading(hops);
    if (hops->reading == READING_NOTHING) {
        ask_routes(hops, now_ms);
        more = ask_neighbours(hops, now_ms);
    }
    /* The owner may watch and unwatch from within, so what is next is worked out afterwards. */
    while (hb_hop_table_next_change(hops->table, &address))
        hops->changed(hops->context, &address);

    due_ms = find_next_time(hops, now_ms);
    if (more && due_ms < now_ms + BATCH_PAUSE_MS)
        due_ms = now_ms + BATCH_PAUSE_MS;
    if (due_ms != UINT64_MAX)
        set_timer(hops->work_timer, due_ms > now_ms ? due_ms - now_ms : 0);
}

/* --- The event loop --- */

static void on_events(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    read_events(context);
    work(context);
}

static void on_answers(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    read_answers(context);
    work(context);
}

static void on_work(evutil_socket_t fd, short what, void *context)
{
    (void)fd;
    (void)what;
    work(context);
}

static void on_pass(evutil_socket_t fd, short what, void *context)
{
    struct hb_next_hops *hops = context;

    (void)fd;
    (void)what;
    if (hops->passing) { /* let it end first */
        schedule_pass(hops);
        return;
    }
    hops->passing = true;
    hops->pass_began_ms = read_clock_ms();
    hb_hop_table_ask_all(hops->table);
    work(hops);
}

/* --- Open and close --- */

/* The first read, while the event loop does not turn yet. */
static int read_at_open(struct hb_next_hops *hops)
{
    uint64_t limit_ms = read_clock_ms() + OPEN_LIMIT_MS;
    struct pollfd poll_for = {.fd = mnl_socket_get_fd(hops->queries), .events = POLLIN};
    int error = begin_reading(hops);

    while (error == 0 && hops->read_due_ms != UINT64_MAX) {
        uint64_t now_ms = read_clock_ms();

        if (now_ms >= limit_ms)
            return -ETIMEDOUT;
        if (now_ms >= hops->read_due_ms)
            error = begin_reading(hops);
        if (poll(&poll_for, 1, 100) > 0)
            read_answers(hops);
    }
    return error;
}

static int start(struct hb_next_hops *hops, struct event_base *base)
{
    int error;

    hops->read_due_ms = UINT64_MAX;
    hops->table = hb_hop_table_new();
    hops->pass_timer = evtimer_new(base, on_pass, hops);
    hops->work_timer = evtimer_new(base, on_work, hops);
    if (!hops->table || !hops->pass_timer || !hops->work_timer)
        return -ENOMEM;
    hops->events = hb_netlink_open_events(); /* before reading: what changes meanwhile is heard */
    hops->queries = hops->events ? hb_netlink_open() : NULL;
    if (!hops->queries)
        return -errno;
    error = read_at_open(hops);
    if (error < 0)
        return error;
    hops->events_readable =
        event_new(base, mnl_socket_get_fd(hops->events), EV_READ | EV_PERSIST, on_events, hops);
    hops->queries_readable =
        event_new(base, mnl_socket_get_fd(hops->queries), EV_READ | EV_PERSIST, on_answers, hops);
    if (!hops->events_readable || !hops->queries_readable ||
        event_add(hops->events_readable, NULL) < 0 || event_add(hops->queries_readable, NULL) < 0)
        return -ENOMEM;
    return 0;
}

struct hb_next_hops *hb_next_hops_open(struct event_base *base, hb_next_hop_changed changed,
                                       void *context)
{
    struct hb_next_hops *hops = calloc(1, sizeof(*hops));
    int error;

    if (!hops)
        return NULL;
    hops->changed = changed;
    hops->context = context;
    error = start(hops, base);
    if (error < 0) {
        hb_next_hops_close(hops);
        errno = -error;
        return NULL;
    }
    return hops;
}

static void free_event(struct event *event)
{
    if (event)
        event_free(event);
}

void hb_next_hops_close(struct hb_next_hops *hops)
{
    if (!hops)
        return;
    free_event(hops->queries_readable);
    free_event(hops->events_readable);
    if (hops->queries)
        mnl_socket_close(hops->queries);
    if (hops->events)
        mnl_socket_close(hops->events);
    free_event(hops->work_timer);
    free_event(hops->pass_timer);
    hb_hop_table_free(hops->table);
    free(hops);
}

int hb_next_hops_watch(struct hb_next_hops *hops, const struct hb_address *address)
{
    int error = hb_hop_table_watch(hops->table, address);

    if (error == 0)
        set_timer(hops->work_timer, 0);
    return error;
}

void hb_next_hops_unwatch(struct hb_next_hops *hops, const struct hb_address *address)
{
    hb_hop_table_unwatch(hops->table, address);
}

bool hb_next_hops_get(const struct hb_next_hops *hops, const struct hb_address *address,
                      struct hb_next_hop *hop)
{
    return hb_hop_table_get(hops->table, address, hop);
}
