/* SPDX-License-Identifier: BSD-3-Clause */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "log.h"
#include "state_file.h"

static char folder[PATH_MAX], path[PATH_MAX + 8], bad[PATH_MAX + 16];

static int make_folder(void **state)
{
    (void)state;
    snprintf(folder, sizeof(folder), "%s/hb-state-XXXXXX",
             getenv("TMPDIR") ? getenv("TMPDIR") : "/tmp");
    if (mkdtemp(folder) == NULL)
        return -1;
    snprintf(path, sizeof(path), "%s/state", folder);
    snprintf(bad, sizeof(bad), "%s.bad", path);
    return 0;
}

static int remove_folder(void **state)
{
    (void)state;
    unlink(path);
    unlink(bad);
    return rmdir(folder);
}

static struct hb_state_backend backends[] = {
    {.id = 1, .incarnation = 3, .pool = "web", .health = HB_BACKEND_UP, .health_since_unix = 1},
    {.id = 2, .incarnation = 4000000000u},
    {.id = 65535,
     .incarnation = 1,
     .pool = "w \"eb\"",
     .health = HB_BACKEND_FAILED,
     .draining = true,
     .drain_since_unix = 1790000000,
     .drain = {.deadline_unix_ms = 1790000600123,
               .at_deadline = HB_AT_DEADLINE_RESET,
               .flows_at_start = 40,
               .forced = 3,
               .overdue = true},
     .disabled = true,
     .reset = true,
     .weight_is_set = true,
     .weight = 65535,
     .ramp_since_unix_ms = 1789999999,
     .penalty = 2.5,
     .penalty_unix_ms = 1789999998765,
     .held = true},
};
static struct hb_state_service services[] = {
    {.id = 0,
     .incarnation = 1,
     .prefix_length = 32,
     .protocol = HB_PROTOCOL_TCP,
     .port = 65535,
     .port_last = 65535},
    {.id = 1,
     .incarnation = 1,
     .prefix_length = 48,
     .protocol = HB_PROTOCOL_SCTP,
     .port = 0,
     .port_last = 65535},
    {.id = 4095, .incarnation = 2},
};
static struct hb_state sample = {UINT64_C(1) << 40, backends, 3, services, 3, true, 1790000001};

static void fill_sample(void)
{
    assert_true(hb_address_parse("198.51.100.11", &backends[0].address));
    assert_true(hb_address_parse("2001:db8::1", &backends[2].address));
    assert_true(hb_address_parse("192.0.2.10", &services[0].vip));
    assert_true(hb_address_parse("2001:db8::", &services[1].vip));
}

static void test_what_is_written_is_read(void **state)
{
    struct hb_state got;

    (void)state;
    fill_sample();
    assert_int_equal(hb_state_load(path, &got), -ENOENT);
    assert_int_equal(hb_state_save(path, &sample), 0);
    assert_int_equal(hb_state_load(path, &got), 0);
    assert_int_equal(got.generation, sample.generation);
    assert_int_equal(got.backends_count, 3);
    assert_int_equal(got.services_count, 3);
    assert_memory_equal(got.backends, backends, sizeof(backends));
    assert_memory_equal(got.services, services, sizeof(services));
    hb_state_clear(&got);
}

static void write_file(const char *text, size_t size)
{
    FILE *file = fopen(path, "w");

    assert_non_null(file);
    assert_int_equal(fwrite(text, 1, size, file), size);
    fclose(file);
}

/* Cut at every byte: set aside, never half believed. */
static void test_torn_at_every_byte(void **state)
{
    char text[8192];
    struct hb_state got;
    size_t size, whole;
    FILE *file;

    (void)state;
    fill_sample();
    assert_int_equal(hb_state_save(path, &sample), 0);
    file = fopen(path, "r");
    size = fread(text, 1, sizeof(text), file);
    fclose(file);
    whole = strrchr(text, '}') - text + 1;
    for (size_t cut = 0; cut < whole; cut++) {
        write_file(text, cut);
        assert_int_equal(hb_state_load(path, &got), -EBADMSG);
        assert_null(got.backends);
        assert_int_equal(access(path, F_OK), -1);
        assert_int_equal(access(bad, F_OK), 0);
    }
    write_file(text, size);
    assert_int_equal(hb_state_load(path, &got), 0);
    hb_state_clear(&got);
}

static void test_foreign_and_damaged_files(void **state)
{
    static const char *const texts[] = {
        "[]",
        "{\"format\": \"other\", \"version\": 1}",
        "{\"format\": \"halbach-state\", \"version\": 2, \"generation\": 1, \"backends\": [], "
        "\"services\": []}",
        "{\"format\": \"halbach-state\", \"version\": 1, \"generation\": -1, \"backends\": [], "
        "\"services\": []}",
        "{\"format\": \"halbach-state\", \"version\": 1, \"generation\": 1, \"backends\": "
        "[{\"id\": 65536, \"incarnation\": 1}], \"services\": []}",
        "{\"format\": \"halbach-state\", \"version\": 1, \"generation\": 1, \"backends\": "
        "[{\"id\": 1, \"incarnation\": 1, \"pool\": \"web\", \"address\": \"198.51.100.011\", "
        "\"health\": \"up\"}], \"services\": []}",
        "{\"format\": \"halbach-state\", \"version\": 1, \"generation\": 1, \"backends\": [], "
        "\"services\": [{\"id\": 1, \"incarnation\": 1, \"vip\": \"192.0.2.1\", \"protocol\": "
        "\"dccp\", \"port\": 1}]}",
        "{\"format\": \"halbach-state\", \"version\": 1, \"generation\": 1, \"backends\": [], "
        "\"services\": [{\"id\": 1, \"incarnation\": 1, \"vip\": \"192.0.2.1\", \"protocol\": "
        "\"tcp\", \"port\": 1, \"prefix_length\": 33}]}",
    };
    struct hb_state got;

    (void)state;
    for (size_t t = 0; t < sizeof(texts) / sizeof(*texts); t++) {
        write_file(texts[t], strlen(texts[t]));
        assert_int_equal(hb_state_load(path, &got), -EBADMSG);
    }
}

static void test_a_save_that_fails_leaves_the_old_file(void **state)
{
    char nowhere[PATH_MAX + 32];
    struct hb_state got;

    (void)state;
    fill_sample();
    snprintf(nowhere, sizeof(nowhere), "%s/missing/state", folder);
    assert_int_equal(hb_state_save(nowhere, &sample), -ENOENT);
    assert_int_equal(hb_state_save(path, &sample), 0);
    assert_int_equal(hb_state_load(path, &got), 0);
    hb_state_clear(&got);
}

#define CASE(name) cmocka_unit_test_setup_teardown(name, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        CASE(test_what_is_written_is_read),
        CASE(test_torn_at_every_byte),
        CASE(test_foreign_and_damaged_files),
        CASE(test_a_save_that_fails_leaves_the_old_file),
    };

    hb_log_set_level(HB_LOG_ERROR); /* a thousand files set aside */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
