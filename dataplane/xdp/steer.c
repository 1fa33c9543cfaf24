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
#include "steer_nat.h"
#include "xdp_attach.h"

#define CLAIM_WAIT_MS  2000
#define CLAIM_RETRY_MS 20

static_assert(HB_TEXT_SIZE == HB_XDP_TEXT_SIZE, "one buffer is passed through");

/* The two maps that say what a VIP is. Their keys begin and end with what the other's do not have,
 * but both are plain bytes. */
enum { ADDRESSES, PREFIXES, VIP_MAPS };
static const struct vip_map {
    const char *name;
    size_t key_size;
} vip_maps[VIP_MAPS] = {
    [ADDRESSES] = {HB_STEER_VIP_MAP, sizeof(struct hb_steer_vip)},
    [PREFIXES] = {HB_STEER_PREFIX_MAP, sizeof(struct hb_steer_prefix)},
};

union vip_key {
    struct hb_steer_vip address;
    struct hb_steer_prefix prefix;
};

/* Keys of one map, side by side. */
struct keys {
    uint8_t *bytes;
    uint32_t count;
};

struct hb_steer {
    struct hb_xdp_program program;
    int vips_fd[VIP_MAPS];
    int counters_fd;
    struct hb_steer_nat nat;
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
    struct keys vips[VIP_MAPS]; /* of the left-over program, until the new one has them */
    struct hb_steer_kept *nat;  /* the same of its answers */
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

static void forget_keys(struct keys keys[VIP_MAPS])
{
    for (int map = 0; map < VIP_MAPS; map++) {
        free(keys[map].bytes);
        keys[map] = (struct keys){0};
    }
}

static void release_claim(int ifindex)
{
    struct claim *claim = find_claim(ifindex);

    if (!claim)
        return;
    close(claim->fd);
    forget_keys(claim->vips);
    hb_steer_nat_forget(claim->nat);
    *claim = (struct claim){0};
}

/* ---- the program on an interface ---- */

/* Lists all keys first: an iteration over a map starts again when the key it stands on goes.
 * Without memory there are none. */
static struct keys list_keys(int fd, size_t key_size)
{
    struct keys keys = {.bytes = calloc(HB_STEER_VIPS_MAX, key_size)};
    uint8_t *previous = NULL, *next = keys.bytes;

    while (next && keys.count < HB_STEER_VIPS_MAX &&
           bpf_map_get_next_key(fd, previous, next) == 0) {
        previous = next;
        next += key_size;
        keys.count++;
    }
    return keys;
}

/* A killed dataplane's program goes on dropping the VIPs' packets. Its successor has no VIPs before
 * it has a generation; without the old ones the kernel would see those packets until then. What is
 * no VIP any more goes with the first hb_steer_keep_only. */
static void keep_vips(const struct hb_xdp_program *left_over)
{
    char ignored[HB_TEXT_SIZE]; /* without the map there is nothing to keep */
    struct claim *claim = find_claim(left_over->ifindex);

    forget_keys(claim->vips);
    for (int map = 0; map < VIP_MAPS; map++) {
        int fd = hb_xdp_open_map(left_over, vip_maps[map].name, ignored);

        if (fd < 0)
            continue;
        claim->vips[map] = list_keys(fd, vip_maps[map].key_size);
        close(fd);
    }
    hb_steer_nat_forget(claim->nat);
    claim->nat = hb_steer_nat_keep(left_over);
}

static int restore_vips(struct hb_steer *steer)
{
    struct claim *claim = find_claim(steer->program.ifindex);
    uint8_t value = 1;
    int err = 0;

    if (!claim)
        return 0;
    for (int map = 0; map < VIP_MAPS; map++) {
        const struct keys *keys = &claim->vips[map];

        for (uint32_t i = 0; !err && i < keys->count; i++)
            err = bpf_map_update_elem(steer->vips_fd[map], keys->bytes + i * vip_maps[map].key_size,
                                      &value, BPF_ANY);
    }
    forget_keys(claim->vips);
    if (!err) {
        err = hb_steer_nat_restore(&steer->nat, claim->nat);
        claim->nat = NULL;
    }
    return err;
}

static void close_vip_maps(struct hb_steer *steer)
{
    for (int map = 0; map < VIP_MAPS; map++)
        if (steer->vips_fd[map] >= 0)
            close(steer->vips_fd[map]);
}

/* Opens both or none. */
static int open_vip_maps(struct hb_steer *steer, char *problem)
{
    for (int map = 0; map < VIP_MAPS; map++)
        steer->vips_fd[map] = -1;
    for (int map = 0; map < VIP_MAPS; map++) {
        steer->vips_fd[map] = hb_xdp_open_map(&steer->program, vip_maps[map].name, problem);
        if (steer->vips_fd[map] < 0) {
            close_vip_maps(steer);
            return -1;
        }
    }
    return 0;
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
    if (open_vip_maps(steer, problem) < 0)
        goto release_program;
    steer->counters_fd = hb_xdp_open_map(&steer->program, HB_STEER_COUNTER_MAP, problem);
    if (steer->counters_fd < 0)
        goto close_vips;
    steer->limit_fd = hb_xdp_open_map(&steer->program, HB_STEER_LIMIT_MAP, problem);
    if (steer->limit_fd < 0)
        goto close_counters;
    if (hb_steer_nat_open(&steer->nat, &steer->program, problem) != 0)
        goto close_limit;
    err = restore_vips(steer);
    if (err) {
        snprintf(problem, HB_TEXT_SIZE, "cannot restore the VIPs in the steering program of %s: %s",
                 ifname, strerror(-err));
        goto close_nat;
    }
    return steer;

close_nat:
    hb_steer_nat_close(&steer->nat);
close_limit:
    close(steer->limit_fd);
close_counters:
    close(steer->counters_fd);
close_vips:
    close_vip_maps(steer);
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

/* The map that a VIP belongs to, and its key there. */
static int make_key(const struct hb_vip *vip, union vip_key *key)
{
    uint8_t bits = vip->family == HB_FAMILY_IPV4 ? 32 : 128;
    size_t size = bits / 8;

    memset(key, 0, sizeof(*key));
    if (vip->length != 0 && vip->length != bits) {
        key->prefix.bits = 8 + vip->length;
        key->prefix.family = vip->family;
        memcpy(key->prefix.bytes, vip->bytes, size);
        return PREFIXES;
    }
    key->address.family = vip->family;
    memcpy(key->address.bytes, vip->bytes, size);
    return ADDRESSES;
}

int hb_steer_add(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        union vip_key key;
        int map = make_key(&vips[i], &key);
        uint8_t value = 1;
        int err = bpf_map_update_elem(steer->vips_fd[map], &key, &value, BPF_ANY);

        if (err)
            return err;
    }
    return 0;
}

static int compare_addresses(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hb_steer_vip));
}

static int compare_prefixes(const void *a, const void *b)
{
    return memcmp(a, b, sizeof(struct hb_steer_prefix));
}

/* Removes the keys of one map that are not among the VIPs. */
static int keep_only(int fd, int map, const struct hb_vip *vips, uint32_t count)
{
    int (*compare)(const void *, const void *) =
        map == ADDRESSES ? compare_addresses : compare_prefixes;
    size_t size = vip_maps[map].key_size;
    struct keys present = list_keys(fd, size);
    struct keys wanted = {.bytes = calloc((size_t)count + 1, size)};
    int err = 0;

    if (!present.bytes || !wanted.bytes) {
        err = -ENOMEM;
        goto free_lists;
    }
    for (uint32_t i = 0; i < count; i++) {
        union vip_key key;

        if (make_key(&vips[i], &key) == map)
            memcpy(wanted.bytes + size * wanted.count++, &key, size);
    }
    qsort(wanted.bytes, wanted.count, size, compare);
    for (uint32_t i = 0; !err && i < present.count; i++)
        if (!bsearch(present.bytes + size * i, wanted.bytes, wanted.count, size, compare))
            err = bpf_map_delete_elem(fd, present.bytes + size * i);

free_lists:
    free(wanted.bytes);
    free(present.bytes);
    return err;
}

int hb_steer_keep_only(struct hb_steer *steer, const struct hb_vip *vips, uint32_t count)
{
    int first = 0;

    for (int map = 0; map < VIP_MAPS; map++) {
        int err = keep_only(steer->vips_fd[map], map, vips, count);

        first = first ? first : err;
    }
    return first;
}

int hb_steer_add_answers(struct hb_steer *steer, const struct hb_steer_nat_set *set)
{
    return hb_steer_nat_add(&steer->nat, set);
}

int hb_steer_keep_only_answers(struct hb_steer *steer, const struct hb_steer_nat_set *set)
{
    return hb_steer_nat_keep_only(&steer->nat, set);
}

void hb_steer_close(struct hb_steer *steer)
{
    char problem[HB_TEXT_SIZE];

    if (!steer)
        return;
    /* What fails here is mended by the next hb_steer_prepare. */
    hb_xdp_detach(&steer->program, problem);
    release_claim(steer->program.ifindex);
    hb_steer_nat_close(&steer->nat);
    close(steer->limit_fd);
    close(steer->counters_fd);
    close_vip_maps(steer);
    hb_xdp_release(&steer->program);
    free(steer);
}
