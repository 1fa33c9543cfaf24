/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * options.h: the command line of halbach-dataplane.
 *
 *     halbach-dataplane [EAL options] -- [options]
 *
 * Without `--` the line is all of one kind: the first option tells of which. The options are rows
 * of one table (options.c) from which --help is printed. Pure; main thread.
 */
#ifndef HB_DATAPLANE_OPTIONS_H
#define HB_DATAPLANE_OPTIONS_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "halbach/protocol.h"
#include "worker.h"

#define HB_IFNAME_SIZE 16 /* IFNAMSIZ */
#define HB_MTU_MIN     1280
#define HB_MTU_MAX     9600

struct hb_options {
    const char *socket;
    const char *interface[HB_PORTS_MAX]; /* one port each, AF_XDP or AF_PACKET */
    uint32_t interfaces;
    const char *kernel_interface[HB_PORTS_MAX]; /* by port id; NULL: what the driver says */
    const char *punt[HB_PORTS_MAX];             /* by port id: name of its TAP; NULL: none */
    uint64_t flows;                             /* of all workers together */
    uint32_t nat_sessions;                      /* the same; 0: full NAT is not possible */
    uint64_t flows6;                            /* of which IPv6 at most; 0: an eighth */
    uint32_t mbufs;                             /* buffers of a NUMA node at least; 0: as needed */
    uint32_t mbuf_size;                         /* bytes of a frame in one; 0: by the MTU */
    uint32_t idle_sleep_us;
    struct hb_flow_timeouts timeouts;
    uint16_t mtu;              /* of the ports that EAL found; 0: as their drivers say */
    bool udp_checksum_offload; /* of ports that can */
    bool help;
    bool version;
};

/* The line split in two; the pointers are those of argv. */
struct hb_command_line {
    char **eal; /* without argv[0] */
    int eal_count;
    char **own;
    int own_count;
};

/* Splits argv. Returns 0, or -EINVAL with `problem` (HB_TEXT_SIZE bytes) when the two kinds are
 * mixed. */
int hb_command_line_split(int argc, char **argv, struct hb_command_line *line, char *problem);

/* Reads our own options into *options, defaults first. Strings are not copied. Returns 0, or
 * -EINVAL with `problem` (HB_TEXT_SIZE bytes): the option, its value, and what was expected. */
int hb_options_parse(int count, char **arguments, struct hb_options *options, char *problem);

void hb_options_help(FILE *out);

#endif
