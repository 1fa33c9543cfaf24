/* SPDX-License-Identifier: BSD-3-Clause */
/* What a reload is refused for, given what is in use: buckets of jump pools, ids. */
#include "model_fixture.h"

#include <errno.h>
#include <string.h>

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

/* A jump pool "web": 198.51.100.N has bucket N - 1, for each digit N of `members`; with "1=2" the
 * first has bucket 2. */
static struct hb_config *make_jump(const char *members, bool replacement)
{
    struct hb_config *config = make_config();
    struct hb_pool_config *pool = add_pool(config, "web");

    pool->algorithm = HB_ALGORITHM_JUMP;
    pool->options.jump_replacement = replacement;
    for (const char *at = members; *at != '\0'; at++) {
        char address[] = "198.51.100.0";
        struct hb_backend_config *backend;

        address[11] = *at;
        backend = add_backend(config, "web", address, 1);
        backend->bucket = (uint32_t)(*at - '1');
        backend->line = 7;
        if (at[1] != '=')
            continue;
        backend->bucket = (uint32_t)(at[2] - '0');
        at += 2;
    }
    add_service(config, "192.0.2.10", HB_PROTOCOL_TCP, 80, "web");
    return config;
}

/* Applies the configuration and takes the error text over. */
static int try(struct hb_model *model, struct hb_config *config, struct hb_model_diff *diff)
{
    struct hb_model_diff applied;
    int error = hb_model_check(model, config, diff);

    assert_int_equal(hb_model_apply(model, config, NOW_MS, &applied), error);
    assert_string_equal(applied.error, diff->error);
    free_config(config);
    return error;
}

static void test_jump_removal_in_the_middle_is_refused(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_diff diff;

    apply(model, make_jump("1234", false));
    assert_int_equal(try(model, make_jump("13=14=2", false), &diff), -EINVAL);
    assert_non_null(strstr(diff.error, ":7: pool web: b-198.51.100.3 had bucket 2 and now has 1"));
    assert_non_null(strstr(diff.error, "since b-198.51.100.2 is removed"));
    assert_non_null(strstr(diff.error, "end only"));
    assert_non_null(strstr(diff.error, "jump_replacement: true"));
    assert_int_equal(hb_model_pool(model, "web")->backends_count, 4);
    /* Two that stay and swap. */
    assert_int_equal(try(model, make_jump("1=12=034", false), &diff), -EINVAL);
    assert_null(strstr(diff.error, "is removed"));
}

static void test_jump_changes_that_its_nature_allows(void **state)
{
    /* At the end one goes, or several, or some come; a new machine takes a number over. */
    static const char *const files[] = {"123", "1", "12345", "12=23=1", "17=13"};
    static const char *const before[] = {"1234", "1234", "1234", "12=23=1", "123"};
    struct hb_model_diff diff;

    (void)state;
    for (size_t f = 0; f < sizeof(files) / sizeof(files[0]); f++) {
        struct hb_model *model = hb_model_new();

        apply(model, make_jump(before[f], false));
        assert_int_equal(try(model, make_jump(files[f], false), &diff), 0);
        assert_string_equal(diff.error, "");
        hb_model_free(model);
    }
}

static void test_jump_replacement_allows_all(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_diff diff;

    apply(model, make_jump("1234", false));
    assert_int_equal(try(model, make_jump("134", true), &diff), 0);
    assert_int_equal(try(model, make_jump("13=14=2", true), &diff), 0);
    /* What counts is the file that comes. */
    assert_int_equal(try(model, make_jump("14=2", false), &diff), 0);
    assert_int_equal(try(model, make_jump("14=1", false), &diff), -EINVAL);
}

/* Another algorithm before or after: the numbers meant, or mean, nothing. */
static void test_only_jump_has_numbers(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_jump("13=1", false);
    struct hb_model_diff diff;

    config->pools[0].algorithm = HB_ALGORITHM_RING;
    apply(model, make_jump("123", false));
    assert_int_equal(try(model, config, &diff), 0);
    assert_int_equal(try(model, make_jump("13=12=2", false), &diff), 0);
}

/* One that leaves and is taken back has no number to keep. */
static void test_members_that_leave_do_not_count(void **state)
{
    struct hb_model *model = *state;
    struct hb_plan plan = {0};
    struct hb_model_diff diff;

    apply(model, make_jump("12", false));
    resolve_all(model);
    all_up(model);
    reconcile(model, &plan);
    apply(model, make_jump("8=0", false));
    assert_true(backend_at(model, "web", "198.51.100.1")->leaving);
    assert_int_equal(try(model, make_jump("8=01=1", false), &diff), 0);
    hb_plan_clear(&plan);
}

static bool only_four(void *context, uint32_t id, uint32_t incarnation)
{
    (void)context;
    (void)incarnation;
    return id <= 4;
}

/* BL-85 */
static void test_ids_that_run_out(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_diff diff;

    model->reusable = only_four;
    apply(model, make_web(2));
    assert_int_equal(try(model, make_web(5), &diff), -ENOSPC);
    assert_non_null(
        strstr(diff.error, "no backend id is free for 198.51.100.5 in pool web: 2 are"));
    assert_int_equal(try(model, make_web(4), &diff), 0);
    assert_int_equal(try(model, make_web(4), &diff), 0);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_model, close_model)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_jump_removal_in_the_middle_is_refused),
        CASE(test_jump_changes_that_its_nature_allows),
        CASE(test_jump_replacement_allows_all),
        CASE(test_only_jump_has_numbers),
        CASE(test_members_that_leave_do_not_count),
        CASE(test_ids_that_run_out),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
