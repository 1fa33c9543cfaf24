/* SPDX-License-Identifier: BSD-3-Clause */
#include "maintenance.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

#include "clock.h"
#include "control.h"
#include "log.h"

#define RETRY_MS      10000
#define QUIET_SAMPLES 3

extern char **environ;

static const char *state_name(bool withdrawn)
{
    return withdrawn ? "withdrawn" : "announced";
}

static const char *command_of(const struct hb_control *control)
{
    const struct hb_maintenance_config *config = &control->model->maintenance;

    return control->maintenance.withdrawn ? config->on_withdraw : config->on_announce;
}

/* --- the command --- */

/* The environment with HALBACH_STATE in front; freed with free(). */
static char **make_environment(char *state)
{
    size_t count = 0;
    char **list;

    while (environ[count] != NULL)
        count++;
    list = calloc(count + 2, sizeof(*list));
    if (list == NULL)
        return NULL;
    list[0] = state;
    memcpy(list + 1, environ, count * sizeof(*list));
    return list;
}

/* A process group of its own, so that all of it can be ended, and signals as they are by default.
 */
static int spawn(const char *command, bool withdrawn, pid_t *child)
{
    char state[40], *const arguments[] = {"sh", "-c", (char *)(uintptr_t)command, NULL};
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    char **environment;
    sigset_t all, none;
    int error;

    snprintf(state, sizeof(state), "HALBACH_STATE=%s", state_name(withdrawn));
    environment = make_environment(state);
    if (environment == NULL)
        return ENOMEM;
    sigfillset(&all);
    sigemptyset(&none);
    posix_spawn_file_actions_init(&files);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&files, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&files, 2, 1);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETPGROUP | POSIX_SPAWN_SETSIGDEF |
                                              POSIX_SPAWN_SETSIGMASK);
    posix_spawnattr_setpgroup(&attributes, 0);
    posix_spawnattr_setsigdefault(&attributes, &all);
    posix_spawnattr_setsigmask(&attributes, &none);
    error = posix_spawn(child, "/bin/sh", &files, &attributes, arguments, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&files);
    free(environment);
    return error;
}

static void fail(struct hb_control *control, const char *problem)
{
    struct hb_maintenance *maintenance = &control->maintenance;

    maintenance->hook = HB_HOOK_FAILED;
    maintenance->retry_at_ms = hb_now_ms() + RETRY_MS;
    snprintf(maintenance->problem, sizeof(maintenance->problem), "%s", problem);
    hb_log(HB_LOG_ERROR, "the command for the state %s failed: %s; it is run again in %u s: %s",
           state_name(maintenance->withdrawn), problem, RETRY_MS / 1000, command_of(control));
    hb_events_add(control->events, HB_NEWS_MAINTENANCE, NULL, NULL,
                  "maintenance: the command for the state %s failed: %s",
                  state_name(maintenance->withdrawn), problem);
}

static void run_command(struct hb_control *control)
{
    struct hb_maintenance *maintenance = &control->maintenance;
    uint32_t limit = control->model->maintenance.time_limit_ms;
    const char *command = command_of(control);
    struct timeval late = {.tv_sec = limit / 1000, .tv_usec = limit % 1000 * 1000};
    int error;

    maintenance->again = false;
    if (command[0] == '\0') {
        maintenance->hook = HB_HOOK_DONE;
        maintenance->problem[0] = '\0';
        return;
    }
    error = spawn(command, maintenance->withdrawn, &maintenance->child);
    if (error != 0) {
        maintenance->child = 0;
        fail(control, strerror(error));
        return;
    }
    maintenance->hook = HB_HOOK_RUNNING;
    event_add(maintenance->child_is_late, &late);
}

static void on_child_is_late(evutil_socket_t fd, short what, void *context)
{
    struct hb_control *control = context;

    (void)fd;
    (void)what;
    if (control->maintenance.child > 0)
        kill(-control->maintenance.child, SIGKILL);
}

static void on_child_ended(evutil_socket_t fd, short what, void *context)
{
    struct hb_control *control = context;
    struct hb_maintenance *maintenance = &control->maintenance;
    bool late = !evtimer_pending(maintenance->child_is_late, NULL);
    char problem[64];
    int status;

    (void)fd;
    (void)what;
    if (maintenance->child == 0 ||
        waitpid(maintenance->child, &status, WNOHANG) != maintenance->child)
        return;
    maintenance->child = 0;
    event_del(maintenance->child_is_late);
    if (maintenance->again) {
        run_command(control);
        return;
    }
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        maintenance->hook = HB_HOOK_DONE;
        maintenance->problem[0] = '\0';
        hb_log(HB_LOG_NOTICE, "the command for the state %s has succeeded",
               state_name(maintenance->withdrawn));
        hb_events_add(control->events, HB_NEWS_MAINTENANCE, NULL, NULL,
                      "maintenance: the command for the state %s has succeeded",
                      state_name(maintenance->withdrawn));
        return;
    }
    if (WIFEXITED(status))
        snprintf(problem, sizeof(problem), "exit status %d", WEXITSTATUS(status));
    else if (late)
        snprintf(problem, sizeof(problem), "it took longer than %u ms and was ended",
                 control->model->maintenance.time_limit_ms);
    else
        snprintf(problem, sizeof(problem), "signal %d", WTERMSIG(status));
    fail(control, problem);
}

/* The state has begun: what runs for the other one is no longer wanted. */
static void begin_command(struct hb_control *control)
{
    struct hb_maintenance *maintenance = &control->maintenance;

    maintenance->hook = HB_HOOK_WAITING;
    if (maintenance->child == 0) {
        run_command(control);
        return;
    }
    maintenance->again = true;
    maintenance->hook = HB_HOOK_RUNNING;
    kill(-maintenance->child, SIGKILL);
}

/* --- traffic --- */

static void measure(struct hb_control *control, uint64_t now_ms)
{
    struct hb_maintenance *maintenance = &control->maintenance;
    uint64_t packets = 0;

    for (uint32_t s = 0; s < control->model->services_count; s++) {
        struct hb_counts counts = hb_control_service_counts(control, &control->model->services[s]);

        packets += counts.packets + counts.drops;
    }
    if (maintenance->measured && now_ms > maintenance->sampled_ms) {
        maintenance->packets_per_s = packets < maintenance->packets
                                         ? 0
                                         : (double)(packets - maintenance->packets) * 1000 /
                                               (double)(now_ms - maintenance->sampled_ms);
        if (maintenance->packets_per_s < control->model->maintenance.quiet)
            maintenance->quiet_samples++;
        else
            maintenance->quiet_samples = 0;
    }
    maintenance->measured = true;
    maintenance->packets = packets;
    maintenance->sampled_ms = now_ms;
}

void hb_maintenance_tick(struct hb_control *control)
{
    struct hb_maintenance *maintenance = &control->maintenance;
    bool serves = hb_publication_in_sync(&control->publication);
    uint64_t now_ms = hb_now_ms();

    if (hb_publisher_counters(control->publisher) != NULL) {
        measure(control, now_ms);
    } else { /* nobody counts */
        maintenance->measured = false;
        maintenance->quiet_samples = 0;
    }
    if (maintenance->child != 0)
        return;
    if ((maintenance->hook == HB_HOOK_WAITING && (serves || maintenance->withdrawn)) ||
        (maintenance->hook == HB_HOOK_FAILED && now_ms >= maintenance->retry_at_ms))
        run_command(control);
}

/* --- life --- */

bool hb_maintenance_open(struct hb_control *control)
{
    struct hb_maintenance *maintenance = &control->maintenance;

    maintenance->child_ended = evsignal_new(control->base, SIGCHLD, on_child_ended, control);
    maintenance->child_is_late = evtimer_new(control->base, on_child_is_late, control);
    return maintenance->child_ended != NULL && maintenance->child_is_late != NULL &&
           event_add(maintenance->child_ended, NULL) == 0;
}

/* A command that runs is left to end by itself: the next control runs it again in any case. */
void hb_maintenance_close(struct hb_control *control)
{
    if (control->maintenance.child_is_late != NULL)
        event_free(control->maintenance.child_is_late);
    if (control->maintenance.child_ended != NULL)
        event_free(control->maintenance.child_ended);
}

int hb_maintenance_set(struct hb_control *control, bool withdrawn)
{
    struct hb_maintenance *maintenance = &control->maintenance;
    uint64_t since_unix = maintenance->since_unix;
    int error;

    if (maintenance->withdrawn == withdrawn)
        return 0;
    maintenance->withdrawn = withdrawn;
    maintenance->since_unix = hb_now_unix();
    error = hb_control_save(control);
    if (error != 0) {
        maintenance->withdrawn = !withdrawn;
        maintenance->since_unix = since_unix;
        return error;
    }
    maintenance->quiet_samples = 0;
    hb_log(HB_LOG_NOTICE, "maintenance: %s by an operator", state_name(withdrawn));
    hb_events_add(control->events, HB_NEWS_MAINTENANCE, NULL, NULL, "maintenance: %s",
                  state_name(withdrawn));
    hb_control_note_action(control, withdrawn ? "maintenance begun" : "maintenance ended");
    begin_command(control);
    return 0;
}

static bool is_safe(const struct hb_maintenance *maintenance)
{
    return maintenance->withdrawn && maintenance->hook == HB_HOOK_DONE && maintenance->measured &&
           maintenance->quiet_samples >= QUIET_SAMPLES;
}

json_t *hb_maintenance_describe(const struct hb_control *control)
{
    static const char *const results[] = {"waiting", "running", "done", "failed"};
    const struct hb_maintenance *maintenance = &control->maintenance;
    const char *command = command_of(control);

    return json_pack(
        "{s:s, s:I, s:b, s:o, s:i, s:{s:o, s:s, s:o}}", "state", state_name(maintenance->withdrawn),
        "since_unix", (json_int_t)maintenance->since_unix, "safe", is_safe(maintenance),
        "packets_per_s",
        maintenance->measured ? json_real(maintenance->packets_per_s) : json_null(), "quiet",
        control->model->maintenance.quiet, "command", "text",
        command[0] ? json_string(command) : json_null(), "result", results[maintenance->hook],
        "problem", maintenance->problem[0] ? json_string(maintenance->problem) : json_null());
}
