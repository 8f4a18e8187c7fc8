// SPDX-License-Identifier: Apache-2.0
// Infers element types and shapes from inputs to outputs, node by node, by the rules in ops.def.
#ifndef INF_BACKENDS_GRAPH_SHAPE_INFER_H
#define INF_BACKENDS_GRAPH_SHAPE_INFER_H

#include "backends/graph/graph.h"

// Sets the types and shapes of every node's outputs from its inputs. A dimension becomes
// INF_DIM_UNKNOWN if it depends on unknown dimensions or on values that are not constant yet.
// Padding `same` or `valid` is not resolved to numbers here: kernels call inf_node_windows().
//
// INF_INVALID      inputs do not fit the operator; the text names the node, the actual and the
// wanted shapes.
// INF_UNSUPPORTED  the operator is not defined for an element type.
enum inf_code inf_shape_infer(struct inf_graph *graph, struct inf_error *err) INF_NODISCARD;

// Sets the types and shapes of the outputs of one node, as inf_shape_infer() does.
enum inf_code inf_shape_infer_node(struct inf_graph *graph, uint32_t node,
                                   struct inf_error *err) INF_NODISCARD;

// Gives the graph's inputs concrete shapes (shapes[i] for inputs[i]), so that inference and folding
// can determine all others. Each shape must match the declared one.
//
// INF_INVALID  (SHAPE_MISMATCH) a shape does not fit; the text names the input and both shapes.
enum inf_code inf_graph_bind_shapes(struct inf_graph *graph, const struct inf_shape *shapes,
                                    struct inf_error *err) INF_NODISCARD;

// A sliding window along one axis, with `padding` resolved to numbers.
struct inf_window {
    int64_t input, output; // size of the axis over which the window slides; number of windows
    int32_t kernel;        // number of elements (taps) of the window
    int32_t stride, dilation;
    int32_t pad_before, pad_after;
};

// Computes the windows of a conv2d, depthwise_conv2d, conv2d_transpose, pool2d or dilation2d node
// along height and width. A conv2d_transpose is the gradient of a convolution, and the windows of
// that convolution are returned: `input` is the size of the node's output and `output` is the size
// of its input. All shapes must be known.
void inf_node_windows(const struct inf_graph *graph, const struct inf_node *node,
                      struct inf_window *height, struct inf_window *width);

// Computes the windows of a conv_nd, conv_nd_transpose or pool_nd node along its spatial axis
// `axis`. Transposed convolutions are treated as in inf_node_windows(). All shapes must be known.
void inf_node_window_nd(const struct inf_graph *graph, const struct inf_node *node, int32_t axis,
                        struct inf_window *window);

// The parameters of a slice node, resolved against the shape of its input.
struct inf_slice_plan {
    int32_t rank;                   // rank of the input
    int64_t begin[INF_LIMIT_RANK];  // first index of each axis
    int64_t stride[INF_LIMIT_RANK]; // step between indices, may be negative
    int64_t count[INF_LIMIT_RANK];  // number of indices; 1 for dropped axes
};

// Resolves a slice node. Returns false if its operands are not constant or its shape is unknown.
bool inf_node_slice_plan(const struct inf_graph *graph, const struct inf_node *node,
                         struct inf_slice_plan *plan) INF_NODISCARD;

// Returns true if the node swaps the last two axes of a value of rank `rank` and moves no others.
bool inf_node_swaps_last_axes(const struct inf_node *node, int32_t rank);

// The integer factors of a sum of two tensors of bytes: y = (p * a + q * b) / 2^shift, where p and
// q are bytes minus their zero points.
struct inf_qsum_factors {
    int32_t a, b;
    int32_t shift; // 1 or more
};

// Computes the factors from the scales of both operands and of y. The larger factor has 21 bits, as
// in XNNPACK, so that no sum of two products exceeds 32 bits. b_scale is negative for a difference.
// Returns false unless the larger of |a_scale| and |b_scale| is at least 2^-10 and less than 2^8
// times y_scale.
bool inf_qsum_factors(float a_scale, float b_scale, float y_scale,
                      struct inf_qsum_factors *factors) INF_NODISCARD;

#endif
