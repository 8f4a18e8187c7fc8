// SPDX-License-Identifier: Apache-2.0
// The sigmoid and two functions made of it. Use the exponent -|x|, which is never positive, so that
// nothing overflows. They are written with vectors if the processor can scale by powers of 2: the
// compiler uses neither those instructions nor reciprocals instead of divisions.
#ifndef INF_BACKENDS_CPU_KERNELS_SIGMOID_H
#define INF_BACKENDS_CPU_KERNELS_SIGMOID_H

#include <math.h>

#include "backends/cpu/kernels/exponential.h"
#include "backends/cpu/kernels/vec.h"

// INF_SIGMOID_MAP(function) defines FUNCTION_all(), which applies sigmoid, silu or gelu_tanh to an
// array.
#ifdef INF_VEC_SCALE

#define LEAST_EXPONENT -150.0f // e^-150 times 100 is less than the smallest positive f32

// e^v = part * 2^n for v at most 0.
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

// As silu_one(). x is multiplied by `part` first, because e^x may be subnormal.
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

#define INF_SIGMOID_MAP(function)                                                                  \
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

#define INF_SIGMOID_MAP(function)                                                                  \
    static void function##_all(size_t count, const float *x, float *y)                             \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = function##_one(x[i]);                                                           \
    }

#endif

#endif
