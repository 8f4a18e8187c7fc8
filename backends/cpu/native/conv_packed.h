// SPDX-License-Identifier: Apache-2.0
// Convolutions and products with constant weights, including the operators that are fused with them
// (fusion.h). The weights are packed once, when the step is created. Each run then computes
// contiguous runs of pixels.
#ifndef INF_BACKENDS_CPU_NATIVE_CONV_PACKED_H
#define INF_BACKENDS_CPU_NATIVE_CONV_PACKED_H

#include "backends/cpu/native/depthwise.h"
#include "backends/cpu/native/fusion.h"

#define INF_CONV_SEGMENTS_MAX 16

// A panel: columns of the result that one kernel call computes.
struct inf_conv_packed_panel {
    inf_gemm_fn *const *gemm; // kernels for this panel; gemm[p - 1] computes p pixels
    struct inf_gemm_panel part;
    size_t first, width; // first column of the panel, and number of columns including padding
    size_t weight_bytes;
};

struct inf_conv_packed {
    // The depthwise convolution that is computed before this convolution; valid if has_depthwise is
    // true.
    struct inf_native_depthwise depthwise;
    bool has_depthwise;
    bool shares_prefetch; // as in struct inf_nn_gemm
    bool pointwise;       // true: 1x1 windows at stride 1 without padding, or `gathers`
    // True: the pixels under each window are copied, so that many pixels, also of several rows, are
    // multiplied with each panel. There is one segment then, which is the whole window.
    bool gathers;
    struct inf_window height, width;
    size_t batch, inputs, outputs; // `inputs` and `outputs`: channels of the fused conv2d node
    size_t groups;                 // groups of panels; more than 1 only for products
    size_t segments, depth;
    size_t a_step; // elements between the operands of neighbouring pixels
    // Elements between neighbouring pixels in copies of the operands in bf16.
    size_t copy_step;
    // Rounds `count` operands to bf16. If NULL, operands stay fp32.
    void (*round)(size_t count, const float *x, uint16_t *y);
    // As in struct inf_nn_gemm: not NULL if the kernels use tile registers.
    void (*begin)(size_t tile_depth);
    void (*end)(void);
    size_t tile_depth;
    size_t packed_depth;     // rows of packed weights for one segment (one row of the window)
    size_t rows, row_pixels; // rows of results in an image, and pixels in a row
    size_t rows_max;         // largest number of pixels in one kernel call
    struct inf_conv_packed_panel *panels;
    size_t panel_count;
    bool many_weights; // true: the weights do not stay in the cache between steps
    // What the packed weights hold. If these are not floats, each run expands one panel at a time
    // to `expanded_count` floats of its scratch memory.
    enum inf_cpu_element element;
    const struct inf_nn_expand *expand;
    size_t expanded_count;
    struct inf_native_epilogue epilogue;
    size_t residual_channels; // 0: no residual is added
};

// Returns INF_UNSUPPORTED if the packed convolutions cannot compute the conv2d node.
enum inf_code inf_conv_packed_check(const struct inf_graph *graph, const struct inf_node *node,
                                    struct inf_error *err) INF_NODISCARD;

// Returns true if the windows of the conv2d node are single pixels at stride 1 without padding.
bool inf_conv_packed_is_pointwise(const struct inf_graph *graph, const struct inf_node *node);

// Describes the convolution of a fused chain and packs its weights. The packs are freed with
// `step`.
enum inf_code inf_conv_packed_init(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                   const struct inf_cpu_chain *chain,
                                   struct inf_error *err) INF_NODISCARD;

// Returns INF_UNSUPPORTED if the packed convolutions cannot compute the matmul node. Its right
// operand must be one constant matrix.
enum inf_code inf_conv_packed_check_product(const struct inf_graph *graph,
                                            const struct inf_node *node,
                                            struct inf_error *err) INF_NODISCARD;

// Describes the matmul node of the step as a convolution of 1x1 windows, and packs its weights. The
// rows of matrix a are the pixels. The packs are freed with `step`.
enum inf_code inf_conv_packed_init_product(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                           struct inf_error *err) INF_NODISCARD;

// Products of rows of `depth` contiguous elements with a constant matrix.
struct inf_conv_packed_matrix {
    size_t pixels; // rows that are multiplied
    size_t depth;
    // The matrix has groups * columns columns. Each group has panel_count / groups panels, and a
    // run computes those of one group: the results of a pixel are `columns` contiguous elements.
    size_t groups, columns;
    bool transposed;   // true: the constant is stored as [groups * columns][depth]
    const float *bias; // one value for each column of a group; NULL: 0
};

// Describes products with operand 1 of the step's node as a convolution of 1x1 windows, and packs
// the operand. The results get no activation. The pack is freed with `step`.
enum inf_code inf_conv_packed_init_matrix(struct inf_conv_packed *conv, struct inf_cpu_step *step,
                                          const struct inf_conv_packed_matrix *matrix,
                                          struct inf_error *err) INF_NODISCARD;

// Returns the number of pixels in a good strip. A longer strip needs more cache and is not faster.
size_t inf_conv_packed_strip_pixels(const struct inf_conv_packed *conv);

// Returns the number that the first pixel of a strip should be a multiple of.
size_t inf_conv_packed_strip_unit(const struct inf_conv_packed *conv);

// Returns the floats of scratch memory that a run of `count` pixels needs: for rounded operands, or
// for the weights of a panel.
size_t inf_conv_packed_scratch(const struct inf_conv_packed *conv, size_t count);

// Returns the address `offset` floats into `scratch`; NULL if no run needs scratch memory.
float *inf_conv_packed_scratch_at(const struct inf_conv_packed *conv, float *scratch,
                                  size_t offset);

// Returns the multiply-adds of one row of results, for all nodes of the chain together.
size_t inf_conv_packed_row_macs(const struct inf_conv_packed *conv);

// Returns the window of the first node of the chain along the height of the image.
const struct inf_window *inf_conv_packed_height(const struct inf_conv_packed *conv);

// Addresses of one image. Each buffer may be a ring buffer that holds only `rows` rows of the
// image; row r is then at index r % rows.
struct inf_conv_packed_io {
    const float *x;
    const float *residual; // NULL if no residual is added
    float *y;
    size_t x_rows, residual_rows, y_rows;
};

// A run of pixels whose operands are contiguous in memory, and whose results are contiguous too.
struct inf_conv_packed_run {
    // Indexed by segment (row of the window): address of the operands of the first pixel; NULL if
    // all operands of the row are 0.
    const float *a[INF_CONV_SEGMENTS_MAX];
    size_t count;
    // Scratch memory of inf_conv_packed_scratch() floats. NULL if that count is 0.
    float *scratch;
    const float *residual; // residual of the first pixel; NULL: none is added
    float *y;              // result of the first pixel
};

// Points the results and the residual of the run to row `row` of their buffers.
void inf_conv_packed_set_target(const struct inf_conv_packed *conv,
                                const struct inf_conv_packed_io *io, size_t row,
                                struct inf_conv_packed_run *run);

// Computes panels `first` to `end` (exclusive) of a run, that is, some columns of all its pixels.
void inf_conv_packed_compute(const struct inf_conv_packed *conv,
                             const struct inf_conv_packed_run *run, size_t first, size_t end);

#endif
