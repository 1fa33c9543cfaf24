/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eal_setup.h: the command line that DPDK's EAL gets.
 *
 * Users give what they care about; the rest is chosen here, before rte_eal_init, from what the
 * machine has: hugepages or ordinary memory, and which cores. Whatever a user gives is left as it
 * is. The plan is a pure function of its inputs; only hb_eal_start touches DPDK.
 */
#ifndef HB_DATAPLANE_EAL_SETUP_H
#define HB_DATAPLANE_EAL_SETUP_H

#include <stdbool.h>
#include <stdint.h>

#include "options.h"

#define HB_EAL_ARGUMENTS_MAX 128
#define HB_CPUS_MAX          1024

/* What the machine has. */
struct hb_machine {
    uint64_t hugepage_bytes;   /* free */
    uint16_t cpu[HB_CPUS_MAX]; /* that this process may use, ascending */
    uint32_t cpus;
    uint32_t queues; /* the fewest that an --interface has; 0: no --interface was given */
};

struct hb_eal_plan {
    char *argument[HB_EAL_ARGUMENTS_MAX + 1];
    char *scratch[HB_EAL_ARGUMENTS_MAX + 1]; /* a copy for EAL, which changes it */
    int count;
    char storage[2][128]; /* of arguments that were made here */
    uint64_t memory_mb;   /* about what is needed */
    bool no_huge;
    bool user_sets_logs;
    bool wrong_usage;          /* what stopped hb_eal_start was the command line */
    char remark[HB_TEXT_SIZE]; /* a sentence for people about the memory, or "" */
};

/* Fills *plan. Returns 0, or -E2BIG with `problem` (HB_TEXT_SIZE bytes). */
int hb_eal_make_plan(char *program, const struct hb_command_line *line,
                     const struct hb_options *options, const struct hb_machine *machine,
                     struct hb_eal_plan *plan, char *problem);

/* Looks at this machine. Interfaces that can't be read are left out; opening their ports will tell.
 */
void hb_machine_look(const struct hb_options *options, struct hb_machine *machine);

/* Starts EAL by the plan and checks that there are workers and every device that the user has
 * named. Returns 0 or a negative errno with `problem`. hb_eal_stop() undoes it. */
int hb_eal_start(struct hb_eal_plan *plan, char *problem);
void hb_eal_stop(void);

#endif
