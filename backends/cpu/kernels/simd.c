// SPDX-License-Identifier: Apache-2.0
// Element-wise functions and reductions of floats. Compiled once for each ISA level; INF_SIMD_TABLE
// is the name of the table that it defines.
#include "backends/cpu/kernels/simd.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

#include "backends/cpu/kernels/exponential.h"
#include "backends/cpu/kernels/reduce.h"

// sum_rows() sums SUM_CHANNELS channels at the same time, and starts a new partial sum after
// SUM_ROWS rows.
#define SUM_CHANNELS 64
#define SUM_ROWS     128

// NaN stays NaN, because both comparisons are false for NaN.
static inline float clamp_one(float x, float min, float max)
{
    x = x < min ? min : x;
    return x > max ? max : x;
}

static inline float sub_one(float a, float b)
{
    return a - b;
}

static inline float mul_one(float a, float b)
{
    return a * b;
}

static inline float div_one(float a, float b)
{
    return a / b;
}

static inline float squared_difference_one(float a, float b)
{
    return (a - b) * (a - b);
}

#define BINARY(op)                                                                                 \
    static void op##_both(size_t count, const float *a, const float *b, float *y, float min,       \
                          float max)                                                               \
    {                                                                                              \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = clamp_one(op##_one(a[i], b[i]), min, max);                                      \
    }                                                                                              \
    static void op##_a_scalar(size_t count, const float *a, const float *b, float *y, float min,   \
                              float max)                                                           \
    {                                                                                              \
        const float first = *a;                                                                    \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = clamp_one(op##_one(first, b[i]), min, max);                                     \
    }                                                                                              \
    static void op##_b_scalar(size_t count, const float *a, const float *b, float *y, float min,   \
                              float max)                                                           \
    {                                                                                              \
        const float first = *b;                                                                    \
        for (size_t i = 0; i < count; i++)                                                         \
            y[i] = clamp_one(op##_one(a[i], first), min, max);                                     \
    }

// The common exponents 2 and 3 are computed as products, which the compiler vectorises.
static void pow_b_scalar(size_t count, const float *a, const float *b, float *y, float min,
                         float max)
{
    const float power = *b;
    if (power == 2.0f || power == 3.0f)
        for (size_t i = 0; i < count; i++)
            y[i] = clamp_one(a[i] * a[i] * (power == 3.0f ? a[i] : 1.0f), min, max);
    else
        for (size_t i = 0; i < count; i++)
            y[i] = clamp_one(powf(a[i], power), min, max);
}

static void pow_a_scalar(size_t count, const float *a, const float *b, float *y, float min,
                         float max)
{
    const float base = *a;
    for (size_t i = 0; i < count; i++)
        y[i] = clamp_one(powf(base, b[i]), min, max);
}

static void pow_both(size_t count, const float *a, const float *b, float *y, float min, float max)
{
    for (size_t i = 0; i < count; i++)
        y[i] = clamp_one(powf(a[i], b[i]), min, max);
}

BINARY(add)
BINARY(sub)
BINARY(mul)
BINARY(div)
BINARY(min)
BINARY(max)
BINARY(squared_difference)

static void clamp_all(size_t count, const float *x, float *y, float min, float max)
{
    for (size_t i = 0; i < count; i++)
        y[i] = clamp_one(x[i], min, max);
}

// Uses tanh(|x|) = (e^v - 1) / (e^v + 1) for v = 2|x|. For small x, n = 0, so that e^v - 1 is
// computed without subtracting nearly equal numbers and keeps its precision.
static inline float tanh_one(float x)
{
    const float limit = 20.0f; // limit of v = 2|x|, because tanh(10) is 1 in f32
    float v = 2.0f * fabsf(x);
    v = v > limit ? limit : v;
    struct exponential e = exponential_one(v);
    float less_one = e.power * e.rest + (e.power - 1.0f);
    return copysignf(less_one / (less_one + 2.0f), x);
}

static void tanh_all(size_t count, const float *x, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = tanh_one(x[i]);
}

static void hard_swish_all(size_t count, const float *x, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = x[i] * (clamp_one(x[i] + 3.0f, 0.0f, 6.0f) * (1.0f / 6.0f));
}

// Computes the logarithm of x = 2^n m with m between sqrt(1/2) and sqrt(2), using log m = 2
// artanh(s) for s = (m - 1) / (m + 1).
static inline float log_one(float x)
{
    // Multiply by 2^23 so that a subnormal number becomes normal.
    float scaled = x < 1.17549435e-38f ? x * 8388608.0f : x;
    uint32_t bits = float_to_bits(scaled) - 0x3f3504f3u;
    int32_t exponent = (int32_t)bits >> 23;
    float m = bits_to_float((bits & 0x7fffffu) + 0x3f3504f3u);
    float n = (float)exponent - (x < 1.17549435e-38f ? 23.0f : 0.0f);
    float f = m - 1.0f;
    float s = f / (2.0f + f);
    float z = s * s;
    float tail = 2.0f / 9.0f;
    tail = tail * z + 2.0f / 7.0f;
    tail = tail * z + 2.0f / 5.0f;
    tail = tail * z + 2.0f / 3.0f;
    float half = 0.5f * f * f;
    float y = n * 0.693359375f + (f - (half - (s * (half + tail * z) - n * 2.12194440e-4f)));
    y = x == INFINITY ? x : y;
    y = x == 0.0f ? -INFINITY : y;
    return x < 0.0f ? NAN : x != x ? x : y;
}

// Returns log(1 - erf t) for t >= 0.9, by a fitted polynomial.
static inline float log_erfc_one(float t)
{
    float s = t * t;
    float r = -1.72853470e-5f * t + 3.83197126e-4f;
    float u = -3.88396438e-3f * t + 2.42546219e-2f;
    r = r * s + u;
    r = r * t - 1.06777877e-1f;
    r = r * t - 6.34846687e-1f;
    r = r * t - 1.28717512e-1f;
    return r * t - t;
}

static inline float erf_small_one(float x)
{
    float s = x * x;
    float r = -5.96761703e-4f;
    r = r * s + 4.99119423e-3f;
    r = r * s - 2.67681349e-2f;
    r = r * s + 1.12819925e-1f;
    r = r * s - 3.76125336e-1f;
    r = r * s + 1.28379166e-1f;
    return r * x + x;
}

static inline float erf_one(float x)
{
    float t = fabsf(x);
    float far = t > 4.0f ? 4.0f : t; // erf 4 is 1 in f32
    float large = copysignf(1.0f - exp_one(log_erfc_one(far)), x);
    return t > 0.927734375f ? large : erf_small_one(x);
}

static inline float rsqrt_one(float x)
{
    return 1.0f / sqrtf(x);
}

static inline float reciprocal_one(float x)
{
    return 1.0f / x;
}

static inline float sin_one(float x)
{
    return sinf(x);
}

static inline float cos_one(float x)
{
    return cosf(x);
}

INF_POWER_MAP(sigmoid)
INF_POWER_MAP(silu)
INF_POWER_MAP(gelu)
INF_POWER_MAP(gelu_tanh)
INF_MAP(exp)
INF_MAP(log)
INF_MAP(erf)
INF_MAP(rsqrt)
INF_MAP(reciprocal)
INF_MAP(sin)
INF_MAP(cos)

static void dots_all(size_t depth, const float *a, size_t columns, const float *b, float *y)
{
    for (size_t c = 0; c < columns; c++)
        y[c] = dot_one(depth, a, b + c * depth);
}

// Adds the sums of a block to *sum. *lost is the rounding error of earlier additions (Kahan
// summation).
static void sum_block(size_t count, const float *x, size_t rows, size_t stride, float *sum,
                      float *lost)
{
    float part[SUM_CHANNELS];
    for (size_t i = 0; i < count; i++)
        part[i] = 0.0f;
    for (size_t row = 0; row < rows; row++) {
        for (size_t i = 0; i < count; i++)
            part[i] += x[row * stride + i];
    }
    for (size_t i = 0; i < count; i++) {
        float add = part[i] - lost[i];
        float next = sum[i] + add;
        lost[i] = (next - sum[i]) - add;
        sum[i] = next;
    }
}

static void sum_rows(size_t count, const float *x, size_t rows, size_t stride, float divisor,
                     float *y)
{
    for (size_t first = 0; first < count; first += SUM_CHANNELS) {
        size_t width = count - first < SUM_CHANNELS ? count - first : SUM_CHANNELS;
        float sum[SUM_CHANNELS] = {0};
        float lost[SUM_CHANNELS] = {0};
        for (size_t row = 0; row < rows; row += SUM_ROWS) {
            size_t some = rows - row < SUM_ROWS ? rows - row : SUM_ROWS;
            const float *from = x + row * stride + first;
            // Pass a constant count, so that the compiler keeps the sums in registers.
            if (width == SUM_CHANNELS)
                sum_block(SUM_CHANNELS, from, some, stride, sum, lost);
            else
                sum_block(width, from, some, stride, sum, lost);
        }
        for (size_t i = 0; i < width; i++)
            y[first + i] = sum[i] / divisor;
    }
}

static void mix_all(size_t count, const float *a, const float *b, float weight, float *y)
{
    for (size_t i = 0; i < count; i++)
        y[i] = a[i] + (b[i] - a[i]) * weight;
}

#define FORMS(op)                                                                                  \
    {                                                                                              \
        op##_both, op##_a_scalar, op##_b_scalar                                                    \
    }

const struct inf_simd INF_SIMD_TABLE = {
    .binary =
        {
            [INF_SIMD_ADD] = FORMS(add),
            [INF_SIMD_SUB] = FORMS(sub),
            [INF_SIMD_MUL] = FORMS(mul),
            [INF_SIMD_DIV] = FORMS(div),
            [INF_SIMD_MIN] = FORMS(min),
            [INF_SIMD_MAX] = FORMS(max),
            [INF_SIMD_SQUARED_DIFFERENCE] = FORMS(squared_difference),
            [INF_SIMD_POW] = FORMS(pow),
        },
    .clamp = clamp_all,
    .tanh = tanh_all,
    .sigmoid = sigmoid_all,
    .hard_swish = hard_swish_all,
    .exp = exp_all,
    .log = log_all,
    .erf = erf_all,
    .silu = silu_all,
    .gelu = gelu_all,
    .gelu_tanh = gelu_tanh_all,
    .powers = powers_all,
    .rsqrt = rsqrt_all,
    .reciprocal = reciprocal_all,
    .sin = sin_all,
    .cos = cos_all,
    .mix = mix_all,
    .sum = sum_all,
    .max = max_of,
    .min = min_of,
    .dots = dots_all,
    .sum_rows = sum_rows,
};
