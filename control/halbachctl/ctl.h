/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * ctl.h: one call of halbachctl, and its commands.
 *
 * A command is a row in command_line.c and a function here: it asks the API, then either prints the
 * answer as it came (--json) or hands it to a hb_show_...() function, which only prints and is
 * therefore tested with written answers. Every command returns the exit status.
 */
#ifndef HB_CTL_CTL_H
#define HB_CTL_CTL_H

#include <jansson.h>
#include <stdbool.h>
#include <stdio.h>

#include "table.h"

#define HB_CONTROL_SOCKET "/run/halbach/control.sock"

enum hb_exit { HB_EXIT_OK = 0, HB_EXIT_FAILED = 1, HB_EXIT_USAGE = 2 };

#define HB_ARGUMENTS_MAX 4

struct hb_command;

/* Options of `hash ...`, as they were typed; NULL: not given. */
struct hb_hash_options {
    const char *backends, *change, *keys, *hashes, *algorithms, *hit, *seed, *vnodes, *table_size;
    const char *count, *tokens, *space, *positions, *join, *leave, *failures, *kind, *out;
    bool zones;
};

struct hb_ctl {
    struct hb_screen screen; /* standard output */
    FILE *err;
    bool err_is_terminal;
    const struct hb_command *command;
    const char *arguments[HB_ARGUMENTS_MAX];
    unsigned arguments_count;
    /* options */
    const char *socket_path;
    const char *pool;
    const char *file, *old; /* configurations */
    const char *watch;      /* seconds between two outputs; NULL: once */
    const char *since;      /* number of an event */
    bool json, wait, all, down, traffic, help, version, follow, once;
    const char *deadline, *at_deadline;
    bool force, reset;
    struct hb_hash_options hash;
};

struct hb_answer;

/* Asks, and reports a failure to `err`. Returns true when there is a good answer; the caller frees
 * it in either case. */
bool hb_ctl_ask(const struct hb_ctl *ctl, bool post, const char *path, struct hb_answer *answer);

/* Asks for a change. When control refuses it but could be forced (a pool would fall under its
 * minimum, connections would break), and there is a terminal, asks the person and then for the
 * change once more with force=1. As hb_ctl_ask().
 */
bool hb_ctl_change(const struct hb_ctl *ctl, const char *path, struct hb_answer *answer);

/* "/v1/backends/NAME/ACTION?pool=POOL&force=1", as far as that was asked for. False, after a
 * complaint, when the names are too long. */
#define HB_PATH_SIZE 768
bool hb_ctl_backend_path(const struct hb_ctl *ctl, const char *action, char path[HB_PATH_SIZE]);

/* Adds an argument, escaped; NULL as a value adds nothing. False when it is too long. */
bool hb_path_add(char path[HB_PATH_SIZE], const char *name, const char *value);

/* Says that a change was kept but does not serve yet. */
void hb_ctl_tell_not_applied(const struct hb_ctl *ctl);

/* Prints the document as it came, ended by one newline. */
void hb_ctl_print_json(const struct hb_ctl *ctl, const struct hb_answer *answer);

int hb_ctl_status(const struct hb_ctl *ctl);
int hb_ctl_services(const struct hb_ctl *ctl);
int hb_ctl_backends(const struct hb_ctl *ctl);
int hb_ctl_drain(const struct hb_ctl *ctl);
int hb_ctl_undrain(const struct hb_ctl *ctl);
int hb_ctl_weight(const struct hb_ctl *ctl);
int hb_ctl_maintenance(const struct hb_ctl *ctl);
int hb_ctl_flush(const struct hb_ctl *ctl);
int hb_ctl_reload(const struct hb_ctl *ctl);
int hb_ctl_plan(const struct hb_ctl *ctl);
int hb_ctl_config_check(const struct hb_ctl *ctl);
int hb_ctl_stats(const struct hb_ctl *ctl);
int hb_ctl_drops(const struct hb_ctl *ctl);
int hb_ctl_lookup(const struct hb_ctl *ctl);
int hb_ctl_doctor(const struct hb_ctl *ctl);
int hb_ctl_events(const struct hb_ctl *ctl);
int hb_ctl_history(const struct hb_ctl *ctl);
int hb_ctl_rollback(const struct hb_ctl *ctl);
int hb_ctl_top(const struct hb_ctl *ctl);
int hb_ctl_talkers(const struct hb_ctl *ctl);
int hb_ctl_completion(const struct hb_ctl *ctl);
int hb_ctl_help(const struct hb_ctl *ctl);
int hb_ctl_hash_compare(const struct hb_ctl *ctl);
int hb_ctl_hash_balance(const struct hb_ctl *ctl);
int hb_ctl_hash_owner(const struct hb_ctl *ctl);
int hb_ctl_hash_prefer(const struct hb_ctl *ctl);
int hb_ctl_hash_affected(const struct hb_ctl *ctl);
int hb_ctl_hash_ring(const struct hb_ctl *ctl);
int hb_ctl_hash_plot(const struct hb_ctl *ctl);

/* `backends` may be NULL: then nothing is said about single ones. */
void hb_show_status(const struct hb_screen *screen, const json_t *status, const json_t *backends);
void hb_show_services(const struct hb_screen *screen, const json_t *answer);
void hb_show_backends(const struct hb_screen *screen, const json_t *answer, const char *pool,
                      bool down_only, bool traffic);
void hb_show_drain(const struct hb_screen *screen, const json_t *answer, bool drain);
void hb_show_weight(const struct hb_screen *screen, const json_t *answer);
void hb_show_maintenance(const struct hb_screen *screen, const json_t *answer);
void hb_show_flush(const struct hb_screen *screen, const json_t *answer);
void hb_show_reload(const struct hb_screen *screen, const json_t *answer);
/* What changed: services, backends, pools. */
void hb_show_changes(const struct hb_screen *screen, const json_t *answer);
void hb_show_rollback(const struct hb_screen *screen, const json_t *answer);
void hb_show_history(const struct hb_screen *screen, const json_t *answer);
void hb_show_event(const struct hb_screen *screen, const json_t *event);
void hb_show_events(const struct hb_screen *screen, const json_t *answer);
/* The rates between two answers that have "services" and "backends". */
void hb_show_top(const struct hb_screen *screen, const json_t *answer, const json_t *before,
                 double seconds);
/* `before` may be NULL: since the start of the dataplane. */
void hb_show_talkers(const struct hb_screen *screen, const json_t *answer, const json_t *before);
void hb_show_plan(const struct hb_screen *screen, const json_t *plan);
/* `before`: the answer of `seconds` ago, for rates; or NULL. */
void hb_show_stats(const struct hb_screen *screen, const json_t *answer, const json_t *before,
                   double seconds);
void hb_show_doctor(const struct hb_screen *screen, const json_t *findings);
void hb_show_drops(const struct hb_screen *screen, const json_t *answer, bool all);
void hb_show_lookup(const struct hb_screen *screen, const json_t *answer, const char *client,
                    const char *vip, const char *protocol);
void hb_show_hash_compare(const struct hb_screen *screen, const json_t *document);
void hb_show_hash_balance(const struct hb_screen *screen, const json_t *document);
void hb_show_hash_owner(const struct hb_screen *screen, const json_t *document);
void hb_show_hash_prefer(const struct hb_screen *screen, const json_t *document);
void hb_show_hash_affected(const struct hb_screen *screen, const json_t *document);
void hb_show_hash_ring(const struct hb_screen *screen, const json_t *document);

#endif
