// SPDX-License-Identifier: Apache-2.0
// Adds nodes to a graph through a builder (builder.h) and remembers the builder's first failure.
// The shapes of a node are inferred as soon as the node is added, so that the next expression can
// depend on them. The functions for single operators are in math.c, move.c and compose.c.
#include "backends/graph/build/builder.h"

#include <assert.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "proto/core/limits.h"

void inf_build_vfail(struct inf_builder *b, enum inf_code code, const char *format,
                     va_list arguments)
{
    assert(code != INF_OK);
    if (!inf_build_ok(b))
        return;
    inf_error_vset(b->err, code, code == INF_UNSUPPORTED ? INF_REASON_OPERATOR : INF_REASON_NONE,
                   __FILE__, __LINE__, format, arguments);
    b->code = inf_error_prefix(b->err, code, "%s '%.200s' (%.80s)", b->noun, b->name, b->source);
}

void inf_build_fail(struct inf_builder *b, enum inf_code code, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    inf_build_vfail(b, code, format, arguments);
    va_end(arguments);
}

struct inf_build_node inf_build_describe(enum inf_op op, uint32_t x, uint32_t y, uint32_t z)
{
    struct inf_build_node node = {.op = op, .inputs = {x, y, z}, .output_count = 1};
    while (node.input_count < 3 && node.inputs[node.input_count] != INF_VALUE_NONE)
        node.input_count++;
    inf_attrs_init(&node.attrs, op);
    return node;
}

struct inf_build_node inf_build_describe_list(enum inf_op op, const uint32_t *inputs,
                                              uint32_t count)
{
    struct inf_build_node node = {
        .op = op, .list = inputs, .input_count = count, .output_count = 1};
    assert(inputs != NULL || count == 0);
    inf_attrs_init(&node.attrs, op);
    return node;
}

// Counts one more node that the import has made and fails at the limit. Functions in a model file
// can call each other, so that even a small file could otherwise make an endless number of nodes.
static void count_node(struct inf_builder *b)
{
    if (b->node_total == NULL || ++*b->node_total <= INF_LIMIT_GRAPH_NODES)
        return;
    b->code = inf_fail(b->err, INF_EXHAUSTED, "the model makes more than %u nodes",
                       INF_LIMIT_GRAPH_NODES);
}

void inf_build_emit(struct inf_builder *b, const struct inf_build_node *node, uint32_t *out_values)
{
    uint32_t index = 0;
    for (uint32_t i = 0; i < node->output_count; i++)
        out_values[i] = INF_VALUE_NONE;
    if (inf_build_ok(b) && inf_is_cancelled(b->cancelled))
        inf_build_fail(b, INF_CANCELLED, "cancelled while the model was read");
    if (inf_build_ok(b))
        count_node(b);
    if (!inf_build_ok(b))
        return;
    b->code = inf_graph_add_node(b->graph, node->op, b->name, b->source,
                                 node->list != NULL ? node->list : node->inputs, node->input_count,
                                 node->output_count, &index, b->err);
    if (!inf_build_ok(b))
        return;
    b->graph->nodes[index].attrs = node->attrs;
    memcpy(out_values, b->graph->nodes[index].outputs, node->output_count * sizeof *out_values);
    b->code = inf_shape_infer_node(b->graph, index, b->err);
    if (inf_build_ok(b) && b->fold != NULL)
        inf_fold_last_node(b->fold, b->graph);
}

uint32_t inf_build_value(struct inf_builder *b, const struct inf_build_node *node)
{
    uint32_t value;
    assert(node->output_count == 1);
    inf_build_emit(b, node, &value);
    return value;
}
