/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * xdp_attach.h: XDP programs on interfaces, found, attached and detached by their name.
 *
 * A program of ours is told from a foreign one by its name alone, and is the only way to its maps:
 * they are neither pinned nor held open, so this works in a network namespace without bpffs, and
 * after the process that attached the program is gone. A foreign program (a libxdp dispatcher is
 * one) is never replaced or detached.
 *
 * Functions that can fail fill `problem` (HB_XDP_TEXT_SIZE bytes) with a sentence that names the
 * interface and the remedy. No thread may use one struct at the same time as another; else no
 * rules.
 */
#ifndef HB_XDP_ATTACH_H
#define HB_XDP_ATTACH_H

#include <net/if.h>
#include <stdbool.h>
#include <stdint.h>

#define HB_XDP_TEXT_SIZE 256

enum hb_xdp_mode {
    HB_XDP_NATIVE,
    HB_XDP_GENERIC,
    HB_XDP_HARDWARE,
};

/* One program as it is attached. */
struct hb_xdp_program {
    int ifindex;
    char ifname[IF_NAMESIZE];
    int fd; /* owned; -1: none */
    uint32_t id;
    uint64_t tag; /* the kernel's digest of the instructions: tells versions apart */
    enum hb_xdp_mode mode;
};

/* Finds the program called `name` on an interface. Returns 1 and fills `found` (release it later),
 * 0 when no program is attached at all, -EBUSY when a foreign one is, -ENODEV or another -errno. */
int hb_xdp_find(const char *ifname, const char *name, struct hb_xdp_program *found, char *problem);

/* Whether this very program is on its interface still. */
bool hb_xdp_attached(const struct hb_xdp_program *program);

/* Opens one of the program's maps by the map's name. Returns a file descriptor, which the caller
 * owns, or -errno. */
int hb_xdp_open_map(const struct hb_xdp_program *program, const char *map_name, char *problem);

/* Attaches `fd` in the given mode. With `old`, that program is replaced in one step, in its own
 * mode, and only if it is still there. Returns 0 or -errno, without a text: only the caller knows
 * whether another mode is to be tried. */
int hb_xdp_attach(int ifindex, int fd, enum hb_xdp_mode mode, const struct hb_xdp_program *old);

/* Detaches the program, if it is still the attached one. Returns 0 (also if it was gone) or -errno.
 */
int hb_xdp_detach(const struct hb_xdp_program *program, char *problem);

/* Closes what the struct owns; the program stays attached. */
void hb_xdp_release(struct hb_xdp_program *program);

/* "native", "generic" or "hardware". */
const char *hb_xdp_mode_name(enum hb_xdp_mode mode);

#endif
