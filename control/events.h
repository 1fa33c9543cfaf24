/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * events.h: what happened, for operators: the last thousand events, and who is told of new ones.
 *
 * Whoever makes something happen adds an event, next to the line that it logs:
 *
 *     hb_events_add(control->events, HB_NEWS_DRAIN, pool->name, backend->name, "drained by ...");
 *
 * The ring is bounded, adding never waits and never fails. While a request is handled the API says
 * who asked (hb_events_begin()), and events added meanwhile carry that.
 *
 * Events that can lead to a generation are also kept as the cause of the next one, until
 * hb_events_take_cause(). So the history of generations (history.h) needs no words of its own.
 *
 * Pure but for the clock that time stamps come from. One thread.
 */
#ifndef HB_CONTROL_EVENTS_H
#define HB_CONTROL_EVENTS_H

#include <stdbool.h>
#include <stdint.h>

#include "halbach/types.h"

#define HB_EVENTS_KEPT   1024
#define HB_EVENT_MESSAGE 320
#define HB_EVENT_CAUSE   256

enum hb_news {
    HB_NEWS_CONTROL,     /* control itself: start, state files */
    HB_NEWS_BACKEND,     /* a backend is up or down, with the reason */
    HB_NEWS_ROUTE,       /* a backend's next hop was found, changed or lost */
    HB_NEWS_DRAIN,       /* drains and weights: what operators do to backends */
    HB_NEWS_RELOAD,      /* the configuration file was read again, or refused */
    HB_NEWS_ROLLBACK,    /* a former configuration was taken */
    HB_NEWS_POLICY,      /* a rule of a pool took effect or ended: panic, backup, slow start */
    HB_NEWS_SETTLED,     /* slots have settled */
    HB_NEWS_PUBLISHED,   /* the dataplane serves a generation */
    HB_NEWS_REJECTED,    /* it refused one */
    HB_NEWS_DATAPLANE,   /* it connected, or was lost */
    HB_NEWS_MAINTENANCE, /* the balancer was taken out of service or put back; its command */
    HB_NEWS_FLUSH,       /* the flow caches were emptied */
    HB_NEWS_TYPES
};

/* Who asked for something over the API. */
struct hb_actor {
    enum { HB_ACTOR_NONE, HB_ACTOR_UNIX, HB_ACTOR_TCP, HB_ACTOR_SIGNAL } by;
    uint32_t uid; /* of the peer, HB_ACTOR_UNIX */
    int32_t pid;  /* the same */
};

struct hb_event {
    uint64_t number;  /* 1, 2, 3, ... since the start of control */
    uint64_t unix_ms; /* milliseconds since 1970 */
    enum hb_news type;
    struct hb_actor actor;
    char pool[HB_NAME_SIZE];   /* "": not about a pool */
    char object[HB_NAME_SIZE]; /* backend or service; "": none */
    char message[HB_EVENT_MESSAGE];
};

struct hb_events;

/* Called for each new event, after it is in the ring; must not add events. */
typedef void (*hb_events_listener)(void *context, const struct hb_event *event);

/* NULL without memory. All functions take NULL and do nothing then. */
struct hb_events *hb_events_new(void);
void hb_events_free(struct hb_events *events);
void hb_events_listen(struct hb_events *events, hb_events_listener listener, void *context);

/* `pool` and `object` may be NULL. A message that is too long is cut. */
void hb_events_add(struct hb_events *events, enum hb_news type, const char *pool,
                   const char *object, const char *format, ...)
    __attribute__((format(printf, 5, 6)));
/* Only a cause of the next generation, no event: for what happens too often or is not worth one. */
void hb_events_add_cause(struct hb_events *events, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Between the two, events are this actor's doing. */
void hb_events_begin(struct hb_events *events, const struct hb_actor *actor);
void hb_events_end(struct hb_events *events);
struct hb_actor hb_events_actor(const struct hb_events *events);

/* The same for what goes on by itself, step by step, long after somebody began it: slow starts,
 * slots that settle. It is worded without figures, so that each step has the same words. */
void hb_events_add_routine(struct hb_events *events, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Moves out what has happened since the last call and can change what is published: "backend web1
 * is down: port 80: refused; drain of web2", or "" when nothing has. Also who began it. Returns
 * whether there was nothing but routine. */
bool hb_events_take_cause(struct hb_events *events, char cause[HB_EVENT_CAUSE],
                          struct hb_actor *actor);

/* "; TEXT" at the end of `cause`, unless it says so already. False when there is no room; some is
 * always left for "; and 12345 more". */
bool hb_cause_add(char cause[HB_EVENT_CAUSE], const char *text);

/* The number of the newest event and of the oldest that is kept; 0 when there is none. */
uint64_t hb_events_newest(const struct hb_events *events);
uint64_t hb_events_oldest(const struct hb_events *events);
/* The event of a number, or NULL when it is not kept. Borrowed until the next is added. */
const struct hb_event *hb_events_get(const struct hb_events *events, uint64_t number);

/* "backend", "drain", ... */
const char *hb_news_name(enum hb_news type);
/* HB_NEWS_TYPES when there is none of this name. */
enum hb_news hb_news_by_name(const char *name);

/* "uid 0 (pid 4711)", "a client on TCP", "SIGHUP" or "" into `text` of HB_ACTOR_TEXT. */
#define HB_ACTOR_TEXT 48
const char *hb_actor_print(const struct hb_actor *actor, char *text);

#endif
