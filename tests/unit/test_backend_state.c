/* SPDX-License-Identifier: BSD-3-Clause */
/* The life of a backend, played as sequences of events on a clock that the test sets. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "backend_state.h"

#define RISE     2
#define FALL     3
#define INTERVAL 1000

struct play {
    struct hb_backend_state state;
    uint64_t now_ms;
};

/* One letter an event: S and F probes that started just now, s and f probes that started 10 s ago,
 * D, U and X drain, undrain and a drain's deadline, + and - take over up and down. Time passes
 * before each. Returns how many changed something. */
static int play(struct play *play, const char *events)
{
    int changes = 0;

    for (; *events != '\0'; events++) {
        enum hb_backend_event event = HB_EVENT_PROBE_SUCCEEDED;
        uint64_t started_ms;

        play->now_ms += INTERVAL;
        started_ms = play->now_ms - 1;
        switch (*events) {
        case 's':
            started_ms -= 10 * INTERVAL;
            break;
        case 'f':
            started_ms -= 10 * INTERVAL;
            event = HB_EVENT_PROBE_FAILED;
            break;
        case 'F':
            event = HB_EVENT_PROBE_FAILED;
            break;
        case 'D':
            event = HB_EVENT_DRAIN;
            break;
        case 'U':
            event = HB_EVENT_UNDRAIN;
            break;
        case 'X':
            event = HB_EVENT_DEADLINE;
            break;
        case '+':
            event = HB_EVENT_TAKE_OVER_UP;
            break;
        case '-':
            event = HB_EVENT_TAKE_OVER_DOWN;
            break;
        default:
            assert_int_equal(*events, 'S');
        }
        changes +=
            hb_backend_state_apply(&play->state, event, RISE, FALL, started_ms, play->now_ms);
    }
    return changes;
}

static struct play make_play(void)
{
    return (struct play){.now_ms = 1000000};
}

struct row {
    const char *description;
    const char *events;
    const char *name; /* of the state that they lead to */
    int changes;
};

static const struct row rows[] = {
    {"nothing is known yet", "", "unknown", 0},
    {"the first success is enough", "S", "up", 1},
    {"the first failure is enough", "F", "down", 1},
    {"BL-93: failures that are not in a row", "SFSFSFSFSFS", "up", 1},
    {"BL-93: two in a row, twice", "SFFSFFS", "up", 1},
    {"BL-93: not before the third", "SFF", "up", 1},
    {"BL-93: the third in a row", "SFFF", "down", 2},
    {"BL-93: a success, a failure, a success", "SFFFSFS", "down", 2},
    {"BL-93: two successes in a row", "SFFFSFSS", "up", 3},
    {"BL-93: a failed probe from before it came up", "SFFFSSfff", "up", 3},
    {"BL-93: a late success from before it went down", "SFFFss", "down", 2},
    {"a late result does not break a row either", "SFFFSsS", "up", 3},
    {"a late result of the other kind does not restart a row", "SFFFSfS", "up", 3},
    {"counts start anew with each change", "SFFFSSFF", "up", 3},
    {"drained and back", "SDU", "up", 3},
    {"drained twice is drained once", "SDD", "draining", 2},
    {"undrain of one in service", "SU", "up", 1},
    {"drained before anything is known", "D", "draining", 1},
    {"a success while draining changes no use", "DS", "draining", 1},
    {"failing while draining", "SDFFF", "down", 3},
    {"recovering while draining: still draining", "SDFFFSS", "draining", 4},
    {"undrained after that", "SDFFFSSU", "up", 5},
    {"undrained while down: nothing changes until it is up", "SFFFDU", "down", 2},
    {"drained while down, then up", "SFFFDSS", "draining", 3},
    {"a drain is no change of health: a probe under way counts", "FDSSU", "up", 3},
    {"taken over up", "+", "up", 1},
    {"taken over up, it falls only after three", "+FF", "up", 1},
    {"and then", "+FFF", "down", 2},
    {"taken over down, it rises only after two", "-S", "down", 1},
    {"and then", "-SS", "up", 2},
    {"taken over while draining", "D+", "draining", 1},
    {"a probe knows better than what is taken over", "S-", "up", 1},
    {"the other way round", "F+", "down", 1},
    {"only the first is taken over", "+-", "up", 1},
    {"a deadline means nothing in service", "SX", "up", 1},
    {"the deadline of a drain", "SDX", "disabled", 3},
    {"drained once more: it stays", "SDXD", "disabled", 3},
    {"failing and recovering while disabled", "SDXFFFSS", "disabled", 3},
    {"taken back after that", "SDXFFFSSU", "up", 4},
    {"taken back while it is down", "SDXFFFU", "down", 3},
};

static void test_sequences(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct play p = make_play();
        int changes = play(&p, rows[i].events);

        if (strcmp(hb_backend_state_name(&p.state), rows[i].name) != 0)
            fail_msg("%s (%s): %s instead of %s", rows[i].description, rows[i].events,
                     hb_backend_state_name(&p.state), rows[i].name);
        if (changes != rows[i].changes)
            fail_msg("%s (%s): %d changes instead of %d", rows[i].description, rows[i].events,
                     changes, rows[i].changes);
    }
}

static void test_use_and_new_flows(void **state)
{
    static const struct {
        const char *events;
        enum hb_backend_use use;
        bool new_flows;
    } uses[] = {
        {"", HB_BACKEND_ACTIVE, false}, /* flows stay while nothing is known; new ones wait */
        {"S", HB_BACKEND_ACTIVE, true},        {"F", HB_BACKEND_DOWN, false},
        {"D", HB_BACKEND_DRAINING, false},     {"SD", HB_BACKEND_DRAINING, false},
        {"FD", HB_BACKEND_DOWN, false},        {"SDFFFSS", HB_BACKEND_DRAINING, false},
        {"SDFFFSSU", HB_BACKEND_ACTIVE, true}, {"SDX", HB_BACKEND_DOWN, false},
        {"FDX", HB_BACKEND_DOWN, false},       {"SDXU", HB_BACKEND_ACTIVE, true},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(uses) / sizeof(uses[0]); i++) {
        struct play p = make_play();

        play(&p, uses[i].events);
        assert_int_equal(hb_backend_use_of(&p.state), uses[i].use);
        assert_int_equal(hb_backend_takes_new_flows(&p.state, 1), uses[i].new_flows);
        assert_false(hb_backend_takes_new_flows(&p.state, 0)); /* BL-66 */
    }
}

static void test_times(void **state)
{
    struct play p = make_play();

    (void)state;
    play(&p, "S");
    assert_int_equal(p.state.health_since_ms, 1001000);
    play(&p, "SSD");
    assert_int_equal(p.state.health_since_ms, 1001000);
    assert_int_equal(p.state.drain_since_ms, 1004000);
    play(&p, "DFFF");
    assert_int_equal(p.state.drain_since_ms, 1004000); /* the first of two */
    assert_int_equal(p.state.health_since_ms, 1008000);
    play(&p, "U");
    assert_int_equal(p.state.drain_since_ms, 0);
    assert_int_equal(p.state.health_since_ms, 1008000);
}

/* A probe that began in the very millisecond of the change is not from before it. */
static void test_the_same_millisecond(void **state)
{
    struct hb_backend_state s = {0};

    (void)state;
    assert_true(hb_backend_state_apply(&s, HB_EVENT_TAKE_OVER_DOWN, 1, 1, 500, 500));
    assert_false(hb_backend_state_apply(&s, HB_EVENT_PROBE_SUCCEEDED, 1, 1, 499, 501));
    assert_true(hb_backend_state_apply(&s, HB_EVENT_PROBE_SUCCEEDED, 1, 1, 500, 501));
}

static void test_counts_do_not_wrap(void **state)
{
    struct hb_backend_state s = {.health = HB_BACKEND_UP, .failures = UINT32_MAX - 1};

    (void)state;
    assert_false(hb_backend_state_apply(&s, HB_EVENT_PROBE_SUCCEEDED, 1, 1, 1, 1));
    s.successes = UINT32_MAX;
    assert_false(hb_backend_state_apply(&s, HB_EVENT_PROBE_SUCCEEDED, 1, 1, 1, 1));
    assert_int_equal(s.successes, UINT32_MAX);
    assert_int_equal(s.failures, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_sequences),
        cmocka_unit_test(test_use_and_new_flows),
        cmocka_unit_test(test_times),
        cmocka_unit_test(test_the_same_millisecond),
        cmocka_unit_test(test_counts_do_not_wrap),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
