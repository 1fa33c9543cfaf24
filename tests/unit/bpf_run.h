/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bpf_run.h: loads a BPF object and runs its program on packets, for tests as root.
 */
#ifndef HB_TEST_BPF_RUN_H
#define HB_TEST_BPF_RUN_H

#include <errno.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <bpf/bpf.h>
#include <bpf/libbpf.h>

#include "packet_builder.h"

#define SKIPPED 77 /* what meson takes as "skipped" */

/* Loads the object and returns the descriptor of its program. Ends the test as skipped where BPF or
 * a network namespace of one's own is not permitted. */
static inline int load_program_or_skip(struct bpf_object *object)
{
    int err;

    if (geteuid() != 0 || unshare(CLONE_NEWNET) < 0) {
        printf("skipped: needs root, for BPF and a network namespace of its own\n");
        exit(SKIPPED);
    }
    err = bpf_object__load(object);
    if (err == -EPERM || err == -ENOSYS) {
        printf("skipped: the kernel does not permit BPF here (%s)\n", strerror(-err));
        exit(SKIPPED);
    }
    if (err) {
        printf("the BPF program does not load: %s\n", strerror(-err));
        exit(1);
    }
    return bpf_program__fd(bpf_object__next_program(object, NULL));
}

/* Runs the program on `in`. Returns the verdict and what is left of the packet. */
static inline int run_program(int fd, const struct packet *in, struct packet *out)
{
    LIBBPF_OPTS(bpf_test_run_opts, opts, .data_in = in->bytes, .data_size_in = in->size,
                .data_out = out->bytes, .data_size_out = sizeof(out->bytes), .repeat = 1);
    int err = bpf_prog_test_run_opts(fd, &opts);

    if (err) {
        printf("running the program on %u bytes fails: %s\n", in->size, strerror(-err));
        exit(1);
    }
    out->size = opts.data_size_out;
    return (int)opts.retval;
}

/* Sum over all CPUs of one counter. */
static inline uint64_t read_counter(int map_fd, uint32_t index)
{
    int cpus = libbpf_num_possible_cpus();
    uint64_t *values = calloc((size_t)cpus, sizeof(*values));
    uint64_t sum = 0;

    if (!values || bpf_map_lookup_elem(map_fd, &index, values)) {
        printf("cannot read counter %u\n", index);
        exit(1);
    }
    for (int i = 0; i < cpus; i++)
        sum += values[i];
    free(values);
    return sum;
}

#endif
