/* SPDX-License-Identifier: BSD-3-Clause */
#include "steer.h"

#include <assert.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <time.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "halbach/protocol.h"
#include "steer.skel.h"
#include "steer_maps.h"
#include "xdp_attach.h"

#define CLAIM_WAIT_MS  2000
#define CLAIM_RETRY_MS 20

static_assert(HB_TEXT_SIZE == HB_XDP_TEXT_SIZE, "one buffer is passed through");

struct hb_steer {
    struct hb_xdp_program program;
    int vips_fd;
    int counters_fd;
    int limit_fd;
};

/* ---- the object ---- */

static int write_all(int fd, const char *bytes, size_t size)
{
    while (size > 0) {
        ssize_t written = write(fd, bytes, size);

        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0)
            return -errno;
        bytes += written;
        size -= (size_t)written;
    }
    return 0;
}

const char *hb_steer_object_path(void)
{
    static char path[64]; /* the memfd belongs to the process, like its code */
    const char *bytes;
    size_t size;
    int fd, err;

    if (path[0])
        return path;
    fd = memfd_create("hb_steer.bpf.o", MFD_CLOEXEC);
    if (fd < 0)
        return NULL;
    bytes = steer__elf_bytes(&size);
    err = write_all(fd, bytes, size);
    if (err) {
        close(fd);
        errno = -err;
        return NULL;
    }
    snprintf(path, sizeof(path), "/proc/self/fd/%d", fd);
    return path;
}

/* ---- the claim on an interface ----
 *
 * A left-over program and the program of a dataplane that runs look alike, so a second dataplane on
 * the same interface would quietly take the first one's traffic. Each therefore binds an abstract
 * Unix socket named after the interface: such names belong to the network namespace, as interfaces
 * do, and the kernel frees them when the process dies, however it dies. */

static struct claim {
    int ifindex; /* 0: unused */
    int fd;
    struct hb_steer_vip *vips; /* of the left-over program, until the new one has them */
    uint32_t vips_count;
} claims[HB_PORTS_MAX];

static struct claim *find_claim(int ifindex)
{
    for (size_t i = 0; i < HB_PORTS_MAX; i++)
        if (claims[i].ifindex == ifindex)
            return &claims[i];
    return NULL;
}

static int bind_claim(int ifindex)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length =
        snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "halbach-steer/%d", ifindex);
    int fd = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);

    if (fd < 0)
        return -errno;
    if (bind(fd, (struct sockaddr *)&name,
             (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length)) < 0) {
        int err = -errno;

        close(fd);
        return err;
    }
    return fd;
}

/* A dataplane that was killed holds its sockets until the kernel has taken its memory apart, which
 * takes a moment when there are gigabytes. Its successor waits for that. */
static int wait_for_claim(int ifindex)
{
    const struct timespec pause = {.tv_nsec = CLAIM_RETRY_MS * 1000000L};
    int fd = bind_claim(ifindex);

    for (int waited = 0; fd == -EADDRINUSE && waited < CLAIM_WAIT_MS; waited += CLAIM_RETRY_MS) {
        nanosleep(&pause, NULL);
        fd = bind_claim(ifindex);
    }
    return fd;
}

static int claim_interface(int ifindex, const char *ifname, char *problem)
{
    struct claim *claim;
    int fd;

    if (find_claim(ifindex))
        return 0;
    claim = find_claim(0);
    fd = claim ? wait_for_claim(ifindex) : -ENOSPC;
    if (fd >= 0) {
        *claim = (struct claim){.ifindex = ifindex, .fd = fd};
        return 0;
    }
    if (fd == -EADDRINUSE) {
        snprintf(
            problem, HB_TEXT_SIZE,
            "another halbach-dataplane has %s: stop it first, or give this one another interface",
            ifname);
        return -EBUSY;
    }
    snprintf(problem, HB_TEXT_SIZE, "cannot claim %s for this process: %s", ifname, strerror(-fd));
    return fd;
}

static void release_claim(int ifindex)
{
    struct claim *claim = find_claim(ifindex);

    if (!claim)
        return;
    close(claim->fd);
    free(claim->vips);
    *claim = (struct claim){0};
}

/* ---- the program on an interface ---- */

/* Lists all keys first: an iteration over a hash map starts again when the key it stands on goes.
 */
static uint32_t list_keys(int vips_fd, struct hb_steer_vip *keys)
{
    struct hb_steer_vip *previous = NULL;
    uint32_t count = 0;

    while (count < HB_STEER_VIPS_MAX && bpf_map_get_next_key(vips_fd, previous, &keys[count]) == 0)
        previous = &keys[count++];
    return count;
}

/* A killed dataplane's program goes on dropping the VIPs' packets. Its successor has no VIPs before
 * it has a generation; without the old ones the kernel would see those packets until then. What is
 * no VIP any more goes with the first hb_steer_keep_only. */
static void keep_vips(const struct hb_xdp_program *left_over)
{
    char ignored[HB_TEXT_SIZE]; /* without the map there is nothing to keep */
    struct claim *claim = find_claim(left_over->ifindex);
    int fd = hb_xdp_open_map(left_over, HB_STEER_VIP_MAP, ignored);

    if (fd < 0)
        return;
    free(claim->vips);
    claim->vips_count = 0;
    claim->vips = calloc(HB_STEER_VIPS_MAX, sizeof(*claim->vips));
    if (claim->vips)
        claim->vips_count = list_keys(fd, claim->vips);
    close(fd);
}

static int restore_vips(struct hb_steer *steer)
{
    struct claim *claim = find_claim(steer->program.ifindex);
    uint8_t value = 1;
    int err = 0;

    for (uint32_t i = 0; !err && claim && i < claim->vips_count; i++)
        err = bpf_map_update_elem(steer->vips_fd, &claim->vips[i], &value, BPF_ANY);
    if (claim) {
        free(claim->vips);
        claim->vips = NULL;
        claim->vips_count = 0;
    }
    return err;
}

int hb_steer_prepare(const char *ifname, char *problem)
{
    struct hb_xdp_program left_over;
    int found, err;

    found = hb_xdp_find(ifname, HB_STEER_PROGRAM, &left_over, problem);
    if (found < 0)
        return found;

    err = claim_interface(left_over.ifindex, ifname, problem);
    if (!err && found) {
        keep_vips(&left_over);
        err = hb_xdp_detach(&left_over, problem);
    }
    hb_xdp_release(&left_over);
    return err;
}

struct hb_steer *hb_steer_open(const char *ifname, char *problem)
{
    struct hb_steer *steer = calloc(1, sizeof(*steer));
    int found, err;

    if (!steer) {
        snprintf(problem, HB_TEXT_SIZE, "no memory for the steering of %s", ifname);
        return NULL;
    }
    found = hb_xdp_find(ifname, HB_STEER_PROGRAM, &steer->program, problem);
    if (found < 0)
        goto free_steer;
    if (found == 0) {
        snprintf(
            problem, HB_TEXT_SIZE,
            "no steering program is attached to %s: it comes with the port's first RX queue, so "
            "open it later, and give net_af_xdp the xdp_prog= argument",
            ifname);
        goto free_steer;
    }
    steer->vips_fd = hb_xdp_open_map(&steer->program, HB_STEER_VIP_MAP, problem);
    if (steer->vips_fd < 0)
        goto release_program;
    steer->counters_fd = hb_xdp_open_map(&steer->program, HB_STEER_COUNTER_MAP, problem);
    if (steer->counters_fd < 0)
        goto close_vips;
    steer->limit_fd = hb_xdp_open_map(&steer->program, HB_STEER_LIMIT_MAP, problem);
    if (steer->limit_fd < 0)
        goto close_counters;
    err = restore_vips(steer);
    if (err) {
        snprintf(problem, HB_TEXT_SIZE, "cannot restore the VIPs in the steering program of %s: %s",
                 ifname, strerror(-err));
        goto close_limit;
    }
    return steer;

close_limit:
    close(steer->limit_fd);
close_counters:
    close(steer->counters_fd);
close_vips:
    close(steer->vips_fd);
release_program:
    hb_xdp_release(&steer->program);
free_steer:
    free(steer);
    return NULL;
}

const char *hb_steer_mode(const struct hb_steer *steer)
{
    return hb_xdp_mode_name(steer->program.mode);
}

bool hb_steer_attached(const struct hb_steer *steer)
{
    return hb_xdp_attached(&steer->program);
}

int hb_steer_read_counters(const struct hb_steer *steer, uint64_t *counters)
{
    int cpus = libbpf_num_possible_cpus();
    uint64_t *values;
    int err = 0;

    if (cpus < 0)
        return cpus;
    values = calloc((size_t)cpus, sizeof(*values));
    if (!values)
        return -ENOMEM;
    for (uint32_t i = 0; !err && i < HB_STEER_COUNT; i++) {
        counters[i] = 0;
        err = bpf_map_lookup_elem(steer->counters_fd, &i, values);
        for (int cpu = 0; !err && cpu < cpus; cpu++)
            counters[i] += values[cpu];
    }
    free(values);
    return err;
}

int hb_steer_limit(struct hb_steer *steer, uint32_t rate)
{
    int cpus = libbpf_num_possible_cpus();
    struct hb_steer_limit *values;
    uint32_t index = 0;
    int err;

    if (cpus < 0)
        return cpus;
    values = calloc((size_t)cpus, sizeof(*values));
    if (!values)
        return -ENOMEM;
    for (int cpu = 0; cpu < cpus; cpu++)
        values[cpu].rate = rate;
    err = bpf_map_update_elem(steer->limit_fd, &index, values, BPF_ANY);
    free(values);
    return err;
}

/* ---- VIPs ---- */

static struct hb_steer_vip make_key(const struct hb_vip *vip)
{
    struct hb_steer_vip key = {.family = vip->family};

    memcpy(key.bytes, vip->bytes, vip->family == HB_FAMILY_IPV4 ? 4 : sizeof(key.bytes));
    return key;
}

static int compare_keys(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hb_steer_vip));
}

int hb_steer_add(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct hb_steer_vip key = make_key(&vips[i]);
        uint8_t value = 1;
        int err = bpf_map_update_elem(steer->vips_fd, &key, &value, BPF_ANY);

        if (err)
            return err;
    }
    return 0;
}

int hb_steer_keep_only(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count)
{
    struct hb_steer_vip *present = calloc(HB_STEER_VIPS_MAX, sizeof(*present));
    struct hb_steer_vip *wanted = calloc((size_t)count + 1, sizeof(*wanted));
    uint32_t present_count;
    int err = 0;

    if (!present || !wanted) {
        err = -ENOMEM;
        goto free_lists;
    }
    for (uint32_t i = 0; i < count; i++)
        wanted[i] = make_key(&vips[i]);
    qsort(wanted, count, sizeof(*wanted), compare_keys);

    present_count = list_keys(steer->vips_fd, present);
    for (uint32_t i = 0; !err && i < present_count; i++)
        if (!bsearch(&present[i], wanted, count, sizeof(*wanted), compare_keys))
            err = bpf_map_delete_elem(steer->vips_fd, &present[i]);

free_lists:
    free(wanted);
    free(present);
    return err;
}

void hb_steer_close(struct hb_steer *steer)
{
    char problem[HB_TEXT_SIZE];

    if (!steer)
        return;
    /* What fails here is mended by the next hb_steer_prepare. */
    hb_xdp_detach(&steer->program, problem);
    release_claim(steer->program.ifindex);
    close(steer->limit_fd);
    close(steer->counters_fd);
    close(steer->vips_fd);
    hb_xdp_release(&steer->program);
    free(steer);
}
