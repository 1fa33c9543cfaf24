/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * drain.h: one backend's drain, from the order of an operator to its last flow.
 *
 * A drain may have a deadline, a moment of the calendar: it is kept as it was given, so that a
 * restart of control neither restarts the clock nor moves it by a rounding. What happens to flows
 * that are left then is said with the order:
 *
 *     keep       nothing: they run to their end
 *     reassign   the backend is disabled: each flow is selected anew by its next packet
 *     reset      the same, but each flow is ended by a RST to both ends instead
 *
 * How long it takes yet is guessed from how fast flows have gone lately. Pure: time comes in.
 */
#ifndef HB_CONTROL_DRAIN_H
#define HB_CONTROL_DRAIN_H

#include <stdbool.h>
#include <stdint.h>

enum hb_at_deadline {
    HB_AT_DEADLINE_KEEP = 0,
    HB_AT_DEADLINE_REASSIGN = 1,
    HB_AT_DEADLINE_RESET = 2,
};
#define HB_AT_DEADLINES 3

#define HB_DRAIN_SAMPLES 31 /* a second apart; the rate is that of the last half minute */

struct hb_drain {
    uint64_t deadline_unix_ms; /* 0: none */
    uint64_t deadline_ms;      /* the same on this boot's clock */
    enum hb_at_deadline at_deadline;
    uint64_t flows_at_start;
    uint64_t forced; /* flows that were left at the deadline and did not stay */
    bool overdue;    /* the deadline has passed */
    bool drained;    /* no flow is left; said once */

    uint64_t packets; /* counted for it at the last look */
    uint64_t quiet_since_ms;

    /* How the number of flows went. */
    uint64_t sample[HB_DRAIN_SAMPLES];
    uint64_t sampled_ms[HB_DRAIN_SAMPLES];
    uint32_t samples; /* taken in all */
};

/* Takes one sample; those that come within a second of the last one are passed over. */
void hb_drain_observe(struct hb_drain *drain, uint64_t flows, uint64_t now_ms);

/* Flows a second that end, over the samples there are; 0 when they do not decrease. */
double hb_drain_rate(const struct hb_drain *drain);

/* Seconds until `flows` will have ended at that rate; HB_DRAIN_ENDLESS when nobody can tell. */
#define HB_DRAIN_ENDLESS UINT64_MAX
uint64_t hb_drain_estimate(const struct hb_drain *drain, uint64_t flows);

const char *hb_at_deadline_name(enum hb_at_deadline at_deadline);
/* False when there is no such word. */
bool hb_at_deadline_parse(const char *text, enum hb_at_deadline *at_deadline);

#endif
