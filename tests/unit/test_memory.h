/* SPDX-License-Identifier: BSD-3-Clause */
/* test_memory.h: node memory for tests: counts what is out, and fails when the test says so. */
#ifndef HB_TESTS_TEST_MEMORY_H
#define HB_TESTS_TEST_MEMORY_H

#include <stdlib.h>
#include <string.h>

#include "node_memory.h"

struct test_memory {
    struct hb_node_memory memory; /* what the code under test gets */
    int out;                      /* pieces that have not been given back */
    int fail_in;                  /* this many allocations more, then one fails; -1: none */
};

static void *test_allocate(void *context, size_t bytes, uint32_t node)
{
    struct test_memory *test = context;
    size_t rounded = (bytes + 63) & ~(size_t)63;
    void *memory;

    (void)node;
    if (test->fail_in == 0)
        return NULL;
    if (test->fail_in > 0)
        test->fail_in--;
    memory = aligned_alloc(64, rounded);
    memset(memory, 0, rounded);
    test->out++;
    return memory;
}

static void test_release(void *context, void *memory)
{
    struct test_memory *test = context;

    test->out -= memory != NULL;
    free(memory);
}

static inline void test_memory_init(struct test_memory *test, uint32_t nodes)
{
    *test = (struct test_memory){.memory = {.nodes = nodes,
                                            .allocate = test_allocate,
                                            .release = test_release,
                                            .context = test},
                                 .fail_in = -1};
}

#endif
