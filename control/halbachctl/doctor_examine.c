/* SPDX-License-Identifier: BSD-3-Clause */
/* The checks of halbachctl doctor; see doctor.h. */
#include <ctype.h>
#include <dirent.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "doctor.h"

#define CPUS_MAX  1024
#define PATH_ROOM 512

struct cpus {
    bool has[CPUS_MAX];
    unsigned count;
};

struct examination {
    const char *root;
    json_t *findings;
    struct cpus workers;             /* CPUs of running dataplanes' workers */
    unsigned short on_cpu[CPUS_MAX]; /* how many of them */
    unsigned processes;              /* dataplanes that run */
};

enum level { OK, COSTS, UNKNOWN, MISSING };

static __attribute__((format(printf, 5, 6))) void find(const struct examination *e,
                                                       const char *check, enum level level,
                                                       const char *remedy, const char *format, ...)
{
    static const char *const levels[] = {"ok", "costs", "unknown", "missing"};
    char text[512];
    va_list arguments;

    va_start(arguments, format);
    vsnprintf(text, sizeof(text), format, arguments);
    va_end(arguments);
    json_array_append_new(e->findings,
                          json_pack("{s:s, s:s, s:s, s:s}", "check", check, "level", levels[level],
                                    "text", text, "remedy", level == OK ? "" : remedy));
}

/* The first line of a file under the root, without its end; "" and false when there is none. */
static __attribute__((format(printf, 4, 5))) bool read_line(const struct examination *e, char *line,
                                                            size_t size, const char *format, ...)
{
    char path[PATH_ROOM];
    va_list arguments;
    size_t used = (size_t)snprintf(path, sizeof(path), "%s", e->root);
    FILE *file;

    *line = '\0';
    if (used >= sizeof(path))
        return false;
    va_start(arguments, format);
    vsnprintf(path + used, sizeof(path) - used, format, arguments);
    va_end(arguments);
    file = fopen(path, "re");
    if (file == NULL)
        return false;
    if (fgets(line, (int)size, file) == NULL)
        *line = '\0';
    line[strcspn(line, "\n")] = '\0';
    fclose(file);
    return true;
}

/* A list such as 0-3,8. */
static struct cpus parse_cpus(const char *list)
{
    struct cpus cpus = {.count = 0};

    while (isdigit((unsigned char)*list)) {
        char *end;
        unsigned long first = strtoul(list, &end, 10), last = first;

        if (*end == '-')
            last = strtoul(end + 1, &end, 10);
        for (unsigned long cpu = first; cpu <= last && cpu < CPUS_MAX; cpu++) {
            cpus.count += !cpus.has[cpu];
            cpus.has[cpu] = true;
        }
        list = *end == ',' ? end + 1 : end;
    }
    return cpus;
}

static bool is_number(const char *text)
{
    return *text != '\0' && strspn(text, "0123456789") == strlen(text);
}

/* Calls `visit` for each entry of a folder under the root. */
static void for_each_entry(struct examination *e, const char *folder,
                           void (*visit)(struct examination *e, const char *folder,
                                         const char *name))
{
    char path[PATH_ROOM];
    struct dirent *entry;
    DIR *directory;

    snprintf(path, sizeof(path), "%s%s", e->root, folder);
    directory = opendir(path);
    if (directory == NULL)
        return;
    while ((entry = readdir(directory)) != NULL)
        if (entry->d_name[0] != '.')
            visit(e, folder, entry->d_name);
    closedir(directory);
}

/* ---- the dataplane that runs ---- */

static void take_worker(struct examination *e, const char *folder, const char *thread)
{
    char line[256], path[PATH_ROOM];
    struct cpus cpus = {.count = 0};
    FILE *file;

    if (!read_line(e, line, sizeof(line), "%s/%s/comm", folder, thread) ||
        (strncmp(line, "rte-worker-", 11) != 0 && strncmp(line, "lcore-worker-", 13) != 0 &&
         strncmp(line, "dpdk-worker", 11) != 0))
        return;
    snprintf(path, sizeof(path), "%.200s%.100s/%.32s/status", e->root, folder, thread);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, "Cpus_allowed_list:", 18) == 0)
            cpus = parse_cpus(line + 18 + strspn(line + 18, " \t"));
    if (file != NULL)
        fclose(file);
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (!cpus.has[cpu] || cpus.count != 1)
            continue;
        e->on_cpu[cpu]++;
        e->workers.count += !e->workers.has[cpu];
        e->workers.has[cpu] = true;
    }
}

static void take_process(struct examination *e, const char *folder, const char *pid)
{
    char name[64], tasks[PATH_ROOM];

    /* The kernel keeps 15 characters of a name. */
    if (!is_number(pid) || !read_line(e, name, sizeof(name), "%s/%s/comm", folder, pid) ||
        strncmp(name, "halbach-datapla", 15) != 0)
        return;
    e->processes++;
    snprintf(tasks, sizeof(tasks), "%.100s/%.32s/task", folder, pid);
    for_each_entry(e, tasks, take_worker);
}

static void find_workers(struct examination *e)
{
    bool shared = false;

    for_each_entry(e, "/proc", take_process);
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (e->on_cpu[cpu] < 2)
            continue;
        shared = true;
        find(e, "workers", COSTS, "give each worker a CPU of its own: -l or --lcores",
             "%u workers share CPU %u", e->on_cpu[cpu], cpu);
    }
    if (e->processes == 0)
        find(e, "workers", UNKNOWN, "start halbach-dataplane and ask again",
             "no dataplane runs here: its CPUs are not known, and are not checked");
    else if (e->workers.count == 0)
        find(e, "workers", COSTS, "give EAL the CPUs: -l or --lcores",
             "the dataplane's workers are not bound to one CPU each");
    else if (!shared)
        find(e, "workers", OK, "", "%u worker%s, each on a CPU of its own", e->workers.count,
             e->workers.count == 1 ? "" : "s");
}

/* ---- the machine ---- */

static uint64_t read_meminfo(const struct examination *e, const char *key)
{
    char line[256], path[PATH_ROOM];
    unsigned long long value = 0;
    FILE *file;

    snprintf(path, sizeof(path), "%s/proc/meminfo", e->root);
    file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
        if (strncmp(line, key, strlen(key)) == 0 && line[strlen(key)] == ':')
            value = strtoull(line + strlen(key) + 1, NULL, 10);
    if (file != NULL)
        fclose(file);
    return value;
}

static void check_hugepages(const struct examination *e)
{
    uint64_t total = read_meminfo(e, "HugePages_Total"), size = read_meminfo(e, "Hugepagesize");

    if (total == 0)
        find(e, "hugepages", COSTS,
             "echo 1024 > /proc/sys/vm/nr_hugepages, then start the dataplane again",
             "there are none: about half the speed");
    else
        find(e, "hugepages", OK, "", "%llu of %llu kB, %llu free", (unsigned long long)total,
             (unsigned long long)size, (unsigned long long)read_meminfo(e, "HugePages_Free"));
}

static void check_governors(const struct examination *e)
{
    char governor[64];
    unsigned seen = 0;

    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (!e->workers.has[cpu] ||
            !read_line(e, governor, sizeof(governor),
                       "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu))
            continue;
        seen++;
        if (strcmp(governor, "performance") != 0) {
            find(e, "governor", COSTS, "cpupower frequency-set -g performance",
                 "CPU %u has '%s': it may run below its full clock", cpu, governor);
            return;
        }
    }
    if (seen > 0)
        find(e, "governor", OK, "", "performance");
    else if (e->workers.count > 0)
        find(e, "governor", UNKNOWN, "on a virtual machine it is the host's business",
             "the kernel shows no governor");
}

/* CPUs of workers that are missing in a list of the kernel. */
static void check_list(const struct examination *e, const char *check, const char *file,
                       const char *remedy, const char *cost)
{
    struct cpus listed;
    char line[1024];

    if (e->workers.count == 0)
        return;
    read_line(e, line, sizeof(line), "/sys/devices/system/cpu/%s", file);
    listed = parse_cpus(line);
    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        if (!e->workers.has[cpu] || listed.has[cpu])
            continue;
        find(e, check, COSTS, remedy, "CPU %u is not among them: %s", cpu, cost);
        return;
    }
    find(e, check, OK, "", "%s", line);
}

static void check_siblings(const struct examination *e)
{
    char line[256];

    for (unsigned cpu = 0; cpu < CPUS_MAX; cpu++) {
        struct cpus siblings;

        if (!e->workers.has[cpu] ||
            !read_line(e, line, sizeof(line),
                       "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu))
            continue;
        siblings = parse_cpus(line);
        if (siblings.count < 2)
            continue;
        for (unsigned other = cpu + 1; other < CPUS_MAX; other++)
            if (siblings.has[other] && e->workers.has[other]) {
                find(e, "siblings", COSTS, "take one CPU of each core for workers (-l)",
                     "workers on CPU %u and %u share one core", cpu, other);
                return;
            }
        find(e, "siblings", COSTS, "keep the sibling idle, or turn hyper-threading off",
             "CPU %u shares its core with another one (%s): what runs there slows it", cpu, line);
        return;
    }
    if (e->workers.count > 0)
        find(e, "siblings", OK, "", "no worker shares a core");
}

/* ---- NICs ---- */

static int node_of_cpu(const struct examination *e, unsigned cpu)
{
    char line[1024];

    for (int node = 0; node < 64; node++)
        if (read_line(e, line, sizeof(line), "/sys/devices/system/node/node%d/cpulist", node) &&
            parse_cpus(line).has[cpu])
            return node;
    return -1;
}

static void check_node(const struct examination *e, const char *device, const char *folder)
{
    char line[64];
    int node;

    if (!read_line(e, line, sizeof(line), "%s/numa_node", folder))
        return;
    node = atoi(line);
    for (unsigned cpu = 0; cpu < CPUS_MAX && node >= 0; cpu++) {
        if (!e->workers.has[cpu] || node_of_cpu(e, cpu) == node)
            continue;
        find(e, "numa", COSTS, "take CPUs of the NIC's node for workers (-l)",
             "%s is on NUMA node %d, the worker on CPU %u is on %d", device, node, cpu,
             node_of_cpu(e, cpu));
        return;
    }
    find(e, "numa", OK, "", "%s: %s", device, node < 0 ? "one node only" : "same node as workers");
}

static void check_pcie(const struct examination *e, const char *device, const char *folder)
{
    char now[64], most[64], lanes[64], most_lanes[64];

    if (!read_line(e, now, sizeof(now), "%s/current_link_speed", folder) ||
        !read_line(e, most, sizeof(most), "%s/max_link_speed", folder) ||
        !read_line(e, lanes, sizeof(lanes), "%s/current_link_width", folder) ||
        !read_line(e, most_lanes, sizeof(most_lanes), "%s/max_link_width", folder))
        return;
    find(e, "pcie", strcmp(now, most) == 0 && strcmp(lanes, most_lanes) == 0 ? OK : COSTS,
         "put it into another slot, or look into the BIOS", "%s: %s x%s of %s x%s", device, now,
         lanes, most, most_lanes);
}

static void check_ring(const struct examination *e, const char *device)
{
    struct hb_ring_size ring;
    char remedy[128];

    if (hb_link_ring(device, &ring) != 0 || ring.most == 0)
        return;
    snprintf(remedy, sizeof(remedy), "ethtool -G %.32s rx %u", device,
             ring.most < 2048 ? ring.most : 2048);
    if (ring.now >= ring.most || ring.now >= 2048)
        find(e, "rings", OK, "", "%s: %u receive descriptors of %u", device, ring.now, ring.most);
    else
        find(e, "rings", COSTS, remedy,
             "%s: %u receive descriptors of %u: a short pause of a worker loses packets", device,
             ring.now, ring.most);
}

static void check_xdp(const struct examination *e, const char *device)
{
    int mode = hb_link_xdp(device);

    if (mode == HB_LINK_XDP_GENERIC)
        find(e, "af_xdp", COSTS,
             "a driver with XDP support, a smaller MTU, or bind the NIC to DPDK",
             "%s: the program is attached in generic mode, each packet is copied first", device);
    else if (mode == HB_LINK_XDP_DRIVER)
        find(e, "af_xdp", OK, "", "%s: attached in the driver", device);
}

static void check_device(const struct examination *e, const char *device)
{
    bool pci = strchr(device, ':') != NULL;
    char folder[PATH_ROOM], line[64];

    snprintf(folder, sizeof(folder), pci ? "/sys/bus/pci/devices/%.64s" : "/sys/class/net/%.64s",
             device);
    if (strchr(device, '/') != NULL ||
        !read_line(e, line, sizeof(line), "%s/%s", folder, pci ? "vendor" : "ifindex")) {
        find(e, "device", MISSING, "name an interface (eth0) or a PCI address (0000:3b:00.0)",
             "there is no %s here", device);
        return;
    }
    if (!pci)
        strncat(folder, "/device", sizeof(folder) - strlen(folder) - 1);
    check_node(e, device, folder);
    check_pcie(e, device, folder);
    if (!pci && *e->root == '\0') {
        check_ring(e, device);
        check_xdp(e, device);
    }
}

void hb_doctor_examine(const char *root, const char *const devices[], unsigned count,
                       json_t *findings)
{
    struct examination e = {.root = root, .findings = findings};

    find_workers(&e);
    check_hugepages(&e);
    check_governors(&e);
    check_list(&e, "isolated", "isolated", "isolcpus= on the kernel's command line",
               "other programs and kernel work interrupt the worker");
    check_list(&e, "ticks", "nohz_full", "nohz_full= and rcu_nocbs= on the kernel's command line",
               "the timer interrupts the worker");
    check_siblings(&e);
    for (unsigned i = 0; i < count; i++)
        check_device(&e, devices[i]);
}
