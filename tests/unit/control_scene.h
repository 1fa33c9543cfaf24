/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * control_scene.h: the whole daemon on its event loop, between a dataplane that the test plays
 * (fake_dataplane.h) and an operator who speaks HTTP.
 *
 * Next hops are set by hand; whatever this machine's kernel says about the addresses of the tests
 * changes nothing once they are known.
 */
#ifndef HB_TEST_CONTROL_SCENE_H
#define HB_TEST_CONTROL_SCENE_H

#include "model_fixture.h"

#include <jansson.h>
#include <stdbool.h>

#include "control.h"
#include "fake_dataplane.h"

/* Pool "web" (251 slots, no health check) with one and two, 198.51.100.1 and .2, for one service.
 */
extern const char good_config[];

struct scene {
    struct fake_dataplane fake;
    struct hb_control *control;
    char config[96], state[96], socket[96], lock[112];
    int generation_fd; /* the last one published, or -1 */
    struct hb_generation_header generation;
    int http;
};

/* --- the stage --- */

/* Setup and teardown: a control with good_config that nobody has greeted yet. */
int set_stage(void **state);
int clear_stage(void **state);

void write_config(struct scene *scene, const char *text, size_t size);
void open_control(struct scene *scene);
void close_control(struct scene *scene);
/* Gives every backend of pool "web" a next hop, and publishes. */
void resolve_hops(struct scene *scene);
/* Takes the next generation in. */
void expect_publish(struct scene *scene);
void answer_publish(struct scene *scene, enum hb_reject reason);
/* Turns the loop until what the dataplane said has arrived. */
void wait_until_serving(struct scene *scene, uint64_t number);
/* From the hello to a working pool: two generations, since next hops come after the first. */
void start_serving(struct scene *scene);

/* --- the operator --- */

void ask(struct scene *scene, const char *method, const char *path);
void ask_with_body(struct scene *scene, const char *method, const char *path, const char *body);
/* True when no answer comes in the next turns of the loop. */
bool hears_nothing(struct scene *scene);
json_t *hear(struct scene *scene, int *status);
/* The body as it came, until the next answer. */
const char *hear_text(struct scene *scene, int *status);
/* Both; the status must be the expected one. */
json_t *request(struct scene *scene, const char *method, const char *path, int expected);
json_t *request_with_body(struct scene *scene, const char *method, const char *path,
                          const char *body, int expected);
json_int_t number_at(json_t *json, const char *object, const char *member);

#endif
