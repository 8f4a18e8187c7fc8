// SPDX-License-Identifier: Apache-2.0
// Reductions of arrays of floats: sums, extremes, dot products, and the exponentials of a softmax
// with their sum. They are plain C that the compiler vectorises. The maximum and the exponentials
// are also written with vectors for AVX-512, because there the compiler keeps their partial results
// in memory.
#ifndef INF_BACKENDS_CPU_KERNELS_REDUCE_H
#define INF_BACKENDS_CPU_KERNELS_REDUCE_H

#include <stddef.h>

#include "backends/cpu/kernels/exponential.h"
#include "backends/cpu/kernels/vec.h"

// The elements of a block are added to LANES separate sums, which the compiler keeps in vectors.
// The sums are added to a double before they become so large that they lose precision.
#define LANES     16
#define SUM_BLOCK 1024

static inline float add_one(float a, float b)
{
    return a + b;
}

static inline float min_one(float a, float b)
{
    float y = a < b ? a : b; // b if either is NaN
    return a != a ? a : y;
}

static inline float max_one(float a, float b)
{
    float y = a > b ? a : b;
    return a != a ? a : y;
}

static float sum_all(size_t count, const float *x)
{
    double total = 0;
    while (count >= LANES) {
        size_t some = count < SUM_BLOCK ? count - count % LANES : SUM_BLOCK;
        float part[LANES] = {0};
        for (size_t i = 0; i < some; i += LANES) {
            for (size_t lane = 0; lane < LANES; lane++)
                part[lane] += x[i + lane];
        }
        for (size_t lane = 0; lane < LANES; lane++)
            total += (double)part[lane];
        x += some;
        count -= some;
    }
    for (size_t i = 0; i < count; i++)
        total += (double)x[i];
    return (float)total;
}

// Combines the lanes of part[]: the upper half with the lower half, and so on.
#define JOIN_HALF(op, width)                                                                       \
    for (size_t lane = 0; lane < (width); lane++)                                                  \
        part[lane] = op(part[lane], part[lane + (width)]);
#define JOIN_LANES(op)                                                                             \
    JOIN_HALF(op, 8)                                                                               \
    JOIN_HALF(op, 4)                                                                               \
    JOIN_HALF(op, 2)                                                                               \
    JOIN_HALF(op, 1)

#define EXTREME(op)                                                                                \
    static float op##_of(size_t count, const float *x)                                             \
    {                                                                                              \
        float part[2 * LANES];                                                                     \
        for (size_t lane = 0; lane < 2 * LANES; lane++)                                            \
            part[lane] = x[0];                                                                     \
        size_t whole = count - count % (2 * LANES);                                                \
        for (size_t i = 0; i < whole; i += 2 * LANES) {                                            \
            for (size_t lane = 0; lane < 2 * LANES; lane++)                                        \
                part[lane] = op##_one(part[lane], x[i + lane]);                                    \
        }                                                                                          \
        for (size_t i = whole; i < count; i++)                                                     \
            part[i - whole] = op##_one(part[i - whole], x[i]);                                     \
        JOIN_HALF(op##_one, LANES)                                                                 \
        JOIN_LANES(op##_one)                                                                       \
        return part[0];                                                                            \
    }

EXTREME(min)

// The exponential of an operand below this is 0 in a softmax.
#define POWER_LOW -87.0f

#ifdef INF_VEC_SCALE

static float max_of(size_t count, const float *x)
{
    inf_vec first = vec_all(x[0]);
    inf_vec second = first;
    inf_vec_flags nan = vec_flag_nan(0, first);
    size_t i = 0;
    for (; i + 2 * INF_VEC_WIDTH <= count; i += 2 * INF_VEC_WIDTH) {
        inf_vec a = vec_load(x + i);
        inf_vec b = vec_load(x + i + INF_VEC_WIDTH);
        nan = vec_flag_nan(vec_flag_nan(nan, a), b);
        first = vec_max(a, first);
        second = vec_max(b, second);
    }
    for (; i < count; i += INF_VEC_WIDTH) {
        size_t some = count - i < INF_VEC_WIDTH ? count - i : INF_VEC_WIDTH;
        inf_vec a = vec_load_some_or(x + i, some, first);
        nan = vec_flag_nan(nan, a);
        first = vec_max(a, first);
    }
    return nan ? NAN : vec_max_lane(vec_max(first, second));
}

// Returns e^v. Each lane of v is at most 0, or NaN. The result is 0 where v is below POWER_LOW.
INF_VEC_INLINE inf_vec vec_power(inf_vec v)
{
    struct vec_factors e = vec_exponential(v);
    return vec_below(v, POWER_LOW, vec_all(0), vec_scale(e.part, e.n));
}

// Does the work of powers_all() for at most SUM_BLOCK elements.
static float powers_block(size_t count, const float *x, float less, float *y)
{
    inf_vec sum[2] = {vec_all(0), vec_all(0)};
    size_t i = 0;
    for (; i + 2 * INF_VEC_WIDTH <= count; i += 2 * INF_VEC_WIDTH) {
        INF_VEC_UNROLL
        for (size_t v = 0; v < 2; v++) {
            inf_vec power = vec_power(vec_load(x + i + v * INF_VEC_WIDTH) - vec_all(less));
            vec_store(y + i + v * INF_VEC_WIDTH, power);
            sum[v] += power;
        }
    }
    for (; i < count; i += INF_VEC_WIDTH) {
        size_t some = count - i < INF_VEC_WIDTH ? count - i : INF_VEC_WIDTH;
        inf_vec power =
            vec_power(vec_load_some_or(x + i, some, vec_all(-INFINITY)) - vec_all(less));
        vec_store_some(y + i, power, some);
        sum[0] += power;
    }
    return vec_sum_lanes(sum[0] + sum[1]);
}

static float powers_all(size_t count, const float *x, float less, float *y)
{
    double total = 0;
    for (size_t i = 0; i < count; i += SUM_BLOCK) {
        size_t some = count - i < SUM_BLOCK ? count - i : SUM_BLOCK;
        total += (double)powers_block(some, x + i, less, y + i);
    }
    return (float)total;
}

#else

EXTREME(max)

// Returns e^v. v is at most 0, or NaN. The result is 0 if v is below POWER_LOW.
static inline float power_one(float v)
{
    struct exponential e = exponential_one(v < POWER_LOW ? POWER_LOW : v);
    return v < POWER_LOW ? 0.0f : e.power + e.power * e.rest;
}

static float powers_all(size_t count, const float *x, float less, float *y)
{
    double total = 0;
    while (count >= LANES) {
        size_t some = count < SUM_BLOCK ? count - count % LANES : SUM_BLOCK;
        float part[LANES] = {0};
        for (size_t i = 0; i < some; i += LANES) {
            for (size_t lane = 0; lane < LANES; lane++) {
                float power = power_one(x[i + lane] - less);
                y[i + lane] = power;
                part[lane] += power;
            }
        }
        JOIN_LANES(add_one)
        total += (double)part[0];
        x += some;
        y += some;
        count -= some;
    }
    float last[LANES];
    for (size_t i = 0; i < LANES; i++)
        last[i] = i < count ? x[i] - less : -INFINITY;
    for (size_t i = 0; i < LANES; i++)
        last[i] = power_one(last[i]);
    for (size_t i = 0; i < count; i++) {
        y[i] = last[i];
        total += (double)last[i];
    }
    return (float)total;
}

#endif

static inline float dot_one(size_t depth, const float *a, const float *b)
{
    float part[LANES] = {0};
    size_t whole = depth - depth % LANES;
    for (size_t k = 0; k < whole; k += LANES) {
        for (size_t lane = 0; lane < LANES; lane++)
            part[lane] += a[k + lane] * b[k + lane];
    }
    JOIN_LANES(add_one)
    float sum = part[0];
    for (size_t k = whole; k < depth; k++)
        sum += a[k] * b[k];
    return sum;
}

#endif
