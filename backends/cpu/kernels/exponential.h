// SPDX-License-Identifier: Apache-2.0
// The exponential function of a float, in plain C that the compiler vectorises.
#ifndef INF_BACKENDS_CPU_KERNELS_EXPONENTIAL_H
#define INF_BACKENDS_CPU_KERNELS_EXPONENTIAL_H

#include <stdint.h>
#include <string.h>

static inline float bits_to_float(uint32_t bits)
{
    float number;
    memcpy(&number, &bits, sizeof(number));
    return number;
}

static inline uint32_t float_to_bits(float number)
{
    uint32_t bits;
    memcpy(&bits, &number, sizeof(bits));
    return bits;
}

#define EXP_MAGIC 12582912.0f // 1.5 * 2^23: adding it rounds to an integer

// v = n ln2 + r with |r| <= ln2 / 2. `shifted` is n + EXP_MAGIC, whose lowest bits are n. `rest` is
// e^r - 1, computed from the first seven terms of its series.
struct reduced {
    float shifted, rest;
};

static inline struct reduced reduce_one(float v)
{
    float shifted = v * 1.44269504f + EXP_MAGIC;
    float n = shifted - EXP_MAGIC;
    // Subtracts n * ln 2, split in two constants for precision.
    float r = v - n * 0.693359375f + n * 2.12194440e-4f;
    float p = 1.0f / 5040.0f;
    p = p * r + 1.0f / 720.0f;
    p = p * r + 1.0f / 120.0f;
    p = p * r + 1.0f / 24.0f;
    p = p * r + 1.0f / 6.0f;
    p = p * r + 0.5f;
    p = p * r * r + r;
    return (struct reduced){shifted, p};
}

// e^v = power * (1 + rest), for v between -87 and 87. Two numbers, so that e^v - 1 stays precise.
struct exponential {
    float power, rest;
};

static inline struct exponential exponential_one(float v)
{
    struct reduced e = reduce_one(v);
    return (struct exponential){bits_to_float((float_to_bits(e.shifted) << 23) + (127u << 23)),
                                e.rest};
}

// An exponential in three factors: e^x = part * first * second. `first` and `second` are powers of
// 2. There are two, because the exponent of a single power could be out of range.
struct factors {
    float part, first, second;
};

#define EXP_LOW  -110.0f // below this, even 100 * e^x is less than the smallest positive f32
#define EXP_HIGH 89.0f

static inline struct factors factors_one(float x)
{
    float v = x < EXP_LOW ? EXP_LOW : x;
    struct reduced e = reduce_one(v > EXP_HIGH ? EXP_HIGH : v);
    int32_t whole = (int32_t)float_to_bits(e.shifted) - (int32_t)float_to_bits(EXP_MAGIC);
    int32_t half = whole >> 1;
    return (struct factors){e.rest + 1.0f, bits_to_float((uint32_t)(half + 127) << 23),
                            bits_to_float((uint32_t)(whole - half + 127) << 23)};
}

static inline float exp_one(float x)
{
    struct factors e = factors_one(x);
    return e.part * e.first * e.second;
}

#endif
