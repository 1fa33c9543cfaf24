/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * parse_care.h: the careful way through a packet's headers, check by check.
 *
 * It takes every packet, and alone gives reasons. What stage_parse.c takes by a short cut it would
 * read and judge the same (tests/packets/test_parse.c compares the two).
 */
#ifndef HB_DATAPLANE_PARSE_CARE_H
#define HB_DATAPLANE_PARSE_CARE_H

#include "batch.h"

/* enum hb_flow_event by the five lowest flags of a TCP header. */
extern const uint8_t hb_event_of_flags[32];

/* Writes all that stage_parse writes but the hash, or ends the packet. */
void hb_parse_with_care(struct hb_batch *batch, struct hb_packet *packet);

#endif
