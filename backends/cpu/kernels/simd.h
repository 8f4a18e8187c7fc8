// SPDX-License-Identifier: Apache-2.0
// Inner loops of element-wise functions and reductions of floats. simd.c is plain C that the
// compiler vectorises. It is compiled once for each ISA level; each compilation defines one table.
// isa.h says which table the processor uses.
//
// NaN stays NaN, as on the reference device `ref`. XNNPACK does not guarantee this.
#ifndef INF_BACKENDS_CPU_KERNELS_SIMD_H
#define INF_BACKENDS_CPU_KERNELS_SIMD_H

#include <stddef.h>

// Element-wise functions of two operands.
enum inf_simd_binary {
    INF_SIMD_ADD,
    INF_SIMD_SUB,
    INF_SIMD_MUL,
    INF_SIMD_DIV,
    INF_SIMD_MIN, // NaN if either operand is NaN
    INF_SIMD_MAX, // NaN if either operand is NaN
    INF_SIMD_SQUARED_DIFFERENCE,
    INF_SIMD_POW,
    INF_SIMD_BINARY_COUNT,
};

// Says which operand of a binary function, if any, is a single element that is combined with all
// elements of the other operand.
enum inf_simd_form {
    INF_SIMD_BOTH,     // neither operand is a single element: both are arrays
    INF_SIMD_A_SCALAR, // a is a single element
    INF_SIMD_B_SCALAR, // b is a single element
    INF_SIMD_FORM_COUNT,
};

// y[i] = min(max(a[i] op b[i], min), max) for i below `count`. y may be a or b.
typedef void inf_simd_binary_fn(size_t count, const float *a, const float *b, float *y, float min,
                                float max);

// y[i] = f(x[i]) for i below `count`. y may be x.
typedef void inf_simd_map_fn(size_t count, const float *x, float *y);

struct inf_simd {
    inf_simd_binary_fn *binary[INF_SIMD_BINARY_COUNT][INF_SIMD_FORM_COUNT];
    // y[i] = min(max(x[i], min), max); y may be x.
    void (*clamp)(size_t count, const float *x, float *y, float min, float max);
    // The result differs from tanh(x[i]) or 1 / (1 + e^-x[i]) by at most 4 units in the last place.
    // y may be x.
    inf_simd_map_fn *tanh, *sigmoid;
    // y[i] = x[i] * min(max(x[i] + 3, 0), 6) / 6; y may be x.
    inf_simd_map_fn *hard_swish;
    // Largest errors in units in the last place: 4 for exp, log and erf, 6 for silu. For gelu and
    // its tanh approximation, 16 units in the last place of the larger of |y| and 2^-6 |x|. y may
    // be x.
    inf_simd_map_fn *exp, *log, *erf, *silu, *gelu, *gelu_tanh;
    // y[i] = e^(x[i] - less), and returns the sum of all y. No x is larger than `less`. Each y[i]
    // has an error of at most 4 units in the last place, and is 0 if x[i] - less is below -87. y
    // may be x.
    float (*powers)(size_t count, const float *x, float less, float *y);
    inf_simd_map_fn *rsqrt, *reciprocal; // as accurate as a division
    inf_simd_map_fn *sin, *cos;          // the functions of libm, element by element
    // y[i] = a[i] + (b[i] - a[i]) * weight; the product may be fused with the sum.
    void (*mix)(size_t count, const float *a, const float *b, float weight, float *y);
    // Reduce `count` contiguous elements to their sum, maximum or minimum; `count` is at least 1.
    // The maximum and minimum are NaN if an element is NaN.
    float (*sum)(size_t count, const float *x);
    float (*max)(size_t count, const float *x);
    float (*min)(size_t count, const float *x);
    // y[c] = the sum of a[k] * b[c * depth + k] over k below `depth`, for c below `columns`.
    void (*dots)(size_t depth, const float *a, size_t columns, const float *b, float *y);
    // y[i] = the sum of x[r * stride + i] over `rows` rows, divided by `divisor`.
    void (*sum_rows)(size_t count, const float *x, size_t rows, size_t stride, float divisor,
                     float *y);
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_simd inf_simd_baseline;
extern const struct inf_simd inf_simd_avx2;
extern const struct inf_simd inf_simd_avx512;
extern const struct inf_simd inf_simd_neon;

#endif
