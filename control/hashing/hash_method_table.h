/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_method_table.h: the methods that look keys up in a table that a builder made. */
#ifndef HB_CONTROL_HASHING_HASH_METHOD_TABLE_H
#define HB_CONTROL_HASHING_HASH_METHOD_TABLE_H

#include "hashing/hash_method.h"

extern const struct hb_hash_method hb_maglev_method;
extern const struct hb_hash_method hb_skeleton_method;

#endif
