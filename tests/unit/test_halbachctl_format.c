/* SPDX-License-Identifier: BSD-3-Clause */
/* Numbers and tables as people read them. */
#include <locale.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "format.h"
#include "table.h"

static void test_counts(void **state)
{
    static const struct {
        uint64_t value;
        const char *count, *bytes;
    } rows[] = {
        {0, "0", "0 B"},
        {9999, "9999", "9999 B"},
        {10000, "10.0 k", "10.0 kB"},
        {12345, "12.3 k", "12.3 kB"},
        {999949, "999.9 k", "999.9 kB"},
        {999950, "1.0 M", "1.0 MB"}, /* rounds into the next unit, never "1000.0 k" */
        {4100000, "4.1 M", "4.1 MB"},
        {UINT64_C(2147483647), "2.1 G", "2.1 GB"},
        {UINT64_C(4294967295), "4.3 G", "4.3 GB"},
        {(UINT64_C(1) << 53) + 1, "9.0 P", "9.0 PB"},
        {UINT64_C(1) << 63, "9.2 E", "9.2 EB"},
        {UINT64_MAX, "18.4 E", "18.4 EB"},
    };
    struct hb_text text;
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_string_equal(hb_format_count(&text, rows[i].value), rows[i].count);
        assert_string_equal(hb_format_bytes(&text, rows[i].value), rows[i].bytes);
    }
}

static void test_times_and_endpoints(void **state)
{
    struct hb_text text;

    (void)state;
    assert_string_equal(hb_format_duration(&text, 0), "0s");
    assert_string_equal(hb_format_duration(&text, 59), "59s");
    assert_string_equal(hb_format_duration(&text, 725), "12m 5s");
    assert_string_equal(hb_format_duration(&text, 3600 * 3 + 720), "3h 12m");
    assert_string_equal(hb_format_duration(&text, 86400 * 400 + 3599), "400d 0h");
    assert_string_equal(hb_format_time(&text, 1790000000), "2026-09-21 14:13:20");
    assert_string_equal(hb_format_time(&text, UINT64_MAX / 2), "-");
    assert_string_equal(hb_format_endpoint(&text, "192.0.2.10", 80), "192.0.2.10:80");
    assert_string_equal(hb_format_endpoint(&text, "2001:db8::10", 443), "[2001:db8::10]:443");
    assert_string_equal(hb_format_percent(&text, 1, 3), "33.3 %");
    assert_string_equal(hb_format_percent(&text, 1, 0), "-");
}

/* A table of two columns with this name in its one row, on a screen of this width. */
static char *print_table(const char *name, unsigned width, bool colour)
{
    static const struct hb_column columns[] = {{"NAME", false, 6}, {"COUNT", true, 0}};
    struct hb_screen screen = {.colour = colour, .width = width};
    struct hb_table *table = hb_table_new(columns, 2);
    char *text;
    size_t size;

    screen.out = open_memstream(&text, &size);
    hb_table_add(table, HB_GREEN, "%s", name);
    hb_table_add(table, HB_PLAIN, "%d", 7);
    hb_table_finish(table, &screen);
    fclose(screen.out);
    return text;
}

static void test_tables_align_by_what_is_seen(void **state)
{
    static const struct {
        const char *name;
        unsigned width;
        bool colour;
        const char *text;
    } rows[] = {
        {"web1", 0, false, "NAME  COUNT\nweb1      7\n"},
        {"bücher", 0, false, "NAME    COUNT\nbücher      7\n"},
        {"名前", 0, false, "NAME  COUNT\n名前      7\n"}, /* two columns a character */
        {"e\xcc\x81te", 0, false,
         "NAME  COUNT\ne\xcc\x81te       7\n"}, /* a combining accent: none */
        {"a\033[31mb\tc", 0, false, "NAME       COUNT\na?[31mb?c      7\n"},
        {"bad\xff\xc3", 0, false, "NAME   COUNT\nbad??      7\n"},
        {"a-name-too-long", 15, false, "NAME      COUNT\na-name-…      7\n"},
        {"名前名前名前", 14, false, "NAME     COUNT\n名前名…      7\n"},
        {"a-name-too-long", 3, false, "NAME    COUNT\na-nam…      7\n"}, /* not below the least */
        {"web1", 80, true, "\033[1mNAME\033[0m  \033[1mCOUNT\033[0m\n\033[32mweb1\033[0m      7\n"},
    };
    size_t i;

    (void)state;
    for (i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        char *text = print_table(rows[i].name, rows[i].width, rows[i].colour);

        assert_string_equal(text, rows[i].text);
        free(text);
    }
}

/* Nothing of the last column is hidden: it goes on below. */
static void test_last_column_folds(void **state)
{
    static const struct hb_column columns[] = {{"N", true, 0}, {"WHAT", false, 5 | HB_FOLD}};
    static const struct {
        const char *what;
        unsigned width;
        const char *text;
    } rows[] = {
        {"one two three", 0, "N  WHAT\n7  one two three\n8  x\n"},
        {"one two three", 16, "N  WHAT\n7  one two three\n8  x\n"},
        {"one two three", 15, "N  WHAT\n7  one two\n   three\n8  x\n"},
        {"one two three", 4, "N  WHAT\n7  one\n   two\n   three\n8  x\n"},
        {"one-two-three", 8, "N  WHAT\n7  one-t\n   wo-th\n   ree\n8  x\n"},
        {"名前名前", 8, "N  WHAT\n7  名前\n   名前\n8  x\n"},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        struct hb_screen screen = {.width = rows[i].width};
        struct hb_table *table = hb_table_new(columns, 2);
        char *text;
        size_t size;

        screen.out = open_memstream(&text, &size);
        hb_table_add(table, HB_PLAIN, "7");
        hb_table_add(table, HB_PLAIN, "%s", rows[i].what);
        hb_table_add(table, HB_PLAIN, "8");
        hb_table_add(table, HB_PLAIN, "x");
        hb_table_finish(table, &screen);
        fclose(screen.out);
        assert_string_equal(text, rows[i].text);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_counts),
        cmocka_unit_test(test_times_and_endpoints),
        cmocka_unit_test(test_tables_align_by_what_is_seen),
        cmocka_unit_test(test_last_column_folds),
    };

    setenv("TZ", "UTC", 1);
    if (!setlocale(LC_CTYPE, "C.UTF-8"))
        return 77; /* no UTF-8 locale on this machine */
    return cmocka_run_group_tests(tests, NULL, NULL);
}
