// SPDX-License-Identifier: Apache-2.0
// Inner loops of convolutions: products of a strip of pixels with a panel of weights, and depthwise
// windows over rows. nn_gemm.c and nn_depthwise.c are compiled once for each ISA level.
//
// All results pass through the same epilogue: negative values are multiplied by a slope, if there
// is one, then values are clamped. NaN stays NaN.
#ifndef INF_BACKENDS_CPU_KERNELS_NN_H
#define INF_BACKENDS_CPU_KERNELS_NN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/blocks.h"
#include "backends/cpu/kernels/map/expand.h"
#include "backends/cpu/kernels/tile_shape.h"
#include "backends/cpu/kernels/winograd.h"

#define INF_GEMM_ROWS_MAX       12 // most pixels of a call whose sums are in vector registers
#define INF_GEMM_CALL_ROWS      INF_TILE_CALL_ROWS // most pixels of any call
#define INF_GEMM_PANELS         2                  // a panel has one or two vectors
#define INF_GEMM_PREFETCH_BYTES 64
#define INF_GEMM_SPREAD_BYTES   ((size_t)128 << 10)
#define INF_GEMM_SPREAD_MIN     8 // with fewer bytes, most prefetches would repeat a line
#define INF_DEPTHWISE_ROWS      6 // most input rows that one call reads
#define INF_DEPTHWISE_FORMS     4

// The columns of a product that one kernel call computes, with their weights, and the parameters
// that are the same for all pixels.
struct inf_gemm_panel {
    size_t segments;
    size_t depth; // number of elements of x in a segment (one row of the window)
    // Weights of the panel: [segments][depth][columns with padding]. In bf16 two rows share 32
    // bits: [segments][pairs of rows][columns with padding][2].
    const float *w;
    const float *bias;       // one value for each column, padded
    const float *slopes;     // one value for each column, padded; NULL: no slopes
    size_t residual_step;    // elements between the residuals of neighbouring pixels
    size_t residual_columns; // columns of this panel that have a residual; others add 0
    float min, max;
    size_t y_step;
    size_t columns;    // columns that are written: all except the padding of the last vector
    size_t tile_depth; // inf_tile_depth() of the pairs in a segment; for kernels with `begin`
};

// Operands and results of one kernel call: y = epilogue(bias + a * w + residual) for some pixels
// and the columns of one panel.
struct inf_gemm {
    // Indexed by segment (row of the window): operands; NULL: the row is zeros.
    const float *const *a;
    // The operands rounded to bf16, indexed by segment. Used instead of `a` if the kernel table has
    // a function round().
    const uint16_t *const *rounded;
    size_t pixels;  // pixels of the call; read only by kernels with `begin`
    size_t a_first; // elements from a[segment] to the operand of the first pixel
    size_t a_step;  // elements between the operands of neighbouring pixels
    // The address that the kernel prefetches from. For each element of a segment (one row of the
    // window) it prefetches one cache line, and goes on by prefetch_step bytes if its table has
    // `shares_prefetch`, otherwise by INF_GEMM_PREFETCH_BYTES.
    const void *prefetch;
    size_t prefetch_step;
    const float *residual; // NULL: no residual is added
    float *y;
};

// Returns the prefetch_step with which `calls` calls of a panel together prefetch the next panel,
// whose rows have `row_bytes` and which has `bytes`. Spread over all calls, the lines arrive at the
// rate at which the L3 cache delivers them; all of them in the first call would stall it. Panels
// above INF_GEMM_SPREAD_BYTES do not stay in the L1 cache between calls, so their calls compete for
// the same cache anyway, and INF_GEMM_PREFETCH_BYTES is faster.
static inline size_t inf_gemm_prefetch_step(size_t row_bytes, size_t bytes, size_t calls)
{
    if (bytes > INF_GEMM_SPREAD_BYTES)
        return INF_GEMM_PREFETCH_BYTES;
    size_t step = (row_bytes + calls - 1) / calls;
    return step < INF_GEMM_SPREAD_MIN ? INF_GEMM_SPREAD_MIN : step;
}

typedef void inf_gemm_fn(const struct inf_gemm_panel *panel, const struct inf_gemm *gemm);

// A depthwise convolution with 3x3 or 5x5 windows that computes one or two rows of results.
struct inf_depthwise {
    // The rows of x that the windows cover, from the first row of the window on; NULL stands for a
    // row of zeros.
    const float *rows[INF_DEPTHWISE_ROWS];
    // Rows of results; y[1] is NULL if only one row is computed.
    float *y[2];
    ptrdiff_t pad;              // columns of padding in the first window of the row
    size_t width, output_width; // pixels in a row of x and of y
    size_t channels;            // elements in `w` between the weights of neighbouring taps
    size_t step;                // elements between neighbouring pixels in x and in y
    size_t first, end;          // channels to compute; `end` is at least the width of a vector
    const float *w;             // [taps][channels]
    const float *bias;          // [channels]
    const float *slopes;        // [channels]; NULL: no slopes
    float min, max;
    bool prefetches; // true: x is not in the cache, so the kernel prefetches the next pixels
};

typedef void inf_depthwise_fn(const struct inf_depthwise *depthwise);

struct inf_nn_gemm {
    size_t width;    // elements in a vector; a panel has one or two vectors
    size_t rows_max; // largest number of pixels in one call
    // True: the calls of a panel share the prefetches of the next one (inf_gemm_prefetch_step()).
    bool shares_prefetch;
    // The kernels: gemm[v - 1][p - 1] computes p pixels and v vectors of columns.
    inf_gemm_fn *gemm[INF_GEMM_PANELS][INF_GEMM_CALL_ROWS];
    // Rounds x[i] to the nearest bf16 for i below `count`. If NULL, the kernels of `gemm` read fp32
    // operands.
    void (*round)(size_t count, const float *x, uint16_t *y);
    // Prepares this thread for calls with panels of this tile_depth, until it calls end(). NULL:
    // not needed. Kernels with this function take segments of an even depth only, and read operands
    // of up to INF_TILE_CALL_ROWS pixels, whatever gemm->pixels is; those behind the last pixel may
    // have any values.
    void (*begin)(size_t tile_depth);
    void (*end)(void);
};

struct inf_nn_depthwise {
    size_t width;                                // elements in a vector
    inf_depthwise_fn *form[INF_DEPTHWISE_FORMS]; // indexed by the result of inf_depthwise_form()
};

// The kernels of one ISA level: those with whole vectors, and those with half vectors for the last
// columns. Both pointers are the same if the level has no half vectors.
struct inf_nn {
    const struct inf_nn_gemm *gemm, *gemm_half;
    const struct inf_nn_depthwise *depthwise, *depthwise_half;
    const struct inf_nn_blocks *blocks, *blocks_half; // as wide as gemm and gemm_half
    // Kernels for weights in bf16, with the same vector widths as gemm and gemm_half; NULL if there
    // are none.
    const struct inf_nn_gemm *gemm_bf16, *gemm_bf16_half;
    // Kernels for weights and operands in bf16; NULL if there are none.
    const struct inf_nn_gemm *gemm_dot, *gemm_dot_half;
    // Kernels for the same operands in tile registers; NULL if there are none. They read 64 bytes
    // of weights for each vector, so those of gemm_tile_half read 32 bytes behind the panel.
    const struct inf_nn_gemm *gemm_tile, *gemm_tile_half;
    const struct inf_winograd *winograd; // transforms of Winograd's algorithm
    const struct inf_nn_expand *expand;
    bool fast; // true: gemm was measured at this level to be as fast as XNNPACK
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_nn_gemm inf_nn_gemm_baseline, inf_nn_gemm_avx2, inf_nn_gemm_avx512,
    inf_nn_gemm_avx512_half, inf_nn_gemm_avx512_bf16, inf_nn_gemm_avx512_bf16_half,
    inf_nn_gemm_avx512_dot, inf_nn_gemm_avx512_dot_half, inf_nn_gemm_amx, inf_nn_gemm_amx_half,
    inf_nn_gemm_neon;
extern const struct inf_nn_depthwise inf_nn_depthwise_baseline, inf_nn_depthwise_avx2,
    inf_nn_depthwise_avx512, inf_nn_depthwise_avx512_half, inf_nn_depthwise_neon;

// Returns the index of the depthwise kernel for square windows of `kernel` x `kernel` taps and this
// `stride`; -1 if there is no such kernel.
static inline int inf_depthwise_form(int kernel, int stride)
{
    if ((kernel != 3 && kernel != 5) || (stride != 1 && stride != 2))
        return -1;
    return (kernel == 5 ? 2 : 0) + stride - 1;
}

// Returns the largest number of rows of results that one call of the depthwise kernel computes.
static inline size_t inf_depthwise_rows(int kernel, int stride)
{
    return kernel == 3 && stride == 1 ? 2 : 1;
}

#endif
