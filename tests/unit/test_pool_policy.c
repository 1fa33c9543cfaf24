/* SPDX-License-Identifier: BSD-3-Clause */
/* Who serves a pool that has too few usable backends: one letter a member, one row a situation. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "pool_policy.h"

#define MEMBERS_MAX 16

/* u up, d down, ? not checked yet, x up but out of reach, r draining, R draining and down,
 * z disabled, 0 weight 0; B and b a backup that is up, and down; L a leaving one. */
static struct hb_member_view member_of(char letter)
{
    struct hb_member_view view = {.wanted = true, .up = true, .checked = true, .reachable = true};

    switch (letter) {
    case 'd':
        view.up = false;
        break;
    case '?':
        view.up = view.checked = false;
        break;
    case 'x':
        view.reachable = false;
        break;
    case 'R':
        view.up = false;
        view.wanted = false;
        break;
    case 'z':
        view.disabled = true;
        view.wanted = false;
        break;
    case 'r':
    case '0':
        view.wanted = false;
        break;
    case 'b':
        view.up = false;
        view.backup = true;
        break;
    case 'B':
        view.backup = true;
        break;
    case 'L':
        view.leaving = true;
        break;
    default:
        assert_int_equal(letter, 'u');
    }
    return view;
}

#define HALF (HB_PANIC_ONE / 2)

struct row {
    const char *members;
    struct hb_failure_config failure;
    enum hb_pool_mode before, mode;
    const char *table; /* who stands in it */
};

static const struct row rows[] = {
    /* As a file without a word about it. */
    {"uuu", {0}, 0, HB_POOL_MODE_NORMAL, "uuu"},
    {"udd", {0}, 0, HB_POOL_MODE_NORMAL, "u"},
    {"ddd", {0}, 0, HB_POOL_MODE_CLOSED, ""},
    {"", {0}, 0, HB_POOL_MODE_CLOSED, ""},
    {"???", {0}, 0, HB_POOL_MODE_CLOSED, ""},
    {"u??", {0}, 0, HB_POOL_MODE_NORMAL, "u"},
    {"ur0z", {0}, 0, HB_POOL_MODE_NORMAL, "u"},
    {"ux", {0}, 0, HB_POOL_MODE_NORMAL, "u"},
    /* Closed: those that are up keep what they have, but for the disabled. */
    {"rrr", {0}, 0, HB_POOL_MODE_CLOSED, "rrr"},
    {"rR0zd", {0}, 0, HB_POOL_MODE_CLOSED, "r0"},
    {"uud", {.minimum = 3, .below = HB_BELOW_CLOSE}, 0, HB_POOL_MODE_CLOSED, "uu"},
    {"uuu", {.minimum = 3, .below = HB_BELOW_CLOSE}, 0, HB_POOL_MODE_NORMAL, "uuu"},
    {"uu?", {.minimum = 3, .below = HB_BELOW_CLOSE}, 0, HB_POOL_MODE_CLOSED, "uu"},
    {"uud", {.minimum = 3}, 0, HB_POOL_MODE_NORMAL, "uu"},
    /* All. */
    {"uudr", {.minimum = 3, .below = HB_BELOW_ALL}, 0, HB_POOL_MODE_PANIC, "uud"},
    {"ddd0", {.minimum = 1, .below = HB_BELOW_ALL}, 0, HB_POOL_MODE_PANIC, "ddd"},
    {"rr", {.minimum = 1, .below = HB_BELOW_ALL}, 0, HB_POOL_MODE_CLOSED, "rr"},
    {"dd?", {.minimum = 1, .below = HB_BELOW_ALL}, 0, HB_POOL_MODE_CLOSED, ""},
    {"dd?", {.minimum = 1, .below = HB_BELOW_ALL}, HB_POOL_MODE_PANIC, HB_POOL_MODE_PANIC, "dd"},
    /* BL-68: x = 0 never opens, 50 opens below half, 100 with the first failure. */
    {"dddd", {.panic = 0}, 0, HB_POOL_MODE_CLOSED, ""},
    {"uudd", {.panic = HALF}, 0, HB_POOL_MODE_NORMAL, "uu"},
    {"uddd", {.panic = HALF}, 0, HB_POOL_MODE_PANIC, "uddd"},
    {"udrr", {.panic = HALF}, 0, HB_POOL_MODE_NORMAL, "u"}, /* half of those that are wanted */
    {"dddd", {.panic = HALF}, 0, HB_POOL_MODE_PANIC, "dddd"},
    {"uuud", {.panic = HB_PANIC_ONE}, 0, HB_POOL_MODE_PANIC, "uuud"},
    {"uuuu", {.panic = HB_PANIC_ONE}, 0, HB_POOL_MODE_NORMAL, "uuuu"},
    {"u???", {.panic = HALF}, 0, HB_POOL_MODE_NORMAL, "u"}, /* a start is no failure */
    {"d???", {.panic = HALF}, 0, HB_POOL_MODE_CLOSED, ""},
    {"ud?d", {.panic = HALF}, HB_POOL_MODE_PANIC, HB_POOL_MODE_PANIC, "udd"},
    /* Backup. */
    {"uuB", {.minimum = 2, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_NORMAL, "uu"},
    {"udBB", {.minimum = 2, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_BACKUP, "BB"},
    {"udbB", {.minimum = 2, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_BACKUP, "B"},
    {"udb", {.minimum = 2, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_NORMAL, "u"},
    {"ddb", {.minimum = 2, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_CLOSED, ""},
    {"ddb", {2, HB_BELOW_BACKUP, HALF, "x"}, 0, HB_POOL_MODE_PANIC, "dd"},
    {"u?B", {.minimum = 2, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_NORMAL, "u"},
    {"u?B",
     {.minimum = 2, .below = HB_BELOW_BACKUP},
     HB_POOL_MODE_BACKUP,
     HB_POOL_MODE_BACKUP,
     "B"},
    {"rrB", {.minimum = 1, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_BACKUP, "B"},
    /* BL-79: removed ones serve while nobody knows better. */
    {"??LL", {0}, 0, HB_POOL_MODE_LEAVING, "LL"},
    {"dxL", {0}, 0, HB_POOL_MODE_LEAVING, "L"},
    {"u?L", {0}, 0, HB_POOL_MODE_NORMAL, "u"},
    {"??LLB", {.minimum = 1, .below = HB_BELOW_BACKUP}, 0, HB_POOL_MODE_LEAVING, "LL"},
};

static void test_rows(void **state)
{
    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        const struct row *row = &rows[r];
        uint32_t count = (uint32_t)strlen(row->members), stand = 0;
        struct hb_member_view views[MEMBERS_MAX];
        char table[MEMBERS_MAX + 1] = "";
        enum hb_pool_mode mode;

        for (uint32_t m = 0; m < count; m++)
            views[m] = member_of(row->members[m]);
        mode = hb_pool_policy(&row->failure, row->before, views, count);
        for (uint32_t m = 0; m < count; m++) {
            if (hb_pool_policy_stands(mode, &views[m]))
                table[stand++] = row->members[m];
        }
        if (mode != row->mode || strcmp(table, row->table) != 0)
            fail_msg("row %zu, %s: %s \"%s\" instead of %s \"%s\"", r, row->members,
                     hb_pool_mode_name(mode), table, hb_pool_mode_name(row->mode), row->table);
    }
}

/* Whatever the members and the policy are: nobody stands in a table who was never checked, cannot
 * be reached or is disabled; a drained one only in a closed pool. */
static void test_never(void **state)
{
    static const char letters[] = "ud?xrRz0bBL";
    uint32_t random = 1;

    (void)state;
    for (unsigned round = 0; round < 200000; round++) {
        struct hb_member_view views[MEMBERS_MAX];
        struct hb_failure_config failure = {0};
        uint32_t count;
        enum hb_pool_mode mode;

        random = random * 1664525 + 1013904223;
        count = random >> 28;
        failure.minimum = random >> 20 & 7;
        failure.below = (enum hb_below)(random >> 16 & 3);
        failure.panic = (random >> 8 & 3) * HB_PANIC_ONE / 3;
        for (uint32_t m = 0; m < count; m++) {
            random = random * 1664525 + 1013904223;
            views[m] = member_of(letters[(random >> 16) % (sizeof(letters) - 1)]);
        }
        mode = hb_pool_policy(&failure, (enum hb_pool_mode)((random >> 8) % HB_POOL_MODES), views,
                              count);
        for (uint32_t m = 0; m < count; m++) {
            if (!hb_pool_policy_stands(mode, &views[m]))
                continue;
            assert_true(views[m].checked && views[m].reachable && !views[m].disabled);
            assert_true(views[m].wanted || mode == HB_POOL_MODE_CLOSED);
            assert_true(views[m].up || mode == HB_POOL_MODE_PANIC);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_rows),
        cmocka_unit_test(test_never),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
