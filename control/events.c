/* SPDX-License-Identifier: BSD-3-Clause */
#include "events.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define RESERVED 24 /* of a cause, for "; and 12345 more" */

struct hb_events {
    uint64_t newest;
    hb_events_listener listener;
    void *context;
    struct hb_actor actor;
    char cause[HB_EVENT_CAUSE];
    uint32_t causes_left_out;
    bool cause_is_routine; /* nothing else stands in `cause` */
    struct hb_actor cause_actor;
    struct hb_event ring[HB_EVENTS_KEPT];
};

static const struct {
    const char *name;
    bool is_cause; /* it can change what is published */
} types[HB_NEWS_TYPES] = {
    [HB_NEWS_CONTROL] = {"control", true},      [HB_NEWS_BACKEND] = {"backend", true},
    [HB_NEWS_ROUTE] = {"route", true},          [HB_NEWS_DRAIN] = {"drain", true},
    [HB_NEWS_RELOAD] = {"reload", true},        [HB_NEWS_ROLLBACK] = {"rollback", true},
    [HB_NEWS_POLICY] = {"policy", true},        [HB_NEWS_SETTLED] = {"settled", false},
    [HB_NEWS_PUBLISHED] = {"published", false}, [HB_NEWS_REJECTED] = {"rejected", false},
    [HB_NEWS_DATAPLANE] = {"dataplane", false}, [HB_NEWS_MAINTENANCE] = {"maintenance", false},
    [HB_NEWS_FLUSH] = {"flush", false},
};

const char *hb_news_name(enum hb_news type)
{
    return type < HB_NEWS_TYPES ? types[type].name : "unknown";
}

enum hb_news hb_news_by_name(const char *name)
{
    unsigned type = 0;

    while (type < HB_NEWS_TYPES && strcmp(types[type].name, name) != 0)
        type++;
    return (enum hb_news)type;
}

const char *hb_actor_print(const struct hb_actor *actor, char *text)
{
    text[0] = '\0';
    if (actor->by == HB_ACTOR_UNIX)
        snprintf(text, HB_ACTOR_TEXT, "uid %u (pid %d)", actor->uid, actor->pid);
    else if (actor->by == HB_ACTOR_TCP)
        snprintf(text, HB_ACTOR_TEXT, "a client on TCP");
    else if (actor->by == HB_ACTOR_SIGNAL)
        snprintf(text, HB_ACTOR_TEXT, "SIGHUP");
    return text;
}

struct hb_events *hb_events_new(void)
{
    return calloc(1, sizeof(struct hb_events));
}

void hb_events_free(struct hb_events *events)
{
    free(events);
}

void hb_events_listen(struct hb_events *events, hb_events_listener listener, void *context)
{
    if (events == NULL)
        return;
    events->listener = listener;
    events->context = context;
}

/* --- causes --- */

/* The same may happen to a backend in several pools at once. */
static bool is_told(const char *causes, const char *text)
{
    size_t length = strlen(text);
    const char *at = causes;

    while ((at = strstr(at, text)) != NULL) {
        bool begins = at == causes || strncmp(at - 2, "; ", 2) == 0;

        if (begins && (at[length] == '\0' || at[length] == ';'))
            return true;
        at += length;
    }
    return false;
}

bool hb_cause_add(char cause[HB_EVENT_CAUSE], const char *text)
{
    size_t used = strlen(cause), length = strlen(text);

    if (length == 0 || is_told(cause, text))
        return true;
    if (used > 0 && used + 2 + length >= HB_EVENT_CAUSE - RESERVED)
        return false;
    /* The first is always told, cut if it must be. */
    if (used == 0)
        snprintf(cause, HB_EVENT_CAUSE, "%.*s", HB_EVENT_CAUSE - RESERVED, text);
    else
        snprintf(cause + used, HB_EVENT_CAUSE - used, "; %s", text);
    return true;
}

static __attribute__((format(printf, 3, 0))) void add_cause(struct hb_events *events, bool routine,
                                                            const char *format, va_list arguments)
{
    char text[HB_EVENT_MESSAGE];

    if (events == NULL)
        return;
    vsnprintf(text, sizeof(text), format, arguments);
    if (text[0] == '\0' || is_told(events->cause, text))
        return;
    if (events->cause_actor.by ==
        HB_ACTOR_NONE) /* whom to ask, whatever else happened just before */
        events->cause_actor = events->actor;
    events->cause_is_routine = routine && (events->cause_is_routine || events->cause[0] == '\0');
    events->causes_left_out += !hb_cause_add(events->cause, text);
}

void hb_events_add_cause(struct hb_events *events, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_cause(events, false, format, arguments);
    va_end(arguments);
}

void hb_events_add_routine(struct hb_events *events, const char *format, ...)
{
    va_list arguments;

    va_start(arguments, format);
    add_cause(events, true, format, arguments);
    va_end(arguments);
}

bool hb_events_take_cause(struct hb_events *events, char cause[HB_EVENT_CAUSE],
                          struct hb_actor *actor)
{
    bool routine;
    size_t used;

    cause[0] = '\0';
    *actor = (struct hb_actor){.by = HB_ACTOR_NONE};
    if (events == NULL)
        return false;
    used = strlen(events->cause);
    routine = used > 0 && events->cause_is_routine && events->cause_actor.by == HB_ACTOR_NONE;
    memcpy(cause, events->cause, used + 1);
    if (routine && events->causes_left_out > 0)
        snprintf(cause + used, HB_EVENT_CAUSE - used, "; and more");
    else if (events->causes_left_out > 0)
        snprintf(cause + used, HB_EVENT_CAUSE - used, "; and %u more", events->causes_left_out);
    *actor = events->cause_actor;
    events->cause[0] = '\0';
    events->causes_left_out = 0;
    events->cause_actor = (struct hb_actor){.by = HB_ACTOR_NONE};
    return routine;
}

/* --- events --- */

static uint64_t read_clock(void)
{
    struct timespec now;

    clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t)now.tv_sec * 1000 + (uint64_t)now.tv_nsec / 1000000;
}

void hb_events_add(struct hb_events *events, enum hb_news type, const char *pool,
                   const char *object, const char *format, ...)
{
    struct hb_event *event;
    va_list arguments;

    if (events == NULL)
        return;
    event = &events->ring[++events->newest % HB_EVENTS_KEPT];
    *event = (struct hb_event){
        .number = events->newest, .unix_ms = read_clock(), .type = type, .actor = events->actor};
    snprintf(event->pool, sizeof(event->pool), "%s", pool ? pool : "");
    snprintf(event->object, sizeof(event->object), "%s", object ? object : "");
    va_start(arguments, format);
    vsnprintf(event->message, sizeof(event->message), format, arguments);
    va_end(arguments);
    if (types[type].is_cause)
        hb_events_add_cause(events, "%s", event->message);
    if (events->listener != NULL)
        events->listener(events->context, event);
}

void hb_events_begin(struct hb_events *events, const struct hb_actor *actor)
{
    if (events != NULL)
        events->actor = *actor;
}

void hb_events_end(struct hb_events *events)
{
    if (events != NULL)
        events->actor = (struct hb_actor){.by = HB_ACTOR_NONE};
}

struct hb_actor hb_events_actor(const struct hb_events *events)
{
    return events ? events->actor : (struct hb_actor){.by = HB_ACTOR_NONE};
}

uint64_t hb_events_newest(const struct hb_events *events)
{
    return events ? events->newest : 0;
}

uint64_t hb_events_oldest(const struct hb_events *events)
{
    uint64_t newest = hb_events_newest(events);

    return newest > HB_EVENTS_KEPT ? newest - HB_EVENTS_KEPT + 1 : newest > 0;
}

const struct hb_event *hb_events_get(const struct hb_events *events, uint64_t number)
{
    if (number == 0 || number < hb_events_oldest(events) || number > hb_events_newest(events))
        return NULL;
    return &events->ring[number % HB_EVENTS_KEPT];
}
