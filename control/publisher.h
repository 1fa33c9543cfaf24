/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publisher.h: control's end of the connection to the dataplane.
 *
 * Keeps trying to connect (every 100 ms: a restarted dataplane is served within a second), says
 * hello, maps the counters and hands over generations as sealed memfds. One generation is under way
 * at a time; of those offered meanwhile only the newest is sent. It knows nothing of what a
 * generation means: what to publish after a reject or a reconnect is its owner's decision, told by
 * the events below. Runs on control's event loop; never blocks it. Callbacks may call anything here
 * but hb_publisher_close().
 */
#ifndef HB_CONTROL_PUBLISHER_H
#define HB_CONTROL_PUBLISHER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "halbach/counters.h"
#include "halbach/generation.h"
#include "halbach/protocol.h"

struct event_base;
struct hb_publisher;

struct hb_publisher_events {
    /* The hello is done. `blob` is the generation that the dataplane serves (mapped read-only,
     * valid until this returns; bodies of tables may be left out), or NULL when it has none. */
    void (*connected)(void *context, const struct hb_hello_reply *hello, const void *blob,
                      size_t size);
    /* The connection ended, or could not be made; `why` is for people. Called once for each change
     * of the reason, not once an attempt. */
    void (*disconnected)(void *context, const char *why);
    /* The answer to an offered generation, adopted or refused. */
    void (*published)(void *context, const struct hb_publish_reply *reply);
};

/* Waiting times; the defaults are 100 ms, 1 s and 5 s. Tests set shorter ones. */
struct hb_publisher_timing {
    unsigned retry_ms;      /* between attempts to connect */
    unsigned slow_retry_ms; /* after a refusal, a broken protocol or a silence */
    unsigned answer_ms;     /* the longest silence while an answer is due */
};

typedef void (*hb_lookup_done)(void *context,
                               const struct hb_lookup_reply *reply); /* NULL: no answer */

/* Returns NULL when memory is short. The first attempt to connect follows from the event loop. */
struct hb_publisher *hb_publisher_open(struct event_base *base, const char *socket_path,
                                       const struct hb_publisher_events *events, void *context);

/* Ends the connection. Pending lookups are told (NULL); `disconnected` is not called. */
void hb_publisher_close(struct hb_publisher *publisher);

void hb_publisher_set_timing(struct hb_publisher *publisher,
                             const struct hb_publisher_timing *timing);

bool hb_publisher_connected(const struct hb_publisher *publisher);

/* Hands over a complete blob (its header says size and number). Copied; the caller keeps its own.
 * Returns 0 when it is on its way or queued, -ENOTCONN, -EINVAL (its header says another size),
 * -ENOMEM, or the error of memfd_create. What is queued or under way when the connection ends is
 * forgotten. */
int hb_publisher_offer(struct hb_publisher *publisher, const void *blob, size_t size);

/* Asks the dataplane about one flow; `done` is called from the event loop, also when the connection
 * breaks or is closed. Returns 0, -ENOTCONN or -ENOMEM (then `done` is not called). */
int hb_publisher_lookup(struct hb_publisher *publisher, const struct hb_flow_key *flow,
                        hb_lookup_done done, void *context);

typedef void (*hb_settle_done)(void *context,
                               const struct hb_settle_reply *reply); /* NULL: no answer */

/* Asks which slots have settled; header and sequence are filled in. As hb_publisher_lookup(). */
int hb_publisher_settle(struct hb_publisher *publisher, const struct hb_settle *settle,
                        hb_settle_done done, void *context);

typedef void (*hb_flush_done)(void *context,
                              const struct hb_flush_reply *reply); /* NULL: no answer */

/* Has the dataplane forget all flow entries. As hb_publisher_lookup(). */
int hb_publisher_flush(struct hb_publisher *publisher, hb_flush_done done, void *context);

/* The mapped counters of the connected dataplane, or NULL. Valid until `disconnected`
 * returns. */
const struct hb_counters_header *hb_publisher_counters(const struct hb_publisher *publisher);

/* The last hello, or NULL when not connected. */
const struct hb_hello_reply *hb_publisher_hello(const struct hb_publisher *publisher);

/* Sums over all workers; zeros when `region` is NULL or the id is out of range. In the total of
 * workers `lcore` is 0 and `generation_number` the lowest: all workers forward by that or a newer
 * one. */
struct hb_worker_counters hb_counters_total(const struct hb_counters_header *region);
struct hb_service_counters hb_counters_service_total(const struct hb_counters_header *region,
                                                     uint32_t id);
struct hb_quic_counters hb_counters_quic_total(const struct hb_counters_header *region,
                                               uint32_t id);
struct hb_backend_counters hb_counters_backend_total(const struct hb_counters_header *region,
                                                     uint32_t id);
struct hb_nat_counters hb_counters_nat_total(const struct hb_counters_header *region, uint32_t id);

#endif
