// SPDX-License-Identifier: Apache-2.0
// Estimates the cost of a node and of a graph: multiply-adds, element reads and bytes of constants.
#include <string.h>

#include "backends/graph/graph.h"
#include "proto/core/hash.h"
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

// Returns the number of positions at which a filter is applied: the product of all dimensions of
// `shape` except the last, which is the channels.
static uint64_t count_places(const struct inf_shape *shape)
{
    struct inf_shape without_channels = *shape;
    without_channels.rank = INF_MAX(without_channels.rank - 1, 0);
    return elements_or_zero(&without_channels);
}

static const struct inf_shape *shape_of(const struct inf_graph *graph, uint32_t value)
{
    static const struct inf_shape unknown = {.rank = -1};
    return value != INF_VALUE_NONE ? &graph->values[value].shape : &unknown;
}

uint64_t inf_node_hash(const struct inf_node *node)
{
    return inf_hash_bytes(INF_HASH_INIT, node->name, strlen(node->name));
}

uint64_t inf_node_macs(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *x = shape_of(graph, node->inputs[0]);
    const struct inf_shape *y = shape_of(graph, node->outputs[0]);
    const struct inf_shape *w =
        shape_of(graph, node->input_count > 1 ? node->inputs[1] : INF_VALUE_NONE);
    switch (node->op) {
    case INF_OP_CONV2D:
    case INF_OP_DEPTHWISE_CONV2D:
    case INF_OP_CONV_ND:
    case INF_OP_QCONV2D:
        return mul_saturating(count_places(y), elements_or_zero(w));
    case INF_OP_CONV2D_TRANSPOSE:
    case INF_OP_CONV_ND_TRANSPOSE:
        return mul_saturating(count_places(x), elements_or_zero(w));
    case INF_OP_QMATMUL:
    case INF_OP_MATMUL_BLOCKS:
        return x->rank < (node->op == INF_OP_QMATMUL ? 2 : 1) || x->dims[x->rank - 1] < 0
                   ? 0
                   : mul_saturating(elements_or_zero(y), (uint64_t)x->dims[x->rank - 1]);
    case INF_OP_MATMUL: {
        if (x->rank < 2)
            return 0;
        int64_t depth = x->dims[node->attrs.matmul.transpose_a ? x->rank - 2 : x->rank - 1];
        return depth < 0 ? 0 : mul_saturating(elements_or_zero(y), (uint64_t)depth);
    }
    case INF_OP_RNN: // every weight is used once per sequence position of x
        return mul_saturating(count_places(x),
                              add_saturating(elements_or_zero(w),
                                             elements_or_zero(shape_of(graph, node->inputs[2]))));
    default:
        return 0;
    }
}

// Returns the number of elements that a node reads for each element of its largest output or input,
// if that number depends on attributes or values. Returns 1 for all other operators.
static uint64_t looks_each(const struct inf_graph *graph, const struct inf_node *node)
{
    uint64_t looks = 1;
    switch (node->op) {
    case INF_OP_POOL2D:
        return (uint64_t)node->attrs.pool2d.kernel_h * (uint64_t)node->attrs.pool2d.kernel_w;
    case INF_OP_POOL_ND:
        for (int32_t i = 0; i < node->attrs.pool_nd.kernel.count; i++)
            looks = mul_saturating(looks, (uint64_t)node->attrs.pool_nd.kernel.values[i]);
        return looks;
    case INF_OP_DILATION2D:
        return elements_or_zero(shape_of(graph, node->inputs[1]));
    case INF_OP_LRN:
        return (uint64_t)node->attrs.lrn.before + (uint64_t)node->attrs.lrn.after + 1;
    case INF_OP_ROI_ALIGN: {
        uint64_t samples = (uint64_t)node->attrs.roi_align.samples;
        // samples == 0 means that the kernel chooses the number of samples of each bin. Assume the
        // upper bound, which is the number of elements of x.
        return samples > 0 ? samples * samples : elements_or_zero(shape_of(graph, node->inputs[0]));
    }
    case INF_OP_NMS: { // each box is compared with every other box
        const struct inf_shape *scores = shape_of(graph, node->inputs[1]);
        return scores->rank == 3 ? (uint64_t)INF_MAX(scores->dims[2], 0) : elements_or_zero(scores);
    }
    default:
        return 1;
    }
}

uint64_t inf_node_work(const struct inf_graph *graph, const struct inf_node *node)
{
    uint64_t elements = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        elements = add_saturating(elements, elements_or_zero(shape_of(graph, node->inputs[i])));
    for (uint32_t i = 0; i < node->output_count; i++)
        elements = add_saturating(elements, elements_or_zero(shape_of(graph, node->outputs[i])));
    return add_saturating(mul_saturating(elements, looks_each(graph, node)),
                          inf_node_macs(graph, node));
}

struct inf_graph_cost inf_graph_cost(const struct inf_graph *graph)
{
    struct inf_graph_cost cost = {0};
    for (uint32_t i = 0; i < graph->node_count; i++)
        cost.macs = add_saturating(cost.macs, inf_node_macs(graph, &graph->nodes[i]));
    for (uint32_t i = 0; i < graph->value_count; i++) {
        const struct inf_value *value = &graph->values[i];
        if (value->data == NULL)
            continue;
        cost.const_bytes = add_saturating(cost.const_bytes, value->data->size_bytes);
        if (inf_dtype_is_float(value->dtype))
            cost.parameters = add_saturating(cost.parameters, elements_or_zero(&value->shape));
    }
    for (uint32_t i = 0; i < graph->subgraph_count; i++) {
        struct inf_graph_cost part = inf_graph_cost(graph->subgraphs[i]);
        cost.macs = add_saturating(cost.macs, part.macs);
        cost.parameters = add_saturating(cost.parameters, part.parameters);
        cost.const_bytes = add_saturating(cost.const_bytes, part.const_bytes);
    }
    return cost;
}
