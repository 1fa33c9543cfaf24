/* SPDX-License-Identifier: BSD-3-Clause */
/* The half of eal_setup.h that touches the machine and DPDK; eal_plan.c is the other. */
#include "eal_setup.h"

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>

#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>

#include "hugepages.h"
#include "kernel_interface.h"
#include "log.h"

void hb_machine_look(const struct hb_options *options, struct hb_machine *machine)
{
    cpu_set_t allowed;

    memset(machine, 0, sizeof(*machine));
    machine->hugepage_bytes = hb_hugepages_free("/sys/kernel/mm/hugepages");
    CPU_ZERO(&allowed);
    if (sched_getaffinity(0, sizeof(allowed), &allowed) == 0)
        for (uint16_t cpu = 0; cpu < CPU_SETSIZE && machine->cpus < HB_CPUS_MAX; cpu++)
            if (CPU_ISSET(cpu, &allowed))
                machine->cpu[machine->cpus++] = cpu;
    for (uint32_t i = 0; i < options->interfaces; i++) {
        struct hb_kernel_interface interface;

        if (hb_kernel_interface_read(options->interface[i], &interface) != 0)
            continue;
        if (machine->queues == 0 || interface.queues < machine->queues)
            machine->queues = interface.queues;
    }
}

/* EAL only logs when a device that was named does not come up. We would go on with fewer ports. */
static int check_devices(const struct hb_eal_plan *plan, char *problem)
{
    for (int i = 1; i + 1 < plan->count; i++) {
        const char *option = plan->argument[i], *value = plan->argument[i + 1];
        struct rte_dev_iterator iterator;
        char name[64];

        if (strncmp(option, "--vdev=", 7) == 0)
            value = option + 7;
        else if (strcmp(option, "--vdev") != 0)
            continue;
        snprintf(name, sizeof(name), "%.*s", (int)strcspn(value, ","), value);
        if (strncmp(name, "net_", 4) != 0 || rte_eth_iterator_init(&iterator, name) != 0)
            continue;
        if (rte_eth_iterator_next(&iterator) != RTE_MAX_ETHPORTS) {
            rte_eth_iterator_cleanup(&iterator);
            continue;
        }
        snprintf(problem, HB_TEXT_SIZE,
                 "the device --vdev %.100s did not come up; the driver's messages above tell why",
                 value);
        return -ENODEV;
    }
    return 0;
}

static int check_workers(char *problem)
{
    uint32_t workers = rte_lcore_count() - 1;

    if (workers > 0 && workers <= HB_WORKERS_MAX)
        return 0;
    snprintf(
        problem, HB_TEXT_SIZE,
        "%u worker lcores, 1 to %d are needed: the first lcore manages, each other works; give "
        "the EAL option -l 0,1 or, on one CPU, --lcores '0@0,1@0'",
        workers, HB_WORKERS_MAX);
    return -EINVAL;
}

int hb_eal_start(struct hb_eal_plan *plan, char *problem)
{
    int error;

    hb_log_setup(plan->user_sets_logs);
    /* EAL changes what it is given. */
    memcpy(plan->scratch, plan->argument, sizeof(plan->scratch));
    if (rte_eal_init(plan->count, plan->scratch) < 0) {
        plan->wrong_usage = rte_errno == EINVAL;
        snprintf(
            problem, HB_TEXT_SIZE,
            "DPDK's EAL did not start: %s; its messages above tell more, --log-level=debug among "
            "the EAL options yet more",
            rte_strerror(rte_errno));
        return rte_errno > 0 ? -rte_errno : -EINVAL;
    }
    error = check_workers(problem);
    plan->wrong_usage = error != 0;
    if (error == 0)
        error = check_devices(plan, problem);
    if (error != 0)
        hb_eal_stop();
    return error;
}

void hb_eal_stop(void)
{
    rte_eal_cleanup();
}
