/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * model_fixture.h: configurations and models made by hand, for the tests of control's pure parts.
 */
#ifndef HB_TEST_MODEL_FIXTURE_H
#define HB_TEST_MODEL_FIXTURE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include "generation_builder.h"
#include "model.h"
#include "reconcile.h"

#define NOW_MS 1000000

/* A configuration without pools; pools have TCP checks on port 80, 251 slots and rise = fall = 2.
 */
struct hb_config *make_config(void);
struct hb_pool_config *add_pool(struct hb_config *config, const char *name);
struct hb_backend_config *add_backend(struct hb_config *config, const char *pool,
                                      const char *address, uint32_t weight);
void add_service(struct hb_config *config, const char *vip, uint8_t protocol, uint16_t port,
                 const char *pool);
/* One pool "web" with n members 198.51.100.1... and two services, on an IPv4 and an IPv6 VIP. */
struct hb_config *make_web(unsigned backends);
void free_config(struct hb_config *config);

/* Applies and frees the configuration; must succeed. */
struct hb_model_diff apply(struct hb_model *model, struct hb_config *config);

struct hb_model_backend *backend_at(struct hb_model *model, const char *pool, const char *address);
struct hb_address address_of(const char *text);

/* A resolved next hop by interface "eth0" (index 7), and the port list that has it. */
struct hb_next_hop resolved_hop(void);
extern const struct hb_port_list one_port;
void resolve_all(struct hb_model *model);
/* One probe result, long after anything before. */
void probe(struct hb_model *model, const char *pool, const char *address, bool success);
void all_up(struct hb_model *model);

/* Reconciles (must succeed) and leaves the plan in *plan, clearing what was there. */
void reconcile(struct hb_model *model, struct hb_plan *plan);
/* How many slots of the pool belong to the backend. */
uint32_t slots_of(struct hb_model *model, const char *pool, const char *address);

#endif
