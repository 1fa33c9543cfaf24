/* SPDX-License-Identifier: BSD-3-Clause */
/* decap_lists.h: the contents of the decapsulation program's maps. */
#ifndef HB_BACKEND_DECAP_LISTS_H
#define HB_BACKEND_DECAP_LISTS_H

#include "decap_program.h"

/* Descriptors. */
struct hb_decap_maps {
    int vips, sources, marks, settings;
};

/* The maps of a program that is attached. All or none are open afterwards. */
int hb_decap_maps_open(const struct hb_xdp_program *attached, struct hb_decap_maps *maps,
                       char *problem);
void hb_decap_maps_close(struct hb_decap_maps *maps);

/* Makes the contents what is wanted. Entries that stay are never missing. Returns 0 or -errno with
 * the problem. */
int hb_decap_maps_set(const struct hb_decap_maps *maps, const struct hb_decap_wanted *wanted,
                      char *problem);

/* Reads all; the caller frees the lists, also after an error. */
int hb_decap_maps_read(const struct hb_decap_maps *maps, struct hb_decap_wanted *now,
                       char *problem);

#endif
