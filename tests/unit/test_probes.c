/* SPDX-License-Identifier: BSD-3-Clause */
/* Which probes run for which backends, and what becomes of their results. The scheduler and the
 * tunnels behind them are played by this file. */
#include "model_fixture.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "clock.h"
#include "health/tunnel.h"
#include "log.h"
#include "probes.h"

#define TARGETS_MAX 8

struct hb_health_target {
    bool alive;
    struct hb_address address;
    struct hb_health_config config;
    hb_probe_prepare prepare;
    hb_probe_done done;
    void *context;
};

static struct hb_health_target targets[TARGETS_MAX];
static unsigned targets_count;

struct hb_health *hb_health_open(struct event_base *base)
{
    return (struct hb_health *)(base ? (void *)base : (void *)targets);
}

void hb_health_close(struct hb_health *health)
{
    (void)health;
}

struct hb_health_target *hb_health_add(struct hb_health *health, const struct hb_address *address,
                                       const struct hb_health_config *config,
                                       hb_probe_prepare prepare, hb_probe_done done, void *context)
{
    (void)health;
    assert_true(targets_count < TARGETS_MAX);
    assert_true(config->port != 0 || !hb_health_type_has_port(config->type));
    targets[targets_count] =
        (struct hb_health_target){true, *address, *config, prepare, done, context};
    return &targets[targets_count++];
}

void hb_health_remove(struct hb_health_target *target)
{
    assert_true(target->alive);
    target->alive = false;
}

const char *hb_probe_reason_text(enum hb_probe_reason reason)
{
    return reason == HB_PROBE_OK ? "fine" : "not fine";
}

/* ---- tunnels: those that are set ---- */

static struct {
    uint32_t ifindex; /* 0: not set */
    struct hb_rewrite rewrite;
} tunnels[TARGETS_MAX];
static bool tunnels_possible, vip_is_ours;

struct hb_tunnels *hb_tunnels_open(char *problem, size_t size)
{
    if (tunnels_possible)
        return (struct hb_tunnels *)(void *)tunnels;
    snprintf(problem, size, "no tunnels here");
    return NULL;
}

void hb_tunnels_close(struct hb_tunnels *opened)
{
    (void)opened;
}

uint32_t hb_tunnels_claim(struct hb_tunnels *opened)
{
    static uint32_t last;

    (void)opened;
    return last++ % (TARGETS_MAX - 1) + 1;
}

void hb_tunnels_release(struct hb_tunnels *opened, uint32_t number)
{
    (void)opened;
    tunnels[number].ifindex = 0;
}

bool hb_tunnels_set(struct hb_tunnels *opened, uint32_t number, uint32_t ifindex,
                    const struct hb_rewrite *rewrite, char *problem, size_t size)
{
    (void)opened;
    (void)problem;
    (void)size;
    tunnels[number].ifindex = ifindex;
    tunnels[number].rewrite = *rewrite;
    return true;
}

uint32_t hb_tunnels_mark(uint32_t number)
{
    return 0x10000 + number;
}

struct hb_address hb_tunnels_source(const struct hb_address *to)
{
    return vip_is_ours ? *to : address_of("2001:db8::53");
}

static unsigned tunnels_set(void)
{
    unsigned count = 0;

    for (unsigned t = 0; t < TARGETS_MAX; t++)
        count += tunnels[t].ifindex != 0;
    return count;
}

static unsigned alive(void)
{
    unsigned count = 0;

    for (unsigned t = 0; t < targets_count; t++)
        count += targets[t].alive;
    return count;
}

static void tell(unsigned target, enum hb_probe_reason reason, const char *detail)
{
    struct hb_probe_result result = {.success = reason <= HB_PROBE_ASSUMED,
                                     .reason = reason,
                                     .started_ms = hb_now_ms() + 1000,
                                     .detail = detail};

    assert_true(targets[target].alive);
    targets[target].done(targets[target].context, &result);
}

static void report(unsigned target, bool success, enum hb_probe_reason reason)
{
    assert_int_equal(success, reason == HB_PROBE_OK);
    tell(target, reason, NULL);
}

/* One letter a result: S, F. */
static void tell_all(unsigned target, const char *results)
{
    for (; *results != '\0'; results++)
        tell(target, *results == 'S' ? HB_PROBE_OK : HB_PROBE_REFUSED, NULL);
}

static unsigned changes;

static void count_change(void *context, struct hb_model_pool *pool,
                         struct hb_model_backend *backend)
{
    (void)context;
    assert_ptr_equal(hb_pool_backend(pool, &backend->address), backend);
    changes++;
}

static struct hb_probes *probes;

static void leave(void *context, struct hb_model_backend *backend)
{
    (void)context;
    if (probes != NULL)
        hb_probes_leave(probes, backend);
}

static int open_probes(void **state)
{
    struct hb_model *model = hb_model_new();

    targets_count = changes = 0;
    tunnels_possible = true;
    memset(tunnels, 0, sizeof(tunnels));
    probes = hb_probes_open(NULL, model, count_change, NULL);
    model->left = leave;
    *state = model;
    return probes == NULL;
}

static int close_probes(void **state)
{
    hb_probes_close(probes);
    probes = NULL;
    hb_model_free(*state);
    return alive() != 0;
}

/* BL-97: one server in many pools with equal checks is probed once; another port is another probe.
 */
static void test_equal_checks_are_shared(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_config();

    for (const char *const *pool = (const char *const[]){"a", "b", "c", "d", NULL}; *pool; pool++) {
        struct hb_pool_config *added = add_pool(config, *pool);

        if (**pool == 'c')
            added->health.port = 8080;
        if (**pool == 'd')
            added->health.type = HB_HEALTH_NONE;
        add_backend(config, *pool, "198.51.100.1", 1);
    }
    apply(model, config);
    assert_int_equal(hb_probes_sync(probes), 0);
    assert_int_equal(alive(), 2);
    hb_probes_sync(probes);
    assert_int_equal(targets_count, 2);
    report(0, true, HB_PROBE_OK);
    assert_int_equal(changes, 2);
    assert_int_equal(backend_at(model, "a", "198.51.100.1")->state.health, HB_BACKEND_UP);
    assert_int_equal(backend_at(model, "b", "198.51.100.1")->state.health, HB_BACKEND_UP);
    assert_int_equal(backend_at(model, "c", "198.51.100.1")->state.health, HB_BACKEND_UNKNOWN);
}

static void test_a_local_error_says_nothing(void **state)
{
    struct hb_model *model = *state;

    apply(model, make_web(1));
    hb_probes_sync(probes);
    report(0, false, HB_PROBE_LOCAL_ERROR);
    assert_int_equal(changes, 0);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UNKNOWN);
}

/* BL-76 (b), (e): another interval or port is another probe, and the state stays. */
static void test_a_changed_check_is_a_new_probe(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(1);

    apply(model, make_web(1));
    hb_probes_sync(probes);
    report(0, false, HB_PROBE_REFUSED);
    config->pools[0].health.port = 81;
    apply(model, config);
    hb_probes_sync(probes);
    assert_int_equal(targets_count, 2);
    assert_int_equal(alive(), 1);
    assert_int_equal(targets[1].config.port, 81);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_FAILED);
    report(1, true, HB_PROBE_OK);
    report(1, true, HB_PROBE_OK);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UP);
}

/* BL-76: whatever a reload does to the check, a backend is never stuck in what an older one found.
 */
static void test_no_state_is_stuck_after_a_reload(void **state)
{
    static const struct {
        const char *what;
        enum hb_health_type type;
        uint16_t port;
        uint32_t interval_ms;
        bool new_probe;
    } rows[] = {
        {"(a) the same file", HB_HEALTH_TCP, 80, 1000, false},
        {"(b) another port", HB_HEALTH_TCP, 81, 1000, true},
        {"(d) another type", HB_HEALTH_HTTP, 81, 1000, true},
        {"(e) another interval", HB_HEALTH_HTTP, 81, 2000, true},
    };
    struct hb_model *model = *state;
    struct hb_model_backend *backend;
    unsigned target = 0;

    apply(model, make_web(1));
    hb_probes_sync(probes);
    tell_all(0, "F");
    backend = backend_at(model, "web", "198.51.100.1");
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hb_config *config = make_web(1);
        uint64_t since_ms = backend->state.health_since_ms;

        config->pools[0].health.type = rows[i].type;
        config->pools[0].health.port = rows[i].port;
        config->pools[0].health.interval_ms = rows[i].interval_ms;
        tell_all(target, "S"); /* one of the two that it takes; it must not count for a new check */
        apply(model, config);
        hb_probes_sync(probes);
        assert_int_equal(alive(), 1);
        target += rows[i].new_probe;
        assert_int_equal(targets_count, target + 1);
        assert_int_equal(backend->state.health, HB_BACKEND_FAILED);
        assert_int_equal(backend->state.health_since_ms, since_ms);
        tell_all(target, "S");
        assert_int_equal(backend->state.health,
                         rows[i].new_probe ? HB_BACKEND_FAILED : HB_BACKEND_UP);
        tell_all(target, "S");
        assert_int_equal(backend->state.health, HB_BACKEND_UP);
        tell_all(target, "F");
        assert_int_equal(backend->state.health, HB_BACKEND_UP);
        tell_all(target, "F");
        assert_int_equal(backend->state.health, HB_BACKEND_FAILED);
    }
}

/* BL-76: up, and then a check that fails; the failure that the old check counted is not its. */
static void test_up_is_not_stuck_either(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(1);

    apply(model, make_web(1));
    hb_probes_sync(probes);
    tell_all(0, "SF");
    config->pools[0].health.port = 81;
    apply(model, config);
    hb_probes_sync(probes);
    tell_all(1, "F");
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UP);
    tell_all(1, "F");
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_FAILED);
}

/* BL-93: in a row, not in all. */
static void test_results_count_in_a_row(void **state)
{
    static const struct {
        const char *results;
        enum hb_backend_health health;
    } rows[] = {
        {"SFSFSFSFS", HB_BACKEND_UP}, {"SFFSFFS", HB_BACKEND_UP},     {"SFF", HB_BACKEND_UP},
        {"SFFF", HB_BACKEND_FAILED},  {"SFFFSFS", HB_BACKEND_FAILED}, {"SFFFSFSS", HB_BACKEND_UP},
    };
    struct hb_model *model = *state;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hb_config *config = make_web(1);

        config->pools[0].health.fall = 3;
        config->pools[0].health.port = (uint16_t)(1000 + i);
        apply(model, config);
        hb_probes_sync(probes);
        backend_at(model, "web", "198.51.100.1")->state.health = HB_BACKEND_UNKNOWN;
        tell_all((unsigned)i, rows[i].results);
        assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, rows[i].health);
    }
}

/* BL-94: where silence counts as success, "up" is never said. */
static void test_silence_is_never_plain_up(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_web(1);
    struct hb_model_backend *backend;

    config->pools[0].health.type = HB_HEALTH_UDP;
    config->pools[0].health.send = (struct hb_check_bytes){1, {'?'}};
    apply(model, config);
    hb_probes_sync(probes);
    backend = backend_at(model, "web", "198.51.100.1");
    assert_string_equal(hb_backend_state_name(&backend->state), "unknown");
    tell(0, HB_PROBE_ASSUMED, NULL);
    assert_string_equal(hb_backend_state_name(&backend->state), "assumed");
    assert_true(hb_backend_takes_new_flows(&backend->state, 1));
    /* (d): an error now and then, and silence between them that is no evidence. */
    tell_all(0, "F");
    tell(0, HB_PROBE_UNSURE, NULL);
    tell(0, HB_PROBE_UNSURE, NULL);
    tell_all(0, "F");
    assert_string_equal(hb_backend_state_name(&backend->state), "down");

    config = make_web(1);
    config->pools[0].health.type = HB_HEALTH_UDP;
    config->pools[0].health.send = config->pools[0].health.expect =
        (struct hb_check_bytes){1, {'?'}};
    apply(model, config);
    hb_probes_sync(probes);
    tell_all(1, "SS");
    assert_string_equal(hb_backend_state_name(&backend->state), "up");
}

/* BL-97: what asks another question is another probe. */
static void test_different_checks_are_apart(void **state)
{
    struct hb_model *model = *state;
    struct hb_config *config = make_config();

    for (const char *const *pool = (const char *const[]){"a", "b", "c", "d", "e", "f", NULL}; *pool;
         pool++) {
        struct hb_health_config *health = &add_pool(config, *pool)->health;

        health->type = HB_HEALTH_HTTP;
        if (**pool == 'b')
            strcpy(health->path, "/other");
        if (**pool == 'c')
            strcpy(health->host, "www.example.org");
        if (**pool == 'd' || **pool == 'e') {
            health->via = HB_VIA_TUNNEL;
            health->vip = address_of("192.0.2.10");
        }
        if (**pool == 'f') /* what is made of the answer may differ */
            health->rise = health->fall = 7;
        add_backend(config, *pool, "198.51.100.1", 1);
    }
    apply(model, config);
    assert_int_equal(hb_probes_sync(probes), 0);
    assert_int_equal(alive(), 5);
    tell_all(0, "S");
    assert_int_equal(changes, 2);
    assert_int_equal(backend_at(model, "f", "198.51.100.1")->state.health, HB_BACKEND_UP);
    assert_int_equal(backend_at(model, "b", "198.51.100.1")->state.health, HB_BACKEND_UNKNOWN);
}

static void test_the_last_failure_is_kept(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_backend *backend;

    apply(model, make_web(1));
    hb_probes_sync(probes);
    backend = backend_at(model, "web", "198.51.100.1");
    tell_all(0, "S");
    assert_string_equal(backend->last_failure, "");
    tell(0, HB_PROBE_WRONG, "said no");
    tell_all(0, "S");
    tell(0, HB_PROBE_LOCAL_ERROR, "no ports");
    assert_string_equal(backend->last_failure, "port 80: said no");
    assert_string_equal(backend->reason, "port 80: no ports");
}

static struct hb_config *make_damped(uint32_t backends)
{
    struct hb_config *config = make_web(backends);

    config->pools[0].health.damping = (struct hb_damping_config){
        .enabled = true,
        .half_life_ms = 3600000,
        .suppress = 2 * 1024 - 100, /* a little below two falls */
        .reuse = 1024,
        .max_hold_ms = 7200000,
    };
    return config;
}

static void test_a_backend_that_flaps_is_held(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_backend *backend;

    apply(model, make_damped(2));
    hb_probes_sync(probes);
    model->pools[0].usable = 1; /* the other one */
    backend = backend_at(model, "web", "198.51.100.1");
    tell_all(0, "SFFSS");
    assert_int_equal(backend->state.health, HB_BACKEND_UP);
    tell_all(0, "FFSSSS");
    assert_int_equal(backend->state.health, HB_BACKEND_FAILED);
    assert_non_null(strstr(backend->reason, "held down for"));
    /* The time has come: at once, since all is well for long. */
    backend->damping.since_ms -= 3600000 < backend->damping.since_ms ? 3600000 : 0;
    backend->damping.penalty /= 3;
    tell_all(0, "S");
    assert_int_equal(backend->state.health, HB_BACKEND_UP);
    assert_null(strstr(backend->reason, "held"));
}

static void test_damping_never_takes_the_last(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_backend *backend;

    apply(model, make_damped(1));
    hb_probes_sync(probes);
    model->pools[0].usable = 0;
    backend = backend_at(model, "web", "198.51.100.1");
    tell_all(0, "SFFSSFFSSFFSS");
    assert_true(backend->damping.held);
    assert_int_equal(backend->state.health, HB_BACKEND_UP);
}

/* ---- through the tunnel ---- */

static struct hb_config *make_tunnelled(void)
{
    struct hb_config *config = make_web(1);

    config->pools[0].health.via = HB_VIA_TUNNEL;
    config->pools[0].health.vip = address_of("192.0.2.10");
    return config;
}

static void assert_address_equal(struct hb_address address, const char *text)
{
    struct hb_address expected = address_of(text);

    assert_int_equal(hb_address_compare(&address, &expected), 0);
}

static bool prepare_first(struct hb_check_way *way, char *problem)
{
    return targets[0].prepare(targets[0].context, way, problem, 160);
}

static void test_a_tunnel_follows_its_backend(void **state)
{
    struct hb_model *model = *state;
    struct hb_model_backend *backend;
    struct hb_check_way way = {0};
    char problem[160] = "";

    apply(model, make_tunnelled());
    hb_probes_sync(probes);
    backend = backend_at(model, "web", "198.51.100.1");
    assert_false(prepare_first(&way, problem));
    assert_non_null(strstr(problem, "no tunnel yet"));

    backend->hop = (struct hb_next_hop){.ifindex = 7, .source = address_of("198.51.100.10")};
    backend->rewrite = (struct hb_rewrite){.size = 34, .l2_size = 14, .family = 4};
    assert_true(prepare_first(&way, problem));
    assert_address_equal(way.to, "192.0.2.10");
    assert_address_equal(way.from, "198.51.100.10");
    assert_int_equal(tunnels[way.mark - 0x10000].ifindex, 7);
    backend->hop.ifindex = 9;
    assert_true(prepare_first(&way, problem));
    assert_int_equal(tunnels[way.mark - 0x10000].ifindex, 9);
    assert_int_equal(tunnels_set(), 1);

    /* A source of the backend's family is no source for a VIP of the other. */
    backend->hop.source = address_of("2001:db8::1");
    assert_true(prepare_first(&way, problem));
    assert_address_equal(way.from, "2001:db8::53");

    /* What would not leave this machine is no probe. */
    vip_is_ours = true;
    assert_false(prepare_first(&way, problem));
    assert_non_null(strstr(problem, "is an address of this machine"));
    vip_is_ours = false;

    apply(model, make_web(1));
    hb_probes_sync(probes);
    assert_int_equal(tunnels_set(), 0);
    assert_null(targets[1].prepare);
}

static void test_without_tunnels_nothing_is_proved(void **state)
{
    struct hb_model *model = *state;
    struct hb_check_way way = {0};
    char problem[160] = "";

    tunnels_possible = false;
    hb_log_set_level(HB_LOG_ERROR - 1);
    apply(model, make_tunnelled());
    hb_probes_sync(probes);
    backend_at(model, "web", "198.51.100.1")->rewrite.size = 34;
    assert_false(prepare_first(&way, problem));
    assert_string_equal(problem, "no tunnels here");
    tell(0, HB_PROBE_LOCAL_ERROR, problem);
    assert_int_equal(backend_at(model, "web", "198.51.100.1")->state.health, HB_BACKEND_UNKNOWN);
    tunnels_possible = true;
    assert_false(prepare_first(&way, problem)); /* not at every probe */
    hb_probes_sync(probes);
    assert_true(prepare_first(&way, problem));
}

static void test_a_removed_backend_ends_its_probe(void **state)
{
    struct hb_model *model = *state;

    apply(model, make_web(3));
    hb_probes_sync(probes);
    assert_int_equal(alive(), 3);
    apply(model, make_web(1));
    assert_int_equal(alive(), 1);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, open_probes, close_probes)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_equal_checks_are_shared),
        CASE(test_a_local_error_says_nothing),
        CASE(test_a_changed_check_is_a_new_probe),
        CASE(test_no_state_is_stuck_after_a_reload),
        CASE(test_up_is_not_stuck_either),
        CASE(test_results_count_in_a_row),
        CASE(test_silence_is_never_plain_up),
        CASE(test_different_checks_are_apart),
        CASE(test_the_last_failure_is_kept),
        CASE(test_a_backend_that_flaps_is_held),
        CASE(test_damping_never_takes_the_last),
        CASE(test_a_tunnel_follows_its_backend),
        CASE(test_without_tunnels_nothing_is_proved),
        CASE(test_a_removed_backend_ends_its_probe),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
