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
    // The byte for NaN: NaN is treated as 0, which is then clamped to the bounds.
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

const struct inf_q8_eltwise INF_Q8_ELTWISE = {quantize_all, dequantize_all, {add, sub, mul}};
