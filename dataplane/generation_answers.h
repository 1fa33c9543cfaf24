/* SPDX-License-Identifier: BSD-3-Clause */
/* generation_answers.h: what the steering program must know of a generation's NAT. Main lcore. */
#ifndef HB_DATAPLANE_GENERATION_ANSWERS_H
#define HB_DATAPLANE_GENERATION_ANSWERS_H

#include "generation_build.h"
#include "xdp/steer_nat.h"

/* Lists answers and own addresses into *set; all of it is zero without NAT. False: memory is short,
 * and there is nothing to free. */
bool hb_answers_list(const struct hb_built_generation *built, struct hb_steer_nat_set *set);
void hb_answers_free(struct hb_steer_nat_set *set);

#endif
