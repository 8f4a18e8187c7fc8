// SPDX-License-Identifier: Apache-2.0
// The problem: a decoding step computes one row, but reads all weights of the model. Reading the
// weights takes most of its time. Steps of several sessions could read them together, but each
// session attends to a history of its own, and the histories have different lengths.
//
// The idea: copy the graph for each session, except for nodes whose rows do not depend on each
// other. Such a node is added once, and the copies share it: a product with constant weights, or,
// behind a product, a node that computes element by element or normalises within a row. The operand
// of a shared node is the concatenation of the operands of all copies along axis 0. Each copy reads
// its part of the result. Attention, positions and all other nodes stay in the copies.
//
//   copy 0   rows --+                                  +-- attention over history 0 --+
//                   concat -- product -- norm -- split +                              concat -- ...
//   copy 1   rows --+                                  +-- attention over history 1 --+
//
// A shared node computes the same function of each row as a node for one session, because no
// operator that is_row_wise() accepts mixes elements with different positions along axis 0. This
// holds whatever the rest of the model computes.
//
// Nodes that follow each other without a shared node between them stay together in each copy, so
// that a device recognises the same groups of nodes as in the graph for one session.
#include "backends/graph/history/join.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "proto/core/limits.h"

struct joiner {
    const struct inf_graph *source;
    struct inf_graph *graph; // the new graph
    uint32_t count;          // number of copies
    uint32_t products;       // products that the copies share
    // whole[v]: the value of the new graph that has the elements of all copies for value v of the
    // source, one copy behind the other along axis 0; INF_VALUE_NONE: there is none yet
    uint32_t *whole;
    // parts[v * count + c]: the value of the new graph that has the elements of copy c for value v;
    // INF_VALUE_NONE: there is none yet. All copies have the same value for a constant.
    uint32_t *parts;
    struct inf_error *err;
};

static const struct inf_shape *shape_of(const struct joiner *j, uint32_t value)
{
    return &j->source->values[value].shape;
}

static bool is_constant(const struct joiner *j, uint32_t value)
{
    return value == INF_VALUE_NONE || j->source->values[value].data != NULL;
}

// --- nodes that the copies share ---

static bool is_multiplication(const struct inf_node *node)
{
    return node->op == INF_OP_MATMUL || node->op == INF_OP_MATMUL_BLOCKS ||
           node->op == INF_OP_QMATMUL;
}

// Returns true if the node multiplies rows of its first operand with constants.
static bool is_product(const struct joiner *j, const struct inf_node *node)
{
    if (!is_multiplication(node) || is_constant(j, node->inputs[0]))
        return false;
    for (uint32_t i = 1; i < node->input_count; i++)
        if (!is_constant(j, node->inputs[i]))
            return false;
    // Weights with axes before those of the matrix may have a matrix for each item of axis 0.
    return shape_of(j, node->inputs[0])->rank >= 2 &&
           (node->op != INF_OP_MATMUL || !node->attrs.matmul.transpose_a) &&
           (node->op == INF_OP_MATMUL_BLOCKS || shape_of(j, node->inputs[1])->rank == 2);
}

// Returns true if the node normalises within each item of axis 0.
static bool is_row_norm(const struct joiner *j, const struct inf_node *node)
{
    const struct inf_ints *axes = &node->attrs.normalize.axes;
    bool within = node->op == INF_OP_NORMALIZE && axes->count > 0;
    for (int32_t i = 0; within && i < axes->count; i++)
        within = axes->values[i] != 0 && axes->values[i] != -shape_of(j, node->inputs[0])->rank;
    return within;
}

// Returns true if a shared node whose result has this shape may read the operand. It may be a
// constant that is the same for each item of axis 0, or a value with as many items as the result,
// because such values can be concatenated.
static bool fits_rows(const struct joiner *j, uint32_t value, const struct inf_shape *result)
{
    if (value == INF_VALUE_NONE)
        return true;
    const struct inf_shape *shape = shape_of(j, value);
    if (is_constant(j, value))
        return shape->rank < result->rank || shape->dims[0] == 1;
    return shape->rank == result->rank && shape->dims[0] == result->dims[0];
}

// Returns true if the copies can share the node, whose items along axis 0 do not depend on each
// other.
static bool is_row_wise(const struct joiner *j, const struct inf_node *node)
{
    const struct inf_shape *result = shape_of(j, node->outputs[0]);
    if (is_product(j, node))
        return true;
    if (node->op != INF_OP_UNARY && node->op != INF_OP_BINARY && node->op != INF_OP_CLIP &&
        node->op != INF_OP_CAST && !is_row_norm(j, node))
        return false;
    if (result->rank == 0)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (!fits_rows(j, node->inputs[i], result))
            return false;
    return true;
}

// Returns true if the copies share the node. A node that is no product is shared only if one of its
// operands is whole already, because sharing it alone saves less time than a concatenation takes.
static bool is_shared(const struct joiner *j, const struct inf_node *node)
{
    if (!is_row_wise(j, node))
        return false;
    bool shared = is_product(j, node);
    for (uint32_t i = 0; i < node->input_count; i++)
        shared = shared ||
                 (!is_constant(j, node->inputs[i]) && j->whole[node->inputs[i]] != INF_VALUE_NONE);
    return shared;
}

// --- values of the new graph ---

static enum inf_code add_constant(struct joiner *j, uint32_t value)
{
    const struct inf_value *constant = &j->source->values[value];
    if (j->parts[value * j->count] != INF_VALUE_NONE)
        return INF_OK;
    uint32_t added;
    INF_TRY(inf_graph_add_const(j->graph, constant->name, constant->dtype, &constant->shape,
                                inf_blob_ref(constant->data), &added, j->err));
    for (uint32_t c = 0; c < j->count; c++)
        j->parts[value * j->count + c] = added;
    return INF_OK;
}

// Makes sure that each copy has its part of a value.
static enum inf_code make_parts(struct joiner *j, uint32_t value)
{
    if (value == INF_VALUE_NONE || j->parts[value * j->count] != INF_VALUE_NONE)
        return INF_OK;
    if (is_constant(j, value))
        return add_constant(j, value);
    uint32_t node;
    INF_TRY(inf_graph_add_node(j->graph, INF_OP_SPLIT, j->source->values[value].name, "",
                               &j->whole[value], 1, j->count, &node, j->err));
    memcpy(&j->parts[value * j->count], j->graph->nodes[node].outputs, j->count * sizeof *j->parts);
    return INF_OK;
}

// Returns the operand of a shared node: a constant, or the elements of all copies.
static enum inf_code make_whole(struct joiner *j, uint32_t value, uint32_t *out_value)
{
    *out_value = INF_VALUE_NONE;
    if (value == INF_VALUE_NONE)
        return INF_OK;
    if (is_constant(j, value)) {
        INF_TRY(add_constant(j, value));
        *out_value = j->parts[value * j->count];
        return INF_OK;
    }
    if (j->whole[value] == INF_VALUE_NONE) {
        uint32_t node;
        INF_TRY(inf_graph_add_node(j->graph, INF_OP_CONCAT, j->source->values[value].name, "",
                                   &j->parts[value * j->count], j->count, 1, &node, j->err));
        j->whole[value] = j->graph->nodes[node].outputs[0];
    }
    *out_value = j->whole[value];
    return INF_OK;
}

// --- nodes of the new graph ---

static enum inf_code add_shared_node(struct joiner *j, const struct inf_node *node)
{
    uint32_t inputs[INF_LIMIT_NODE_INPUTS], added;
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(make_whole(j, node->inputs[i], &inputs[i]));
    INF_TRY(inf_graph_add_node(j->graph, node->op, node->name, node->source, inputs,
                               node->input_count, 1, &added, j->err));
    j->graph->nodes[added].attrs = node->attrs;
    j->whole[node->outputs[0]] = j->graph->nodes[added].outputs[0];
    j->products += is_product(j, node);
    return INF_OK;
}

static enum inf_code copy_node(struct joiner *j, const struct inf_node *node, uint32_t copy)
{
    uint32_t inputs[INF_LIMIT_NODE_INPUTS], added;
    for (uint32_t i = 0; i < node->input_count; i++)
        inputs[i] = node->inputs[i] == INF_VALUE_NONE ? INF_VALUE_NONE
                                                      : j->parts[node->inputs[i] * j->count + copy];
    INF_TRY(inf_graph_add_node(j->graph, node->op, node->name, node->source, inputs,
                               node->input_count, node->output_count, &added, j->err));
    j->graph->nodes[added].attrs = node->attrs;
    for (uint32_t i = 0; i < node->output_count; i++)
        j->parts[node->outputs[i] * j->count + copy] = j->graph->nodes[added].outputs[i];
    return INF_OK;
}

// Copies the nodes from `first` to before `end`, of which none is shared, for each session.
static enum inf_code copy_nodes(struct joiner *j, uint32_t first, uint32_t end)
{
    // Values that nodes of this group compute are left out: they are neither whole nor constant.
    for (uint32_t n = first; n < end; n++)
        for (uint32_t i = 0; i < j->source->nodes[n].input_count; i++) {
            uint32_t value = j->source->nodes[n].inputs[i];
            if (value != INF_VALUE_NONE &&
                (is_constant(j, value) || j->whole[value] != INF_VALUE_NONE))
                INF_TRY(make_parts(j, value));
        }
    for (uint32_t copy = 0; copy < j->count; copy++)
        for (uint32_t n = first; n < end; n++)
            INF_TRY(copy_node(j, &j->source->nodes[n], copy));
    return INF_OK;
}

static enum inf_code add_nodes(struct joiner *j)
{
    uint32_t first = 0; // the nodes from here on are not copied yet
    for (uint32_t n = 0; n < j->source->node_count; n++) {
        const struct inf_node *node = &j->source->nodes[n];
        if (!is_shared(j, node))
            continue;
        INF_TRY(copy_nodes(j, first, n));
        INF_TRY(add_shared_node(j, node));
        first = n + 1;
    }
    return copy_nodes(j, first, j->source->node_count);
}

// --- inputs and outputs ---

// Names a port of a copy, so that no two ports have the same name.
static void name_port(char *text, size_t size, uint32_t copy, const char *name)
{
    snprintf(text, size, "#%u:%s", copy, name);
}

static enum inf_code add_inputs(struct joiner *j)
{
    char name[INF_LIMIT_TENSOR_NAME + 16];
    for (uint32_t copy = 0; copy < j->count; copy++)
        for (uint32_t i = 0; i < j->source->input_count; i++) {
            const struct inf_port *port = &j->source->inputs[i];
            const struct inf_value *value = &j->source->values[port->value];
            uint32_t *part = &j->parts[port->value * j->count + copy];
            name_port(name, sizeof name, copy, port->name);
            INF_TRY(inf_graph_add_value(j->graph, value->name, value->dtype, &value->shape, part,
                                        j->err));
            INF_TRY(inf_graph_add_input(j->graph, name, *part, j->err));
        }
    return INF_OK;
}

static enum inf_code add_outputs(struct joiner *j)
{
    char name[INF_LIMIT_TENSOR_NAME + 16];
    for (uint32_t i = 0; i < j->source->output_count; i++)
        INF_TRY(make_parts(j, j->source->outputs[i].value));
    for (uint32_t copy = 0; copy < j->count; copy++)
        for (uint32_t i = 0; i < j->source->output_count; i++) {
            const struct inf_port *port = &j->source->outputs[i];
            name_port(name, sizeof name, copy, port->name);
            INF_TRY(inf_graph_add_output(j->graph, name, j->parts[port->value * j->count + copy],
                                         j->err));
        }
    return INF_OK;
}

// Fails because the copies share no product. The error names the first product with weights.
static enum inf_code refuse_graph(const struct joiner *j)
{
    for (uint32_t n = 0; n < j->source->node_count; n++) {
        const struct inf_node *node = &j->source->nodes[n];
        if (is_multiplication(node) && !is_constant(j, node->inputs[0]) &&
            is_constant(j, node->inputs[1]))
            return inf_fail(j->err, INF_UNSUPPORTED, "%s '%.48s' does not multiply row by row",
                            inf_op_info(node->op)->name, node->name);
    }
    return inf_fail(j->err, INF_UNSUPPORTED, "no product has constant weights");
}

static enum inf_code build_graph(struct joiner *j)
{
    size_t values = (size_t)j->source->value_count + 1;
    j->whole = malloc(values * sizeof *j->whole);
    j->parts = malloc(values * j->count * sizeof *j->parts);
    if (j->whole == NULL || j->parts == NULL)
        return inf_fail_reason(j->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to build a graph of %u values", j->source->value_count);
    memset(j->whole, 0xff, values * sizeof *j->whole);            // INF_VALUE_NONE
    memset(j->parts, 0xff, values * j->count * sizeof *j->parts); // INF_VALUE_NONE
    INF_TRY(inf_graph_create_inside(&j->graph, j->source, j->err));
    INF_TRY(add_inputs(j));
    INF_TRY(add_nodes(j));
    if (j->products == 0)
        return refuse_graph(j);
    INF_TRY(add_outputs(j));
    return inf_shape_infer(j->graph, j->err);
}

enum inf_code inf_history_join(const struct inf_graph *graph, uint32_t count,
                               struct inf_graph **out_graph, struct inf_error *err)
{
    struct joiner j = {.source = graph, .count = count, .err = err};
    assert(count >= 2 && count <= INF_HISTORY_SESSIONS_MAX);
    if (graph->subgraph_count > 0)
        return inf_fail(err, INF_UNSUPPORTED, "branches and loops run for one session only");
    enum inf_code code = build_graph(&j);
    if (code == INF_OK) {
        *out_graph = j.graph;
        j.graph = NULL;
    }
    inf_graph_destroy(&j.graph);
    free(j.whole);
    free(j.parts);
    return code;
}
