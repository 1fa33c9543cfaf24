/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hop_table.h: watched addresses and what the kernel's messages make of them.
 *
 * A watched address has the kernel's last answer about its route; the answer names a link and a
 * neighbour; the three together are its next hop. Any message marks the watched addresses it
 * touches, and hb_hop_table_next_change() works out afterwards which next hops really differ. So a
 * burst of messages costs one computation an address, and there and back again is no change at all.
 *
 * Pure: no socket, no clock; messages and time (CLOCK_MONOTONIC, ms) come in, questions to the
 * kernel come out. One thread. Look-ups are O(log n); a message about a neighbour touches only its
 * users.
 */
#ifndef HB_CONTROL_HOP_TABLE_H
#define HB_CONTROL_HOP_TABLE_H

#include <stdbool.h>
#include <stdint.h>

#include "address.h"
#include "neighbours.h"
#include "netlink.h"
#include "next_hop.h"

struct hb_hop_table;

struct hb_hop_table *hb_hop_table_new(void); /* NULL: no memory */
void hb_hop_table_free(struct hb_hop_table *table);

/* As hb_next_hops_watch(), _unwatch() and _get(). A new watch puts a question about its route. */
int hb_hop_table_watch(struct hb_hop_table *table, const struct hb_address *address);
void hb_hop_table_unwatch(struct hb_hop_table *table, const struct hb_address *address);
bool hb_hop_table_get(const struct hb_hop_table *table, const struct hb_address *address,
                      struct hb_next_hop *hop);

/* Takes in messages, as events or (`dumped`) as part of a dump between _dump_begin() and
 * _dump_end(). */
void hb_hop_table_link(struct hb_hop_table *table, const struct hb_netlink_link *news, bool dumped,
                       uint64_t now_ms);
void hb_hop_table_neighbour(struct hb_hop_table *table, const struct hb_netlink_neighbour *news,
                            bool dumped, uint64_t now_ms);
void hb_hop_table_dump_begin(struct hb_hop_table *table);
void hb_hop_table_dump_end(struct hb_hop_table *table, uint64_t now_ms);

/* Questions about routes; many may be under way. */
void hb_hop_table_ask_all(struct hb_hop_table *table);
bool hb_hop_table_has_route_question(const struct hb_hop_table *table); /* one is to be asked */
bool hb_hop_table_next_route_question(struct hb_hop_table *table, struct hb_address *address);
bool hb_hop_table_awaits_routes(const struct hb_hop_table *table); /* answers are under way */
/* Takes in an answer; one about an address that is not watched (any more) is ignored. */
void hb_hop_table_route(struct hb_hop_table *table, const struct hb_netlink_route *answer,
                        uint64_t now_ms);
/* The answers that have not come were lost: their questions are put again. */
void hb_hop_table_answers_lost(struct hb_hop_table *table);

/* Questions about neighbours: as in neighbours.h. */
uint64_t hb_hop_table_next_due(const struct hb_hop_table *table);
bool hb_hop_table_next_neighbour_question(struct hb_hop_table *table, uint64_t now_ms,
                                          uint32_t *ifindex, struct hb_address *address);
void hb_hop_table_neighbour_refused(struct hb_hop_table *table, uint32_t ifindex,
                                    const struct hb_address *address, int error);

/* The next watched address whose next hop has changed in any field since it was told here last;
 * false when there is none left. */
bool hb_hop_table_next_change(struct hb_hop_table *table, struct hb_address *address);

#endif
