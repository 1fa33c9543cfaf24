/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * hash_input.h: what is typed after `halbachctl hash ...`, as numbers, methods, backends and keys.
 *
 * Functions that can fail return the exit status: HB_EXIT_OK to go on, else they have said why, and
 * what would do, on `ctl->err`. Nothing here talks to a daemon.
 */
#ifndef HB_CTL_HASH_INPUT_H
#define HB_CTL_HASH_INPUT_H

#include "ctl.h"
#include "halbach/types.h"
#include "hashing/h32.h"
#include "hashing/hash_method.h"

#define HB_HASH_KEYS       100000 /* preset */
#define HB_HASH_KEYS_MAX   10000000
#define HB_HASH_TABLE_SIZE 65537

/* Prints "halbachctl: ..." with nothing that could steer a terminal, and returns `status`. */
int hb_hash_refuse(const struct hb_ctl *ctl, int status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
int hb_hash_no_memory(const struct hb_ctl *ctl);

/* Prints a document as halbachctl prints its own, and frees it. */
void hb_hash_print_json(const struct hb_ctl *ctl, json_t *document);

/* A whole number of decimal digits from `least` to `most`. `text` NULL: *value stays as it is. */
int hb_hash_number(const struct hb_ctl *ctl, const char *option, const char *text, uint64_t least,
                   uint64_t most, uint64_t *value);
/* The same for "1,10,100". The caller frees *values. */
int hb_hash_numbers(const struct hb_ctl *ctl, const char *option, const char *text, uint64_t least,
                    uint64_t most, uint64_t **values, uint32_t *count);

/* Cuts the next word off a list with commas. Returns false at its end, or without memory; the
 * caller frees *word. */
bool hb_hash_next_word(const char **list, char **word);

/* ---- methods ---- */

struct hb_hash_choice {
    const char *name; /* of the method, or "ketama": the ring that libketama makes */
    const struct hb_hash_method *method;
    bool ketama;
};

#define HB_HASH_CHOICES_MAX 16
struct hb_hash_choices {
    struct hb_hash_choice row[HB_HASH_CHOICES_MAX];
    uint32_t count;
};

/* Reads --algorithms; without it all methods there are, or with --hashes those that take one. */
int hb_hash_choose(const struct hb_ctl *ctl, struct hb_hash_choices *choices);

/* ---- backends ---- */

struct hb_hash_backend {
    char name[HB_NAME_SIZE];     /* as it is shown */
    char identity[HB_NAME_SIZE]; /* as it is hashed */
    char zone[HB_NAME_SIZE];     /* "": none is known */
};

struct hb_hash_pool {
    struct hb_hash_backend *backends;
    struct hb_table_member *members; /* of the same index; identities point into `backends` */
    uint32_t count;
    uint32_t next_bucket; /* of the next backend */
    bool numbered;        /* S0, S1, ... : made from a number */
    uint32_t table_size;  /* of maglev and skeleton */
    uint64_t table_seed;
    uint32_t virtual_nodes;
};

/*
 * Reads --backends and what goes with it: --table-size, --vnodes, --seed. --backends is
 *
 *     N           backends S0 to S(N-1) of weight 1, numbered as their buckets
 *     FILE.yaml   (or .yml) a configuration: the pool named by --pool, or its only one. Backends
 *                 are hashed by address and tables built with the file's seed and size, so that
 *                 maglev's table is the one of the live pool
 *     FILE        a line a backend: NAME [WEIGHT [ZONE]]; '#' begins a comment
 *
 * Without it there are `preset` backends. The caller frees the pool in any case.
 */
int hb_hash_pool_load(const struct hb_ctl *ctl, uint32_t preset, struct hb_hash_pool *pool);

/*
 * Applies --change, in the order as written, to a copy: add:COUNT, add:NAME[=WEIGHT],
 * remove:NAME, remove:COUNT (the last ones), weight:NAME=WEIGHT, with commas between several. A
 * removed backend stays in the list with weight 0, for it holds its bucket.
 */
int hb_hash_pool_change(const struct hb_ctl *ctl, const struct hb_hash_pool *before,
                        const char *change, struct hb_hash_pool *after);

int hb_hash_pool_copy(const struct hb_ctl *ctl, const struct hb_hash_pool *from,
                      struct hb_hash_pool *to);
/* Appends a backend whose identity is its name, with the next bucket. False without memory. */
bool hb_hash_pool_add(struct hb_hash_pool *pool, const char *name, uint32_t weight,
                      const char *zone);
void hb_hash_pool_free(struct hb_hash_pool *pool);

/* Reads --vnodes as one number (`balance` takes a list). */
int hb_hash_pool_vnodes(const struct hb_ctl *ctl, struct hb_hash_pool *pool);

/* How many have a weight. */
uint32_t hb_hash_pool_weighted(const struct hb_hash_pool *pool);

/* What a method is asked to prepare. The pool must outlive it. */
struct hb_table_request hb_hash_request(const struct hb_hash_pool *pool,
                                        const struct hb_hash_choice *choice);

/* ---- keys ---- */

/* Texts, or numbers that are hashes already. */
struct hb_hash_keys {
    uint32_t count;
    uint32_t seed;     /* of made-up keys */
    const char *file;  /* NULL: they are made up */
    char *text;        /* all keys, one after the other */
    size_t *at;        /* where each begins; one more for the end */
    uint64_t *numbers; /* instead of texts */
};

/* Reads --keys (a number of made-up keys, or a file with a key a line), --seed and --hashes. */
int hb_hash_keys_load(const struct hb_ctl *ctl, uint32_t preset, struct hb_hash_keys *keys);
void hb_hash_keys_free(struct hb_hash_keys *keys);

#endif
