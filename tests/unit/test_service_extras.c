/* SPDX-License-Identifier: BSD-3-Clause */
/* What only some services have: lists are shared, and their cost grows with the services. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include <cmocka.h>

#include "service_extras.h"

struct scene {
    struct hb_service_record service[HB_SERVICES_MAX];
    struct hb_prefix_record prefix[HB_SERVICES_MAX];
};

/* Services with a list of one address each: list 1 + i % lists. */
static struct hb_service_sections make_sections(struct scene *scene, uint32_t services,
                                                uint32_t lists)
{
    memset(scene, 0, sizeof(*scene));
    for (uint32_t i = 0; i < services; i++) {
        scene->service[i].family = HB_FAMILY_IPV4;
        scene->service[i].prefix_list = 1 + i % lists;
    }
    for (uint32_t i = 0; i < lists; i++)
        scene->prefix[i] =
            (struct hb_prefix_record){.list = i + 1,
                                      .family = HB_FAMILY_IPV4,
                                      .length = 32,
                                      .address = {10, 0, (uint8_t)(i >> 8), (uint8_t)i}};
    return (struct hb_service_sections){.services = scene->service,
                                        .prefixes = scene->prefix,
                                        .services_count = services,
                                        .prefixes_count = lists,
                                        .workers = 1};
}

static void *build(const struct hb_service_sections *sections, struct hb_service_extras *extras)
{
    size_t bytes = (hb_service_extras_bytes(sections) + 63) & ~(size_t)63;
    void *memory = aligned_alloc(64, bytes);

    assert_non_null(memory);
    *extras = hb_service_extras_build(memory, sections);
    return memory;
}

/* Five services, two lists; one of them says another word about the sources that match nothing. */
static void lists_are_shared(void **state)
{
    struct scene *scene = malloc(sizeof(*scene));
    struct hb_service_sections sections = make_sections(scene, 5, 2);
    struct hb_service_extras extras;
    void *memory;

    (void)state;
    scene->service[2].flags = HB_SERVICE_DENY_OTHERS;
    scene->service[3].prefix_list = 0;
    memory = build(&sections, &extras);
    assert_non_null(extras.extra[0].list);
    assert_non_null(extras.extra[1].list);
    assert_ptr_not_equal(extras.extra[1].list, extras.extra[0].list);
    assert_ptr_not_equal(extras.extra[2].list, extras.extra[0].list);
    assert_null(extras.extra[3].list);
    assert_ptr_equal(extras.extra[4].list, extras.extra[0].list);
    assert_true(extras.extra[0].list->below);
    assert_false(extras.extra[2].list->below);
    free(memory);
    free(scene);
}

/* The least time of some rounds: nothing else makes it shorter. */
static uint64_t measure(struct scene *scene, uint32_t services)
{
    struct hb_service_sections sections = make_sections(scene, services, services);
    uint64_t least = UINT64_MAX;

    for (int round = 0; round < 15; round++) {
        struct hb_service_extras extras;
        struct timespec from, to;
        uint64_t took;

        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &from);
        free(build(&sections, &extras));
        clock_gettime(CLOCK_THREAD_CPUTIME_ID, &to);
        took = (uint64_t)(to.tv_sec - from.tv_sec) * 1000000000 + (uint64_t)to.tv_nsec -
               (uint64_t)from.tv_nsec;
        least = took < least ? took : least;
    }
    return least;
}

/* Sixteen times the services may cost sixteen times as much, and some for the sorting; comparing
 * each with each would be 256 times. */
static void cost_grows_with_the_services(void **state)
{
    struct scene *scene = malloc(sizeof(*scene));
    uint64_t few = measure(scene, HB_SERVICES_MAX / 16), all = measure(scene, HB_SERVICES_MAX);

    (void)state;
    print_message("%u services: %llu ns; %u services: %llu ns\n", HB_SERVICES_MAX / 16,
                  (unsigned long long)few, HB_SERVICES_MAX, (unsigned long long)all);
    assert_true(all < 64 * few);
    free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_are_shared),
        cmocka_unit_test(cost_grows_with_the_services),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
