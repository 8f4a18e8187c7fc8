// SPDX-License-Identifier: Apache-2.0
// Fuses an activation into the node before it.
#include <math.h>

#include "backends/graph/pass/linear.h"
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

// The lower and upper bound of a node that only clamps its input.
struct bounds {
    float min, max;
};

static bool bounds_of(const struct inf_node *node, struct bounds *bounds)
{
    if (node->op == INF_OP_CLIP)
        *bounds = (struct bounds){node->attrs.clip.min, node->attrs.clip.max};
    else if (node->op == INF_OP_UNARY && node->attrs.unary.kind == INF_UNARY_RELU)
        *bounds = (struct bounds){0, INFINITY};
    else if (node->op == INF_OP_UNARY && node->attrs.unary.kind == INF_UNARY_RELU6)
        *bounds = (struct bounds){0, 6};
    else
        return false;
    return true;
}

static void become_clip(struct inf_node *node, struct bounds bounds)
{
    node->op = INF_OP_CLIP;
    inf_attrs_init(&node->attrs, INF_OP_CLIP);
    node->attrs.clip.min = bounds.min;
    node->attrs.clip.max = bounds.max;
}

// Rewrites min(x, c) and max(x, c) as clip. All three operators pass a NaN in x through.
static void clip_from_min_max(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_node *node = &graph->nodes[index];
    if (node->op != INF_OP_BINARY || node->attrs.binary.activation != INF_ACTIVATION_NONE ||
        (node->attrs.binary.kind != INF_BINARY_MIN && node->attrs.binary.kind != INF_BINARY_MAX))
        return;
    for (uint32_t from = 0; from < 2; from++) {
        int32_t rank = graph->values[node->inputs[from]].shape.rank;
        uint32_t operand = node->inputs[1 - from];
        float scalar;
        if (!inf_rewrite_read_scalar(graph, operand, rank, &scalar))
            continue;
        bool lower = node->attrs.binary.kind == INF_BINARY_MAX;
        become_clip(node,
                    lower ? (struct bounds){scalar, INFINITY} : (struct bounds){-INFINITY, scalar});
        node->inputs[0] = node->inputs[from];
        node->input_count = 1;
        inf_rewrite_drop_use(rewrite, operand);
        rewrite->changed = true;
        return;
    }
}

static float read_clamp(float value, struct bounds bounds)
{
    return fminf(fmaxf(value, bounds.min), bounds.max);
}

// Merges two consecutive clips into one. Clamping is monotone, so it is enough to clamp the inner
// bounds by the outer ones. This also holds for disjoint ranges, and for min > max, which gives
// max.
static void merge_clips(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_node *nodes = rewrite->graph->nodes;
    struct bounds outer;
    struct bounds inner;
    uint32_t before = inf_rewrite_sole_producer(rewrite, nodes[index].inputs[0]);
    if (before == INF_NODE_NONE || !bounds_of(&nodes[index], &outer) ||
        !bounds_of(&nodes[before], &inner) ||
        rewrite->graph->values[nodes[before].outputs[0]].dtype != INF_DTYPE_F32)
        return;
    become_clip(&nodes[before],
                (struct bounds){read_clamp(inner.min, outer), read_clamp(inner.max, outer)});
    inf_rewrite_absorb(rewrite, before, index);
}

// Returns the activation that a unary or clip node computes.
static enum inf_activation activation_of(const struct inf_node *node)
{
    struct bounds bounds;
    if (bounds_of(node, &bounds)) {
        if (bounds.min == 0 && bounds.max == INFINITY)
            return INF_ACTIVATION_RELU;
        return bounds.min == 0 && bounds.max == 6 ? INF_ACTIVATION_RELU6 : INF_ACTIVATION_CLIP;
    }
    if (node->op != INF_OP_UNARY)
        return INF_ACTIVATION_NONE;
    for (int activation = 0; activation < INF_ACTIVATION_COUNT; activation++)
        if (inf_activation_unary((enum inf_activation)activation) == node->attrs.unary.kind)
            return (enum inf_activation)activation;
    return INF_ACTIVATION_NONE;
}

// Returns whether `activation` can be fused into `node`. Sums and products of two tensors accept
// only activations that clamp to two bounds.
static bool takes_activation(const struct inf_node *node, enum inf_activation activation)
{
    return node->op != INF_OP_BINARY ||
           (node->attrs.binary.kind <= INF_BINARY_DIV && activation <= INF_ACTIVATION_CLIP);
}

static void fuse_unary(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[index];
    enum inf_activation activation = activation_of(node);
    if (activation == INF_ACTIVATION_NONE)
        return;
    uint32_t before = inf_rewrite_sole_producer(rewrite, node->inputs[0]);
    struct inf_activation_slot slot;
    if (before == INF_NODE_NONE || !inf_node_activation(&graph->nodes[before], &slot) ||
        *slot.kind != INF_ACTIVATION_NONE || !takes_activation(&graph->nodes[before], activation) ||
        !inf_dtype_is_float(graph->values[node->outputs[0]].dtype))
        return;
    *slot.kind = activation;
    struct bounds bounds;
    if (activation == INF_ACTIVATION_CLIP && bounds_of(node, &bounds)) {
        *slot.min = bounds.min;
        *slot.max = bounds.max;
    }
    if (activation == INF_ACTIVATION_ELU || activation == INF_ACTIVATION_LEAKY_RELU)
        *slot.alpha = node->attrs.unary.alpha;
    inf_rewrite_absorb(rewrite, before, index);
}

// Gives the prelu slopes *alpha the shape [channels]. If the constant has another shape, such as
// [1,1,channels], a new constant with the same bytes replaces it.
static enum inf_code flatten_alpha(struct inf_rewrite *rewrite, uint32_t *alpha, size_t channels)
{
    const struct inf_value *value = &rewrite->graph->values[*alpha];
    if (value->shape.rank == 1)
        return INF_OK;
    return inf_rewrite_add_const(rewrite, value->name, value->dtype, &INF_SHAPE((int64_t)channels),
                                 inf_blob_ref(value->data), alpha);
}

static enum inf_code fuse_prelu(struct inf_rewrite *rewrite, uint32_t index)
{
    struct inf_graph *graph = rewrite->graph;
    uint32_t alpha = graph->nodes[index].inputs[1];
    struct inf_linear linear;
    size_t stride;
    if (graph->nodes[index].op != INF_OP_PRELU ||
        !inf_linear_open(rewrite, graph->nodes[index].inputs[0], &linear))
        return INF_OK;
    const float *slopes = inf_linear_per_channel(graph, &linear, alpha, &stride);
    if (slopes == NULL || isnan(slopes[0]))
        return INF_OK;
    if (stride == 0) {
        *linear.activation.kind = INF_ACTIVATION_LEAKY_RELU;
        *linear.activation.alpha = slopes[0];
    } else if (graph->nodes[linear.node].op == INF_OP_CONV2D_TRANSPOSE) {
        return INF_OK; // conv2d_transpose has no input for the prelu slopes
    } else {
        INF_TRY(flatten_alpha(rewrite, &alpha, linear.channels));
        INF_TRY(inf_rewrite_set_input(rewrite, linear.node, 3, alpha));
        *linear.activation.kind = INF_ACTIVATION_PRELU;
    }
    inf_rewrite_absorb(rewrite, linear.node, index);
    return INF_OK;
}

enum inf_code inf_pass_fuse_activation(struct inf_rewrite *rewrite)
{
    uint32_t node_count = rewrite->graph->node_count;
    // Merge clips first. Otherwise the inner of two clips would be fused alone, and the outer one
    // could no longer be fused.
    for (uint32_t i = 0; i < node_count; i++) {
        clip_from_min_max(rewrite, i);
        merge_clips(rewrite, i);
    }
    for (uint32_t i = 0; i < node_count; i++) {
        if (!rewrite->removed[i])
            fuse_unary(rewrite, i);
        if (!rewrite->removed[i])
            INF_TRY(fuse_prelu(rewrite, i));
    }
    return INF_OK;
}
