// SPDX-License-Identifier: Apache-2.0
// The exponential function of a float, in plain C that the compiler vectorises, and functions made
// of it: sigmoid, silu, gelu and its approximation by tanh.
#ifndef INF_BACKENDS_CPU_KERNELS_EXPONENTIAL_H
#define INF_BACKENDS_CPU_KERNELS_EXPONENTIAL_H

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels/vec.h"

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

// --- functions of e^v for v <= 0 ---
//
// The exponents of these functions are never positive, for example -|x|, so no power overflows.
// For instruction sets with INF_VEC_SCALE (vec.h) the functions are written with vectors, because
// the compiler does not generate the instruction that multiplies by a power of 2, and does not
// replace a division by a reciprocal.

// Coefficients of a polynomial in t, that of the highest power first. The polynomial approximates
// log(2 Phi(-t)) / t, where Phi is the distribution function of the normal distribution. It was
// fitted for t between 0 and 14.5, so that the error of gelu is within the limit in simd.h. For
// larger t the polynomial falls steeply, so that Phi(-t) becomes 0, and gelu is 0 or x. If |x| is
// above GELU_FAR, t is GELU_FAR.
#define GELU_FAR   16.0f
#define GELU_TERMS 10
static const float gelu_terms[GELU_TERMS] = {-9.971294012700582e-09f, 3.367730414538528e-07f,
                                             -4.803839146916289e-06f, 3.648809070000425e-05f,
                                             -0.0001360641181236133f, -0.00012243739911355078f,
                                             0.004968856927007437f,   -0.036456335335969925f,
                                             -0.3182719349861145f,    -0.7978886365890503f};

// INF_MAP(function) defines FUNCTION_all(), which applies FUNCTION_one() to an array.
// INF_POWER_MAP(function) does this for sigmoid, silu, gelu and gelu_tanh; if INF_VEC_SCALE is
// defined, by vec_FUNCTION() in place of FUNCTION_one().
#define INF_MAP(function)                                                                          \
    static void function##_all(size_t count, const float *x, float *y)                             \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = function##_one(x[i]);                                                           \
    }

#ifdef INF_VEC_SCALE

#define LEAST_EXPONENT -150.0f // e^-150 times 100 is less than the smallest positive f32

// e^v = part * 2^n, for v that is at most 0. n is a whole number.
struct vec_factors {
    inf_vec part, n;
};

INF_VEC_INLINE struct vec_factors vec_exponential(inf_vec v)
{
    v = vec_max(vec_all(LEAST_EXPONENT), v);
    inf_vec n = vec_round(v * vec_all(1.44269504f));
    inf_vec r = vec_fma(n, vec_all(-0.693359375f), v);
    r = vec_fma(n, vec_all(2.12194440e-4f), r);
    inf_vec p = vec_fma(r, vec_all(1.0f / 5040.0f), vec_all(1.0f / 720.0f));
    p = vec_fma(p, r, vec_all(1.0f / 120.0f));
    p = vec_fma(p, r, vec_all(1.0f / 24.0f));
    p = vec_fma(p, r, vec_all(1.0f / 6.0f));
    p = vec_fma(p, r, vec_all(0.5f));
    p = vec_fma(p * r, r, r);
    return (struct vec_factors){p + vec_all(1), n};
}

INF_VEC_INLINE inf_vec vec_minus_magnitude(inf_vec x)
{
    return vec_below(x, 0, x, -x);
}

INF_VEC_INLINE inf_vec vec_sigmoid(inf_vec x)
{
    struct vec_factors e = vec_exponential(vec_minus_magnitude(x));
    inf_vec power = vec_scale(e.part, e.n);
    return vec_below(x, 0, power, vec_all(1)) * vec_near_reciprocal(vec_all(1) + power);
}

// Computes x / (1 + e^-x). For negative x, x is multiplied by `part` before the result is scaled,
// because e^x itself may be subnormal and have lost precision.
INF_VEC_INLINE inf_vec vec_silu(inf_vec x)
{
    struct vec_factors e = vec_exponential(vec_minus_magnitude(x));
    inf_vec below = vec_scale(x * e.part, e.n);
    below = vec_below(x, EXP_LOW, x * vec_all(0), below);
    return vec_below(x, 0, below, x) * vec_near_reciprocal(vec_all(1) + vec_scale(e.part, e.n));
}

INF_VEC_INLINE inf_vec vec_gelu_tanh(inf_vec x)
{
    inf_vec slope = vec_fma(vec_all(0.0713548163f) * x, x, vec_all(1.59576912f));
    return x * vec_sigmoid(x * slope);
}

// gelu(x) = x * Phi(x), where Phi(x) = 1 - Phi(-x).
INF_VEC_INLINE inf_vec vec_gelu(inf_vec x)
{
    inf_vec t = vec_min(vec_all(GELU_FAR), -vec_minus_magnitude(x));
    inf_vec terms = vec_all(gelu_terms[0]);
    INF_VEC_UNROLL
    for (size_t i = 1; i < GELU_TERMS; i++)
        terms = vec_fma(terms, t, vec_all(gelu_terms[i]));
    struct vec_factors e = vec_exponential(terms * t);
    inf_vec tail = vec_all(0.5f) * vec_scale(e.part, e.n); // Phi(-|x|)
    return x * vec_below(x, 0, tail, vec_all(1) - tail);
}

#define INF_POWER_MAP(function)                                                                    \
    static void function##_all(size_t count, const float *x, float *y)                             \
    {                                                                                              \
        size_t i = 0;                                                                              \
        for (; i + INF_VEC_WIDTH <= count; i += INF_VEC_WIDTH)                                     \
            vec_store(y + i, vec_##function(vec_load(x + i)));                                     \
        if (i < count)                                                                             \
            vec_store_some(y + i, vec_##function(vec_load_some(x + i, count - i)), count - i);     \
    }

#else

static inline float sigmoid_one(float x)
{
    float power = exp_one(-fabsf(x));
    return (x < 0.0f ? power : 1.0f) / (1.0f + power);
}

// Computes x / (1 + e^-x). For negative x, x is multiplied by the factors of e^x one after the
// other, because e^x itself may be subnormal and have lost precision.
static inline float silu_one(float x)
{
    struct factors e = factors_one(-fabsf(x));
    float power = e.part * e.first * e.second;
    float below = x < EXP_LOW ? x * 0.0f : x * e.part * e.first * e.second;
    return (x < 0.0f ? below : x) / (1.0f + power);
}

static inline float gelu_tanh_one(float x)
{
    return x * sigmoid_one(x * (1.59576912f + 0.0713548163f * x * x));
}

static inline float gelu_one(float x)
{
    float t = fabsf(x);
    t = t > GELU_FAR ? GELU_FAR : t;
    float terms = gelu_terms[0];
    for (size_t i = 1; i < GELU_TERMS; i++)
        terms = terms * t + gelu_terms[i];
    float tail = 0.5f * exp_one(terms * t); // Phi(-|x|)
    return x * (x < 0.0f ? tail : 1.0f - tail);
}

#define INF_POWER_MAP INF_MAP

#endif

#endif
