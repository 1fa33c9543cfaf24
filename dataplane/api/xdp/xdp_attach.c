/* SPDX-License-Identifier: BSD-3-Clause */
#include "xdp_attach.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/if_link.h>

#define MAPS_MAX 16 /* more than any program of ours has */

static const struct {
    const char *name;
    const char *ip_keyword; /* how ip-link(8) detaches it */
    uint32_t flags;
} modes[] = {
    [HB_XDP_NATIVE] = {"native", "xdpdrv", XDP_FLAGS_DRV_MODE},
    [HB_XDP_GENERIC] = {"generic", "xdpgeneric", XDP_FLAGS_SKB_MODE},
    [HB_XDP_HARDWARE] = {"hardware", "xdpoffload", XDP_FLAGS_HW_MODE},
};

const char *hb_xdp_mode_name(enum hb_xdp_mode mode)
{
    return modes[mode].name;
}

/* Up to one program each in hardware and in either native or generic mode can be attached at once;
 * ids are 0 where none is. */
static int query_ids(int ifindex, uint32_t ids[3])
{
    LIBBPF_OPTS(bpf_xdp_query_opts, opts);
    int err = bpf_xdp_query(ifindex, 0, &opts);

    if (err)
        return err;
    ids[HB_XDP_NATIVE] = opts.drv_prog_id;
    ids[HB_XDP_GENERIC] = opts.skb_prog_id;
    ids[HB_XDP_HARDWARE] = opts.hw_prog_id;
    return 0;
}

static int open_program(uint32_t id, struct bpf_prog_info *info)
{
    uint32_t size = sizeof(*info);
    int fd = bpf_prog_get_fd_by_id(id);
    int err;

    if (fd < 0)
        return fd;
    memset(info, 0, sizeof(*info));
    err = bpf_obj_get_info_by_fd(fd, info, &size);
    if (err) {
        close(fd);
        return err;
    }
    return fd;
}

static int fail_query(char *problem, const char *ifname, int err)
{
    const char *remedy =
        err == -EPERM ? ": run as root (CAP_NET_ADMIN and CAP_BPF are needed)" : "";

    snprintf(problem, HB_XDP_TEXT_SIZE, "cannot look up the XDP program of %s: %s%s", ifname,
             strerror(-err), remedy);
    return err;
}

static int refuse_foreign(char *problem, const char *ifname, enum hb_xdp_mode mode,
                          const struct bpf_prog_info *info)
{
    const char *name = info->name[0] ? info->name : "(no name)";

    snprintf(
        problem, HB_XDP_TEXT_SIZE,
        "%s has a foreign XDP program, %s (id %u, %s), which is not replaced: stop what put it "
        "there, or detach it with 'ip link set dev %s %s off'",
        ifname, name, info->id, modes[mode].name, ifname, modes[mode].ip_keyword);
    return -EBUSY;
}

int hb_xdp_find(const char *ifname, const char *name, struct hb_xdp_program *found, char *problem)
{
    uint32_t ids[3];
    int err;

    memset(found, 0, sizeof(*found));
    found->fd = -1;
    found->ifindex = (int)if_nametoindex(ifname);
    if (found->ifindex == 0) {
        snprintf(problem, HB_XDP_TEXT_SIZE,
                 "there is no interface %s in this network namespace: see 'ip link'", ifname);
        return -ENODEV;
    }
    snprintf(found->ifname, sizeof(found->ifname), "%s", ifname);

    err = query_ids(found->ifindex, ids);
    if (err)
        return fail_query(problem, ifname, err);
    for (enum hb_xdp_mode mode = HB_XDP_NATIVE; mode <= HB_XDP_HARDWARE; mode++) {
        struct bpf_prog_info info;
        int fd;

        if (!ids[mode])
            continue;
        fd = open_program(ids[mode], &info);
        if (fd < 0) {
            hb_xdp_release(found);
            return fail_query(problem, ifname, fd);
        }
        if (strcmp(info.name, name) != 0) {
            close(fd);
            hb_xdp_release(found);
            return refuse_foreign(problem, ifname, mode, &info);
        }
        hb_xdp_release(found);
        found->fd = fd;
        found->id = info.id;
        found->mode = mode;
        memcpy(&found->tag, info.tag, sizeof(found->tag));
    }
    return found->fd >= 0;
}

bool hb_xdp_attached(const struct hb_xdp_program *program)
{
    uint32_t ids[3];

    return query_ids(program->ifindex, ids) == 0 && ids[program->mode] == program->id;
}

int hb_xdp_open_map(const struct hb_xdp_program *program, const char *map_name, char *problem)
{
    uint32_t ids[MAPS_MAX] = {0};
    struct bpf_prog_info info = {.nr_map_ids = MAPS_MAX, .map_ids = (uintptr_t)ids};
    uint32_t size = sizeof(info);
    int err = bpf_obj_get_info_by_fd(program->fd, &info, &size);

    for (uint32_t i = 0; !err && i < info.nr_map_ids && i < MAPS_MAX; i++) {
        struct bpf_map_info map = {0};
        int fd = bpf_map_get_fd_by_id(ids[i]);

        size = sizeof(map);
        if (fd >= 0 && bpf_obj_get_info_by_fd(fd, &map, &size) == 0 &&
            strcmp(map.name, map_name) == 0)
            return fd;
        if (fd >= 0)
            close(fd);
    }
    if (!err)
        err = -ENOENT;
    snprintf(
        problem, HB_XDP_TEXT_SIZE,
        "the XDP program of %s (id %u) has no map %s that can be opened (%s): it is of another "
        "version; detach it with 'ip link set dev %s %s off' and start again",
        program->ifname, program->id, map_name, strerror(-err), program->ifname,
        modes[program->mode].ip_keyword);
    return err;
}

int hb_xdp_attach(int ifindex, int fd, enum hb_xdp_mode mode, const struct hb_xdp_program *old)
{
    LIBBPF_OPTS(bpf_xdp_attach_opts, opts);

    if (!old)
        return bpf_xdp_attach(ifindex, fd, modes[mode].flags | XDP_FLAGS_UPDATE_IF_NOEXIST, NULL);
    opts.old_prog_fd = old->fd;
    return bpf_xdp_attach(ifindex, fd, modes[old->mode].flags | XDP_FLAGS_REPLACE, &opts);
}

int hb_xdp_detach(const struct hb_xdp_program *program, char *problem)
{
    LIBBPF_OPTS(bpf_xdp_attach_opts, opts, .old_prog_fd = program->fd);
    int err;

    if (!hb_xdp_attached(program))
        return 0;
    /* The expected program goes along, so a foreign one that came between the two lines is safe. */
    err = bpf_xdp_detach(program->ifindex, modes[program->mode].flags | XDP_FLAGS_REPLACE, &opts);
    if (err)
        snprintf(problem, HB_XDP_TEXT_SIZE, "cannot detach XDP program %u from %s: %s", program->id,
                 program->ifname, strerror(-err));
    return err;
}

void hb_xdp_release(struct hb_xdp_program *program)
{
    if (program->fd >= 0)
        close(program->fd);
    program->fd = -1;
}
