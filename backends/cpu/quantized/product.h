// SPDX-License-Identifier: Apache-2.0
// A product of 8-bit numbers that is ready to run. Shared by product.c, which makes it, and
// product_strips.c, which runs it.
#ifndef INF_BACKENDS_CPU_QUANTIZED_PRODUCT_H
#define INF_BACKENDS_CPU_QUANTIZED_PRODUCT_H

#include "backends/cpu/quantized/windows.h"

// A panel: columns of the result that one kernel call computes.
struct inf_q8_product_panel {
    inf_q8_gemm_fn *const *gemm; // indexed by the number of pixels of a call - 1
    struct inf_q8_panel part;
    size_t first; // index of the first column of y
    int32_t *bias;
    // The bias of a column is base - x_zero * slope, modulo 2^32. NULL unless the product shifts.
    const uint32_t *base, *slope;
    size_t width; // columns, with padding
};

struct inf_q8_product {
    struct inf_q8_params terms;
    const struct inf_q8_gemms *gemms;
    struct inf_q8_windows windows;
    size_t outputs;      // channels of one group of y
    size_t depth, quads; // bytes in a window of a group, and groups of four of them
    size_t tile_depth;   // inf_tile_depth(quads) if gemms->begin is not NULL
    size_t pixels;       // number of pixels of y
    bool direct;         // true: a window is one pixel of x, so no window is copied
    // True if the zero points of the weights are subtracted when weights are packed (fold.h).
    bool folded;
    bool has_zeros; // true: kernels subtract the zero points of the weights
    bool shifts;    // true: each run updates the biases for the zero point of x
    // True if panels have a copy of their scales; false if kernels read the constant.
    bool copies_scales;
    bool transposed;        // true: the weights are stored as [outputs][depth]
    size_t matrices;        // matrices of weights; each is multiplied with its own `pixels`
    uint32_t *terms_memory; // numbers of the panels: see count_terms()
    int8_t *w_memory;       // memory for weights that each run packs; NULL: packed only once
    struct inf_q8_product_panel *panels; // ordered by group
    size_t vectors;                      // SIMD vectors that cover the outputs of one group
    size_t panel_count;                  // number of panels in a group
    size_t panel_parts; // number of parts of a group's panels; threads share the parts
    size_t strips, workers;
    size_t strip_pixels;
    size_t operand_size; // size of a pixel's operand in scratch memory, in bytes
    // Size in bytes of the scratch memory of each worker. It holds the operands of a strip, the sum
    // of each operand, and one window before it is widened.
    size_t scratch_step;
};

// Returns the bytes of scratch memory that each worker needs.
size_t inf_q8_product_scratch_size(const struct inf_q8_product *product);

// Returns the number that the first pixel of a strip is a multiple of.
size_t inf_q8_product_strip_unit(const struct inf_q8_product *product);

// Multiplies all pixels of `x` with the packed weights, and writes `y`, with the threads and the
// scratch memory of the step. Called by the thread of a run.
void inf_q8_product_run(const struct inf_q8_product *product, const struct inf_cpu_step *step,
                        const uint8_t *x, char *y);

#endif
