// SPDX-License-Identifier: Apache-2.0
// Common code of the passes for convolutions and matrix products.
#include <math.h>
#include <stdlib.h>

#include "backends/graph/pass/linear.h"
#include "backends/graph/pass/rewrite.h"

#define SLOT(attrs)                                                                                \
    ((struct inf_activation_slot){&(attrs)->activation, &(attrs)->activation_alpha,                \
                                  &(attrs)->activation_min, &(attrs)->activation_max})

bool inf_node_activation(struct inf_node *node, struct inf_activation_slot *slot)
{
    switch (node->op) {
    case INF_OP_CONV2D:
        *slot = SLOT(&node->attrs.conv2d);
        return true;
    case INF_OP_DEPTHWISE_CONV2D:
        *slot = SLOT(&node->attrs.depthwise_conv2d);
        return true;
    case INF_OP_CONV2D_TRANSPOSE:
        *slot = SLOT(&node->attrs.conv2d_transpose);
        return true;
    case INF_OP_MATMUL:
        *slot = SLOT(&node->attrs.matmul);
        return true;
    case INF_OP_BINARY:
        *slot = (struct inf_activation_slot){.kind = &node->attrs.binary.activation,
                                             .min = &node->attrs.binary.activation_min,
                                             .max = &node->attrs.binary.activation_max};
        return true;
    default:
        return false;
    }
}

void inf_activation_move(struct inf_activation_slot *slot, const struct inf_node *binary)
{
    const struct inf_attrs_binary *attrs = &binary->attrs.binary;
    *slot->kind = attrs->activation;
    *slot->min = attrs->activation_min;
    *slot->max = attrs->activation_max;
}

bool inf_linear_view(struct inf_graph *graph, uint32_t index, struct inf_linear *linear)
{
    struct inf_node *node = &graph->nodes[index];
    if (node->op == INF_OP_BINARY || !inf_node_activation(node, &linear->activation))
        return false;
    const struct inf_shape *y = &graph->values[node->outputs[0]].shape;
    const struct inf_shape *filter = &graph->values[node->inputs[1]].shape;
    if (y->rank < 2 || y->dims[y->rank - 1] < 1)
        return false;
    linear->node = index;
    linear->bias_input = node->op == INF_OP_CONV2D_TRANSPOSE ? 3 : 2;
    linear->channels = (size_t)y->dims[y->rank - 1];
    linear->rank = y->rank;
    linear->inner = 1;
    // The output channels are the last axis of a filter. Two filters differ: a transposed
    // convolution has [kh,kw,co,ci], and a matrix that is multiplied transposed has [...,n,k].
    bool inner_axis = node->op == INF_OP_CONV2D_TRANSPOSE ||
                      (node->op == INF_OP_MATMUL && node->attrs.matmul.transpose_b);
    if (!inf_shape_known(filter))
        linear->inner = 0;
    else if (inner_axis)
        linear->inner = (size_t)filter->dims[filter->rank - 1];
    return true;
}

static uint32_t bias_of(const struct inf_graph *graph, const struct inf_linear *linear)
{
    const struct inf_node *node = &graph->nodes[linear->node];
    return linear->bias_input < node->input_count ? node->inputs[linear->bias_input]
                                                  : INF_VALUE_NONE;
}

bool inf_linear_open(const struct inf_rewrite *rewrite, uint32_t value, struct inf_linear *linear)
{
    uint32_t node = inf_rewrite_sole_producer(rewrite, value);
    if (node == INF_NODE_NONE || rewrite->graph->values[value].dtype != INF_DTYPE_F32 ||
        !inf_linear_view(rewrite->graph, node, linear) ||
        *linear->activation.kind != INF_ACTIVATION_NONE)
        return false;
    uint32_t bias = bias_of(rewrite->graph, linear);
    return bias == INF_VALUE_NONE || inf_graph_is_const(rewrite->graph, bias);
}

const float *inf_linear_per_channel(const struct inf_graph *graph, const struct inf_linear *linear,
                                    uint32_t value, size_t *stride)
{
    if (!inf_graph_is_const(graph, value) || graph->values[value].dtype != INF_DTYPE_F32)
        return NULL;
    const struct inf_shape *shape = &graph->values[value].shape;
    size_t count;
    // Refuse a constant of higher rank: broadcasting it would give the result more axes.
    if (shape->rank > linear->rank || !inf_shape_count(shape, &count))
        return NULL;
    bool per_channel = count == linear->channels && shape->rank > 0 &&
                       shape->dims[shape->rank - 1] == (int64_t)linear->channels;
    if (!per_channel && count != 1)
        return NULL;
    *stride = per_channel ? 1 : 0;
    return graph->values[value].data->data;
}

// Returns the bytes that a changed copy of the filter adds to the graph: 0 if only this node reads
// the filter, because the copy then replaces it.
static size_t count_copied_bytes(const struct inf_rewrite *rewrite, uint32_t node)
{
    uint32_t filter = rewrite->graph->nodes[node].inputs[1];
    return rewrite->uses[filter] > 1 ? rewrite->graph->values[filter].data->size_bytes : 0;
}

static bool may_copy_filter(const struct inf_rewrite *rewrite, uint32_t node)
{
    return count_copied_bytes(rewrite, node) <= *rewrite->copy_budget_bytes;
}

// Returns a copy of the filter of a convolution or matrix product in which the elements of each
// channel are multiplied by its scale; NULL if there is no memory.
static struct inf_blob *scale_filter(const struct inf_graph *graph, const struct inf_linear *linear,
                                     const double *scale, bool *finite)
{
    const struct inf_blob *filter = graph->values[graph->nodes[linear->node].inputs[1]].data;
    struct inf_blob *scaled = inf_blob_create(filter->size_bytes);
    if (scaled == NULL)
        return NULL;
    const float *from = filter->data;
    float *to = scaled->data;
    for (size_t i = 0; i < filter->size_bytes / sizeof *to; i++) {
        to[i] = (float)(from[i] * scale[i / linear->inner % linear->channels]);
        *finite &= isfinite(to[i]) != 0;
    }
    return scaled;
}

// Returns a new bias: the old bias (0 if absent) times the scale of its channel, plus the channel's
// offset. Returns NULL if there is no memory.
static struct inf_blob *make_bias(const struct inf_graph *graph, const struct inf_linear *linear,
                                  const double *scale, const double *offset, bool *finite)
{
    uint32_t bias = bias_of(graph, linear);
    const float *from = bias == INF_VALUE_NONE ? NULL : graph->values[bias].data->data;
    struct inf_blob *made = inf_blob_create(linear->channels * sizeof(float));
    if (made == NULL)
        return NULL;
    float *to = made->data;
    for (size_t i = 0; i < linear->channels; i++) {
        double before = from == NULL ? 0 : from[i];
        to[i] = (float)(before * (scale == NULL ? 1 : scale[i]) + offset[i]);
        *finite &= isfinite(to[i]) != 0;
    }
    return made;
}

// Makes `data` the filter of a node. Takes over the caller's reference to `data`, also on failure.
static enum inf_code replace_filter(struct inf_rewrite *rewrite, uint32_t node,
                                    struct inf_blob *data)
{
    const struct inf_graph *graph = rewrite->graph;
    const struct inf_value *old = &graph->values[graph->nodes[node].inputs[1]];
    // a copy, because adding the new constant may reallocate the array of values
    const struct inf_shape shape = old->shape;
    uint32_t value;
    *rewrite->copy_budget_bytes -= count_copied_bytes(rewrite, node);
    INF_TRY(inf_rewrite_add_const(rewrite, old->name, INF_DTYPE_F32, &shape, data, &value));
    return inf_rewrite_set_input(rewrite, node, 1, value);
}

static enum inf_code fail_without_memory(const struct inf_rewrite *rewrite,
                                         const struct inf_linear *linear)
{
    return inf_fail_reason(rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory for the weights of node '%s'",
                           rewrite->graph->nodes[linear->node].name);
}

enum inf_code inf_linear_scale_filter(struct inf_rewrite *rewrite, const struct inf_linear *linear,
                                      const double *scale, bool *done)
{
    *done = may_copy_filter(rewrite, linear->node);
    if (!*done)
        return INF_OK;
    struct inf_blob *filter = scale_filter(rewrite->graph, linear, scale, done);
    if (filter == NULL)
        return fail_without_memory(rewrite, linear);
    if (*done)
        return replace_filter(rewrite, linear->node, filter);
    inf_blob_unref(&filter);
    return INF_OK;
}

enum inf_code inf_linear_apply(struct inf_rewrite *rewrite, const struct inf_linear *linear,
                               const double *scale, const double *offset, bool *done)
{
    struct inf_graph *graph = rewrite->graph;
    bool finite = true;
    *done = scale == NULL || may_copy_filter(rewrite, linear->node);
    if (!*done)
        return INF_OK;
    struct inf_blob *bias = make_bias(graph, linear, scale, offset, &finite);
    struct inf_blob *filter = scale == NULL ? NULL : scale_filter(graph, linear, scale, &finite);
    *done = finite && bias != NULL && (scale == NULL || filter != NULL);
    if (!*done) {
        inf_blob_unref(&bias);
        inf_blob_unref(&filter);
        return finite ? fail_without_memory(rewrite, linear) : INF_OK;
    }
    enum inf_code code = filter == NULL ? INF_OK : replace_filter(rewrite, linear->node, filter);
    if (code != INF_OK) {
        inf_blob_unref(&bias);
        return code;
    }
    uint32_t value;
    INF_TRY(inf_rewrite_add_const(rewrite, graph->nodes[linear->node].name, INF_DTYPE_F32,
                                  &INF_SHAPE((int64_t)linear->channels), bias, &value));
    return inf_rewrite_set_input(rewrite, linear->node, linear->bias_input, value);
}
