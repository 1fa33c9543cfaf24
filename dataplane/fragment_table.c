/* SPDX-License-Identifier: BSD-3-Clause */
/* See fragment_table.h. */
#include "fragment_table.h"

#include <string.h>

#define HEADS  (2 * HB_FRAGMENTS_MAX)
#define PLACES (HB_FRAGMENTS_HELD + 128) /* more than a burst holds while others go out */
#define NONE   HB_FRAGMENT_NONE
/* Known ones, those that wait, each with a packet, and one of each on its way. */
#define DATAGRAMS (HB_FRAGMENTS_MAX + HB_FRAGMENTS_HELD + 2)
_Static_assert(DATAGRAMS < NONE, "an index is never the sign for none");

struct held {
    void *packet;
    uint32_t since_ms;
    uint16_t datagram;
    uint16_t next;         /* held of the same datagram, or next in a list */
    uint16_t older, newer; /* of all that is held */
};

struct list {
    uint16_t first, last;
};

struct hb_fragment_table {
    struct hb_datagram datagram[DATAGRAMS];
    uint16_t heads[HEADS]; /* index + 1, so that zeroed memory is an empty table; 0: none */
    struct held held[PLACES];
    struct list known;   /* datagrams, the oldest first */
    struct list waiting; /* held packets, the oldest first */
    struct list out[HB_FRAGMENT_OUTS];
    uint16_t free_datagram; /* chained by `chain` */
    uint16_t free_held;     /* chained by `next` */
    uint32_t held_count, known_count;
};

size_t hb_fragment_table_bytes(void)
{
    return sizeof(struct hb_fragment_table);
}

struct hb_fragment_table *hb_fragment_table_init(void *memory)
{
    struct hb_fragment_table *table = memory;

    for (uint32_t i = 0; i < DATAGRAMS; i++)
        table->datagram[i].chain = (uint16_t)(i + 1 < DATAGRAMS ? i + 1 : NONE);
    for (uint32_t i = 0; i < PLACES; i++)
        table->held[i].next = (uint16_t)(i + 1 < PLACES ? i + 1 : NONE);
    table->known = table->waiting = (struct list){NONE, NONE};
    for (uint32_t i = 0; i < HB_FRAGMENT_OUTS; i++)
        table->out[i] = (struct list){NONE, NONE};
    return table;
}

static uint16_t index_of(const struct hb_fragment_table *table, const struct hb_datagram *datagram)
{
    return (uint16_t)(datagram - table->datagram);
}

/* ---- packets ---- */

static void append_out(struct hb_fragment_table *table, uint16_t at, enum hb_fragment_out cause)
{
    struct list *out = &table->out[cause];

    table->held[at].next = NONE;
    if (out->first == NONE)
        out->first = at;
    else
        table->held[out->last].next = at;
    out->last = at;
}

/* Takes a packet out of the order of waiting, which the caller has taken out of its datagram. */
static void end_wait(struct hb_fragment_table *table, uint16_t at, enum hb_fragment_out cause)
{
    struct held *held = &table->held[at];

    if (held->older == NONE)
        table->waiting.first = held->newer;
    else
        table->held[held->older].newer = held->newer;
    if (held->newer == NONE)
        table->waiting.last = held->older;
    else
        table->held[held->newer].older = held->older;
    table->held_count--;
    append_out(table, at, cause);
}

static void end_all(struct hb_fragment_table *table, struct hb_datagram *datagram,
                    enum hb_fragment_out cause)
{
    while (datagram->held != NONE) {
        uint16_t at = datagram->held;

        datagram->held = table->held[at].next;
        end_wait(table, at, cause);
    }
}

void *hb_fragment_next_out(struct hb_fragment_table *table, enum hb_fragment_out cause)
{
    struct list *out = &table->out[cause];
    uint16_t at = out->first;
    struct held *held;

    if (at == NONE)
        return NULL;
    held = &table->held[at];
    out->first = held->next;
    held->next = table->free_held;
    table->free_held = at;
    return held->packet;
}

uint32_t hb_fragment_held(const struct hb_fragment_table *table)
{
    return table->held_count;
}

/* ---- datagrams ---- */

/* Takes a known one out of the order of those. */
static void unlist(struct hb_fragment_table *table, struct hb_datagram *datagram)
{
    if (datagram->older == NONE)
        table->known.first = datagram->newer;
    else
        table->datagram[datagram->older].newer = datagram->newer;
    if (datagram->newer == NONE)
        table->known.last = datagram->older;
    else
        table->datagram[datagram->newer].older = datagram->older;
    table->known_count--;
}

static void unlink_datagram(struct hb_fragment_table *table, struct hb_datagram *datagram)
{
    uint16_t at = index_of(table, datagram), wanted = (uint16_t)(at + 1);
    uint16_t *head = &table->heads[datagram->head];

    if (*head == wanted) {
        *head = (uint16_t)(datagram->chain == NONE ? 0 : datagram->chain + 1);
    } else {
        struct hb_datagram *before = &table->datagram[*head - 1];

        while (before->chain != at)
            before = &table->datagram[before->chain];
        before->chain = datagram->chain;
    }
    if (datagram->known)
        unlist(table, datagram);
    datagram->chain = table->free_datagram;
    table->free_datagram = at;
}

static void forget(struct hb_fragment_table *table, struct hb_datagram *datagram,
                   enum hb_fragment_out cause)
{
    end_all(table, datagram, cause);
    unlink_datagram(table, datagram);
}

void hb_fragment_forget(struct hb_fragment_table *table, struct hb_datagram *datagram)
{
    forget(table, datagram, HB_FRAGMENT_LOST);
}

struct hb_datagram *hb_fragment_find(struct hb_fragment_table *table,
                                     const struct hb_fragment_key *key, uint64_t hash,
                                     uint32_t now_ms)
{
    for (uint32_t at = table->heads[hash % HEADS]; at != 0;) {
        struct hb_datagram *datagram = &table->datagram[at - 1];

        if (memcmp(&datagram->key, key, sizeof(*key)) != 0) {
            at = datagram->chain == NONE ? 0 : datagram->chain + 1u;
            continue;
        }
        if (now_ms - datagram->begun_ms < HB_FRAGMENT_KEEP_MS)
            return datagram;
        forget(table, datagram, HB_FRAGMENT_LATE);
        return NULL;
    }
    return NULL;
}

struct hb_datagram *hb_fragment_begin(struct hb_fragment_table *table,
                                      const struct hb_fragment_key *key, uint64_t hash,
                                      uint32_t now_ms)
{
    struct hb_datagram *datagram;
    uint16_t *head = &table->heads[hash % HEADS];
    uint16_t at;

    at = table->free_datagram;
    datagram = &table->datagram[at];
    table->free_datagram = datagram->chain;
    *datagram = (struct hb_datagram){
        .key = *key,
        .begun_ms = now_ms,
        .held = NONE,
        .held_last = NONE,
        .chain = (uint16_t)(*head == 0 ? NONE : *head - 1),
        .head = (uint16_t)(hash % HEADS),
    };
    *head = (uint16_t)(at + 1);
    return datagram;
}

void hb_fragment_know(struct hb_fragment_table *table, struct hb_datagram *datagram)
{
    uint16_t at = index_of(table, datagram);

    datagram->known = true;
    datagram->older = table->known.last;
    datagram->newer = NONE;
    if (table->known.last == NONE)
        table->known.first = at;
    else
        table->datagram[table->known.last].newer = at;
    table->known.last = at;
    if (++table->known_count > HB_FRAGMENTS_MAX)
        forget(table, &table->datagram[table->known.first], HB_FRAGMENT_LOST);
}

/* Ends the wait of the packet that waits longest: it is the first of its datagram. With the last
 * one goes the datagram, about which nothing is known. */
static void end_oldest(struct hb_fragment_table *table, enum hb_fragment_out cause)
{
    uint16_t at = table->waiting.first;
    struct hb_datagram *datagram = &table->datagram[table->held[at].datagram];

    datagram->held = table->held[at].next;
    end_wait(table, at, cause);
    if (datagram->held == NONE)
        unlink_datagram(table, datagram);
}

bool hb_fragment_hold(struct hb_fragment_table *table, struct hb_datagram *datagram, void *packet,
                      uint32_t now_ms)
{
    uint16_t at = table->free_held;
    struct held *held;

    if (at == NONE)
        return false;
    held = &table->held[at];
    table->free_held = held->next;
    *held = (struct held){.packet = packet,
                          .since_ms = now_ms,
                          .datagram = index_of(table, datagram),
                          .next = NONE,
                          .older = table->waiting.last,
                          .newer = NONE};
    if (datagram->held == NONE)
        datagram->held = at;
    else
        table->held[datagram->held_last].next = at;
    datagram->held_last = at;
    if (table->waiting.last == NONE)
        table->waiting.first = at;
    else
        table->held[table->waiting.last].newer = at;
    table->waiting.last = at;
    if (++table->held_count > HB_FRAGMENTS_HELD)
        end_oldest(table, HB_FRAGMENT_LOST);
    return true;
}

void hb_fragment_release(struct hb_fragment_table *table, struct hb_datagram *datagram)
{
    end_all(table, datagram, HB_FRAGMENT_READY);
}

void hb_fragment_expire(struct hb_fragment_table *table, uint32_t now_ms)
{
    while (table->waiting.first != NONE &&
           now_ms - table->held[table->waiting.first].since_ms >= HB_FRAGMENT_HOLD_MS)
        end_oldest(table, HB_FRAGMENT_LATE);
}

void hb_fragment_flush(struct hb_fragment_table *table)
{
    while (table->waiting.first != NONE)
        end_oldest(table, HB_FRAGMENT_LOST);
}

/* ---- the bytes of one datagram ---- */

/* What the fragment says about the end of the datagram is not what others said or are. */
static bool contradicts(const struct hb_datagram *datagram, uint32_t end, bool last)
{
    if (datagram->total != 0)
        return last ? end != datagram->total : end >= datagram->total;
    for (uint32_t i = 0; last && i < datagram->runs; i++)
        if (datagram->run[i].end > end)
            return true;
    return false;
}

/* HB_FRAGMENT_GOOD: none of its bytes was there. */
static enum hb_fragment_verdict compare(const struct hb_datagram *datagram, uint32_t start,
                                        uint32_t end)
{
    for (uint32_t i = 0; i < datagram->runs; i++) {
        const struct hb_fragment_run *run = &datagram->run[i];

        if (start >= run->end || end <= run->start)
            continue;
        return start >= run->start && end <= run->end ? HB_FRAGMENT_DUPLICATE
                                                      : HB_FRAGMENT_OVERLAPS;
    }
    return HB_FRAGMENT_GOOD;
}

enum hb_fragment_verdict hb_fragment_note(struct hb_datagram *datagram, uint32_t start,
                                          uint32_t end, bool last)
{
    struct hb_fragment_run *before = NULL, *behind = NULL;
    enum hb_fragment_verdict verdict = HB_FRAGMENT_OVERLAPS;

    if (datagram->bad)
        return HB_FRAGMENT_REFUSED;
    if (!contradicts(datagram, end, last))
        verdict = compare(datagram, start, end);
    datagram->bad = verdict == HB_FRAGMENT_OVERLAPS;
    if (verdict != HB_FRAGMENT_GOOD)
        return verdict;
    for (uint32_t i = 0; i < datagram->runs; i++) {
        if (datagram->run[i].end == start)
            before = &datagram->run[i];
        if (datagram->run[i].start == end)
            behind = &datagram->run[i];
    }
    if (before != NULL && behind != NULL) {
        before->end = behind->end;
        *behind = datagram->run[--datagram->runs];
    } else if (before != NULL) {
        before->end = (uint16_t)end;
    } else if (behind != NULL) {
        behind->start = (uint16_t)start;
    } else if (datagram->runs == HB_FRAGMENT_RUNS) {
        return HB_FRAGMENT_TOO_MANY_RUNS;
    } else {
        datagram->run[datagram->runs++] = (struct hb_fragment_run){(uint16_t)start, (uint16_t)end};
    }
    if (last)
        datagram->total = (uint16_t)end;
    return datagram->total != 0 && datagram->runs == 1 && datagram->run[0].start == 0 &&
                   datagram->run[0].end == datagram->total
               ? HB_FRAGMENT_COMPLETE
               : HB_FRAGMENT_GOOD;
}
