// SPDX-License-Identifier: Apache-2.0
// Element-wise operators on bytes. Compiled once for each ISA level; INF_Q8_ELTWISE is the name of
// the table that it defines. The loops are plain C that the compiler vectorises. The compiler may
// not contract a product and a sum to one fma instruction. So each product and sum is rounded, and
// all levels compute identical results.
#include <math.h>

#include "backends/cpu/kernels/q8.h"

static inline uint8_t requantize_value(float value, float low, float high, int32_t zero)
{
    value = value > low ? value : low;
    value = value < high ? value : high;
    return (uint8_t)((int32_t)nearbyintf(value) + zero);
}

static void quantize_all(size_t count, const float *x, const struct inf_q8_scaling *y_is,
                         uint8_t *y)
{
    const struct inf_q8_scaling scaling = *y_is;
    // The byte that a NaN is converted to: that of the number 0, clamped to the bounds.
    const uint8_t nothing =
        (uint8_t)(scaling.low > (float)-scaling.zero ? (int32_t)scaling.low + scaling.zero : 0);
    for (size_t i = 0; i < count; i++) {
        uint8_t value =
            requantize_value(x[i] / scaling.scale, scaling.low, scaling.high, scaling.zero);
        y[i] = x[i] / scaling.scale == x[i] / scaling.scale ? value : nothing;
    }
}

static void dequantize_all(size_t count, const uint8_t *x, const struct inf_q8_scaling *x_is,
                           float *y)
{
    const struct inf_q8_scaling scaling = *x_is;
    for (size_t i = 0; i < count; i++)
        y[i] = (float)((int32_t)(x[i] ^ scaling.flip) - scaling.zero) * scaling.scale;
}

static void quantize_wide(size_t count, const float *x, const struct inf_q8_scaling *y_is,
                          int16_t *y)
{
    const struct inf_q8_scaling scaling = *y_is;
    for (size_t i = 0; i < count; i++) {
        float quotient = x[i] / scaling.scale;
        float value = quotient > scaling.low ? quotient : scaling.low;
        value = value < scaling.high ? value : scaling.high;
        // NaN becomes 0.
        y[i] = (int16_t)(quotient == quotient ? (int32_t)nearbyintf(value) + scaling.zero : 0);
    }
}

static void dequantize_wide(size_t count, const int16_t *x, const struct inf_q8_scaling *x_is,
                            float *y)
{
    const struct inf_q8_scaling scaling = *x_is;
    for (size_t i = 0; i < count; i++)
        y[i] = (float)((int32_t)x[i] - scaling.zero) * scaling.scale;
}

#define BINARY(name, OP)                                                                           \
    static void name(size_t count, const uint8_t *a, const uint8_t *b,                             \
                     const struct inf_q8_scaling *scalings, uint8_t *y)                            \
    {                                                                                              \
        const struct inf_q8_scaling of_a = scalings[0];                                            \
        const struct inf_q8_scaling of_b = scalings[1];                                            \
        const struct inf_q8_scaling of_y = scalings[2];                                            \
        for (size_t i = 0; i < count; i++) {                                                       \
            float from_a = (float)((int32_t)(a[i] ^ of_a.flip) - of_a.zero) * of_a.scale;          \
            float from_b = (float)((int32_t)(b[i] ^ of_b.flip) - of_b.zero) * of_b.scale;          \
            y[i] =                                                                                 \
                requantize_value((from_a OP from_b) / of_y.scale, of_y.low, of_y.high, of_y.zero); \
        }                                                                                          \
    }

BINARY(add, +)
BINARY(sub, -)
BINARY(mul, *)

static void sum_integers(size_t count, const uint8_t *a, const uint8_t *b,
                         const struct inf_q8_scaling *scalings, uint8_t *y)
{
    const struct inf_q8_scaling of_a = scalings[0];
    const struct inf_q8_scaling of_b = scalings[1];
    const struct inf_q8_scaling of_y = scalings[2];
    const int32_t low = (int32_t)of_y.low;
    const int32_t high = (int32_t)of_y.high;
    const int32_t half = 1 << (of_y.factor - 1);
    for (size_t i = 0; i < count; i++) {
        int32_t from_a = ((int32_t)(a[i] ^ of_a.flip) - of_a.zero) * of_a.factor;
        int32_t from_b = ((int32_t)(b[i] ^ of_b.flip) - of_b.zero) * of_b.factor;
        int32_t value = (from_a + from_b + half) >> of_y.factor;
        value = value > low ? value : low;
        value = value < high ? value : high;
        y[i] = (uint8_t)(value + of_y.zero);
    }
}

static void multiply_integers(size_t count, const uint8_t *a, const uint8_t *b,
                              const struct inf_q8_scaling *scalings, uint8_t *y)
{
    const struct inf_q8_scaling of_a = scalings[0];
    const struct inf_q8_scaling of_b = scalings[1];
    const struct inf_q8_scaling of_y = scalings[2];
    for (size_t i = 0; i < count; i++) {
        int32_t from_a = (int32_t)(a[i] ^ of_a.flip) - of_a.zero;
        int32_t from_b = (int32_t)(b[i] ^ of_b.flip) - of_b.zero;
        y[i] =
            requantize_value((float)(from_a * from_b) * of_y.scale, of_y.low, of_y.high, of_y.zero);
    }
}

const struct inf_q8_eltwise INF_Q8_ELTWISE = {quantize_all,
                                              dequantize_all,
                                              {add, sub, mul, sum_integers, multiply_integers},
                                              quantize_wide,
                                              dequantize_wide};
