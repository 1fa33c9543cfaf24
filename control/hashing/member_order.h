/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * member_order.h: the canonical order of a pool's members, which every builder starts from.
 *
 * By the bytes of their identities, as strcmp() orders them. Pure; any thread.
 */
#ifndef HB_CONTROL_HASHING_MEMBER_ORDER_H
#define HB_CONTROL_HASHING_MEMBER_ORDER_H

#include <stdint.h>

#include "hashing/table_builder.h"

/* Writes the indexes of all members in canonical order into `order` (room for `count`). Returns
 * HB_TABLE_OK, HB_TABLE_DUPLICATE (the order is complete all the same) or HB_TABLE_NO_MEMORY. */
enum hb_table_error hb_member_order(const struct hb_table_member *members, uint32_t count,
                                    uint32_t *order);

#endif
