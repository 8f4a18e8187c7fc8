// SPDX-License-Identifier: Apache-2.0
// Convolutions and products with constant weights, with the operators fused before and after them
// (fusion.h). The weights are packed once; then runs of pixels are computed.
#ifndef INF_BACKENDS_CPU_NATIVE_CONV_PACKED_H
#define INF_BACKENDS_CPU_NATIVE_CONV_PACKED_H

#include "backends/cpu/native/depthwise.h"
#include "backends/cpu/native/fusion.h"

#define INF_CONV_SEGMENTS_MAX 16

// A panel: columns of the result that one kernel call computes.
struct inf_conv_packed_panel {
    inf_gemm_fn *const *gemm; // by number of pixels - 1
    struct inf_gemm_panel part;
    size_t first, width; // in columns; `width` includes padding columns
    size_t weight_bytes;
};

struct inf_conv_packed {
    // Convolution fused before this one; used if has_depthwise.
    struct inf_native_depthwise depthwise;
    bool has_depthwise;
    bool pointwise; // true: 1x1 windows at stride 1 without padding
    struct inf_window height, width;
    size_t batch, inputs, outputs; // `inputs` and `outputs` are channels of the product
    size_t segments, depth;
    size_t a_step; // elements from pixel to pixel within a segment
    // Rounds operands to bf16. If NULL, operands are fp32.
    void (*round)(size_t count, const float *x, uint16_t *y);
    size_t packed_depth;     // rows of packed weights in a segment
    size_t rows, row_pixels; // rows of results in an image, and pixels in a row
    size_t rows_max;         // largest number of pixels in one kernel call
    struct inf_conv_packed_panel *panels;
    size_t panel_count;
    bool many_weights; // true: the weights do not stay in the cache between steps
    struct inf_native_epilogue epilogue;
    size_t residual_channels; // 0: no residual is added
};

// Returns INF_UNSUPPORTED if the packed convolutions cannot compute the conv2d node.
enum inf_code inf_conv_packed_check(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err) INF_NODISCARD;

// Returns true if the windows of the conv2d node are single pixels at stride 1 without padding.
bool inf_conv_packed_is_pointwise(const struct inf_graph *graph, const struct inf_node *node);

// Describes and packs the convolution of a chain. The packs are freed with `step`.
enum inf_code inf_conv_packed_init(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                   const struct inf_cpu_chain *chain,
                                   struct inf_error *err) INF_NODISCARD;

// Returns INF_UNSUPPORTED if the packed convolutions cannot compute the matmul node. Its right
// operand must be one constant matrix.
enum inf_code inf_conv_packed_check_product(const struct inf_graph *graph,
                                            const struct inf_node *node,
                                            struct inf_error *err) INF_NODISCARD;

// Same as inf_conv_packed_init(), for the matmul node of the step. The rows of a are treated as
// pixels.
enum inf_code inf_conv_packed_init_product(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                           struct inf_error *err) INF_NODISCARD;

// Returns the number of pixels in a good strip. A longer strip needs more cache and is not faster.
size_t inf_conv_packed_strip_pixels(const struct inf_conv_packed *conv);

// Returns the multiply-adds of one row of results, for all nodes of the chain together.
size_t inf_conv_packed_row_macs(const struct inf_conv_packed *conv);

// Returns the window along the height of the first node of the chain.
const struct inf_window *inf_conv_packed_height(const struct inf_conv_packed *conv);

// Memory of the images. Buffers may be ring buffers that hold only some rows of an image: row r is
// at index r % rows.
struct inf_conv_packed_io {
    const float *x;
    const float *residual; // NULL if no residual is added
    float *y;
    size_t x_rows, residual_rows, y_rows;
};

// A run of pixels whose operands and results are contiguous.
struct inf_conv_packed_run {
    // By segment: pointer to the operand of the first pixel; NULL: the operand is zeros.
    const float *a[INF_CONV_SEGMENTS_MAX];
    size_t count;
    // Scratch memory for operands in bf16: inf_round_bf16_scratch() floats. NULL if that count is
    // 0.
    uint16_t *rounded;
    const float *residual; // residual of the first pixel; NULL: none is added
    float *y;              // result of the first pixel
};

// Sets the results and the residual of the run to row `row`.
void inf_conv_packed_set_target(const struct inf_conv_packed *conv,
                                const struct inf_conv_packed_io *io, size_t row,
                                struct inf_conv_packed_run *run);

// Computes panels `first` to `end` (exclusive) of a run.
void inf_conv_packed_compute(const struct inf_conv_packed *conv,
                             const struct inf_conv_packed_run *run, size_t first, size_t end);

#endif
