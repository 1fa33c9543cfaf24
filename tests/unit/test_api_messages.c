/* SPDX-License-Identifier: BSD-3-Clause */
/* What is a message and what is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "api_messages.h"

static char problem[HB_TEXT_SIZE];

static struct hb_hello make_hello(void)
{
    struct hb_hello hello = {.name = "test"};

    hb_message_begin(&hello.header, HB_MSG_HELLO, sizeof(hello), 7);
    return hello;
}

static void a_hello_is_taken_once(void **state)
{
    struct hb_hello hello = make_hello();

    (void)state;
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), 0);
    assert_int_equal(hb_message_check(&hello, sizeof(hello), true, problem), -EPROTO);
}

static void requests_come_after_the_hello(void **state)
{
    struct hb_publish publish = {0};
    struct hb_lookup lookup = {0};

    (void)state;
    hb_message_begin(&publish.header, HB_MSG_PUBLISH, sizeof(publish), 1);
    hb_message_begin(&lookup.header, HB_MSG_LOOKUP, sizeof(lookup), 0xffffffff);
    assert_int_equal(hb_message_check(&publish, sizeof(publish), true, problem), 0);
    assert_int_equal(hb_message_check(&lookup, sizeof(lookup), true, problem), 0);
    assert_int_equal(hb_message_check(&publish, sizeof(publish), false, problem), -EPROTO);
    assert_non_null(strstr(problem, "PUBLISH before HELLO"));
}

static void another_version_is_told_both(void **state)
{
    struct hb_hello hello = make_hello();

    (void)state;
    hello.header.version = 65535;
    hello.header.length = 9; /* another version may have other lengths */
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EPROTONOSUPPORT);
    assert_non_null(strstr(problem, "version 65535"));
    assert_non_null(strstr(problem, "version 3;"));
}

static void wrong_lengths_are_refused(void **state)
{
    struct hb_hello hello = make_hello();

    (void)state;
    for (size_t size = 0; size < sizeof(hello); size++)
        assert_int_not_equal(hb_message_check(&hello, size, false, problem), 0);
    hello.header.length++;
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EMSGSIZE);
    hello.header.length = 0;
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EMSGSIZE);
    hello.header.length = UINT32_MAX;
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EMSGSIZE);
}

static void wrong_magic_and_types_are_refused(void **state)
{
    static const uint16_t types[] = {0,
                                     HB_MSG_REFUSED,
                                     HB_MSG_HELLO_REPLY,
                                     HB_MSG_PUBLISH_REPLY,
                                     HB_MSG_LOOKUP_REPLY,
                                     HB_MSG_SETTLE_REPLY,
                                     12,
                                     65535};
    struct hb_hello hello = make_hello();

    (void)state;
    for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
        hello.header.type = types[i];
        assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EBADMSG);
    }
    hello = make_hello();
    hello.header.magic ^= 1;
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EBADMSG);
}

static void names_that_would_harm_the_log_are_refused(void **state)
{
    struct hb_hello hello = make_hello();

    (void)state;
    memset(hello.name, 'x', sizeof(hello.name));
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EBADMSG);
    hello = make_hello();
    hello.name[1] = '\n';
    assert_int_equal(hb_message_check(&hello, sizeof(hello), false, problem), -EBADMSG);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_hello_is_taken_once),
        cmocka_unit_test(requests_come_after_the_hello),
        cmocka_unit_test(another_version_is_told_both),
        cmocka_unit_test(wrong_lengths_are_refused),
        cmocka_unit_test(wrong_magic_and_types_are_refused),
        cmocka_unit_test(names_that_would_harm_the_log_are_refused),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
