// SPDX-License-Identifier: Apache-2.0
// Fuses an activation into the node before it.
#include <math.h>

#include "backends/graph/pass/linear.h"
#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

// The bounds of a node that does nothing but bound its input.
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

// The one element of an FP32 constant, for an operand next to a value of `rank` dimensions.
static bool scalar_of(const struct inf_graph *graph, uint32_t value, int32_t rank, float *scalar)
{
    size_t count;
    if (!inf_graph_is_const(graph, value) || graph->values[value].dtype != INF_DTYPE_F32 ||
        graph->values[value].shape.rank > rank ||
        !inf_shape_count(&graph->values[value].shape, &count) || count != 1)
        return false;
    *scalar = *(const float *)graph->values[value].data->data;
    return !isnan(*scalar);
}

// min(x, c) and max(x, c) are clips: a NaN in x comes out of all three.
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
        if (!scalar_of(graph, operand, rank, &scalar))
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

// A bound after a bound is one: clamping is monotone, so it is enough to clamp the inner bounds.
// That holds for bounds that do not meet and for those the wrong way round too, whose answer is the
// upper.
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

// The activation that a unary or clip node is.
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
    switch (node->attrs.unary.kind) {
    case INF_UNARY_SIGMOID:
        return INF_ACTIVATION_SIGMOID;
    case INF_UNARY_TANH:
        return INF_ACTIVATION_TANH;
    case INF_UNARY_ELU:
        return INF_ACTIVATION_ELU;
    case INF_UNARY_LEAKY_RELU:
        return INF_ACTIVATION_LEAKY_RELU;
    case INF_UNARY_HARD_SWISH:
        return INF_ACTIVATION_HARD_SWISH;
    default:
        return INF_ACTIVATION_NONE;
    }
}

// Whether `node` can take `activation`: sums and products take bounds only.
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

// The value [channels] that holds alpha, made of the same bytes where it has another shape.
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
        return INF_OK; // it has no input left for alpha
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
    // All bounds first: the inner of two, fused alone, would shut the outer out.
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
