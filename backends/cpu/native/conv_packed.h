// SPDX-License-Identifier: Apache-2.0
// Convolutions of our own, with what comes before and after them in a chain (backends/cpu/native/fusion.h): packed once, then
// asked for rows of pixels.
#ifndef INF_BACKENDS_CPU_NATIVE_CONV_PACKED_H
#define INF_BACKENDS_CPU_NATIVE_CONV_PACKED_H

#include "backends/cpu/native/depthwise.h"
#include "backends/cpu/native/fusion.h"

#define INF_CONV_SEGMENTS_MAX 16

// Columns of the result that are computed together.
struct inf_conv_packed_panel {
    inf_gemm_fn *const *gemm; // by pixels - 1
    struct inf_gemm_panel part;
    size_t first, width; // columns
    size_t weight_bytes;
};

struct inf_conv_packed {
    struct inf_native_depthwise depthwise; // what comes before it
    bool has_depthwise;
    bool pointwise; // windows are single pixels, one after the other
    struct inf_window height, width;
    size_t batch, inputs, outputs; // channels of the product
    size_t segments, depth;
    size_t a_step; // elements from pixel to pixel in a segment
    void (*round)(size_t count, const float *x, uint16_t *y); // of operands; NULL: they are fp32
    size_t packed_depth;                                      // vectors of weights of a segment
    size_t rows, row_pixels;                                  // of results in an image
    size_t rows_max;                                          // pixels of one call
    struct inf_conv_packed_panel *panels;
    size_t panel_count;
    bool many_weights; // more than stay near while other things are done
    struct inf_native_epilogue epilogue;
    size_t residual_channels; // 0: nothing is added
};

// INF_UNSUPPORTED where this family does not compute the conv2d node.
enum inf_code inf_conv_packed_check(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err) INF_NODISCARD;

// Whether the conv2d node's windows are single pixels, one after the other.
bool inf_conv_packed_is_pointwise(const struct inf_graph *graph, const struct inf_node *node);

// Describes and packs the convolution of a chain. `step` keeps what is packed.
enum inf_code inf_conv_packed_init(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                   const struct inf_cpu_chain *chain,
                                   struct inf_error *err) INF_NODISCARD;

// INF_UNSUPPORTED where this family does not compute the matmul node: its right side must be one
// constant matrix.
enum inf_code inf_conv_packed_check_product(const struct inf_graph *graph,
                                            const struct inf_node *node,
                                            struct inf_error *err) INF_NODISCARD;

// As inf_conv_packed_init(), for the step's matmul node: its rows are pixels.
enum inf_code inf_conv_packed_init_product(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                           struct inf_error *err) INF_NODISCARD;

// Pixels of a good strip: more only need more cache.
size_t inf_conv_packed_strip_pixels(const struct inf_conv_packed *conv);

// Multiply-adds of a row of results, all nodes of the chain together.
size_t inf_conv_packed_row_macs(const struct inf_conv_packed *conv);

// The window along height of what comes first in the chain.
const struct inf_window *inf_conv_packed_height(const struct inf_conv_packed *conv);

// Images of which not all rows need be there: row r lies at r % rows.
struct inf_conv_packed_io {
    const float *x;
    const float *residual; // where something is added
    float *y;
    size_t x_rows, residual_rows, y_rows;
};

// Pixels that lie one behind the other, in memory and among operands.
struct inf_conv_packed_run {
    const float *a[INF_CONV_SEGMENTS_MAX]; // by segment: its part of the first pixel; NULL: zeros
    size_t count;
    uint16_t *rounded;     // inf_round_bf16_scratch() floats; NULL where it says 0
    const float *residual; // of the first pixel; NULL: none
    float *y;              // of the first pixel
};

// Where the results of rows from `row` on go to, and what is added to them.
void inf_conv_packed_set_target(const struct inf_conv_packed *conv,
                                const struct inf_conv_packed_io *io, size_t row,
                                struct inf_conv_packed_run *run);

// Computes panels `first` to `end` (exclusive) of a run.
void inf_conv_packed_compute(const struct inf_conv_packed *conv,
                             const struct inf_conv_packed_run *run, size_t first, size_t end);

#endif
