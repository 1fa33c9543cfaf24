/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * source_lists.h: lists of sources, many of which are equal: those of services that share a policy.
 * Pure.
 */
#ifndef HB_CONTROL_SOURCE_LISTS_H
#define HB_CONTROL_SOURCE_LISTS_H

#include "service_rules.h"

/* Notes for each list the index of the first one that is equal to it, often itself. Lists are
 * sorted ones, or NULL. n log n comparisons. False without memory; then nothing is noted. */
bool hb_source_lists_find_first(const struct hb_source_list *const *lists, uint32_t count,
                                uint32_t *first);

#endif
