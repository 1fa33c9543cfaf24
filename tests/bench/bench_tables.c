/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * bench_tables.c: how long a table takes to build, with every algorithm. Prints the fastest and the
 * median of some builds for sizes that people use and, for Maglev, for the mixtures of weights that
 * cost most. Not a test.
 */
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "hashing/table_builder.h"

#define RUNS 15

enum mixture { EQUAL, FEW, DISTINCT, EXTREME };

static const char *const mixture_names[] = {"equal", "1,2,3,10", "all distinct",
                                            "one 65535, rest 1"};

static uint32_t weight_of(enum mixture mixture, uint32_t i)
{
    static const uint32_t few[] = {1, 2, 3, 10};

    switch (mixture) {
    case EQUAL:
        return 1;
    case FEW:
        return few[i % 4];
    case DISTINCT:
        return i + 1;
    case EXTREME:
        return i == 0 ? 65535 : 1;
    }
    return 1;
}

static double now_ms(void)
{
    struct timespec now;

    clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec * 1e3 + now.tv_nsec / 1e6;
}

static int compare_doubles(const void *left, const void *right)
{
    double a = *(const double *)left, b = *(const double *)right;

    return a < b ? -1 : a > b;
}

struct subject {
    const struct hb_table_builder *builder;
    const char *name; /* with its options */
    struct hb_table_options options;
    bool half_empty; /* every other member has weight 0 */
};

static void measure_one(const struct subject *subject, uint32_t count, uint32_t slots,
                        enum mixture mixture)
{
    struct hb_table_member *members = calloc(count, sizeof(*members));
    char(*names)[32] = calloc(count, sizeof(*names));
    uint16_t *owner = calloc(slots, sizeof(*owner));
    double took[RUNS];

    for (uint32_t i = 0; i < count; i++) {
        /* Scattered, so that sorting has something to do. */
        uint32_t host = (uint32_t)((i * UINT64_C(40503)) % 65521);

        snprintf(names[i], sizeof(names[i]), "10.1.%u.%u", host >> 8, host & 255);
        members[i] = (struct hb_table_member){
            .identity = names[i],
            .weight = subject->half_empty && i % 2 == 0 ? 0 : weight_of(mixture, i),
            .id = (uint16_t)(i + 1),
            .bucket = i};
    }
    for (int run = 0; run < RUNS; run++) {
        const struct hb_table_request request = {.members = members,
                                                 .count = count,
                                                 .slots = slots,
                                                 .seed = (uint64_t)run,
                                                 .options = subject->options};
        double start = now_ms();
        enum hb_table_error error = subject->builder->build(&request, owner);

        took[run] = now_ms() - start;
        if (error != HB_TABLE_OK) {
            printf("%s, %u backends, %u slots: %s\n", subject->name, count, slots,
                   hb_table_error_text(error));
            break;
        }
    }
    qsort(took, RUNS, sizeof(took[0]), compare_doubles);
    printf("%-18s %8u %9u  %-18s %10.3f %10.3f\n", subject->name, count, slots,
           mixture_names[mixture], took[0], took[RUNS / 2]);
    free(owner);
    free(names);
    free(members);
}

static void measure(const struct subject *subject, enum mixture mixture)
{
    measure_one(subject, 10, 65537, mixture);
    measure_one(subject, 1000, 65537, mixture);
    measure_one(subject, 10000, 655373, mixture);
}

int main(void)
{
    static const struct subject maglev = {.builder = &hb_maglev, .name = "maglev"};
    static const struct subject others[] = {
        {.builder = &hb_ring, .name = "ring"},
        {.builder = &hb_ring, .name = "ring, ketama", .options = {.ketama = true}},
        {.builder = &hb_rendezvous, .name = "rendezvous"},
        {.builder = &hb_jump, .name = "jump"},
        {.builder = &hb_jump,
         .name = "jump, half empty",
         .options = {.jump_replacement = true},
         .half_empty = true},
        {.builder = &hb_modulo, .name = "modulo"},
    };

    printf("%-18s %8s %9s  %-18s %10s %10s\n", "algorithm", "backends", "slots", "weights",
           "best ms", "median ms");
    for (enum mixture mixture = EQUAL; mixture <= EXTREME; mixture++)
        measure(&maglev, mixture);
    measure_one(&maglev, 1000, 5000011, EQUAL);
    for (size_t i = 0; i < sizeof(others) / sizeof(others[0]); i++)
        measure(&others[i], EQUAL);
    measure_one(&others[2], 1000, 65537, DISTINCT); /* rendezvous with weights */
    return 0;
}
