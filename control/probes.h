/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * probes.h: one probe for all backends that are checked alike.
 *
 * A server that is a member of many pools is probed once an interval, not once a pool; each of its
 * backends applies the result to its own state with its own rise, fall and damping (BL-97). Probes
 * are alike when the address is the same and hb_health_alike() says so of their checks; a probe
 * through the tunnel belongs to one pool. Runs on control's event loop.
 *
 * What a reload changes. A backend keeps its health; when its check asks another question than
 * before, or in another rhythm, the count of results in a row starts again, so that no half-counted
 * result of the old check decides (BL-76).
 */
#ifndef HB_CONTROL_PROBES_H
#define HB_CONTROL_PROBES_H

#include "health/health.h"
#include "model.h"

struct event_base;
struct hb_probes;

/* A result has changed the state of a backend, so that table or use may differ. */
typedef void (*hb_probes_changed)(void *context, struct hb_model_pool *pool,
                                  struct hb_model_backend *backend);

struct hb_probes *hb_probes_open(struct event_base *base, struct hb_model *model,
                                 hb_probes_changed changed, void *context);
void hb_probes_close(struct hb_probes *probes);

/* Starts, changes and ends probes so that every backend of the model is checked as its pool says.
 * Returns how many could not be started; each is logged. After each configuration. */
unsigned hb_probes_sync(struct hb_probes *probes);

/* Ends one backend's part in its probe. Before it is freed. */
void hb_probes_leave(struct hb_probes *probes, struct hb_model_backend *backend);

#endif
