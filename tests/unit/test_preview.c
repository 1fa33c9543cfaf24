/* SPDX-License-Identifier: BSD-3-Clause */
/* What a plan says, held against what then happens: every preview here that is followed by the
 * change itself must have named the same slots, the same digest and the same counts. */
#include "model_fixture.h"

#include <stdlib.h>
#include <string.h>

#include "preview.h"
#include "preview_json.h"

#define FLOWS 1000 /* of every backend */

static int open_model(void **state)
{
    *state = hb_model_new();
    return *state == NULL;
}

static int close_model(void **state)
{
    hb_model_free(*state);
    return 0;
}

static uint64_t thousand(void *context, uint32_t id)
{
    (void)context;
    return id > 0 ? FLOWS : 0;
}

static void settle(struct hb_model *model)
{
    struct hb_plan plan = {0};

    resolve_all(model);
    all_up(model);
    reconcile(model, &plan);
    hb_plan_clear(&plan);
}

static struct hb_model *working(void **state, struct hb_config *config)
{
    apply(*state, config);
    settle(*state);
    return *state;
}

static struct hb_preview preview(const struct hb_model *model, const struct hb_config *config)
{
    struct hb_preview made;

    assert_int_equal(hb_preview_make(model, config, thousand, NULL, &made), 0);
    return made;
}

static const struct hb_preview_backend *member(const struct hb_preview *made, const char *pool,
                                               const char *address)
{
    struct hb_address key = address_of(address);
    struct hb_preview_pool *found = hb_preview_pool_named(made, pool);

    return found ? hb_preview_backend_at(found, &key) : NULL;
}

static void expect_flows(const struct hb_preview_flows *flows, uint64_t kept, uint64_t broken,
                         uint64_t unsure)
{
    assert_int_equal(flows->kept, kept);
    assert_int_equal(flows->broken, broken);
    assert_int_equal(flows->unsure, unsure);
    assert_int_equal(flows->live, kept + broken + unsure);
}

/* Does it, and compares. Frees the preview and the configuration. */
static void hold_against_reload(struct hb_model *model, struct hb_config *config,
                                struct hb_preview *made)
{
    struct hb_model_diff expected = made->diff, diff;
    uint32_t pools = made->pools_count;
    struct pool {
        char name[HB_NAME_SIZE];
        struct hb_pool_change change;
        uint8_t owners[HB_DIGEST_SIZE];
    } *said = calloc(pools, sizeof(*said));

    for (uint32_t p = 0; p < pools; p++) {
        if (made->pools[p].after == NULL)
            continue;
        memcpy(said[p].name, made->pools[p].after->name, HB_NAME_SIZE);
        said[p].change = made->pools[p].change;
        memcpy(said[p].owners, made->pools[p].owners, HB_DIGEST_SIZE);
    }
    hb_preview_clear(made);
    diff = apply(model, config);
    settle(model);
    assert_memory_equal(&diff, &expected, offsetof(struct hb_model_diff, error));
    for (uint32_t p = 0; p < pools; p++) {
        const struct hb_model_pool *pool = hb_model_pool(model, said[p].name);

        if (said[p].name[0] == '\0')
            continue;
        assert_memory_equal(pool->owners, said[p].owners, HB_DIGEST_SIZE);
        if (!said[p].change.any)
            continue;
        assert_int_equal(pool->change.moved, said[p].change.moved);
        assert_int_equal(pool->change.ideal, said[p].change.ideal);
        assert_int_equal(pool->change.collateral, said[p].change.collateral);
    }
    free(said);
}

static void test_the_same_file_moves_nothing(void **state)
{
    struct hb_model *model = working(state, make_web(3));
    struct hb_config *config = make_config();
    struct hb_preview made;

    add_pool(config, "web");
    for (int b = 3; b >= 1; b--) {
        char address[] = "198.51.100.0";

        address[11] = (char)('0' + b);
        add_backend(config, "web", address, 1);
    }
    add_service(config, "2001:db8:a::10", HB_PROTOCOL_TCP, 80, "web");
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    made = preview(model, config);
    assert_false(made.changed);
    assert_false(made.reseeded);
    assert_false(made.pools[0].change.any);
    assert_null(made.pools[0].built); /* it need not be built to know */
    assert_int_equal(made.pools[0].backends_count, 3);
    expect_flows(&made.flows, 3 * FLOWS, 0, 0);
    hold_against_reload(model, config, &made);
}

static void test_a_removed_backend_breaks_its_flows(void **state)
{
    struct hb_model *model = working(state, make_web(4));
    uint32_t slots = slots_of(model, "web", "198.51.100.4");
    struct hb_config *config = make_web(3);
    struct hb_preview made = preview(model, config);
    const struct hb_preview_backend *gone = member(&made, "web", "198.51.100.4");

    assert_true(made.changed);
    assert_int_equal(made.diff.backends_removed, 1);
    expect_flows(&made.flows, 3 * FLOWS, FLOWS, 0);
    assert_null(gone->after);
    expect_flows(&gone->flows, 0, FLOWS, 0);
    assert_int_equal(gone->slots, 0);
    expect_flows(&member(&made, "web", "198.51.100.1")->flows, FLOWS, 0, 0);
    assert_int_equal(made.pools[0].change.ideal, slots);
    assert_int_equal(made.pools[0].change.moved, slots + made.pools[0].change.collateral);
    hold_against_reload(model, config, &made);
}

static void test_weights_and_newcomers_break_nothing(void **state)
{
    struct hb_model *model = working(state, make_web(2));
    struct hb_config *config = make_web(3);
    const struct hb_preview_backend *heavy, *new;
    struct hb_preview made;

    config->pools[0].backends[0].weight = 2;
    made = preview(model, config);
    heavy = member(&made, "web", "198.51.100.1");
    new = member(&made, "web", "198.51.100.3");
    assert_int_equal(made.diff.backends_changed, 1);
    assert_int_equal(made.diff.backends_added, 1);
    assert_in_range(heavy->before->slots, 125, 126);
    assert_in_range(heavy->slots, 125, 126); /* half again */
    assert_in_range(new->slots, 62, 63);
    assert_true(new->usable);
    expect_flows(&new->flows, 0, 0, 0);
    expect_flows(&made.flows, 2 * FLOWS, 0, 0);
    hold_against_reload(model, config, &made);
}

/* The drain is kept, and so are the flows of the one that drains. */
static void test_a_drain_is_kept(void **state)
{
    struct hb_model *model = working(state, make_web(3));
    struct hb_config *config = make_web(4);
    struct hb_model_backend *drained = backend_at(model, "web", "198.51.100.2");
    const struct hb_preview_backend *same;
    struct hb_preview made;

    hb_backend_state_apply(&drained->state, HB_EVENT_DRAIN, 2, 2, NOW_MS, NOW_MS);
    settle(model);
    made = preview(model, config);
    same = member(&made, "web", "198.51.100.2");
    assert_false(same->usable);
    assert_int_equal(same->slots, 0);
    expect_flows(&same->flows, FLOWS, 0, 0);
    assert_int_equal(made.pools[0].usable, 3);
    hold_against_reload(model, config, &made);
    assert_true(backend_at(model, "web", "198.51.100.2")->state.draining);
}

/* One that is down keeps being down; its entries decide for nobody, so they are no live flows. */
static void test_a_backend_that_is_down(void **state)
{
    struct hb_model *model = working(state, make_web(3));
    struct hb_config *config = make_web(3);
    const struct hb_preview_backend *down;
    struct hb_plan plan = {0};
    struct hb_preview made;

    probe(model, "web", "198.51.100.3", false);
    probe(model, "web", "198.51.100.3", false);
    reconcile(model, &plan);
    hb_plan_clear(&plan);
    made = preview(model, config);
    down = member(&made, "web", "198.51.100.3");
    assert_false(made.changed);
    assert_false(down->usable);
    expect_flows(&made.flows, 2 * FLOWS, 0, 0);
    hb_preview_clear(&made);
    config->pools[0].health.type = HB_HEALTH_NONE; /* then it counts as up */
    made = preview(model, config);
    assert_true(made.changed);
    assert_true(member(&made, "web", "198.51.100.3")->usable);
    hb_preview_clear(&made);
    free_config(config);
}

/* Flows name no service: when one of two leaves the pool, nobody knows whose flows they are. */
static void test_services_that_go_elsewhere(void **state)
{
    struct hb_model *model = working(state, make_web(2));
    struct hb_config *config = make_web(2);
    struct hb_preview made;

    config->services_count = 1;
    made = preview(model, config);
    assert_int_equal(made.diff.services_removed, 1);
    expect_flows(&made.flows, 0, 0, 2 * FLOWS);
    hb_preview_clear(&made);

    add_pool(config, "other");
    add_backend(config, "other", "198.51.100.77", 1);
    config->services[0].pool = 1;
    made = preview(model, config);
    assert_int_equal(made.diff.services_changed, 1);
    expect_flows(&made.flows, 0, 2 * FLOWS, 0);
    hb_preview_clear(&made);

    /* The other one goes on as before. */
    config->services_count = 0;
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "other");
    add_service(config, "2001:db8:a::10", HB_PROTOCOL_TCP, 80, "web");
    made = preview(model, config);
    expect_flows(&made.flows, 0, 0, 2 * FLOWS);
    hold_against_reload(model, config, &made);
}

/* Ids change, but every slot leads to the address that it led to. */
static void test_a_renamed_pool_keeps_its_flows(void **state)
{
    struct hb_model *model = working(state, make_web(3));
    struct hb_config *config = make_web(3);
    struct hb_preview made;

    snprintf(config->pools[0].name, HB_NAME_SIZE, "web2");
    made = preview(model, config);
    assert_int_equal(made.pools_count, 2);
    assert_null(made.pools[0].after);
    assert_null(made.pools[1].before);
    assert_int_equal(made.diff.backends_removed, 3);
    assert_int_equal(made.diff.backends_added, 3);
    expect_flows(&made.flows, 3 * FLOWS, 0, 0);
    hold_against_reload(model, config, &made);
}

/* Renamed, and one backend less: the rest loses what Maglev moves beside. */
static void test_a_renamed_pool_that_shrinks(void **state)
{
    struct hb_model *model = working(state, make_web(3));
    struct hb_config *config = make_web(2);
    const struct hb_preview_flows *flows;
    struct hb_preview made;

    snprintf(config->pools[0].name, HB_NAME_SIZE, "web2");
    made = preview(model, config);
    expect_flows(&member(&made, "web", "198.51.100.3")->flows, 0, FLOWS, 0);
    flows = &member(&made, "web", "198.51.100.1")->flows;
    assert_in_range(flows->kept, FLOWS * 8 / 10, FLOWS);
    hold_against_reload(model, config, &made);
}

/* It drained in the old pool and owned no slot; in the new one it is new, and gets its share. */
static void test_a_renamed_pool_with_one_that_drains(void **state)
{
    struct hb_model *model = working(state, make_web(2));
    struct hb_config *config = make_web(2);
    const struct hb_preview_flows *flows;
    struct hb_preview made;

    hb_backend_state_apply(&backend_at(model, "web", "198.51.100.2")->state, HB_EVENT_DRAIN, 2, 2,
                           NOW_MS, NOW_MS);
    settle(model);
    snprintf(config->pools[0].name, HB_NAME_SIZE, "web2");
    made = preview(model, config);
    flows = &member(&made, "web", "198.51.100.2")->flows;
    assert_in_range(flows->kept, FLOWS / 2 - 10, FLOWS / 2 + 10);
    assert_in_range(flows->broken, FLOWS / 2 - 10, FLOWS / 2 + 10);
    hold_against_reload(model, config, &made);
}

/* Settings that move nothing are changes all the same. */
static void test_settings(void **state)
{
    struct hb_model *model = working(state, make_web(2));

    for (int setting = 0; setting < 12; setting++) {
        struct hb_config *config = make_web(2);
        struct hb_preview made;

        config->pools[0].bounded_load = setting == 0 ? 256 : 0;
        config->pools[0].health.port = setting == 1 ? 81 : 80;
        config->pools[0].health.rise = setting == 2 ? 7 : 2;
        config->pools[0].backends[1].name[0] = setting == 3 ? 'x' : 'b';
        config->pools[0].backends[1].zone[0] = setting == 4 ? 'z' : '\0';
        if (setting == 5)
            config->tunnel_source = address_of("203.0.113.99");
        config->icmp.rate = setting == 6 ? 7 : 0;
        config->services[0].mss_max = setting == 7 ? 1400 : 0;
        config->pools[0].encap.gue.port = setting == 8 ? 6080 : 0;
        if (setting == 9)
            config->tunnel_prefix = (struct hb_address_prefix){address_of("10.1.0.0"), 16};
        config->pools[0].encap.dscp = setting == 10;
        made = preview(model, config);
        assert_int_equal(made.changed, setting < 11);
        assert_int_equal(made.settings_changed, setting == 5 || setting == 6 || setting == 9);
        assert_int_equal(made.pools[0].settings_changed,
                         setting <= 2 || setting == 8 || setting == 10);
        assert_false(made.pools[0].change.any);
        expect_flows(&made.flows, 2 * FLOWS, 0, 0);
        hb_preview_clear(&made);
        free_config(config);
    }
}

/* One of a jump pool that is away holds its bucket in the plan as in the table. */
static void test_jump_with_one_away(void **state)
{
    struct hb_config *configs[2] = {make_web(4), make_web(4)};
    struct hb_preview made;
    struct hb_model *model;

    for (int c = 0; c < 2; c++) {
        configs[c]->pools[0].algorithm = HB_ALGORITHM_JUMP;
        for (unsigned b = 0; b < 4; b++)
            configs[c]->pools[0].backends[b].bucket = b;
    }
    model = working(state, configs[0]);
    hb_backend_state_apply(&backend_at(model, "web", "198.51.100.4")->state, HB_EVENT_DRAIN, 2, 2,
                           NOW_MS, NOW_MS);
    settle(model);
    made = preview(model, configs[1]);
    assert_false(made.pools[0].change.any);
    assert_null(made.pools[0].built);
    hold_against_reload(model, configs[1], &made);
}

/* Another seed hashes every flow anew: it stays by chance, as often as its backend's share says. */
static void test_another_seed(void **state)
{
    struct hb_model *model = working(state, make_web(4));
    struct hb_config *config = make_web(4);
    struct hb_preview made;

    config->table_seed++;
    config->hash_key.word[0]++;
    made = preview(model, config);
    assert_true(made.reseeded);
    assert_true(made.changed);
    assert_in_range(made.flows.kept, FLOWS * 4 / 4 - 60, FLOWS * 4 / 4 + 60);
    assert_in_range(made.flows.unsure, 0, 4); /* rounding */
    hold_against_reload(model, config, &made);
}

static void test_another_size(void **state)
{
    struct hb_model *model = working(state, make_web(3));
    struct hb_config *config = make_web(3);
    struct hb_preview made;

    config->pools[0].table_size = 257;
    made = preview(model, config);
    assert_int_equal(made.pools[0].change.moved, 257);
    expect_flows(&made.flows, 3 * FLOWS, 0, 0);
    hold_against_reload(model, config, &made);
}

/* Every algorithm, from each to each, with a backend more and one less. */
static void test_every_algorithm(void **state)
{
    struct hb_model *model = *state;

    for (unsigned change = 0; change < 25; change++) {
        struct hb_config *config = make_web(change % 2 ? 5 : 4);
        struct hb_preview made;

        config->pools[0].algorithm = 1 + (change + change / 5) % 5;
        for (unsigned b = 0; b < config->pools[0].backends_count; b++)
            config->pools[0].backends[b].bucket = b;
        if (change == 0) {
            working(state, config);
            continue;
        }
        made = preview(model, config);
        assert_int_equal(made.flows.broken, change % 2 ? 0 : FLOWS);
        hold_against_reload(model, config, &made);
    }
}

static void test_a_table_that_cannot_be_built(void **state)
{
    struct hb_model *model = working(state, make_web(2));
    struct hb_config *config = make_web(2);
    struct hb_preview made;

    config->pools[0].algorithm = HB_ALGORITHM_RING;
    config->pools[0].options.virtual_nodes = 65535;
    config->pools[0].backends[0].weight = 65535;
    made = preview(model, config);
    assert_true(made.pools[0].problem[0] != '\0');
    assert_null(made.pools[0].owner);
    assert_int_equal(made.pools[0].change.moved, 251);
    hb_preview_clear(&made);
    free_config(config);
}

static json_t *at(json_t *json, const char *first, const char *second)
{
    json_t *inner = json_object_get(json, first);

    return second ? json_object_get(inner, second) : inner;
}

static void test_as_json(void **state)
{
    struct hb_model *model = working(state, make_web(2));
    struct hb_config *config = make_web(1);
    struct hb_preview made = preview(model, config);
    json_t *json = hb_preview_json(&made), *pool, *gone;

    assert_non_null(json);
    assert_true(json_is_true(at(json, "changed", NULL)));
    assert_string_equal(json_string_value(at(json, "breaks", NULL)), "yes");
    assert_int_equal(json_integer_value(at(json, "flows", "broken")), FLOWS);
    assert_int_equal(json_integer_value(at(json, "backends", "removed")), 1);
    pool = json_array_get(at(json, "pools", NULL), 0);
    assert_string_equal(json_string_value(at(pool, "algorithm", "after")), "maglev");
    gone = json_array_get(at(pool, "backends", NULL), 1);
    assert_string_equal(json_string_value(at(gone, "change", NULL)), "removed");
    assert_string_equal(json_string_value(at(gone, "flow_fate", NULL)), "break");
    assert_true(json_is_null(at(gone, "weight", "after")));
    assert_true(json_real_value(at(gone, "share", "before")) > 0.49);
    json_decref(json);
    hb_preview_clear(&made);

    /* Without numbers of flows. */
    assert_int_equal(hb_preview_make(model, config, NULL, NULL, &made), 0);
    json = hb_preview_json(&made);
    assert_true(json_is_null(at(json, "flows", NULL)));
    assert_string_equal(json_string_value(at(json, "breaks", NULL)), "perhaps");
    json_decref(json);
    hb_preview_clear(&made);
    free_config(config);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_model, close_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_the_same_file_moves_nothing),
        CASE(test_a_removed_backend_breaks_its_flows),
        CASE(test_weights_and_newcomers_break_nothing),
        CASE(test_a_drain_is_kept),
        CASE(test_a_backend_that_is_down),
        CASE(test_services_that_go_elsewhere),
        CASE(test_a_renamed_pool_keeps_its_flows),
        CASE(test_a_renamed_pool_that_shrinks),
        CASE(test_a_renamed_pool_with_one_that_drains),
        CASE(test_settings),
        CASE(test_jump_with_one_away),
        CASE(test_another_seed),
        CASE(test_another_size),
        CASE(test_every_algorithm),
        CASE(test_a_table_that_cannot_be_built),
        CASE(test_as_json),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
