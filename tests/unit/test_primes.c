/* SPDX-License-Identifier: BSD-3-Clause */
/* Primes against a sieve, and at both ends of 32 bits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <string.h>

#include <cmocka.h>

#include "hashing/table_builder.h"

#define SIEVE 100000

static void test_against_a_sieve(void **state)
{
    static bool composite[SIEVE];
    uint32_t below = 0;

    (void)state;
    for (uint32_t n = 2; n < SIEVE; n++) {
        for (uint32_t multiple = 2 * n; multiple < SIEVE; multiple += n)
            composite[multiple] = true;
    }
    for (uint32_t n = 0; n < SIEVE; n++) {
        bool prime = n >= 2 && !composite[n];

        below = prime ? n : below;
        assert_int_equal(hb_is_prime(n), prime);
        assert_int_equal(hb_prime_below(n), below);
        if (prime)
            assert_int_equal(hb_prime_above(n), n);
    }
}

static void test_neighbours(void **state)
{
    static const struct {
        uint32_t n, below, above;
    } rows[] = {
        {0, 0, 2},
        {1, 0, 2},
        {2, 2, 2},
        {4, 3, 5},
        {100, 97, 101},
        {256, 251, 257},
        {65536, 65521, 65537},
        {65537, 65537, 65537},
        {65538, 65537, 65539},
        {655373, 655373, 655373},
        {5000011, 5000011, 5000011},
        {2147483647, 2147483647, 2147483647},
        {2147483648, 2147483647, 2147483659},
        {4294967291, 4294967291, 4294967291},
        {4294967292, 4294967291, 0},
        {4294967295, 4294967291, 0},
    };

    (void)state;
    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
        assert_int_equal(hb_prime_below(rows[i].n), rows[i].below);
        assert_int_equal(hb_prime_above(rows[i].n), rows[i].above);
    }
}

/* Products of two primes near the root of 2^32, where a divisor's square could wrap. */
static void test_large_composites(void **state)
{
    (void)state;
    assert_false(hb_is_prime(65521u * 65521u));
    assert_false(hb_is_prime(65521u * 65519u));
    assert_false(hb_is_prime(4294967295u));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_against_a_sieve),
        cmocka_unit_test(test_neighbours),
        cmocka_unit_test(test_large_composites),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
