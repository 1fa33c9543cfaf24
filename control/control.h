/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control.h: the daemon's parts on one event loop.
 *
 *     configuration --> model <-- probes (health), next hops (kernel), operators (API)
 *                         |
 *                     reconcile --> plan --> publication --> publisher --> dataplane
 *
 * Whatever changes the model calls hb_control_changed(); what follows within 2 ms becomes one
 * generation (and when much changes all the time, generations come at a bounded rate). The model
 * exists from the moment when it is known what the dataplane serves, or 300 ms after the start when
 * no dataplane answers: ids must not be given out before (take_over.h).
 *
 * All of it runs on one thread; files are written by another one (control_save.c).
 */
#ifndef HB_CONTROL_CONTROL_H
#define HB_CONTROL_CONTROL_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>

#include "config.h"
#include "events.h"
#include "history.h"
#include "icmp_socket.h"
#include "maintenance.h"
#include "model.h"
#include "next_hop.h"
#include "probes.h"
#include "publication.h"
#include "publisher.h"
#include "reconcile.h"
#include "state_file.h"

struct hb_api;
struct hb_background;

struct hb_control_options {
    const char *config;    /* file */
    const char *dataplane; /* socket */
    const char *socket;    /* of the API */
    const char *state;     /* file */
};

/* The round of questions about settled slots (control_settle.c). */
struct hb_settling {
    bool under_way;
    uint64_t next_ms;                 /* not before */
    uint32_t pool;                    /* index of the one that was asked about */
    uint32_t first;                   /* slot */
    uint32_t settled;                 /* in this round */
    uint8_t asked[HB_DIGEST_SIZE];    /* the table that serves */
    uint8_t expected[HB_DIGEST_SIZE]; /* what the pool's has become by earlier answers */
};

/* What control knows of the dataplane, also after it has gone. */
struct hb_dataplane_view {
    bool ever_connected;
    struct hb_hello_reply hello; /* the last one */
    char problem[512];           /* why it is not connected, "" while it is */
};

struct hb_control {
    struct hb_control_options options;
    uint64_t started_ms;

    struct event_base *base;
    struct event *terminate[2];  /* SIGTERM, SIGINT */
    struct event *hang_up;       /* SIGHUP: reload */
    struct event *start_timer;   /* until the model starts without a dataplane */
    struct event *publish_timer; /* coalesces changes */
    struct event *life_timer;    /* the next deadline of a drain, or step of a slow start */
    struct event *tick;          /* every second: state file, tallies, retries */

    struct hb_config *first_config; /* until the model starts */
    char *first_text;               /* of the configuration file, the same */
    size_t first_size;
    bool first_rolled_back; /* first_config is what a rollback took, not the file */
    struct hb_state known;  /* the state file, until the model starts */
    bool known_valid;
    bool started; /* the model is there */
    bool failed;  /* ends the loop with exit status 1 */

    struct hb_model *model;
    struct hb_probes *probes;
    struct hb_next_hops *hops;
    struct hb_icmp_socket *icmp[2]; /* IPv4, IPv6; NULL: not allowed to hear */
    struct hb_publisher *publisher;
    struct hb_publication publication;
    struct hb_plan plan; /* of what is wanted */
    struct hb_dataplane_view dataplane;
    struct hb_settling settling;
    struct hb_maintenance maintenance;
    bool change_waits;      /* for the answer to the generation that is under way */
    uint64_t rest_until_us; /* before which changes are not published one by one */
    uint64_t drain_forced;  /* flows that did not stay after the deadline of a drain */
    uint64_t icmp_ignored;  /* errors about packets that no tunnel of ours has sent */
    char problem[256];      /* of the last reconcile, "" when it went well */
    struct hb_api *api;
    struct hb_events *events;
    struct hb_history *history;
    struct hb_background *background;

    bool client_way[2]; /* known for IPv4, IPv6 */
    bool state_dirty;
    int state_error; /* of the last attempt to save */
    int slots_error; /* the same of the slot files */
    int history_error;
    char *slots; /* their folder, beside the state file */
    uint64_t loaded_unix;
    uint64_t reloads;
    uint64_t reloads_refused;
    char last_error[512];
};

/* Opens everything. Logs what is wrong and returns NULL. Frees with hb_control_close(), which also
 * writes the state file and removes the API's socket. */
struct hb_control *hb_control_open(const struct hb_control_options *options);
void hb_control_close(struct hb_control *control);

/* Runs until SIGTERM or SIGINT; the exit status. */
int hb_control_run(struct hb_control *control);

/* --- control_publish.c --- */

extern const struct hb_publisher_events hb_control_publisher_events;

/* What has been touched (model.h) has changed: a generation follows within 2 ms, or, when much
 * changes, soon. */
void hb_control_changed(struct hb_control *control);
/* The same, at once: on return publication.wanted is the number to wait for. */
void hb_control_publish_touched(struct hb_control *control);
/* The same for the whole model. */
void hb_control_publish(struct hb_control *control);
/* For hb_id_reusable and hb_raw_counts of the model. */
bool hb_control_id_reusable(void *context, uint32_t id, uint32_t incarnation);
struct hb_counts hb_control_raw_counts(void *context, bool service, uint32_t id,
                                       uint64_t *instance);
struct hb_quic_counters hb_control_raw_quic(void *context, uint32_t id, uint64_t *instance);
/* What an object has counted; from the last reading when no dataplane is connected. */
struct hb_counts hb_control_backend_counts(struct hb_control *control,
                                           struct hb_model_backend *backend);
struct hb_counts hb_control_service_counts(struct hb_control *control,
                                           struct hb_model_service *service);
struct hb_quic_counters hb_control_quic_counts(struct hb_control *control,
                                               struct hb_model_service *service);
uint64_t hb_control_service_flows(const struct hb_control *control, uint32_t id);
uint64_t hb_control_backend_flows(const struct hb_control *control, uint32_t id);
/* Reads all tallies, so that they are fresh when the dataplane goes. */
void hb_control_read_tallies(struct hb_control *control);

/* --- control_errors.c --- */

/* Listens to ICMP errors about tunnel packets. Without the right to, that is said once. */
void hb_control_listen(struct hb_control *control);
/* Takes one in, as hb_icmp_heard: counts it, and learns the path's MTU. */
void hb_control_icmp_heard(void *context, uint8_t family, const uint8_t *message, size_t size);
/* Every second: path MTUs that are too old are forgotten. */
void hb_control_age_paths(struct hb_control *control);

/* --- control_nat.c --- */

/* After a configuration; when a next hop has changed (true: it was the way to clients); every
 * second. */
void hb_control_sync_nat(struct hb_control *control);
bool hb_control_client_hop_changed(struct hb_control *control, const struct hb_address *address,
                                   const struct hb_next_hop *hop);
void hb_control_tick_nat(struct hb_control *control);

/* --- control_operate.c --- */

struct hb_drain_order {
    uint64_t deadline_ms; /* from now; 0: none */
    enum hb_at_deadline at_deadline;
};

/* Each does it to all backends that are marked in `chosen` (by id), saves the state file and
 * publishes. On an error of saving nothing has changed. One that drains already keeps its
 * deadline unless the order has one. */
int hb_control_drain(struct hb_control *control, const bool *chosen,
                     const struct hb_drain_order *order);
int hb_control_undrain(struct hb_control *control, const bool *chosen);
/* `set` false: the configured weight holds again. */
int hb_control_set_weight(struct hb_control *control, const bool *chosen, bool set,
                          uint32_t weight);

/* --- control_life.c --- */

/* Sets the timer for what happens next by itself. After each change of the model. */
void hb_control_schedule(struct hb_control *control);
void hb_control_on_life_timer(evutil_socket_t fd, short what, void *context);
/* Every second: notes how the flows of drains go, and says when the last one has ended. */
void hb_control_watch_drains(struct hb_control *control);
/* No packet goes there any more, as far as anybody can tell. A disabled backend gets none, whatever
 * is left; else no flow has an entry. TCP flows that need none (tracking: changed) are gone when no
 * slot leads there any more, or no packet has come for as long as a flow may be idle. */
bool hb_control_is_drained(const struct hb_control *control, const struct hb_model_pool *pool,
                           const struct hb_model_backend *backend);

/* --- control_settle.c --- */

/* What a flow may be idle for before it is taken for gone, ms. */
uint32_t hb_control_idle_ms(const struct hb_control *control);
/* Every second: asks which unsettled slots have settled, when it is time to. */
void hb_control_settle(struct hb_control *control);

/* --- control_change.c --- */

/* Makes the model from the first configuration, and everything that hangs on it. `blob` is what the
 * dataplane serves, or NULL. False (logged) when it cannot be. */
bool hb_control_start_model(struct hb_control *control, const void *blob);

/* Watches next hops and probes whatever the model has. After a configuration. */
void hb_control_sync(struct hb_control *control);
void hb_control_backend_left(void *context, struct hb_model_backend *backend);

/* --- control_save.c --- */

/* Writes the state file now; negative errno. Here and below an error is logged once. */
int hb_control_save(struct hb_control *control);
/* In the background, as it is now. */
void hb_control_save_soon(struct hb_control *control);

/* Writes the history down, now or in the background, when it has changed. */
void hb_control_save_history(struct hb_control *control);
/* What the actor of this moment did and makes no generation: into the history, and onto the disk.
 */
void hb_control_note_action(struct hb_control *control, const char *text);
void hb_control_save_history_soon(struct hb_control *control);
/* Before the history is written by other means: nothing older is written over it later. */
void hb_control_hold_history(struct hb_control *control);

/* Writes the slot files of pools whose history has changed, in the background: traffic goes before
 * memory. */
void hb_control_save_slots(struct hb_control *control);
/* The tables that a generation need not carry: the dataplane holds them, and they are in their
 * files. Until then the generation that the dataplane serves is the memory. `tables->digest` is for
 * free(). */
void hb_control_tables_to_leave_out(struct hb_control *control, struct hb_held_tables *tables);

/* --- control_reload.c --- */

/* The configuration to start with: the file's, or what a rollback left in use. NULL after
 * complaints. */
struct hb_config *hb_control_read_first(struct hb_control *control);
/* It is in use now. */
void hb_control_accept_first(struct hb_control *control, const struct hb_config *config);

/* Reads the configuration file again. Returns 0, or negative errno and nothing has changed;
 * complaints (strings) are added to `complaints`, warnings to `warnings`; both may be NULL. */
int hb_control_reload(struct hb_control *control, struct hb_model_diff *diff, json_t *complaints,
                      json_t *warnings);

/* Takes a former configuration (history.h), all or nothing, in one generation. As
 * hb_control_reload(). The configuration file is left alone, so it says something else then. */
int hb_control_roll_back(struct hb_control *control, uint64_t number, struct hb_model_diff *diff,
                         json_t *complaints, json_t *warnings);

#endif
