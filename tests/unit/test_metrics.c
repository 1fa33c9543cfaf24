/* SPDX-License-Identifier: BSD-3-Clause */
/* The text that Prometheus reads. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "metrics.h"

static char *text;
static size_t size;

static FILE *open_text(void)
{
    FILE *to = open_memstream(&text, &size);

    assert_non_null(to);
    return to;
}

static void expect(FILE *to, const char *expected)
{
    fclose(to);
    assert_string_equal(text, expected);
    free(text);
}

static void test_a_family(void **state)
{
    const struct hb_label one[] = {{"pool", "web"}, {"backend", "web1"}, {NULL, NULL}};
    FILE *to = open_text();

    (void)state;
    hb_metric_begin(to, "x_total", HB_METRIC_COUNTER, "Things.");
    hb_metric_add(to, "x_total", one, 7);
    hb_metric_single(to, "y", HB_METRIC_GAUGE, "One.", 0);
    expect(to, "# HELP x_total Things.\n# TYPE x_total counter\n"
               "x_total{pool=\"web\",backend=\"web1\"} 7\n"
               "# HELP y One.\n# TYPE y gauge\ny 0\n");
}

/* BL-111 */
static void test_bl111_values_are_exact_and_never_negative(void **state)
{
    static const struct {
        uint64_t value;
        const char *line;
    } rows[] = {
        {(UINT64_C(1) << 31) - 1, "x 2147483647\n"},
        {(UINT64_C(1) << 31), "x 2147483648\n"},
        {(UINT64_C(1) << 32) - 1, "x 4294967295\n"},
        {(UINT64_C(1) << 53) + 1, "x 9007199254740993\n"},
        {(UINT64_C(1) << 63), "x 9223372036854775808\n"},
        {UINT64_MAX, "x 18446744073709551615\n"},
    };

    (void)state;
    for (size_t r = 0; r < sizeof(rows) / sizeof(*rows); r++) {
        FILE *to = open_text();

        hb_metric_add(to, "x", NULL, rows[r].value);
        expect(to, rows[r].line);
    }
}

/* BL-114 */
static void test_bl114_label_values_are_escaped(void **state)
{
    const struct hb_label labels[] = {{"name", "a\"b\\c\nd\xc3\xbc"}, {NULL, NULL}};
    FILE *to = open_text();

    (void)state;
    hb_metric_begin(to, "x", HB_METRIC_GAUGE, "a\"b\\c\nd");
    hb_metric_add(to, "x", labels, 1);
    expect(to, "# HELP x a\"b\\\\c\\nd\n# TYPE x gauge\nx{name=\"a\\\"b\\\\c\\nd\xc3\xbc\"} 1\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_a_family),
        cmocka_unit_test(test_bl111_values_are_exact_and_never_negative),
        cmocka_unit_test(test_bl114_label_values_are_escaped),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
