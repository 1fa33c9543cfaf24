/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * maintenance.h: the whole balancer out of service, and back.
 *
 *     announced  --(an operator)-->  withdrawn  --(traffic has left)-->  safe
 *         ^----------------------------'
 *
 * Control announces nothing itself. It runs the commands of the configuration, on_withdraw and
 * on_announce, which tell whatever does; the dataplane goes on forwarding all the while, so nothing
 * is lost while routes change. It is safe to stop once the command has succeeded and fewer than
 * `quiet` packets a second have come for VIPs for three seconds.
 *
 * A command runs when its state begins, and once after each start of control: on_announce when the
 * dataplane serves, so that no traffic comes before. So both must do no harm when nothing is to be
 * done. One that fails, or takes longer than time_limit (then it is killed with all that it has
 * started), is run again every ten seconds. It gets HALBACH_STATE=withdrawn or announced.
 *
 * The state survives restarts: it is in the state file before an operator has his answer.
 */
#ifndef HB_CONTROL_MAINTENANCE_H
#define HB_CONTROL_MAINTENANCE_H

#include <event2/event.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct hb_control;

enum hb_hook_result {
    HB_HOOK_WAITING = 0, /* it has not run yet */
    HB_HOOK_RUNNING,
    HB_HOOK_DONE, /* also where there is no command */
    HB_HOOK_FAILED,
};

struct hb_maintenance {
    bool withdrawn;
    uint64_t since_unix; /* seconds; 0: since control began to look */

    enum hb_hook_result hook;
    pid_t child;               /* 0: none */
    bool again;                /* the state has changed while the child ran */
    uint64_t retry_at_ms;      /* after a failure */
    char problem[96];          /* of the last run, "" when it went well */
    struct event *child_ended; /* SIGCHLD */
    struct event *child_is_late;

    /* Packets for VIPs. */
    bool measured;
    uint64_t packets, sampled_ms;
    double packets_per_s;
    uint32_t quiet_samples; /* in a row */
};

bool hb_maintenance_open(struct hb_control *control);
void hb_maintenance_close(struct hb_control *control);

/* Begins or ends it, saves the state file and runs the command. On an error of saving (negative
 * errno) nothing has changed. */
int hb_maintenance_set(struct hb_control *control, bool withdrawn);

/* Every second: counts packets, runs what has to be run. */
void hb_maintenance_tick(struct hb_control *control);

/* As the API tells it. */
json_t *hb_maintenance_describe(const struct hb_control *control);

#endif
