/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * tunnel.c: see tunnel.h.
 */
#include "tunnel.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "probe_socket.h"
#include "tunnel.skel.h"
#include "tunnel_device.h"
#include "tunnel_maps.h"

struct hb_tunnels {
    int device; /* descriptor of the TUN device */
    uint32_t ifindex;
    bool has_rules;
    struct tunnel_bpf *program;
    struct hb_probe_tunnel *values[HB_TUNNELS_MAX + 1]; /* as in the map; NULL: free */
    uint32_t last;                                      /* number that was given out */
};

static int load_program(struct hb_tunnels *tunnels, char *problem, size_t size)
{
    LIBBPF_OPTS(bpf_tc_hook, hook, .ifindex = (int)tunnels->ifindex, .attach_point = BPF_TC_EGRESS);
    LIBBPF_OPTS(bpf_tc_opts, options, .handle = 1, .priority = 1);
    int error = 0;

    tunnels->program = tunnel_bpf__open_and_load();
    if (tunnels->program == NULL)
        error = -errno;
    if (error == 0) {
        options.prog_fd = bpf_program__fd(tunnels->program->progs.hb_probe);
        error = bpf_tc_hook_create(&hook);
    }
    if (error == 0)
        error = bpf_tc_attach(&hook, &options);
    if (error != 0)
        snprintf(problem, size,
                 "cannot load the program for checks through the tunnel: %s; they need CAP_BPF and "
                 "CAP_NET_ADMIN",
                 strerror(-error));
    return error;
}

struct hb_tunnels *hb_tunnels_open(char *problem, size_t size)
{
    struct hb_tunnels *tunnels = calloc(1, sizeof(*tunnels));

    if (tunnels == NULL) {
        snprintf(problem, size, "not enough memory");
        return NULL;
    }
    tunnels->device = hb_tunnel_device_open(&tunnels->ifindex, problem, size);
    if (tunnels->device < 0 || load_program(tunnels, problem, size) != 0 ||
        hb_tunnel_rules_add(tunnels->ifindex, problem, size) != 0) {
        hb_tunnels_close(tunnels);
        return NULL;
    }
    tunnels->has_rules = true;
    return tunnels;
}

void hb_tunnels_close(struct hb_tunnels *tunnels)
{
    if (tunnels == NULL)
        return;
    if (tunnels->has_rules)
        hb_tunnel_rules_remove();
    tunnel_bpf__destroy(tunnels->program);
    if (tunnels->device >= 0)
        close(tunnels->device);
    for (uint32_t n = 0; n <= HB_TUNNELS_MAX; n++)
        free(tunnels->values[n]);
    free(tunnels);
}

uint32_t hb_tunnels_claim(struct hb_tunnels *tunnels)
{
    /* The next one, not the lowest: packets of a probe that has just ended meet nobody's tunnel. */
    for (uint32_t tried = 0; tried < HB_TUNNELS_MAX; tried++) {
        uint32_t number = tunnels->last = tunnels->last % HB_TUNNELS_MAX + 1;

        if (tunnels->values[number] != NULL)
            continue;
        tunnels->values[number] = calloc(1, sizeof(*tunnels->values[number]));
        return tunnels->values[number] != NULL ? number : 0;
    }
    return 0;
}

void hb_tunnels_release(struct hb_tunnels *tunnels, uint32_t number)
{
    bpf_map_delete_elem(bpf_map__fd(tunnels->program->maps.hb_tunnels), &number);
    free(tunnels->values[number]);
    tunnels->values[number] = NULL;
}

bool hb_tunnels_set(struct hb_tunnels *tunnels, uint32_t number, uint32_t ifindex,
                    const struct hb_rewrite *rewrite, char *problem, size_t size)
{
    struct hb_probe_tunnel value;

    if (!hb_probe_tunnel_make(rewrite, ifindex, &value, problem, size))
        return false;
    if (memcmp(tunnels->values[number], &value, sizeof(value)) == 0)
        return true;
    if (bpf_map_update_elem(bpf_map__fd(tunnels->program->maps.hb_tunnels), &number, &value,
                            BPF_ANY) < 0) {
        snprintf(problem, size, "cannot set the tunnel of a check: %s", strerror(errno));
        return false;
    }
    *tunnels->values[number] = value;
    return true;
}

uint32_t hb_tunnels_mark(uint32_t number)
{
    return HB_TUNNEL_MARK | number;
}

uint32_t hb_tunnels_ifindex(const struct hb_tunnels *tunnels)
{
    return tunnels->ifindex;
}

/* connect() on a datagram socket sends nothing; it only chooses. */
struct hb_address hb_tunnels_source(const struct hb_address *to)
{
    const struct hb_check_way way = {.to = *to};
    struct hb_address source = {0};
    struct sockaddr_storage own;
    socklen_t size = sizeof(own);
    int fd = hb_probe_socket_open(&way, SOCK_DGRAM, 0, 9);

    if (fd < 0)
        return source;
    if (getsockname(fd, (struct sockaddr *)&own, &size) == 0)
        source = hb_probe_address_of(&own);
    close(fd);
    return source;
}
