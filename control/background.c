/* SPDX-License-Identifier: BSD-3-Clause */
#include "background.h"

#include <errno.h>
#include <event2/event.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

struct entry {
    struct entry *next;
    struct hb_job job;
    int error;
    char name[];
};

/* First in, first out. */
struct list {
    struct entry *first;
    struct entry **last; /* where the next one is hung in; NULL: at `first` */
};

struct hb_background {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t work; /* there is some, or none will come any more */
    pthread_cond_t over; /* a job is */
    struct list waiting, ended;
    struct entry *running;
    bool closing;

    int wake; /* eventfd: something has ended */
    struct event *woken;
};

static void append(struct list *list, struct entry *entry)
{
    entry->next = NULL;
    *(list->first == NULL ? &list->first : list->last) = entry;
    list->last = &entry->next;
}

static struct entry *take_first(struct list *list)
{
    struct entry *entry = list->first;

    if (entry != NULL)
        list->first = entry->next;
    return entry;
}

static struct entry *find(const struct list *list, const char *name)
{
    struct entry *entry = list->first;

    while (entry != NULL && strcmp(entry->name, name) != 0)
        entry = entry->next;
    return entry;
}

static void free_entry(struct entry *entry)
{
    entry->job.free(entry->job.data);
    free(entry);
}

/* --- the thread --- */

static void *work(void *argument)
{
    struct hb_background *background = argument;
    const uint64_t one = 1;
    struct entry *entry;

    pthread_mutex_lock(&background->lock);
    for (;;) {
        while (background->waiting.first == NULL && !background->closing)
            pthread_cond_wait(&background->work, &background->lock);
        entry = take_first(&background->waiting);
        if (entry == NULL)
            break;
        background->running = entry;
        pthread_mutex_unlock(&background->lock);
        entry->error = entry->job.run(entry->job.data);
        pthread_mutex_lock(&background->lock);
        background->running = NULL;
        append(&background->ended, entry);
        pthread_cond_broadcast(&background->over);
        /* A full counter is as good as one more. */
        if (write(background->wake, &one, sizeof(one)) < 0)
            continue;
    }
    pthread_mutex_unlock(&background->lock);
    return NULL;
}

/* --- the event loop's side --- */

static void tell_ended(struct hb_background *background)
{
    struct entry *entry;

    pthread_mutex_lock(&background->lock);
    while ((entry = take_first(&background->ended)) != NULL) {
        pthread_mutex_unlock(&background->lock);
        entry->job.done(entry->job.context, entry->job.data, entry->error);
        free_entry(entry);
        pthread_mutex_lock(&background->lock);
    }
    pthread_mutex_unlock(&background->lock);
}

static void on_woken(evutil_socket_t fd, short what, void *context)
{
    uint64_t count;

    (void)what;
    if (read(fd, &count, sizeof(count)) == sizeof(count))
        tell_ended(context);
}

/* Signals are for the event loop. */
static int start_thread(struct hb_background *background)
{
    sigset_t all, before;
    int error;

    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    error = pthread_create(&background->thread, NULL, work, background);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    return error;
}

static void free_background(struct hb_background *background)
{
    if (background->woken != NULL)
        event_free(background->woken);
    if (background->wake >= 0)
        close(background->wake);
    pthread_cond_destroy(&background->over);
    pthread_cond_destroy(&background->work);
    pthread_mutex_destroy(&background->lock);
    free(background);
}

struct hb_background *hb_background_open(struct event_base *base)
{
    struct hb_background *background = calloc(1, sizeof(*background));
    int error = ENOMEM;

    if (background == NULL)
        return NULL;
    pthread_mutex_init(&background->lock, NULL);
    pthread_cond_init(&background->work, NULL);
    pthread_cond_init(&background->over, NULL);
    background->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (background->wake >= 0)
        background->woken =
            event_new(base, background->wake, EV_READ | EV_PERSIST, on_woken, background);
    if (background->woken != NULL && event_add(background->woken, NULL) == 0)
        error = start_thread(background);
    if (error == 0)
        return background;
    free_background(background);
    errno = error;
    return NULL;
}

void hb_background_close(struct hb_background *background)
{
    struct entry *entry;

    if (background == NULL)
        return;
    pthread_mutex_lock(&background->lock);
    background->closing = true;
    pthread_cond_signal(&background->work);
    pthread_mutex_unlock(&background->lock);
    pthread_join(background->thread, NULL);
    while ((entry = take_first(&background->ended)) != NULL)
        free_entry(entry);
    free_background(background);
}

/* Runs on the event loop what there is no memory to queue. */
static void run_here(struct hb_background *background, const struct hb_job *job)
{
    hb_background_hold(background, job->name);
    job->done(job->context, job->data, job->run(job->data));
    job->free(job->data);
}

void hb_background_add(struct hb_background *background, const struct hb_job *job)
{
    size_t size = strlen(job->name) + 1;
    struct entry *entry = calloc(1, sizeof(*entry) + size), *same;
    struct hb_job replaced = {0};

    if (entry == NULL) {
        run_here(background, job);
        return;
    }
    memcpy(entry->name, job->name, size);
    entry->job = *job;
    entry->job.name = entry->name;
    pthread_mutex_lock(&background->lock);
    same = find(&background->waiting, job->name);
    if (same != NULL) {
        replaced = same->job;
        same->job = entry->job;
        same->job.name = same->name;
    } else {
        append(&background->waiting, entry);
        pthread_cond_signal(&background->work);
    }
    pthread_mutex_unlock(&background->lock);
    if (same == NULL)
        return;
    replaced.free(replaced.data);
    free(entry);
}

bool hb_background_has(struct hb_background *background, const char *name)
{
    bool has;

    pthread_mutex_lock(&background->lock);
    has = find(&background->waiting, name) != NULL || find(&background->ended, name) != NULL ||
          (background->running != NULL && strcmp(background->running->name, name) == 0);
    pthread_mutex_unlock(&background->lock);
    return has;
}

bool hb_background_busy(struct hb_background *background)
{
    bool busy;

    pthread_mutex_lock(&background->lock);
    busy = background->waiting.first != NULL || background->running != NULL ||
           background->ended.first != NULL;
    pthread_mutex_unlock(&background->lock);
    return busy;
}

bool hb_background_hold(struct hb_background *background, const char *name)
{
    struct entry *entry, **link;

    pthread_mutex_lock(&background->lock);
    entry = find(&background->waiting, name);
    for (link = &background->waiting.first; entry != NULL && *link != entry;)
        link = &(*link)->next;
    if (entry != NULL) {
        *link = entry->next;
        if (entry->next == NULL)
            background->waiting.last = link;
    }
    while (background->running != NULL && strcmp(background->running->name, name) == 0)
        pthread_cond_wait(&background->over, &background->lock);
    pthread_mutex_unlock(&background->lock);
    if (entry != NULL)
        free_entry(entry);
    return entry != NULL;
}

void hb_background_finish(struct hb_background *background)
{
    pthread_mutex_lock(&background->lock);
    while (background->waiting.first != NULL || background->running != NULL)
        pthread_cond_wait(&background->over, &background->lock);
    pthread_mutex_unlock(&background->lock);
    tell_ended(background);
}
