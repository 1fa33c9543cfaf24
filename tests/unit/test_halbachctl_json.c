/* SPDX-License-Identifier: BSD-3-Clause */
/* Reading the API's answers: exact counters up to 2^64 - 1 (BL-111), missing and wrong members. */
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "json.h"

static json_t *parse(const char *text)
{
    char why[128] = "";
    json_t *document = hb_json_parse(text, strlen(text), why, sizeof(why));

    if (!document)
        fail_msg("%s: %s", text, why);
    return document;
}

static void test_counters_are_exact(void **state)
{
    static const uint64_t values[] = {
        0,         (UINT64_C(1) << 31) - 1, UINT64_C(1) << 31, UINT32_MAX, (UINT64_C(1) << 53) + 1,
        INT64_MAX, UINT64_C(1) << 63,       UINT64_MAX - 1,    UINT64_MAX,
    };
    char text[256];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
        json_t *document;

        snprintf(text, sizeof(text),
                 "{\"a\": [%" PRIu64 ",\n%" PRIu64 "], \"b\":%" PRIu64 ",\"c\":\"%" PRIu64 "\"}",
                 values[i], values[i], values[i], values[i]);
        document = parse(text);
        assert_true(hb_json_count(document, "b") == values[i]);
        assert_true(hb_json_count(document, "c") == values[i]);
        json_decref(document);
    }
}

static void test_only_integers_outside_of_strings_are_touched(void **state)
{
    json_t *document = parse("{\"a\": \"18446744073709551615, \\\" 18446744073709551615\","
                             " \"18446744073709551615\": 1.5, \"e\": 12345678901234567890e2,"
                             " \"f\": 1234567890123456789012.25, \"n\": -5, \"t\": true}");

    (void)state;
    assert_string_equal(hb_json_text(document, "a"),
                        "18446744073709551615, \" 18446744073709551615");
    assert_true(hb_json_real(document, "18446744073709551615") == 1.5);
    assert_true(hb_json_real(document, "e") == 12345678901234567890e2);
    assert_true(hb_json_real(document, "f") == 1234567890123456789012.25);
    assert_true(hb_json_count(document, "n") == 0); /* never a huge number */
    assert_true(hb_json_flag(document, "t"));
    json_decref(document);
}

static void test_missing_members_read_as_nothing(void **state)
{
    json_t *document =
        parse("{\"a\": {\"b\": {\"c\": 7}}, \"z\": null, \"s\": \"\", \"w\": \"word\"}");

    (void)state;
    assert_int_equal(hb_json_count(document, "a.b.c"), 7);
    assert_int_equal(hb_json_count(document, "a.b"), 0);
    assert_int_equal(hb_json_count(document, "a.b.c.d"), 0);
    assert_int_equal(hb_json_count(document, "w"), 0);
    assert_string_equal(hb_json_text(document, "z"), "-");
    assert_string_equal(hb_json_text(document, "s"), "-");
    assert_string_equal(hb_json_text(document, "a"), "-");
    assert_false(hb_json_has(document, "z"));
    assert_false(hb_json_has(document, "nothing"));
    assert_false(hb_json_flag(document, "w"));
    assert_int_equal(hb_json_count(NULL, "a"), 0);
    json_decref(document);
}

static void test_bad_documents_are_refused(void **state)
{
    static const char *const texts[] = {"",       "{",           "{\"a\": 99999999999999999999",
                                        "\"open", "{\"a\":\"\\", "nonsense"};
    char why[128];
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        why[0] = '\0';
        assert_null(hb_json_parse(texts[i], strlen(texts[i]), why, sizeof(why)));
        assert_true(why[0] != '\0');
    }
}

static void test_rows_by_name(void **state)
{
    static const char text[] =
        "[{\"pool\": \"b\", \"name\": \"web1\"}, {\"pool\": \"a\", \"name\": \"web10\"},"
        " {\"name\": \"alone\"}, {\"pool\": \"a\", \"name\": \"web2\"}]";
    static const char *const names[] = {"alone", "web2", "web10", "web1"};
    json_t *list = json_loads(text, 0, NULL), *sorted = hb_json_by_name(list);

    (void)state;
    assert_int_equal(json_array_size(sorted), 4);
    for (size_t i = 0; i < 4; i++)
        assert_string_equal(hb_json_text(json_array_get(sorted, i), "name"), names[i]);
    assert_string_equal(hb_json_text(json_array_get(list, 0), "name"), "web1"); /* as it was */
    json_decref(sorted);
    json_decref(list);
    assert_null(hb_json_by_name(NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counters_are_exact),
        cmocka_unit_test(test_only_integers_outside_of_strings_are_touched),
        cmocka_unit_test(test_missing_members_read_as_nothing),
        cmocka_unit_test(test_bad_documents_are_refused),
        cmocka_unit_test(test_rows_by_name),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
