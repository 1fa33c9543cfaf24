/* SPDX-License-Identifier: BSD-3-Clause */
#include "decap_program.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "decap.skel.h"
#include "decap_lists.h"

/* What a page holds besides the frame when a driver runs XDP on it: headroom and the kernel's
 * trailer. */
#define XDP_PAGE_OVERHEAD (256 + 320 + 14)

/* libbpf hands the kernel's reason for a refusal to its print callback only, and has one callback a
 * process. */
static char kernel_reason[128];
static bool print_warnings; /* the verifier's log among them */

static int catch_reason(enum libbpf_print_level level, const char *format, va_list arguments)
{
    static const char prefix[] = "libbpf: Kernel error message: ";
    char line[512];

    if (level != LIBBPF_WARN)
        return 0;
    vsnprintf(line, sizeof(line), format, arguments);
    if (strncmp(line, prefix, strlen(prefix)) != 0)
        return print_warnings ? fprintf(stderr, "%s", line) : 0;
    line[strcspn(line, "\n")] = 0;
    snprintf(kernel_reason, sizeof(kernel_reason), "%.*s", (int)sizeof(kernel_reason) - 1,
             line + strlen(prefix));
    return 0;
}

/* ---- attach ---- */

static int try_load(struct bpf_object **object)
{
    size_t size;
    const void *bytes = decap__elf_bytes(&size);
    int err;

    *object = bpf_object__open_mem(bytes, size, NULL);
    if (!*object)
        return -errno;
    err = bpf_object__load(*object);
    if (err)
        bpf_object__close(*object);
    return err;
}

static int load_object(struct bpf_object **object, char *problem)
{
    int err = try_load(object);

    if (!err)
        return 0;
    if (err == -EPERM) {
        snprintf(
            problem, HB_XDP_TEXT_SIZE,
            "the kernel lets no BPF program be loaded: run as root (CAP_BPF and CAP_NET_ADMIN are "
            "needed)");
        return err;
    }
    print_warnings = true; /* only now is libbpf's account of any use */
    try_load(object);
    snprintf(
        problem, HB_XDP_TEXT_SIZE,
        "the kernel does not take the decapsulation program (%s): Linux 5.18 or newer is needed",
        strerror(-err));
    return err;
}

static int object_program(const struct bpf_object *object)
{
    return bpf_program__fd(bpf_object__next_program(object, NULL));
}

static bool same_version(int fd, const struct hb_xdp_program *attached)
{
    struct bpf_prog_info info = {0};
    uint32_t size = sizeof(info);

    return bpf_obj_get_info_by_fd(fd, &info, &size) == 0 &&
           memcmp(info.tag, &attached->tag, sizeof(attached->tag)) == 0;
}

static int interface_mtu(const char *ifname)
{
    struct ifreq request = {0};
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int err;

    if (fd < 0)
        return -1;
    snprintf(request.ifr_name, sizeof(request.ifr_name), "%s", ifname);
    err = ioctl(fd, SIOCGIFMTU, &request);
    close(fd);
    return err ? -1 : request.ifr_mtu;
}

/* Drivers tell in words, in an error number, or not at all, that the MTU is what they dislike. */
static void explain_refusal(char *text, const char *ifname, int err)
{
    int mtu = interface_mtu(ifname);
    long limit = sysconf(_SC_PAGESIZE) - XDP_PAGE_OVERHEAD;
    const char *reason = kernel_reason[0] ? kernel_reason : strerror(-err);

    if (err == -EOPNOTSUPP)
        snprintf(text, HB_XDP_TEXT_SIZE, "the driver of %s has no native XDP", ifname);
    else if (mtu > limit)
        snprintf(
            text, HB_XDP_TEXT_SIZE,
            "%s refuses native XDP (%s); its MTU is %d, and many drivers allow about %ld at most: "
            "lower it with 'ip link set dev %s mtu %ld'",
            ifname, reason, mtu, limit, ifname, limit);
    else
        snprintf(text, HB_XDP_TEXT_SIZE, "%s refuses native XDP (%s)", ifname, reason);
}

static int attach_new(int fd, int ifindex, const char *ifname, enum hb_decap_wish wish,
                      struct hb_decap_outcome *outcome, char *problem)
{
    int err;

    kernel_reason[0] = 0;
    if (wish != HB_DECAP_GENERIC_ONLY) {
        outcome->mode = HB_XDP_NATIVE;
        err = hb_xdp_attach(ifindex, fd, HB_XDP_NATIVE, NULL);
        if (!err)
            return 0;
        explain_refusal(outcome->note, ifname, err);
        if (wish == HB_DECAP_NATIVE_ONLY) {
            memcpy(problem, outcome->note, HB_XDP_TEXT_SIZE);
            return err;
        }
    }
    outcome->mode = HB_XDP_GENERIC;
    err = hb_xdp_attach(ifindex, fd, HB_XDP_GENERIC, NULL);
    if (err)
        snprintf(problem, HB_XDP_TEXT_SIZE, "cannot attach the decapsulation program to %s: %s",
                 ifname, kernel_reason[0] ? kernel_reason : strerror(-err));
    return err;
}

static int update(const struct hb_xdp_program *attached, const struct hb_decap_wanted *wanted,
                  char *problem)
{
    struct hb_decap_maps maps;
    int err = hb_decap_maps_open(attached, &maps, problem);

    if (err)
        return err;
    err = hb_decap_maps_set(&maps, wanted, problem);
    hb_decap_maps_close(&maps);
    return err;
}

/* The maps of a program that was loaded just now; the object closes them. */
static int fill(const struct bpf_object *object, const struct hb_decap_wanted *wanted,
                char *problem)
{
    struct hb_decap_maps maps = {
        .vips = bpf_object__find_map_fd_by_name(object, HB_DECAP_VIP_MAP),
        .sources = bpf_object__find_map_fd_by_name(object, HB_DECAP_SOURCE_MAP),
        .marks = bpf_object__find_map_fd_by_name(object, HB_DECAP_MARK_MAP),
        .settings = bpf_object__find_map_fd_by_name(object, HB_DECAP_SETTINGS_MAP),
    };

    return hb_decap_maps_set(&maps, wanted, problem);
}

/* The program's maps are filled before it is attached: no packet meets it half set up. */
static int attach_filled(struct bpf_object *object, const struct hb_xdp_program *attached,
                         bool replace, enum hb_decap_wish wish, struct hb_decap_outcome *outcome,
                         char *problem)
{
    int fd = object_program(object);
    int err;

    if (!replace)
        return attach_new(fd, attached->ifindex, attached->ifname, wish, outcome, problem);
    outcome->mode = attached->mode;
    err = hb_xdp_attach(attached->ifindex, fd, attached->mode, attached);
    if (err)
        snprintf(problem, HB_XDP_TEXT_SIZE,
                 "cannot exchange the decapsulation program of %s: %s: detach it first",
                 attached->ifname, strerror(-err));
    return err;
}

/* A program that is there stays in its mode: a change of mode has a gap, so it is the operator's
 * step. */
static int check_wish(bool found, const struct hb_xdp_program *attached, enum hb_decap_wish wish,
                      char *problem)
{
    enum hb_xdp_mode wished = wish == HB_DECAP_NATIVE_ONLY ? HB_XDP_NATIVE : HB_XDP_GENERIC;

    if (!found || wish == HB_DECAP_ANY_MODE || attached->mode == wished)
        return 0;
    snprintf(
        problem, HB_XDP_TEXT_SIZE,
        "%s decapsulates in %s mode already: 'halbach-backend detach %s' it before a change to %s",
        attached->ifname, hb_xdp_mode_name(attached->mode), attached->ifname,
        hb_xdp_mode_name(wished));
    return -EBUSY;
}

int hb_decap_attach(const char *ifname, const struct hb_decap_wanted *wanted,
                    enum hb_decap_wish wish, struct hb_decap_outcome *outcome, char *problem)
{
    struct hb_xdp_program attached;
    struct bpf_object *object;
    int found, err;

    libbpf_set_print(catch_reason);
    memset(outcome, 0, sizeof(*outcome));
    found = hb_xdp_find(ifname, HB_DECAP_PROGRAM, &attached, problem);
    if (found < 0)
        return found;
    err = check_wish(found, &attached, wish, problem);
    if (!err)
        err = load_object(&object, problem);
    if (err)
        goto release_attached;

    if (found && same_version(object_program(object), &attached)) {
        outcome->change = HB_DECAP_UPDATED;
        outcome->mode = attached.mode;
        err = update(&attached, wanted, problem);
        goto close_object;
    }
    outcome->change = found ? HB_DECAP_REPLACED : HB_DECAP_ATTACHED;
    err = fill(object, wanted, problem);
    if (!err)
        err = attach_filled(object, &attached, found, wish, outcome, problem);

close_object:
    bpf_object__close(object);
release_attached:
    hb_xdp_release(&attached);
    return err;
}

int hb_decap_detach(const char *ifname, char *problem)
{
    struct hb_xdp_program attached;
    int found = hb_xdp_find(ifname, HB_DECAP_PROGRAM, &attached, problem);
    int err;

    if (found <= 0)
        return found;
    err = hb_xdp_detach(&attached, problem);
    hb_xdp_release(&attached);
    return err ? err : 1;
}

/* ---- status ---- */

static int sum_counters(int fd, uint64_t *counters)
{
    int cpus = libbpf_num_possible_cpus();
    uint64_t *values = cpus > 0 ? calloc((size_t)cpus, sizeof(*values)) : NULL;
    int err = values ? 0 : -ENOMEM;

    for (uint32_t i = 0; !err && i < HB_DECAP_COUNT; i++) {
        counters[i] = 0;
        err = bpf_map_lookup_elem(fd, &i, values);
        for (int cpu = 0; !err && cpu < cpus; cpu++)
            counters[i] += values[cpu];
    }
    free(values);
    return err;
}

static int read_counters(const struct hb_xdp_program *attached, uint64_t *counters, char *problem)
{
    int fd = hb_xdp_open_map(attached, HB_DECAP_COUNTER_MAP, problem);
    int err;

    if (fd < 0)
        return fd;
    err = sum_counters(fd, counters);
    if (err)
        snprintf(
            problem, HB_XDP_TEXT_SIZE,
            "cannot read the counters of %s (%s): the program may be of another version; a new "
            "attach exchanges it",
            attached->ifname, strerror(-err));
    close(fd);
    return err;
}

int hb_decap_read(const char *ifname, struct hb_decap_status *status, char *problem)
{
    struct hb_xdp_program attached;
    int found = hb_xdp_find(ifname, HB_DECAP_PROGRAM, &attached, problem);
    struct hb_decap_maps maps;
    int err;

    if (found <= 0)
        return found;
    memset(status, 0, sizeof(*status));
    memcpy(status->ifname, attached.ifname, sizeof(status->ifname));
    status->mode = attached.mode;
    status->program_id = attached.id;
    err = hb_decap_maps_open(&attached, &maps, problem);
    if (!err) {
        err = hb_decap_maps_read(&maps, &status->now, problem);
        hb_decap_maps_close(&maps);
    }
    if (!err)
        err = read_counters(&attached, status->counters, problem);
    hb_xdp_release(&attached);
    if (err)
        hb_decap_status_free(status);
    return err ? err : 1;
}

void hb_decap_status_free(struct hb_decap_status *status)
{
    free(status->now.vips.list);
    free(status->now.sources.list);
    free(status->now.marks.list);
    memset(&status->now, 0, sizeof(status->now));
}
