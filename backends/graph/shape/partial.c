// SPDX-License-Identifier: Apache-2.0
// Reads the known elements of a list of sizes that is not a constant yet. Exporters write a shape
// as a concatenation of constants and sizes of a tensor; some of these sizes are known only at run
// time.
#include <string.h>

#include "backends/graph/shape/rules.h"

// The most values on a path that is followed from a list back to a constant or a shape node.
#define DEPTH_MAX 4

static void read_elements(const struct inf_graph *graph, uint32_t value, int depth, int64_t *out,
                          int64_t count);

// Stores the known elements of a concatenation in `out`, which has room for `count` elements.
static void read_parts(const struct inf_graph *graph, const struct inf_node *node, int depth,
                       int64_t *out, int64_t count)
{
    int64_t at = 0;
    for (uint32_t i = 0; i < node->input_count; i++) {
        const struct inf_shape *shape = &graph->values[node->inputs[i]].shape;
        // After an input of unknown length, the positions of further elements are unknown.
        if (shape->rank != 1 || shape->dims[0] < 0 || shape->dims[0] > count - at)
            return;
        read_elements(graph, node->inputs[i], depth - 1, out + at, shape->dims[0]);
        at += shape->dims[0];
    }
}

// Stores the known elements of the list `value`, which has `count` elements, in `out`. Other
// elements of `out` keep their values or become negative. Paths back from `value` are followed for
// at most `depth` values.
static void read_elements(const struct inf_graph *graph, uint32_t value, int depth, int64_t *out,
                          int64_t count)
{
    int64_t elements[INF_LIMIT_RANK];
    uint32_t known, producer = graph->values[value].producer;
    if (count > INF_LIMIT_RANK || depth == 0)
        return;
    if (inf_graph_const_ints(graph, value, elements, INF_LIMIT_RANK, &known)) {
        if (known == count)
            memcpy(out, elements, (size_t)count * sizeof *out);
        return;
    }
    if (producer == INF_NODE_NONE || producer >= graph->node_count)
        return;
    const struct inf_node *node = &graph->nodes[producer];
    if (node->op == INF_OP_CONCAT)
        read_parts(graph, node, depth, out, count);
    else if (node->op == INF_OP_CAST || node->op == INF_OP_IDENTITY)
        read_elements(graph, node->inputs[0], depth - 1, out, count);
    else if (node->op == INF_OP_SHAPE && graph->values[node->inputs[0]].shape.rank == count)
        memcpy(out, graph->values[node->inputs[0]].shape.dims, (size_t)count * sizeof *out);
}

void inf_infer_partial(const struct inf_infer *infer, uint32_t index, struct inf_shape *shape)
{
    int64_t elements[INF_LIMIT_RANK];
    for (int32_t i = 0; i < shape->rank; i++)
        elements[i] = INF_DIM_UNKNOWN;
    if (shape->rank > 0)
        read_elements(infer->graph, infer->node->inputs[index], DEPTH_MAX, elements, shape->rank);
    for (int32_t i = 0; i < shape->rank; i++)
        if (elements[i] >= 0 && elements[i] < INF_LIMIT_DIM)
            shape->dims[i] = elements[i];
}
