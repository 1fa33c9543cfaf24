/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * eight.h: numbers of 32 bits, one for each of eight packets, worked on at once.
 *
 * GCC's vector extensions, which clang has too. For code that is compiled for AVX2, where a vector
 * of 32 bytes is one register.
 *
 * Eight packets are loaded as two fours, one in each half of a vector, because AVX2 moves nothing
 * between halves cheaply. Word w of packet p is rows.of[p % 4][w + p / 4 * 4] before
 * hb_eight_turn, and columns.of[w][p] after it; turned again it is as before.
 */
#ifndef HB_DATAPLANE_EIGHT_H
#define HB_DATAPLANE_EIGHT_H

#include <stdint.h>
#include <string.h>

#include <immintrin.h>

typedef uint32_t hb_eight __attribute__((vector_size(32)));
typedef int32_t hb_eight_signed __attribute__((vector_size(32)));
typedef uint64_t hb_eight_halves __attribute__((vector_size(32))); /* as four of 64 bits */
typedef uint32_t hb_four __attribute__((vector_size(16)));
typedef uint8_t hb_eight_bytes __attribute__((vector_size(32)));

/* Four words of each of eight packets. */
struct hb_eight_square {
    hb_eight of[4];
};

static inline hb_eight hb_eight_all(uint32_t number)
{
    return (hb_eight){number, number, number, number, number, number, number, number};
}

/* A constant, eight times, in memory: the compiler would make each one anew by three instructions
 * wherever it is needed, and does not look into a variable that is marked as used. */
#define HB_EIGHT(number) HB_EIGHT_ROW(number, number, number, number)
/* Four constants, the same for each half. */
#define HB_EIGHT_ROW(a, b, c, d)                                                                   \
    __extension__({                                                                                \
        static __attribute__((used)) hb_eight kept_ = {(a), (b), (c), (d), (a), (b), (c), (d)};    \
        kept_;                                                                                     \
    })

/* 16 bytes from each of two places. */
static inline hb_eight hb_eight_load(const void *low, const void *high)
{
    return (hb_eight)_mm256_inserti128_si256(
        _mm256_castsi128_si256(_mm_loadu_si128((const __m128i_u *)low)),
        _mm_loadu_si128((const __m128i_u *)high), 1);
}

static inline void hb_eight_store(void *low, void *high, hb_eight eight)
{
    _mm_storeu_si128((__m128i_u *)low, _mm256_castsi256_si128((__m256i)eight));
    _mm_storeu_si128((__m128i_u *)high, _mm256_extracti128_si256((__m256i)eight, 1));
}

/* The first (second) pair of words of a and b in turns, in each half. */
#define HB_EIGHT_FIRST(a, b)  __builtin_shufflevector(a, b, 0, 8, 1, 9, 4, 12, 5, 13)
#define HB_EIGHT_SECOND(a, b) __builtin_shufflevector(a, b, 2, 10, 3, 11, 6, 14, 7, 15)
/* The same with pairs for words. */
#define HB_EIGHT_PAIRS_FIRST(a, b)  __builtin_shufflevector(a, b, 0, 1, 8, 9, 4, 5, 12, 13)
#define HB_EIGHT_PAIRS_SECOND(a, b) __builtin_shufflevector(a, b, 2, 3, 10, 11, 6, 7, 14, 15)

/* Rows to columns, or back. */
static inline struct hb_eight_square hb_eight_turn(struct hb_eight_square in)
{
    hb_eight a = HB_EIGHT_FIRST(in.of[0], in.of[1]), b = HB_EIGHT_FIRST(in.of[2], in.of[3]);
    hb_eight c = HB_EIGHT_SECOND(in.of[0], in.of[1]), d = HB_EIGHT_SECOND(in.of[2], in.of[3]);

    return (struct hb_eight_square){{HB_EIGHT_PAIRS_FIRST(a, b), HB_EIGHT_PAIRS_SECOND(a, b),
                                     HB_EIGHT_PAIRS_FIRST(c, d), HB_EIGHT_PAIRS_SECOND(c, d)}};
}

/* All bits of a number set where the comparison holds. Signed: numbers below 2^31 only. */
static inline hb_eight hb_eight_equal(hb_eight a, hb_eight b)
{
    return (hb_eight)(a == b);
}

static inline hb_eight hb_eight_greater(hb_eight a, hb_eight b)
{
    return (hb_eight)((hb_eight_signed)a > (hb_eight_signed)b);
}

/* Takes a where the mask's bits are set, else b. */
static inline hb_eight hb_eight_choose(hb_eight mask, hb_eight a, hb_eight b)
{
    return (mask & a) | (~mask & b);
}

/* The bytes of each half of a number in the other order. */
static inline hb_eight hb_eight_swap(hb_eight number)
{
    const hb_eight order = HB_EIGHT_ROW(0x02030001, 0x06070405, 0x0a0b0809, 0x0e0f0c0d);

    return (hb_eight)_mm256_shuffle_epi8((__m256i)number, (__m256i)order);
}

/* A bit for each packet whose mask is set. */
static inline uint32_t hb_eight_bits(hb_eight mask)
{
    return (uint32_t)_mm256_movemask_ps((__m256)mask);
}

#endif
