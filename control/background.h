/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * background.h: work that waits for a disk, on a thread of its own, so that nothing else waits.
 *
 * Jobs run one after the other in the order in which they were given. A job whose name stands in
 * the queue already takes that one's place: only the newest contents of a file are worth writing,
 * so the queue is never longer than there are names. What a job works on belongs to it until it is
 * over; it shares nothing with the event loop, so there is no other lock than the queue's.
 *
 * What an operator is told to be done must be on the disk before: who needs that writes by itself,
 * after hb_background_hold(), so that nothing older is written over it afterwards.
 *
 * All of it is called on the event loop's thread, except `run`.
 */
#ifndef HB_CONTROL_BACKGROUND_H
#define HB_CONTROL_BACKGROUND_H

#include <stdbool.h>

struct event_base;
struct hb_background;

struct hb_job {
    const char *name; /* copied */
    /* On the thread; 0 or negative errno. */
    int (*run)(void *data);
    /* On the event loop, after `run`; not when the job was replaced or dropped. */
    void (*done)(void *context, const void *data, int error);
    void (*free)(void *data); /* on the event loop, in any case */
    void *data, *context;
};

/* NULL with errno. */
struct hb_background *hb_background_open(struct event_base *base);
/* Runs what is in the queue, then ends the thread; tells no one any more. NULL is allowed. */
void hb_background_close(struct hb_background *background);

/* Takes the job over. Without memory for it, runs it at once. */
void hb_background_add(struct hb_background *background, const struct hb_job *job);

/* Whether a job of this name is in the queue, under way, or over without having been told. */
bool hb_background_has(struct hb_background *background, const char *name);
/* Whether there is any. */
bool hb_background_busy(struct hb_background *background);

/* Drops the job of this name, or waits for its end when it is under way. Returns whether one was
 * dropped, so that what it was about has not been done. */
bool hb_background_hold(struct hb_background *background, const char *name);

/* Waits until all jobs are over, and tells it. */
void hb_background_finish(struct hb_background *background);

#endif
