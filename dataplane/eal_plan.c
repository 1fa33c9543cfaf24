/* SPDX-License-Identifier: BSD-3-Clause */
/* The pure half of eal_setup.h: which arguments EAL gets. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "eal_setup.h"
#include "port_memory.h"

#define MEGABYTE           (UINT64_C(1) << 20)
#define HUGEPAGE_BYTES     (2 * MEGABYTE)
#define FLOW_BYTES         32              /* a flow in the cache (flow_table.h) */
#define FLOW6_BYTES        60              /* an IPv6 flow beyond an eighth of them */
#define GENERATION_BYTES   (64 * MEGABYTE) /* for two generations with their tables */
#define EAL_OVERHEAD_BYTES (16 * MEGABYTE)

/* Whether `argument` is the option `name` ("-l", "--lcores"), with or without its value attached.
 */
static bool is_option(const char *argument, const char *name)
{
    size_t length = strlen(name);

    if (strncmp(argument, name, length) != 0)
        return false;
    return name[1] != '-' || argument[length] == '\0' || argument[length] == '=';
}

/* The value of the first option of a NULL-terminated list; "" when it takes none; NULL: not given.
 */
static const char *find_option(const struct hb_command_line *line, const char *const names[])
{
    for (int i = 0; i < line->eal_count; i++)
        for (int n = 0; names[n] != NULL; n++) {
            const char *rest = line->eal[i] + strlen(names[n]);

            if (!is_option(line->eal[i], names[n]))
                continue;
            if (*rest != '\0')
                return *rest == '=' ? rest + 1 : rest;
            return i + 1 < line->eal_count ? line->eal[i + 1] : "";
        }
    return NULL;
}

static uint32_t count_option(const struct hb_command_line *line, const char *const names[])
{
    uint32_t count = 0;

    for (int i = 0; i < line->eal_count; i++)
        for (int n = 0; names[n] != NULL; n++)
            count += is_option(line->eal[i], names[n]);
    return count;
}

static const char *const core_lists[] = {"-l", "--lcores", NULL};
static const char *const core_masks[] = {"-c", NULL};
static const char *const device_options[] = {"-a", "--allow", "--vdev", NULL};
static const char *const pci_options[] = {"-a", "--allow", "-b", "--block", "--no-pci", NULL};
static const char *const memory_options[] = {"-m",
                                             "--socket-mem",
                                             "--socket-limit",
                                             "--huge-dir",
                                             "--huge-unlink",
                                             "--legacy-mem",
                                             "--single-file-segments",
                                             NULL};
static const char *const no_huge_options[] = {"--no-huge", NULL};
static const char *const shared_options[] = {"--file-prefix",
                                             "--single-file-segments",
                                             "--huge-dir",
                                             "--huge-unlink",
                                             "--proc-type",
                                             "--in-memory",
                                             "--no-shconf",
                                             "--legacy-mem",
                                             NULL};
static const char *const iova_options[] = {"--iova-mode", NULL};
static const char *const log_options[] = {"--log-level", NULL};
static const char *const size_options[] = {"-m", "--socket-mem", NULL};

/* How many lcores a list such as 0-3,5 or (0,2)@1,4@0 names: numbers and ranges that are not behind
 * an
 * @. A rough count: it sizes memory, EAL is who understands the list. */
static uint32_t count_lcores(const char *list)
{
    uint32_t count = 0;

    while (*list != '\0') {
        char *end;
        unsigned long first, last;

        if (*list == '@') { /* the CPUs: skip one item, a parenthesised set or a number */
            list += list[1] == '(' ? strcspn(list, ")") : 1 + strcspn(list + 1, ",");
            continue;
        }
        if (*list < '0' || *list > '9') {
            list++;
            continue;
        }
        first = last = strtoul(list, &end, 10);
        if (*end == '-' && end[1] >= '0' && end[1] <= '9')
            last = strtoul(end + 1, &end, 10);
        count += last >= first && last - first < HB_CPUS_MAX ? (uint32_t)(last - first + 1) : 1;
        list = end;
    }
    return count;
}

static uint32_t count_workers(const struct hb_command_line *line, uint32_t cpus)
{
    const char *list = find_option(line, core_lists), *mask = find_option(line, core_masks);
    uint32_t lcores = cpus;

    if (list != NULL)
        lcores = count_lcores(list);
    else if (mask != NULL)
        lcores = (uint32_t)__builtin_popcountll(strtoull(mask, NULL, 16));
    if (lcores > HB_WORKERS_MAX)
        lcores = HB_WORKERS_MAX;
    return lcores < 2 ? 1 : lcores - 1;
}

static void add(struct hb_eal_plan *plan, const char *argument)
{
    if (plan->count < HB_EAL_ARGUMENTS_MAX)
        plan->argument[plan->count] = (char *)(uintptr_t)argument;
    plan->count++;
}

/* Nobody said which cores: one manages, and as many work as every interface has queues for. Returns
 * the number of workers. */
static uint32_t choose_cores(struct hb_eal_plan *plan, const struct hb_machine *machine)
{
    uint32_t workers = machine->cpus > 1 ? machine->cpus - 1 : 1;
    size_t size = sizeof(plan->storage[0]), used = 0;
    char *list = plan->storage[0];

    if (machine->queues < workers)
        workers = machine->queues;
    if (machine->cpus < 2) {
        snprintf(list, size, "0@%u,1@%u", machine->cpu[0], machine->cpu[0]);
        add(plan, "--lcores");
        add(plan, list);
        return 1;
    }
    for (uint32_t i = 0; i <= workers && used + 8 < size; i++)
        used +=
            (size_t)snprintf(list + used, size - used, "%s%u", i > 0 ? "," : "", machine->cpu[i]);
    add(plan, "-l");
    add(plan, list);
    return workers;
}

static void choose_memory(struct hb_eal_plan *plan, const struct hb_command_line *line,
                          const struct hb_machine *machine)
{
    bool user_no_huge = find_option(line, no_huge_options) != NULL;
    uint64_t free_mb = machine->hugepage_bytes / MEGABYTE;

    plan->no_huge = user_no_huge;
    if (!user_no_huge) {
        if (find_option(line, memory_options) != NULL || free_mb >= plan->memory_mb)
            return;
        plan->no_huge = true;
        add(plan, "--no-huge");
        snprintf(
            plan->remark, sizeof(plan->remark),
            "%" PRIu64 " MB of hugepages are free and about %" PRIu64
            " MB are needed, so ordinary memory is used, at about half the speed; for hugepages: "
            "echo %" PRIu64 " > /proc/sys/vm/nr_hugepages, then start again",
            free_mb, plan->memory_mb,
            (plan->memory_mb * MEGABYTE + HUGEPAGE_BYTES - 1) / HUGEPAGE_BYTES);
    }
    if (find_option(line, size_options) != NULL)
        return;
    /* Pages are only taken when they are touched, so this may be generous. */
    snprintf(plan->storage[1], sizeof(plan->storage[1]), "%" PRIu64, plan->memory_mb * 3 / 2);
    add(plan, "-m");
    add(plan, plan->storage[1]);
}

/* An eighth of the flows may be IPv6 ones in that; each more takes a bucket's place beside its own.
 */
static uint64_t flow_bytes(const struct hb_options *options)
{
    uint64_t eighth = options->flows / 8;

    return options->flows * FLOW_BYTES +
           (options->flows6 > eighth ? (options->flows6 - eighth) * FLOW6_BYTES : 0);
}

static uint64_t buffer_bytes(const struct hb_options *options, uint32_t ports, uint32_t workers)
{
    uint64_t needed = hb_port_buffers(ports > 0 ? ports : 1, workers);
    uint64_t each = HB_BUFFER_BYTES;

    if (options->mbuf_size != 0)
        each = HB_BUFFER_BYTES - HB_BUFFER_FRAME + options->mbuf_size;
    return (needed > options->mbufs ? needed : options->mbufs) * each;
}

int hb_eal_make_plan(char *program, const struct hb_command_line *line,
                     const struct hb_options *options, const struct hb_machine *machine,
                     struct hb_eal_plan *plan, char *problem)
{
    uint32_t devices = count_option(line, device_options), workers, taps = 0;

    for (uint32_t id = 0; id < HB_PORTS_MAX; id++)
        taps += options->punt[id] != NULL;
    memset(plan, 0, sizeof(*plan));
    add(plan, program);
    for (int i = 0; i < line->eal_count; i++)
        add(plan, line->eal[i]);
    plan->user_sets_logs = find_option(line, log_options) != NULL;
    if (!plan->user_sets_logs) {
        add(plan, "--log-level=lib.*:error");
        add(plan, "--log-level=bus.*:error");
        if (taps >
            0) /* its complaints about rte_flow, which is not used, would only worry people */
            add(plan, "--log-level=pmd.net.tap:critical");
    }
    if (machine->queues > 0 && find_option(line, core_lists) == NULL &&
        find_option(line, core_masks) == NULL)
        workers = choose_cores(plan, machine);
    else
        workers = count_workers(line, machine->cpus);
    plan->memory_mb = (flow_bytes(options) +
                       buffer_bytes(options, devices + taps + options->interfaces, workers) +
                       GENERATION_BYTES + EAL_OVERHEAD_BYTES) /
                          MEGABYTE +
                      1;
    choose_memory(plan, line, machine);
    /* No shared files under /run/dpdk and /dev/hugepages: several dataplanes do not collide, and
     * one that was killed leaves nothing behind. EAL has two names for that, and takes only the
     * second one together with --no-huge. */
    if (find_option(line, shared_options) == NULL)
        add(plan, plan->no_huge ? "--no-shconf" : "--in-memory");
    /* No NIC is touched that was not named: probing one that the kernel uses can disturb it. Then
     * nothing does DMA by physical address either, and one piece of memory can serve as AF_XDP's
     * UMEM (port.c). */
    if (find_option(line, pci_options) == NULL) {
        add(plan, "--no-pci");
        if (find_option(line, iova_options) == NULL)
            add(plan, "--iova-mode=va");
    }
    if (plan->count > HB_EAL_ARGUMENTS_MAX) {
        snprintf(problem, HB_TEXT_SIZE, "more than %d EAL options", HB_EAL_ARGUMENTS_MAX);
        return -E2BIG;
    }
    plan->argument[plan->count] = NULL;
    return 0;
}
