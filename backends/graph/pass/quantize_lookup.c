// SPDX-License-Identifier: Apache-2.0
// Functions of one number between dequantize and quantize become tables.
//
// A byte has 256 values, so the function, with the dequantize before it and the quantize behind it,
// is a table of 256 bytes. The table is computed here, by the evaluator of constant folding: the
// nodes are copied into a graph of their own, in which x is the constant 0 to 255. Results are
// therefore those of the float nodes on the reference device.
#include "backends/graph/pass/quantize_lookup.h"

#include "backends/graph/shape/infer.h"

#define TABLE_SIZE 256

// The graph that computes a table. After a failure `code` is not INF_OK, and later calls do
// nothing.
struct table {
    struct inf_graph *graph;
    uint32_t value; // the result of the last node
    enum inf_code code;
    struct inf_error *err;
};

static void add_bytes(struct table *table, enum inf_dtype dtype)
{
    struct inf_blob *blob = inf_blob_create(TABLE_SIZE);
    if (blob == NULL) {
        table->code = inf_fail_reason(table->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory");
        return;
    }
    for (size_t i = 0; i < TABLE_SIZE; i++)
        ((uint8_t *)blob->data)[i] = (uint8_t)i;
    table->code = inf_graph_add_const(table->graph, "x", dtype, &INF_SHAPE(TABLE_SIZE), blob,
                                      &table->value, table->err);
}

// Adds a copy of a node that reads the last result. Its further operands are constants of `from`.
static void copy_node(struct table *table, const struct inf_graph *from,
                      const struct inf_node *node)
{
    uint32_t inputs[3] = {table->value, INF_VALUE_NONE, INF_VALUE_NONE};
    uint32_t index;
    if (table->code == INF_OK && node->input_count > INF_ARRAY_LENGTH(inputs))
        table->code = INF_UNSUPPORTED;
    for (uint32_t i = 1; table->code == INF_OK && i < node->input_count; i++) {
        if (node->inputs[i] == INF_VALUE_NONE)
            continue;
        const struct inf_value *value = &from->values[node->inputs[i]];
        table->code = inf_graph_add_const(table->graph, value->name, value->dtype, &value->shape,
                                          inf_blob_ref(value->data), &inputs[i], table->err);
    }
    if (table->code == INF_OK)
        table->code = inf_graph_add_node(table->graph, node->op, node->name, "", inputs,
                                         node->input_count, 1, &index, table->err);
    if (table->code != INF_OK)
        return;
    table->graph->nodes[index].attrs = node->attrs;
    table->value = table->graph->nodes[index].outputs[0];
}

// Computes all nodes. Returns false if one cannot be computed, or has another shape than a table.
static bool evaluate_nodes(struct table *table, const struct inf_evaluator *evaluator)
{
    struct inf_graph *graph = table->graph;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        struct inf_value *value = &graph->values[graph->nodes[i].outputs[0]];
        struct inf_error ignored = {0};
        struct inf_blob *blob;
        if (inf_shape_infer_node(graph, i, &ignored) != INF_OK || value->shape.rank != 1 ||
            inf_evaluator_compute(evaluator, graph, i, &blob) != INF_OK)
            return false;
        value->data = blob;
    }
    return true;
}

// Sets *out_table to the table, or to NULL if it cannot be computed. The caller owns a reference.
static enum inf_code compute_table(const struct inf_rewrite *rewrite,
                                   const struct inf_quantize_match *match, uint32_t dequantize,
                                   enum inf_dtype dtype, struct inf_blob **out_table)
{
    const struct inf_graph *graph = rewrite->graph;
    struct table table = {.err = rewrite->err};
    *out_table = NULL;
    INF_TRY(inf_graph_create(&table.graph, rewrite->err));
    add_bytes(&table, dtype);
    copy_node(&table, graph, &graph->nodes[dequantize]);
    copy_node(&table, graph, &graph->nodes[match->node]);
    if (match->clamp_node != INF_NODE_NONE)
        copy_node(&table, graph, &graph->nodes[match->clamp_node]);
    copy_node(&table, graph, &graph->nodes[match->quantize]);
    if (table.code == INF_OK && evaluate_nodes(&table, rewrite->evaluator))
        *out_table = inf_blob_ref(table.graph->values[table.value].data);
    inf_graph_destroy(&table.graph);
    return table.code == INF_UNSUPPORTED ? INF_OK : table.code;
}

enum inf_code inf_quantize_lookup(struct inf_rewrite *rewrite,
                                  const struct inf_quantize_match *match)
{
    struct inf_graph *graph = rewrite->graph;
    const struct inf_node *node = &graph->nodes[match->node];
    struct inf_quantized x;
    struct inf_blob *blob;
    if (node->op != INF_OP_UNARY || rewrite->evaluator == NULL ||
        !inf_quantized_find(graph, node->inputs[0], &x) || x.scale_count != 1)
        return INF_OK;
    uint32_t dequantize = graph->values[node->inputs[0]].producer;
    INF_TRY(compute_table(rewrite, match, dequantize, graph->values[x.bytes].dtype, &blob));
    if (blob == NULL)
        return INF_OK;
    uint32_t inputs[] = {x.bytes, INF_VALUE_NONE, INF_VALUE_NONE}; // quantize has a zero point
    INF_TRY(inf_rewrite_add_const(rewrite, node->name, graph->values[match->y.bytes].dtype,
                                  &INF_SHAPE(TABLE_SIZE), blob, &inputs[1]));
    struct inf_node *to = &graph->nodes[match->quantize];
    to->op = INF_OP_LOOKUP;
    inf_attrs_init(&to->attrs, to->op);
    INF_TRY(inf_quantize_set_inputs(rewrite, match->quantize, inputs, INF_ARRAY_LENGTH(inputs)));
    graph->nodes[match->quantize].input_count = 2;
    if (match->clamp_node != INF_NODE_NONE)
        inf_rewrite_remove(rewrite, match->clamp_node);
    inf_rewrite_remove(rewrite, match->node);
    return INF_OK;
}
