// SPDX-License-Identifier: Apache-2.0
// Folds nodes of constants while a graph is built. A node is folded only if that is cheap:
// products, convolutions and control flow are left to the passes, and one fold makes at most 64
// KiB. A limit on the sum of all folds prevents a small file from making a large graph.
#include "backends/graph/build/fold.h"

#include <assert.h>

// Maximum size of the outputs of one fold: enough for shapes, axes and small tables, but not for
// weights.
#define OUTPUT_BYTES_MAX ((size_t)64 << 10)
// Maximum size of the constants that one fold may read.
#define INPUT_BYTES_MAX ((size_t)1 << 20)
// Maximum size of the outputs of all folds of one import.
#define TOTAL_BYTES_MAX ((size_t)64 << 20)

// Returns whether a node may be folded while the graph is built, judged by its operator.
// DEQUANTIZE is not folded here, because passes need quantised weights as bytes; RANDOM, because
// every run draws other numbers unless it has a seed.
static bool is_cheap(enum inf_op op)
{
    return op != INF_OP_BRANCH && op != INF_OP_LOOP && op != INF_OP_RNN && op != INF_OP_CONV_ND &&
           op != INF_OP_POOL_ND && op != INF_OP_CONV2D && op != INF_OP_DEPTHWISE_CONV2D &&
           op != INF_OP_CONV2D_TRANSPOSE && op != INF_OP_POOL2D && op != INF_OP_MATMUL &&
           op != INF_OP_RESIZE && op != INF_OP_QCONV2D && op != INF_OP_QMATMUL &&
           op != INF_OP_MATMUL_BLOCKS && op != INF_OP_DEQUANTIZE && op != INF_OP_RANDOM;
}

// Returns true if all inputs are small constants. SHAPE is an exception: its input need not be a
// constant, but must have a known shape.
static bool inputs_fit(const struct inf_graph *graph, const struct inf_node *node)
{
    size_t total = 0;
    if (node->op == INF_OP_SHAPE)
        return inf_shape_known(&graph->values[node->inputs[0]].shape);
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->inputs[i] == INF_VALUE_NONE)
            continue;
        if (!inf_graph_is_const(graph, node->inputs[i]))
            return false;
        total += graph->values[node->inputs[i]].data->size_bytes;
    }
    return total <= INPUT_BYTES_MAX;
}

// Returns true if all output shapes are known and small enough. *total is the size of all outputs
// in bytes.
static bool outputs_fit(const struct inf_graph *graph, const struct inf_node *node, size_t *total)
{
    *total = 0;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *value = &graph->values[node->outputs[i]];
        size_t size_bytes;
        if (!inf_shape_bytes(&value->shape, value->dtype, &size_bytes) ||
            size_bytes > OUTPUT_BYTES_MAX)
            return false;
        *total += size_bytes;
    }
    return *total <= OUTPUT_BYTES_MAX;
}

void inf_fold_last_node(struct inf_fold *fold, struct inf_graph *graph)
{
    assert(graph->node_count > 0);
    uint32_t index = graph->node_count - 1;
    struct inf_node *node = &graph->nodes[index];
    struct inf_blob *blobs[INF_LIMIT_RANK] = {0};
    size_t total;
    if (node->output_count > INF_ARRAY_LENGTH(blobs) || !is_cheap(node->op) ||
        (fold->evaluator == NULL && node->op != INF_OP_SHAPE) || !inputs_fit(graph, node) ||
        !outputs_fit(graph, node, &total) || fold->folded_bytes + total > TOTAL_BYTES_MAX)
        return;
    if (inf_evaluator_compute(fold->evaluator, graph, index, blobs) != INF_OK)
        return;
    for (uint32_t i = 0; i < node->output_count; i++) {
        graph->values[node->outputs[i]].data = blobs[i];
        graph->values[node->outputs[i]].producer = INF_NODE_NONE;
    }
    fold->folded_bytes += total;
    graph->node_count--;
}
