/* SPDX-License-Identifier: BSD-3-Clause */
/* The arithmetic of bounded load up to its ends, the sums it keeps, and the way along the slots. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "bounded_load.h"
#include "flow_table.h"

typedef unsigned __int128 wide;

/* By the words of generation.h, with a division. */
static uint64_t limit_by_division(uint32_t bounded_load, uint64_t flows, uint32_t weight,
                                  uint64_t weights)
{
    wide part = (wide)(HB_BOUNDED_LOAD_ONE + bounded_load) * flows * weight;
    wide whole = (wide)HB_BOUNDED_LOAD_ONE * weights;

    return (uint64_t)(part / whole + (part % whole != 0));
}

static void compare_near_the_limit(uint32_t bounded_load, uint64_t flows, uint16_t weight,
                                   uint64_t weights)
{
    uint64_t want = limit_by_division(bounded_load, flows, weight, weights);
    struct hb_load_limit limit = hb_load_limit_of(bounded_load, flows, weights);

    for (uint64_t has = want > 3 ? want - 3 : 0; has < want + 3; has++)
        assert_int_equal(hb_load_has_room(limit, has, weight), has + 1 <= want);
    assert_true(want == 0 || hb_load_has_room(limit, 0, weight));
    assert_int_equal(hb_load_has_room(limit, HB_FLOW_TABLE_MAX, weight),
                     HB_FLOW_TABLE_MAX + 1 <= want);
}

static void limits_by_hand(void **state)
{
    struct hb_load_limit limit = hb_load_limit_of(256, 10, 10); /* 1.25 each, so 2 */

    (void)state;
    assert_true(hb_load_has_room(limit, 0, 1));
    assert_true(hb_load_has_room(limit, 1, 1));
    assert_false(hb_load_has_room(limit, 2, 1));
    limit = hb_load_limit_of(256, 8, 10); /* 1 each, exactly */
    assert_true(hb_load_has_room(limit, 0, 1));
    assert_false(hb_load_has_room(limit, 1, 1));
    limit = hb_load_limit_of(256, 8, 10); /* 3 for a weight of 3 */
    assert_true(hb_load_has_room(limit, 2, 3));
    assert_false(hb_load_has_room(limit, 3, 3));
    limit = hb_load_limit_of(1, 1, 65535 * UINT64_C(65535)); /* the very first flow, tiny part */
    assert_true(hb_load_has_room(limit, 0, 1));
    assert_false(hb_load_has_room(limit, 1, 1));
}

static void nothing_overflows_at_the_ends(void **state)
{
    static const uint32_t bounds[] = {1, 10, 51, 256, 1023, 1024, HB_BOUNDED_LOAD_MAX};
    static const uint64_t flows[] = {
        1, 2, 999, 65537, 16777216, HB_FLOW_TABLE_MAX - 1, HB_FLOW_TABLE_MAX};
    static const uint16_t weights[] = {1, 2, 3, 255, 32768, 65534, 65535};
    static const uint64_t others[] = {
        0, 1, 9, 65534, 65535 * UINT64_C(10), 65535 * UINT64_C(65534)};

    (void)state;
    for (uint32_t b = 0; b < 7; b++)
        for (uint32_t m = 0; m < 7; m++)
            for (uint32_t w = 0; w < 7; w++)
                for (uint32_t o = 0; o < 6; o++)
                    compare_near_the_limit(bounds[b], flows[m], weights[w], weights[w] + others[o]);
}

static uint64_t next_random(uint64_t *state)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *state >> 20;
}

static void limits_are_those_of_a_division(void **state)
{
    uint64_t random = 7;

    (void)state;
    for (uint32_t i = 0; i < 200000; i++) {
        uint16_t weight = (uint16_t)(1 + next_random(&random) % (1u << next_random(&random) % 16));
        uint64_t others = next_random(&random) % (UINT64_C(1) << next_random(&random) % 32);
        uint64_t flows = 1 + next_random(&random) % (UINT64_C(1) << next_random(&random) % 32);

        compare_near_the_limit(1 + (uint32_t)(next_random(&random) % HB_BOUNDED_LOAD_MAX),
                               flows < HB_FLOW_TABLE_MAX ? flows : HB_FLOW_TABLE_MAX, weight,
                               weight + others);
    }
}

static void least_loaded_by_flows_and_weight(void **state)
{
    uint64_t most = HB_FLOW_TABLE_MAX;

    (void)state;
    assert_true(hb_load_is_less(1, 2, 1, 1));
    assert_false(hb_load_is_less(2, 4, 1, 2));
    assert_false(hb_load_is_less(1, 2, 2, 4));
    assert_true(hb_load_is_less(0, 1, 1, 65535));
    assert_true(hb_load_is_less(most - 1, 65535, most, 65535));
    assert_true(hb_load_is_less(most, 65535, most, 65534));
    assert_false(hb_load_is_less(most, 1, 1, 65535));
}

/* --- a generation of two pools --- */

#define IDS 16

struct scene {
    struct hb_loads loads;
    struct hb_backend_counters gauges[IDS];
    struct hb_backend backends[IDS];
    struct hb_pool pools[2];
    struct hb_pool_bound bounds[2];
    uint16_t owner[2][1021];
    uint16_t member[2][IDS];
    struct hb_generation generation;
};

static struct scene *new_scene(void)
{
    struct scene *scene = aligned_alloc(64, (sizeof(*scene) + 63) / 64 * 64);

    memset(scene, 0, sizeof(*scene));
    for (uint32_t id = 0; id < IDS; id++)
        scene->backends[id].weight = 1;
    for (uint32_t pool = 0; pool < 2; pool++) {
        scene->pools[pool] = (struct hb_pool){scene->owner[pool], 1021, 256, 0};
        scene->bounds[pool].member = scene->member[pool];
    }
    scene->generation = (struct hb_generation){
        .pools = scene->pools,
        .bounds = scene->bounds,
        .backends = scene->backends,
        .pools_count = 2,
        .backends_count = IDS,
        .number = 1,
    };
    return scene;
}

static void add_member(struct scene *scene, uint32_t pool, uint16_t id)
{
    struct hb_pool_bound *bound = &scene->bounds[pool];

    scene->member[pool][bound->members++] = id;
    bound->weights += scene->backends[id].weight;
}

static uint16_t choose(const struct scene *scene, uint32_t slot)
{
    uint64_t hash = (((uint64_t)slot << 32) / scene->pools[0].slots + 1) << 32;

    assert_int_equal(hb_slot_of(hash, scene->pools[0].slots), slot);
    return hb_bounded_choose(&scene->loads, &scene->generation, scene->gauges, 0, hash,
                             scene->owner[0][slot]);
}

static void sums_follow_gauges_and_generations(void **state)
{
    struct scene *scene = new_scene();

    (void)state;
    assert_false(hb_loads_are_of(&scene->loads, &scene->generation));
    add_member(scene, 0, 1);
    add_member(scene, 0, 2);
    add_member(scene, 1, 3);
    for (uint16_t id = 1; id <= 4; id++)
        scene->gauges[id].flows = 10u * id;
    hb_loads_enter(&scene->loads, &scene->generation, scene->gauges);
    assert_true(hb_loads_are_of(&scene->loads, &scene->generation));
    assert_int_equal(scene->loads.flows[1], 30);
    assert_int_equal(scene->loads.flows[2], 30);
    hb_loads_add(&scene->loads, 1);
    hb_loads_add(&scene->loads, 4); /* of no pool */
    hb_loads_remove(&scene->loads, 3);
    assert_int_equal(scene->loads.flows[1], 31);
    assert_int_equal(scene->loads.flows[2], 29);

    /* 2 leaves, 3 and 1 change places; the address of the generation is the same. */
    scene->generation.number = 2;
    assert_false(hb_loads_are_of(&scene->loads, &scene->generation));
    scene->bounds[0] = (struct hb_pool_bound){.member = scene->member[0]};
    scene->bounds[1] = (struct hb_pool_bound){.member = scene->member[1]};
    add_member(scene, 0, 3);
    add_member(scene, 1, 1);
    hb_loads_enter(&scene->loads, &scene->generation, scene->gauges);
    assert_int_equal(scene->loads.flows[1], 30);
    assert_int_equal(scene->loads.flows[2], 10);
    hb_loads_remove(&scene->loads, 2); /* counts nowhere now */
    hb_loads_remove(&scene->loads, 1);
    assert_int_equal(scene->loads.flows[1], 30);
    assert_int_equal(scene->loads.flows[2], 9);
    free(scene);
}

/* The next owner along the slots with room, around the end. */
static void full_owners_pass_flows_on(void **state)
{
    struct scene *scene = new_scene();

    (void)state;
    for (uint16_t id = 1; id <= 4; id++)
        add_member(scene, 0, id);
    for (uint32_t slot = 0; slot < 1021; slot++)
        scene->owner[0][slot] = (uint16_t)(1 + slot / 3 % 4);
    scene->owner[0][1020] = 1; /* 1 1 1 2 2 2 3 3 3 4 4 4 1 ... 1 */
    scene->gauges[1].flows = 5;
    scene->gauges[2].flows = 5;
    scene->gauges[3].flows = 4;
    scene->gauges[4].flows = 1; /* with the new one 16: limit 5 */
    hb_loads_enter(&scene->loads, &scene->generation, scene->gauges);
    assert_int_equal(choose(scene, 6), 3);
    assert_int_equal(choose(scene, 0), 3);
    assert_int_equal(choose(scene, 4), 3);
    assert_int_equal(choose(scene, 1020), 3); /* by 0 to 6 */
    scene->gauges[3].flows = 5;
    scene->gauges[4].flows = 0;
    assert_int_equal(choose(scene, 1020), 4);
    assert_int_equal(choose(scene, 9), 4);
    free(scene);
}

/* HB_BOUNDED_STEPS slots and no more; then the least loaded of all members. */
static void the_way_has_an_end(void **state)
{
    struct scene *scene = new_scene();

    (void)state;
    scene->backends[3].weight = 3;
    for (uint16_t id = 1; id <= 3; id++)
        add_member(scene, 0, id);
    for (uint32_t slot = 0; slot < 1021; slot++)
        scene->owner[0][slot] = 1;
    scene->gauges[1].flows = 30;
    scene->gauges[2].flows = 5;
    scene->gauges[3].flows = 14; /* 4.67 a unit of weight */
    hb_loads_enter(&scene->loads, &scene->generation, scene->gauges);
    scene->owner[0][100 + HB_BOUNDED_STEPS - 1] = 2;
    assert_int_equal(choose(scene, 100), 2); /* the last one it looks at */
    assert_int_equal(choose(scene, 99), 3);  /* one before that: not in sight */
    scene->owner[0][100 + HB_BOUNDED_STEPS - 1] = HB_BACKEND_NONE;
    assert_int_equal(choose(scene, 100), 3); /* a slot without owner is none */
    scene->pools[0].slots = 7;
    assert_int_equal(choose(scene, 5), 3); /* once around */
    scene->bounds[0].members = 0;
    assert_int_equal(choose(scene, 5), 1);
    free(scene);
}

/* Whatever the loads: who is chosen had room, if flows and sums agree. */
static void who_takes_a_flow_has_room(void **state)
{
    struct scene *scene = new_scene();
    uint64_t random = 3;

    (void)state;
    for (uint16_t id = 1; id < IDS; id++) {
        scene->backends[id].weight = (uint16_t)(1 + next_random(&random) % 65535);
        add_member(scene, 0, id);
    }
    for (uint32_t round = 0; round < 20000; round++) {
        struct hb_load_limit limit;
        uint64_t sum = 1;
        uint16_t id;

        scene->pools[0].bounded_load = 1 + (uint32_t)(next_random(&random) % 300);
        for (id = 1; id < IDS; id++) {
            scene->gauges[id].flows = next_random(&random) % (1u << next_random(&random) % 24);
            sum += scene->gauges[id].flows;
        }
        for (uint32_t slot = 0; slot < 1021; slot++)
            scene->owner[0][slot] = (uint16_t)(1 + slot / 300);
        scene->generation.number++;
        hb_loads_enter(&scene->loads, &scene->generation, scene->gauges);
        id = choose(scene, (uint32_t)(next_random(&random) % 1021));
        limit = hb_load_limit_of(scene->pools[0].bounded_load, sum, scene->bounds[0].weights);
        assert_true(hb_load_has_room(limit, scene->gauges[id].flows, scene->backends[id].weight));
    }
    free(scene);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(limits_by_hand),
        cmocka_unit_test(nothing_overflows_at_the_ends),
        cmocka_unit_test(limits_are_those_of_a_division),
        cmocka_unit_test(least_loaded_by_flows_and_weight),
        cmocka_unit_test(sums_follow_gauges_and_generations),
        cmocka_unit_test(full_owners_pass_flows_on),
        cmocka_unit_test(the_way_has_an_end),
        cmocka_unit_test(who_takes_a_flow_has_room),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
