/* SPDX-License-Identifier: BSD-3-Clause */
/* hash_change.c: --change, applied to a pool. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "hash_input.h"

#define WEIGHT_MAX 65535

static bool is_number(const char *text)
{
    return *text != '\0' && text[strspn(text, "0123456789")] == '\0';
}

/* The backend of this name that has a weight or may get one; `count` when there is none. */
static uint32_t find_backend(const struct hb_hash_pool *pool, const char *name)
{
    uint32_t i;

    for (i = 0; i < pool->count && strcmp(pool->backends[i].name, name) != 0; i++)
        ;
    return i;
}

static int refuse_name(const struct hb_ctl *ctl, const struct hb_hash_pool *pool, const char *name)
{
    return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                          "--change: there is no backend '%s' to change; the first of %" PRIu32
                          " is %s",
                          name, pool->count, pool->count > 0 ? pool->backends[0].name : "missing");
}

/* Names nobody has: the next number where they are numbered, else new1, new2, ... */
static void make_name(const struct hb_hash_pool *pool, char name[HB_NAME_SIZE])
{
    uint32_t number = pool->numbered ? pool->count : 1;

    do {
        snprintf(name, HB_NAME_SIZE, "%s%" PRIu32, pool->numbered ? "S" : "new", number++);
    } while (find_backend(pool, name) < pool->count);
}

static int add_backends(const struct hb_ctl *ctl, struct hb_hash_pool *pool, const char *what,
                        uint32_t weight)
{
    uint64_t count = 1;
    char name[HB_NAME_SIZE];
    int status = HB_EXIT_OK;

    if (pool->count == HB_BACKENDS_MAX)
        status = hb_hash_refuse(ctl, HB_EXIT_USAGE,
                                "--change: there are %d backends, as many as can be; remove some "
                                "before you add others",
                                HB_BACKENDS_MAX);
    else if (is_number(what))
        status = hb_hash_number(ctl, "change add", what, 1, HB_BACKENDS_MAX - pool->count, &count);
    else if (find_backend(pool, what) < pool->count || strlen(what) >= HB_NAME_SIZE)
        status = hb_hash_refuse(ctl, HB_EXIT_USAGE,
                                "--change: '%s' cannot be added: there is one of that name, or the "
                                "name is too long",
                                what);
    while (status == HB_EXIT_OK && count-- > 0) {
        if (is_number(what))
            make_name(pool, name);
        else
            snprintf(name, sizeof(name), "%s", what);
        if (pool->count == HB_BACKENDS_MAX || !hb_hash_pool_add(pool, name, weight, ""))
            status = hb_hash_no_memory(ctl);
    }
    return status;
}

static int remove_backends(const struct hb_ctl *ctl, struct hb_hash_pool *pool, const char *what)
{
    uint32_t index = find_backend(pool, what);
    uint64_t count = 0;
    int status = HB_EXIT_OK;

    if (index < pool->count) {
        pool->members[index].weight = 0;
        return HB_EXIT_OK;
    }
    if (!is_number(what))
        return refuse_name(ctl, pool, what);
    status = hb_hash_number(ctl, "change remove", what, 1, pool->count - 1, &count);
    for (index = pool->count; count > 0 && index-- > 0;) {
        count -= pool->members[index].weight > 0;
        pool->members[index].weight = 0;
    }
    return status;
}

static int set_weight(const struct hb_ctl *ctl, struct hb_hash_pool *pool, const char *name,
                      uint32_t weight)
{
    uint32_t index = find_backend(pool, name);

    if (index == pool->count)
        return refuse_name(ctl, pool, name);
    pool->members[index].weight = weight;
    return HB_EXIT_OK;
}

static int apply(const struct hb_ctl *ctl, struct hb_hash_pool *pool, char *step)
{
    char *what = strchr(step, ':'), *value = strrchr(step, '=');
    uint64_t weight = 1;
    int status = HB_EXIT_OK;

    if (value && what) {
        *value++ = '\0';
        status = hb_hash_number(ctl, "change weight", value, 0, WEIGHT_MAX, &weight);
    }
    if (status != HB_EXIT_OK)
        return status;
    if (what && what[1] != '\0') {
        *what++ = '\0';
        if (strcmp(step, "add") == 0)
            return add_backends(ctl, pool, what, (uint32_t)weight);
        if (strcmp(step, "remove") == 0 && !value)
            return remove_backends(ctl, pool, what);
        if (strcmp(step, "weight") == 0 && value)
            return set_weight(ctl, pool, what, (uint32_t)weight);
    }
    return hb_hash_refuse(ctl, HB_EXIT_USAGE,
                          "--change %s: expected add:COUNT, add:NAME[=WEIGHT], remove:NAME, "
                          "remove:COUNT or weight:NAME=WEIGHT",
                          step);
}

int hb_hash_pool_change(const struct hb_ctl *ctl, const struct hb_hash_pool *before,
                        const char *change, struct hb_hash_pool *after)
{
    int status = hb_hash_pool_copy(ctl, before, after);
    char *step;

    while (status == HB_EXIT_OK && hb_hash_next_word(&change, &step)) {
        status = apply(ctl, after, step);
        free(step);
    }
    if (status == HB_EXIT_OK && hb_hash_pool_weighted(after) == 0)
        status = hb_hash_refuse(ctl, HB_EXIT_USAGE,
                                "--change: no backend is left with a weight; keep at least one");
    return status;
}
