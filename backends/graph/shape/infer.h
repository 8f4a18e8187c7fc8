// SPDX-License-Identifier: Apache-2.0
// Forward inference of element types and shapes, node by node, from ops.def's rules.
#ifndef INF_BACKENDS_GRAPH_SHAPE_INFER_H
#define INF_BACKENDS_GRAPH_SHAPE_INFER_H

#include "backends/graph/graph.h"

// Sets dtype and shape of every node's outputs from its inputs. Dimensions that depend on values
// not yet constant, or on unknown dimensions, become INF_DIM_UNKNOWN. Also settles `padding`
// same/valid into nothing: kernels ask inf_window() below.
//
// INF_INVALID      inputs do not fit the operator; the text names the node, what it has
//                  and what was wanted.
// INF_UNSUPPORTED  element types the operator is not defined for.
enum inf_code inf_shape_infer(struct inf_graph *graph, struct inf_error *err) INF_NODISCARD;

// As inf_shape_infer(), for one node.
enum inf_code inf_shape_infer_node(struct inf_graph *graph, uint32_t node,
                                   struct inf_error *err) INF_NODISCARD;

// Gives the graph's inputs concrete shapes (shapes[i] for inputs[i]), so that inference and folding
// can settle the rest. Each must match what the graph declares.
//
// INF_INVALID  (SHAPE_MISMATCH) a shape does not fit; the text names the input and both shapes.
enum inf_code inf_graph_bind_shapes(struct inf_graph *graph, const struct inf_shape *shapes,
                                    struct inf_error *err) INF_NODISCARD;

// A sliding window along one axis, with `padding` settled.
struct inf_window {
    int64_t input, output; // sizes of the axis
    int32_t kernel;        // taps
    int32_t stride, dilation;
    int32_t pad_before, pad_after;
};

// The windows of a conv2d, depthwise_conv2d, conv2d_transpose, pool2d or dilation2d node along
// height and width. For conv2d_transpose they are those of the convolution it is the gradient of:
// `input` is the size of the node's output and `output` that of its input. All shapes must be
// known.
void inf_node_windows(const struct inf_graph *graph, const struct inf_node *node,
                      struct inf_window *height, struct inf_window *width);

// The windows of a conv_nd, conv_nd_transpose or pool_nd node along its spatial axis `axis`; for a
// transposed one as inf_node_windows() has it. All shapes must be known.
void inf_node_window_nd(const struct inf_graph *graph, const struct inf_node *node, int32_t axis,
                        struct inf_window *window);

// A slice node settled against its input's shape.
struct inf_slice_plan {
    int32_t rank;                   // of the input
    int64_t begin[INF_LIMIT_RANK];  // first index taken
    int64_t stride[INF_LIMIT_RANK]; // step, may be negative
    int64_t count[INF_LIMIT_RANK];  // indices taken; 1 for axes that are dropped
};

// Settles a slice node; false where its operands are no constants or its shape is not known.
bool inf_node_slice_plan(const struct inf_graph *graph, const struct inf_node *node,
                         struct inf_slice_plan *plan) INF_NODISCARD;

#endif
