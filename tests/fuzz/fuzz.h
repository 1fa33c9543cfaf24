/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * fuzz.h: damage to valid input, the same on every machine and run: a failure can be repeated by
 * its round.
 *
 * HB_FUZZ_ROUNDS in the environment sets how many rounds a fuzz test runs, HB_FUZZ_SEED where they
 * start.
 *
 * With HB_LIBFUZZER a file is a target of libFuzzer instead, which looks for input that reaches new
 * code: scripts/fuzz builds and runs them. It starts from seeds, sound input of every kind, which
 * the target writes itself (fuzz_seeds), so that they follow when its input changes its form.
 */
#ifndef HB_TESTS_FUZZ_H
#define HB_TESTS_FUZZ_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

/* libFuzzer's own; the second one is called once, before the first input. */
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerInitialize(int *argc, char ***argv);

/* An input that is read from its beginning; zeroes behind its end. */
struct script {
    const uint8_t *at;
    size_t left;
};

static inline uint8_t take8(struct script *script)
{
    if (script->left == 0)
        return 0;
    script->left--;
    return *script->at++;
}

static inline uint16_t take16(struct script *script)
{
    uint16_t high = take8(script);

    return (uint16_t)(high << 8 | take8(script));
}

static inline uint64_t fuzz_setting(const char *name, uint64_t otherwise)
{
    const char *text = getenv(name);

    return text != NULL ? strtoull(text, NULL, 10) : otherwise;
}

#ifdef HB_LIBFUZZER
/* Each target's own: gives its seeds to save_seed, one by one. */
void fuzz_seeds(void);

#define SEED_MAX 2048

struct seed {
    uint8_t bytes[SEED_MAX];
    size_t size;
};

static inline void put8(struct seed *seed, uint64_t value)
{
    if (seed->size < SEED_MAX)
        seed->bytes[seed->size++] = (uint8_t)value;
}

static inline void put16(struct seed *seed, uint64_t value)
{
    put8(seed, value >> 8);
    put8(seed, value);
}

static inline void put_bytes(struct seed *seed, const void *bytes, size_t size)
{
    for (size_t i = 0; i < size; i++)
        put8(seed, ((const uint8_t *)bytes)[i]);
}

/* A file of the folder HB_FUZZ_SEEDS. */
static inline void save_seed(const struct seed *seed)
{
    static unsigned number;
    char path[4096];
    FILE *file;

    snprintf(path, sizeof(path), "%s/seed-%04u", getenv("HB_FUZZ_SEEDS"), number++);
    file = fopen(path, "w");
    if (file == NULL || fwrite(seed->bytes, 1, seed->size, file) != seed->size ||
        fclose(file) != 0) {
        perror(path);
        exit(1);
    }
}

/* What LLVMFuzzerInitialize returns: 0 when the target is ready. With HB_FUZZ_SEEDS one that is
 * ready writes its seeds and ends. */
static inline int fuzz_begin(int status)
{
    if (status != 0 || getenv("HB_FUZZ_SEEDS") == NULL)
        return status;
    fuzz_seeds();
    exit(0);
}
#endif

/* SplitMix64 (G. Steele et al., "Fast splittable pseudorandom number generators", OOPSLA 2014). */
static inline uint64_t fuzz_random(uint64_t *state)
{
    uint64_t z = *state += 0x9e3779b97f4a7c15;

    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9;
    z = (z ^ (z >> 27)) * 0x94d049bb133111eb;
    return z ^ (z >> 31);
}

static inline uint64_t fuzz_below(uint64_t *state, uint64_t limit)
{
    return fuzz_random(state) % limit;
}

/* Values at which arithmetic tends to go wrong. */
static inline uint64_t fuzz_edge(uint64_t *state)
{
    static const uint64_t edges[] = {
        0,   1,          2,          7,          63,         64,
        255, 256,        65535,      65536,      0x7fffffff, 0x80000000,
        ~0u, 1ull << 32, 1ull << 63, UINT64_MAX, 192,        UINT64_MAX - 63};

    return edges[fuzz_below(state, sizeof(edges) / sizeof(edges[0]))];
}

/* Damages `size` bytes in place, one to four times: a bit, a byte, or an aligned word. */
static inline void fuzz_damage(uint64_t *state, uint8_t *bytes, uint64_t size)
{
    for (uint64_t n = 1 + fuzz_below(state, 4); n > 0 && size >= 8; n--) {
        uint64_t at = fuzz_below(state, size), value = fuzz_edge(state);
        unsigned width = 1u << fuzz_below(state, 4);

        switch (fuzz_below(state, 3)) {
        case 0:
            bytes[at] ^= (uint8_t)(1u << fuzz_below(state, 8));
            break;
        case 1:
            bytes[at] = (uint8_t)fuzz_random(state);
            break;
        default:
            at = fuzz_below(state, size / width) * width;
            for (unsigned i = 0; i < width; i++)
                bytes[at + i] = (uint8_t)(value >> (8 * i));
        }
    }
}

#endif
