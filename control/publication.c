/* SPDX-License-Identifier: BSD-3-Clause */
#include "publication.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "halbach/protocol.h"

static void forget_tables(struct hb_held_tables *held)
{
    free(held->digest);
    held->digest = NULL;
    held->count = 0;
}

static int reserve_tables(struct hb_held_tables *held, uint32_t count)
{
    forget_tables(held);
    if (count == 0)
        return 0;
    held->digest = calloc(count, sizeof(*held->digest));
    return held->digest ? 0 : -ENOMEM;
}

void hb_publication_clear(struct hb_publication *publication)
{
    forget_tables(&publication->held);
    forget_tables(&publication->under_way_tables);
    memset(publication, 0, sizeof(*publication));
}

/* The dataplane may serve this content already, under a number of its own. */
static bool serves_wanted(struct hb_publication *publication)
{
    if (publication->serving == 0 ||
        memcmp(publication->serving_content, publication->wanted_content, HB_DIGEST_SIZE) != 0)
        return false;
    publication->wanted = publication->serving;
    return true;
}

bool hb_publication_want(struct hb_publication *publication, const uint8_t content[HB_DIGEST_SIZE])
{
    if (publication->wanted != 0 &&
        memcmp(publication->wanted_content, content, HB_DIGEST_SIZE) == 0)
        return false;
    memcpy(publication->wanted_content, content, HB_DIGEST_SIZE);
    publication->pause_ms = 0;
    publication->retry_at_ms = 0;
    if (publication->wanted == 0 && serves_wanted(publication))
        return false;
    publication->wanted = ++publication->highest;
    return true;
}

/* The tables a blob names. It comes from the dataplane, which checked it; the bounds are checked
 * all the same, since it came over a socket. */
static int note_held(struct hb_held_tables *held, const void *blob, size_t size)
{
    const struct hb_generation_header *header = blob;
    const struct hb_table_record *tables;

    forget_tables(held);
    if (blob == NULL || size < sizeof(*header) || header->tables.record_size != sizeof(*tables) ||
        header->tables.offset > size ||
        header->tables.count > (size - header->tables.offset) / sizeof(*tables))
        return 0;
    if (reserve_tables(held, header->tables.count) != 0)
        return -ENOMEM;
    tables = (const void *)((const uint8_t *)blob + header->tables.offset);
    for (uint32_t t = 0; t < header->tables.count; t++)
        memcpy(held->digest[held->count++], tables[t].digest, HB_DIGEST_SIZE);
    return 0;
}

int hb_publication_connected(struct hb_publication *publication, uint64_t number,
                             const uint8_t content[HB_DIGEST_SIZE], const void *blob, size_t size)
{
    publication->connected = true;
    publication->serving = number;
    memcpy(publication->serving_content, content, HB_DIGEST_SIZE);
    publication->pause_ms = 0;
    publication->retry_at_ms = 0;
    if (number > publication->highest)
        publication->highest = number;
    if (publication->wanted != 0 && !serves_wanted(publication) && publication->wanted <= number)
        publication->wanted = ++publication->highest;
    return note_held(&publication->held, number ? blob : NULL, size);
}

void hb_publication_disconnected(struct hb_publication *publication)
{
    publication->connected = false;
    publication->serving = 0;
    publication->under_way = 0;
    forget_tables(&publication->held);
    forget_tables(&publication->under_way_tables);
}

bool hb_publication_in_sync(const struct hb_publication *publication)
{
    return publication->connected && publication->wanted != 0 &&
           publication->serving == publication->wanted;
}

bool hb_publication_due(const struct hb_publication *publication, uint64_t now_ms)
{
    return publication->connected && publication->wanted != 0 && publication->under_way == 0 &&
           publication->serving != publication->wanted && now_ms >= publication->retry_at_ms;
}

int hb_publication_sent(struct hb_publication *publication, const struct hb_plan *plan)
{
    struct hb_held_tables *tables = &publication->under_way_tables;

    publication->under_way = publication->wanted;
    memcpy(publication->under_way_content, publication->wanted_content, HB_DIGEST_SIZE);
    if (reserve_tables(tables, plan->tables_count) != 0)
        return -ENOMEM;
    for (uint32_t t = 0; t < plan->tables_count; t++)
        memcpy(tables->digest[tables->count++], plan->tables[t].digest, HB_DIGEST_SIZE);
    return 0;
}

static void pause_retries(struct hb_publication *publication, uint64_t now_ms)
{
    uint32_t pause = publication->pause_ms * 2;

    if (publication->pause_ms == 0)
        pause = HB_RETRY_FIRST_MS;
    publication->pause_ms = pause < HB_RETRY_LAST_MS ? pause : HB_RETRY_LAST_MS;
    publication->retry_at_ms = now_ms + publication->pause_ms;
}

void hb_publication_not_sent(struct hb_publication *publication, uint64_t now_ms)
{
    pause_retries(publication, now_ms);
}

static bool note_adopted(struct hb_publication *publication, const struct hb_publish_reply *reply)
{
    publication->serving = publication->under_way;
    memcpy(publication->serving_content, publication->under_way_content, HB_DIGEST_SIZE);
    publication->under_way = 0;
    forget_tables(&publication->held);
    publication->held = publication->under_way_tables;
    publication->under_way_tables = (struct hb_held_tables){0};
    publication->pause_ms = 0;
    publication->retry_at_ms = 0;
    publication->adopt_us = (uint32_t)(reply->adopt_ns / 1000);
    publication->grace_us = (uint32_t)(reply->grace_ns / 1000);
    return true;
}

bool hb_publication_answered(struct hb_publication *publication,
                             const struct hb_publish_reply *reply, uint64_t now_ms)
{
    bool carried_all = publication->held.count == 0;
    uint64_t number = publication->under_way;
    bool first;

    if (number == 0)
        return false;
    if (reply->reason == HB_REJECT_NONE)
        return note_adopted(publication, reply);
    publication->under_way = 0;
    forget_tables(&publication->under_way_tables);
    publication->rejects++;
    first = publication->pause_ms == 0 || number != publication->wanted;
    snprintf(publication->last_reject, sizeof(publication->last_reject), "generation %lu: %.*s",
             (unsigned long)number, (int)sizeof(reply->text),
             reply->text[0] ? reply->text : hb_reject_text(reply->reason));
    forget_tables(&publication->held);
    /* It does not hold what was believed: at once once more, with everything. A generation that has
     * been superseded meanwhile needs no pause either. */
    if ((reply->reason == HB_REJECT_TABLE_UNKNOWN && !carried_all) || number != publication->wanted)
        return first;
    pause_retries(publication, now_ms);
    return first;
}
