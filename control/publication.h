/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * publication.h: what control wants the dataplane to serve, what it serves, and when to send what.
 *
 * "Wanted" changes only when the content does, so that a reload of the same file, or a restart of
 * control, costs nothing. "Serving" is only ever what the dataplane itself said (BL-81): a
 * generation that was refused, or sent into a connection that broke, stays wanted and is sent
 * again, after a pause that grows from 1 s to 30 s, at the next change, or at the next hello.
 * Sending one that was adopted already is harmless. One generation is under way at a time, so that
 * what the dataplane holds is always known: the tables of the one it serves.
 *
 * Pure: time comes in.
 */
#ifndef HB_CONTROL_PUBLICATION_H
#define HB_CONTROL_PUBLICATION_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "generation_builder.h"

#define HB_RETRY_FIRST_MS 1000
#define HB_RETRY_LAST_MS  30000

struct hb_publication {
    uint64_t wanted; /* number; 0: nothing yet */
    uint8_t wanted_content[HB_DIGEST_SIZE];
    uint64_t highest; /* number ever seen, so that numbers only grow */

    bool connected;
    uint64_t serving; /* number; 0: nothing, or not known */
    uint8_t serving_content[HB_DIGEST_SIZE];
    struct hb_held_tables held; /* by the dataplane */

    uint64_t under_way; /* number; 0: none */
    uint8_t under_way_content[HB_DIGEST_SIZE];
    struct hb_held_tables under_way_tables; /* what it will hold if it adopts that */

    uint32_t pause_ms;    /* of the next retry; 0: the last one went well */
    uint64_t retry_at_ms; /* not before this */

    uint64_t rejects;
    char last_reject[320];
    uint32_t adopt_us, grace_us;
};

void hb_publication_clear(struct hb_publication *publication);

/* Reconcile yielded this content. Returns true when it is another one than was wanted before: it
 * got a new number, and any pause for a retry is over. */
bool hb_publication_want(struct hb_publication *publication, const uint8_t content[HB_DIGEST_SIZE]);

/* The dataplane said hello: it serves `number` (0: nothing) and holds the tables of `blob`, which
 * may be NULL. -ENOMEM: the tables will be carried although it holds them. */
int hb_publication_connected(struct hb_publication *publication, uint64_t number,
                             const uint8_t content[HB_DIGEST_SIZE], const void *blob, size_t size);
void hb_publication_disconnected(struct hb_publication *publication);

bool hb_publication_in_sync(const struct hb_publication *publication);

/* True when the wanted generation should be sent now. */
bool hb_publication_due(const struct hb_publication *publication, uint64_t now_ms);

/* The wanted generation, made of `plan`, is on its way. -ENOMEM: as if the dataplane held nothing.
 */
int hb_publication_sent(struct hb_publication *publication, const struct hb_plan *plan);

/* It could not be sent; tried again after a pause. */
void hb_publication_not_sent(struct hb_publication *publication, uint64_t now_ms);

/* The dataplane's answer. Returns true when an operator should be told: for the first refusal of a
 * generation, and when it was adopted. */
bool hb_publication_answered(struct hb_publication *publication,
                             const struct hb_publish_reply *reply, uint64_t now_ms);

#endif
