// SPDX-License-Identifier: Apache-2.0
// A common description of convolutions and matrix products for the passes: linear operators with a
// filter, a bias and a fused activation. A pass can fold a scale, an offset or an activation into
// them. Private to the passes.
#ifndef INF_BACKENDS_GRAPH_PASS_LINEAR_H
#define INF_BACKENDS_GRAPH_PASS_LINEAR_H

#include "backends/graph/pass/rewrite.h"

// Pointers to the attributes of a node that describe its fused activation, so that a pass can read
// and set them.
struct inf_activation_slot {
    enum inf_activation *kind;
    float *alpha; // slope of the activation; NULL if the operator has no such attribute
    float *min, *max;
};

// Fills *slot with pointers to the node's activation attributes. Returns false if the operator has
// no fused activation.
bool inf_node_activation(struct inf_node *node, struct inf_activation_slot *slot) INF_NODISCARD;

// Copies the activation attributes of the node `binary` to the attributes that `slot` points to.
void inf_activation_move(struct inf_activation_slot *slot, const struct inf_node *binary);

// A convolution or matrix product, and the assignment of filter and bias elements to output
// channels.
struct inf_linear {
    uint32_t node;
    uint32_t bias_input; // position of the bias among the node's inputs
    size_t channels;     // number of output channels; at least 1
    int32_t rank;        // rank of the output
    size_t inner;        // filter element i belongs to channel i / inner % channels; 0 if not known
    struct inf_activation_slot activation;
};

// Fills *linear with a description of the node. Returns false if the node is no convolution or
// matrix product, or if the number of its output channels is not known.
bool inf_linear_view(struct inf_graph *graph, uint32_t node,
                     struct inf_linear *linear) INF_NODISCARD;

// Fills *linear with the node that produces `value`, if an operation on `value` can be folded into
// that node: `value` is FP32 and has no other use, the node has no activation yet, and its bias is
// a constant or absent. Returns false otherwise.
bool inf_linear_open(const struct inf_rewrite *rewrite, uint32_t value,
                     struct inf_linear *linear) INF_NODISCARD;

// Returns the elements of `value` if it is an FP32 constant whose elements each apply to one
// channel; NULL otherwise. *stride is 1 for one element per channel, and 0 for one element for all
// channels.
const float *inf_linear_per_channel(const struct inf_graph *graph, const struct inf_linear *linear,
                                    uint32_t value, size_t *stride);

// Multiplies the filter's element i by scale[i / inner % channels]. To scale input channels, the
// caller sets `inner` and `channels` to those of the inputs. If a weight would not be finite, or if
// other nodes read the filter and the budget for copies is spent, *done is false and nothing
// changes.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_linear_scale_filter(struct inf_rewrite *rewrite, const struct inf_linear *linear,
                                      const double *scale, bool *done) INF_NODISCARD;

// Replaces y by y * scale[c] + offset[c], where y is the result before the activation and c its
// channel. If `scale` is NULL, all scales are 1. *done is false, and nothing changes, for the
// reasons of inf_linear_scale_filter().
enum inf_code inf_linear_apply(struct inf_rewrite *rewrite, const struct inf_linear *linear,
                               const double *scale, const double *offset, bool *done) INF_NODISCARD;

#endif
