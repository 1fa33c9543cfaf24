/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * decap_program.h: the decapsulation program on an interface of this host: attached, changed, read,
 * detached.
 *
 * Nothing of it lives in this process: the kernel keeps the program as long as it is attached, and
 * each call finds it again through the interface. Not for several threads at once. Functions fill
 * `problem` (HB_XDP_TEXT_SIZE bytes) when they fail: a sentence with the interface and the remedy.
 */
#ifndef HB_BACKEND_DECAP_PROGRAM_H
#define HB_BACKEND_DECAP_PROGRAM_H

#include <stdint.h>

#include "decap_maps.h"
#include "xdp_attach.h"

struct hb_decap_prefixes {
    struct hb_decap_prefix *list;
    uint32_t count;
};

/* A mark, and the VIP that it stands for. */
struct hb_decap_mark_row {
    struct hb_decap_mark mark;
    struct hb_decap_address vip;
};

struct hb_decap_marks {
    struct hb_decap_mark_row *list;
    uint32_t count;
};

/* All that the program goes by. */
struct hb_decap_wanted {
    struct hb_decap_prefixes vips;
    struct hb_decap_prefixes sources;
    struct hb_decap_marks marks;
    struct hb_decap_settings settings;
};

enum hb_decap_wish {
    HB_DECAP_ANY_MODE, /* native; generic when native can't be had */
    HB_DECAP_NATIVE_ONLY,
    HB_DECAP_GENERIC_ONLY,
};

enum hb_decap_change {
    HB_DECAP_ATTACHED, /* there was no program */
    HB_DECAP_UPDATED,  /* the program was there; its lists were changed in place */
    HB_DECAP_REPLACED, /* another version of ours was there; exchanged in one step, counters at zero
                        */
};

struct hb_decap_outcome {
    enum hb_decap_change change;
    enum hb_xdp_mode mode;
    char note[HB_XDP_TEXT_SIZE]; /* why it is not native mode; empty if it is or was not wished */
};

/* Makes the interface decapsulate exactly as wanted. What stays in a list is never missing in
 * between: new entries are added before old ones are removed. Returns 0 or -errno. */
int hb_decap_attach(const char *ifname, const struct hb_decap_wanted *wanted,
                    enum hb_decap_wish wish, struct hb_decap_outcome *outcome, char *problem);

/* Returns 1 when our program was there and is gone now, 0 when none was there, or -errno. */
int hb_decap_detach(const char *ifname, char *problem);

struct hb_decap_status {
    char ifname[IF_NAMESIZE];
    enum hb_xdp_mode mode;
    uint32_t program_id;
    struct hb_decap_wanted now;        /* lists sorted by family, then address */
    uint64_t counters[HB_DECAP_COUNT]; /* since the program was attached */
};

/* Returns 1 and fills `status` (free it later), 0 when no program is there, or -errno. */
int hb_decap_read(const char *ifname, struct hb_decap_status *status, char *problem);

void hb_decap_status_free(struct hb_decap_status *status);

#endif
