// SPDX-License-Identifier: Apache-2.0
// Inner loops of convolutions: products of a strip of pixels with a panel of weights, and depthwise
// windows over rows. nn_gemm.c and nn_depthwise.c are compiled once for each instruction set.
//
// Results pass through the same end everywhere: slopes below zero, if any, then bounds; what is not a
// number goes through.
#ifndef INF_BACKENDS_CPU_KERNELS_NN_H
#define INF_BACKENDS_CPU_KERNELS_NN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define INF_GEMM_ROWS_MAX       12
#define INF_GEMM_PANELS         2 // widths of panels: one vector or two
#define INF_GEMM_PREFETCH_BYTES 64
#define INF_DEPTHWISE_ROWS      6 // input rows that one call looks at, at most
#define INF_DEPTHWISE_FORMS     4

// The columns of a product that are computed together, and what is the same for all its pixels.
struct inf_gemm_panel {
    size_t segments;
    size_t depth; // elements of a segment
    // [segments][depth][columns of the panel, filled up]; in bf16 [segments][pairs of depth][columns][2]
    const float *w;
    const float *bias;       // filled up
    const float *slopes;     // filled up; NULL: none
    size_t residual_step;    // elements from pixel to pixel
    size_t residual_columns; // of this panel that it has, at most `columns`; the others add 0
    float min, max;
    size_t y_step;
    size_t columns; // that are written: all of the panel but for a part of its last vector
};

// y = end(bias + a * w + residual) for some pixels and one panel.
struct inf_gemm {
    const float *const *a; // by segment: its part of pixels; NULL: zeros
    // Instead of `a` where the function's table has round(): the same in bf16.
    const uint16_t *const *rounded;
    size_t a_first; // elements from there to the first pixel
    size_t a_step;  // elements from pixel to pixel, in each segment
    const void
        *prefetch; // INF_GEMM_PREFETCH_BYTES each element of a segment are brought nearer from here
    const float *residual; // NULL: none
    float *y;
};

typedef void inf_gemm_fn(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm);

// Windows of 3x3 or 5x5 over one or two rows of results.
struct inf_depthwise {
    const float *rows[INF_DEPTHWISE_ROWS]; // of x, from the first window's; NULL: zeros
    float *y[2];                           // rows of results; y[1] NULL: one row only
    ptrdiff_t pad;                         // columns before x that the first window has
    size_t width, output_width;            // pixels of a row of x and of y
    size_t channels;                       // elements from tap to tap in w
    size_t step;                           // elements from pixel to pixel in x and y
    size_t first, end; // channels that are computed, at least; `end` is at least the vector's width
    const float *w;    // [taps][channels]
    const float *bias; // [channels]
    const float *slopes; // [channels]; NULL: none
    float min, max;
    bool prefetches; // x is in no near cache: what comes next is brought nearer
};

typedef void inf_depthwise_fn(const struct inf_depthwise *depthwise);

struct inf_nn_gemm {
    size_t width;    // elements of a vector; a panel has one or two
    size_t rows_max; // most pixels of one call
    inf_gemm_fn *gemm[INF_GEMM_PANELS][INF_GEMM_ROWS_MAX]; // by vectors - 1, pixels - 1
    // y[i] = x[i] in bf16, the nearest, for i below `count`. NULL: operands of gemm are fp32.
    void (*round)(size_t count, const float *x, uint16_t *y);
};

struct inf_nn_depthwise {
    size_t width;                                // elements of a vector
    inf_depthwise_fn *form[INF_DEPTHWISE_FORMS]; // by inf_depthwise_form()
};

// Loops with whole vectors, and with shorter ones for tails; the same where there are no shorter ones.
struct inf_nn {
    const struct inf_nn_gemm *gemm, *gemm_half;
    const struct inf_nn_depthwise *depthwise, *depthwise_half;
    // As gemm, for weights in bf16, of the same widths; NULL: there are none.
    const struct inf_nn_gemm *gemm_bf16, *gemm_bf16_half;
    // And for operands in bf16, too; NULL: there are none.
    const struct inf_nn_gemm *gemm_dot, *gemm_dot_half;
    bool fast; // whether gemm was measured to be a match for XNNPACK on processors of this level
};

// Tables that this build may have; which it has is known from isa.h only.
extern const struct inf_nn_gemm inf_nn_gemm_baseline, inf_nn_gemm_avx2, inf_nn_gemm_avx512,
    inf_nn_gemm_avx512_half, inf_nn_gemm_avx512_bf16, inf_nn_gemm_avx512_bf16_half,
    inf_nn_gemm_avx512_dot, inf_nn_gemm_avx512_dot_half, inf_nn_gemm_neon;
extern const struct inf_nn_depthwise inf_nn_depthwise_baseline, inf_nn_depthwise_avx2,
    inf_nn_depthwise_avx512, inf_nn_depthwise_avx512_half, inf_nn_depthwise_neon;

// Index of the function for square windows of `kernel` taps and `stride`; -1: there is none.
static inline int inf_depthwise_form(int kernel, int stride)
{
    if ((kernel != 3 && kernel != 5) || (stride != 1 && stride != 2))
        return -1;
    return (kernel == 5 ? 2 : 0) + stride - 1;
}

// Rows of results that one call computes, at most.
static inline size_t inf_depthwise_rows(int kernel, int stride)
{
    return kernel == 3 && stride == 1 ? 2 : 1;
}

#endif
