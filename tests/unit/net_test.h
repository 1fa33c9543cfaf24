/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * net_test.h: short forms for the tests of next hops and health checks.
 */
#ifndef HB_TESTS_NET_TEST_H
#define HB_TESTS_NET_TEST_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <arpa/inet.h>
#include <cmocka.h>

#include "address.h"

/* An address from its text; the family is told by a colon. */
static inline struct hb_address address_of(const char *text)
{
    struct hb_address address = {.family = strchr(text, ':') ? HB_FAMILY_IPV6 : HB_FAMILY_IPV4};
    int family = address.family == HB_FAMILY_IPV6 ? AF_INET6 : AF_INET;

    assert_int_equal(inet_pton(family, text, address.bytes), 1);
    return address;
}

/* The n-th address of 10.0.0.0/8. */
static inline struct hb_address address_no(uint32_t n)
{
    return (struct hb_address){
        .family = HB_FAMILY_IPV4,
        .bytes = {10, (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n},
    };
}

static inline void assert_address_equal(struct hb_address address, const char *text)
{
    struct hb_address expected = address_of(text);

    assert_memory_equal(&address, &expected, sizeof(expected));
}

#endif
