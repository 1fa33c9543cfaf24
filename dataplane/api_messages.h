/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * api_messages.h: whether a received packet is a message that may be read.
 *
 * Pure: bytes in, verdict out. After 0 the message has exactly the size of its type.
 */
#ifndef HB_DATAPLANE_API_MESSAGES_H
#define HB_DATAPLANE_API_MESSAGES_H

#include <stdbool.h>
#include <stddef.h>

#include "halbach/protocol.h"

/* Checks a packet of `size` bytes (aligned for struct hb_message_header). `greeted`: this peer has
 * said hello. Returns 0, or a negative errno with `problem` (HB_TEXT_SIZE bytes) for the peer and
 * the log: -EBADMSG not a message of ours, -EPROTONOSUPPORT another version, -EMSGSIZE the wrong
 * length for its type, -EPROTO out of turn. */
int hb_message_check(const void *packet, size_t size, bool greeted, char *problem);

/* Writes the header of a message of ours. */
void hb_message_begin(struct hb_message_header *header, enum hb_message_type type, size_t length,
                      uint32_t sequence);

#endif
