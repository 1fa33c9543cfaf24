/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * primes.c: primes of 32 bits, by trial division.
 *
 * At most 6,542 odd divisors' worth of work would do with a list of primes; dividing by every
 * number of the form 6k +- 1 up to 65,535 costs about 22,000 divisions and needs no list. Used when
 * a configuration is read and a table is built, never more often.
 */
#include "hashing/table_builder.h"

bool hb_is_prime(uint32_t n)
{
    if (n < 4)
        return n >= 2;
    if (n % 2 == 0 || n % 3 == 0)
        return false;
    for (uint32_t divisor = 5; (uint64_t)divisor * divisor <= n; divisor += 6) {
        if (n % divisor == 0 || n % (divisor + 2) == 0)
            return false;
    }
    return true;
}

uint32_t hb_prime_below(uint32_t n)
{
    while (n >= 2 && !hb_is_prime(n))
        n--;
    return n >= 2 ? n : 0;
}

uint32_t hb_prime_above(uint32_t n)
{
    for (uint64_t candidate = n; candidate <= UINT32_MAX; candidate++) {
        if (hb_is_prime((uint32_t)candidate))
            return (uint32_t)candidate;
    }
    return 0;
}
