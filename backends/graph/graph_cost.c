// SPDX-License-Identifier: Apache-2.0
#include "backends/graph/graph.h"
#include "proto/core/span.h"

static uint64_t add_saturating(uint64_t a, uint64_t b)
{
    size_t sum;
    return inf_size_add(a, b, &sum) ? sum : UINT64_MAX;
}

static uint64_t mul_saturating(uint64_t a, uint64_t b)
{
    size_t product;
    return inf_size_mul(a, b, &product) ? product : UINT64_MAX;
}

static uint64_t elements_or_zero(const struct inf_shape *shape)
{
    size_t count;
    return inf_shape_count(shape, &count) ? count : 0;
}

// Places a filter is applied at: batch times rows times columns.
static uint64_t places(const struct inf_shape *shape)
{
    struct inf_shape without_channels = *shape;
    without_channels.rank = INF_MIN(without_channels.rank, 3);
    return elements_or_zero(&without_channels);
}

static uint64_t node_macs(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *x = &graph->values[node->inputs[0]].shape;
    const struct inf_shape *y = &graph->values[node->outputs[0]].shape;
    switch (node->op) {
    case INF_OP_CONV2D:
    case INF_OP_DEPTHWISE_CONV2D:
        return mul_saturating(places(y), elements_or_zero(&graph->values[node->inputs[1]].shape));
    case INF_OP_CONV2D_TRANSPOSE:
        return mul_saturating(places(x), elements_or_zero(&graph->values[node->inputs[1]].shape));
    case INF_OP_MATMUL: {
        if (x->rank < 2)
            return 0;
        int64_t depth = x->dims[node->attrs.matmul.transpose_a ? x->rank - 2 : x->rank - 1];
        return depth < 0 ? 0 : mul_saturating(elements_or_zero(y), (uint64_t)depth);
    }
    default:
        return 0;
    }
}

struct inf_graph_cost inf_graph_cost(const struct inf_graph *graph)
{
    struct inf_graph_cost cost = {0};
    for (uint32_t i = 0; i < graph->node_count; i++)
        cost.macs = add_saturating(cost.macs, node_macs(graph, &graph->nodes[i]));
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_value *value = &graph->values[i];
        if (value->data == NULL)
            continue;
        cost.const_bytes = add_saturating(cost.const_bytes, value->data->size_bytes);
        if (inf_dtype_is_float(value->dtype))
            cost.parameters = add_saturating(cost.parameters, elements_or_zero(&value->shape));
    }
    return cost;
}
