// SPDX-License-Identifier: Apache-2.0
// Lets operators on 16-bit floats compute in fp32, because devices have kernels for fp32.
//
// Every value of type FP16 or BF16 gets a widened value of type FP32. Nodes read and compute the
// widened values. A cast connects the two at the borders, where the type matters:
//
//     graph inputs, constants     original -> cast -> widened
//     casts to 16 bits            cast -> original -> cast -> widened, as the model rounds here
//     graph outputs, subgraphs    widened -> cast -> original
//
// Constants are widened once, because their casts are folded. Results between nodes are not rounded
// to 16 bits. They are more exact than the model's types ask for, and a result beyond 65504 becomes
// infinite only at a border.
#include <stdlib.h>

#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"

struct widening {
    struct inf_rewrite *rewrite;
    struct inf_graph *graph;
    uint32_t *wide; // indexed by value: the FP32 value; INF_VALUE_NONE if there is none yet
    // original[v]: value v exists in its own type, as an input, a constant or a result of `nodes`
    bool *original;
    struct inf_node *nodes; // the new list of nodes
    uint32_t count, capacity;
};

static bool is_half(const struct inf_graph *graph, uint32_t value)
{
    return value != INF_VALUE_NONE && (graph->values[value].dtype == INF_DTYPE_F16 ||
                                       graph->values[value].dtype == INF_DTYPE_BF16);
}

// Returns true if the node needs its operands in their own types: casts, branches and loops.
static bool keeps_types(const struct inf_node *node)
{
    return node->op == INF_OP_CAST || node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP;
}

static bool touches_half(const struct inf_graph *graph, const struct inf_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++)
        if (is_half(graph, node->inputs[i]))
            return true;
    for (uint32_t i = 0; i < node->output_count; i++)
        if (is_half(graph, node->outputs[i]))
            return true;
    return false;
}

// Returns true if a node computes 16-bit floats. Nodes that only move elements need no fp32.
static bool needs_widening(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        bool moves = node->op >= INF_OP_IDENTITY && node->op <= INF_OP_FILL;
        if (!moves && !keeps_types(node) && touches_half(graph, node))
            return true;
    }
    return false;
}

static enum inf_code no_memory(const struct widening *widening)
{
    return inf_fail_reason(widening->rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory to rewrite a graph of %u values",
                           widening->graph->value_count);
}

static enum inf_code append_node(struct widening *widening, const struct inf_node *node)
{
    if (widening->count == widening->capacity) {
        uint32_t wanted = widening->capacity * 2 + 64;
        struct inf_node *grown = realloc(widening->nodes, wanted * sizeof *grown);
        if (grown == NULL)
            return no_memory(widening);
        widening->nodes = grown;
        widening->capacity = wanted;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        widening->graph->values[node->outputs[i]].producer = widening->count;
    widening->nodes[widening->count++] = *node;
    return INF_OK;
}

// Appends a cast from one value to another. The type of `to` is set.
static enum inf_code append_cast(struct widening *widening, uint32_t from, uint32_t to)
{
    struct inf_graph *graph = widening->graph;
    struct inf_node node = {.op = INF_OP_CAST,
                            .name = graph->values[to].name,
                            .source = "",
                            .input_count = 1,
                            .inputs = inf_arena_alloc(&graph->arena, sizeof *node.inputs),
                            .output_count = 1,
                            .outputs = inf_arena_alloc(&graph->arena, sizeof *node.outputs)};
    if (node.inputs == NULL || node.outputs == NULL)
        return no_memory(widening);
    node.inputs[0] = from;
    node.outputs[0] = to;
    inf_attrs_init(&node.attrs, INF_OP_CAST);
    node.attrs.cast.dtype = graph->values[to].dtype;
    return append_node(widening, &node);
}

// Adds the FP32 value that stands for the 16-bit value `half`.
static enum inf_code add_wide(struct widening *widening, uint32_t half)
{
    const struct inf_value *value = &widening->graph->values[half];
    struct inf_shape shape = value->shape;
    return inf_graph_add_value(widening->graph, value->name, INF_DTYPE_F32, &shape,
                               &widening->wide[half], widening->rewrite->err);
}

// If *value is a 16-bit value, replaces it by the index of the FP32 value that stands for it. If no
// node computes the FP32 value, as for graph inputs and constants, appends a cast that does.
static enum inf_code widen_use(struct widening *widening, uint32_t *value)
{
    if (!is_half(widening->graph, *value))
        return INF_OK;
    if (widening->wide[*value] == INF_VALUE_NONE) {
        INF_TRY(add_wide(widening, *value));
        INF_TRY(append_cast(widening, *value, widening->wide[*value]));
    }
    *value = widening->wide[*value];
    return INF_OK;
}

// Makes sure that a node computes the 16-bit value `value`: if only its FP32 value is computed,
// appends a cast from FP32 to 16 bits.
static enum inf_code narrow_use(struct widening *widening, uint32_t value)
{
    if (!is_half(widening->graph, value) || widening->original[value])
        return INF_OK;
    widening->original[value] = true;
    return append_cast(widening, widening->wide[value], value);
}

// Appends a cast of an integer or bool to a 16-bit float, by way of FP32.
static enum inf_code append_integer_cast(struct widening *widening, struct inf_node *node)
{
    uint32_t half = node->outputs[0];
    struct inf_shape shape = widening->graph->values[half].shape;
    INF_TRY(inf_graph_add_value(widening->graph, node->name, INF_DTYPE_F32, &shape,
                                &node->outputs[0], widening->rewrite->err));
    node->attrs.cast.dtype = INF_DTYPE_F32;
    INF_TRY(append_node(widening, node));
    return append_cast(widening, node->outputs[0], half);
}

// Appends a cast, branch or loop, whose 16-bit results keep their type instead of becoming FP32.
static enum inf_code visit_typed(struct widening *widening, struct inf_node *node)
{
    for (uint32_t i = 0; i < node->input_count; i++) {
        if (node->op == INF_OP_CAST)
            INF_TRY(widen_use(widening, &node->inputs[i]));
        else
            INF_TRY(narrow_use(widening, node->inputs[i]));
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        widening->original[node->outputs[i]] = true;
    if (node->op == INF_OP_CAST && is_half(widening->graph, node->outputs[0]) &&
        !inf_dtype_is_float(widening->graph->values[node->inputs[0]].dtype))
        return append_integer_cast(widening, node);
    return append_node(widening, node);
}

// Appends a node that computes FP32 instead of 16-bit values.
static enum inf_code visit_node(struct widening *widening, struct inf_node *node)
{
    if (keeps_types(node))
        return visit_typed(widening, node);
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(widen_use(widening, &node->inputs[i]));
    for (uint32_t i = 0; i < node->output_count; i++) {
        if (!is_half(widening->graph, node->outputs[i]))
            continue;
        INF_TRY(add_wide(widening, node->outputs[i]));
        widening->graph->values[node->outputs[i]].producer = INF_NODE_NONE;
        node->outputs[i] = widening->wide[node->outputs[i]];
    }
    return append_node(widening, node);
}

static enum inf_code write_nodes(struct widening *widening)
{
    struct inf_graph *graph = widening->graph;
    for (uint32_t i = 0; i < graph->node_count; i++)
        INF_TRY(visit_node(widening, &graph->nodes[i]));
    for (uint32_t i = 0; i < graph->output_count; i++)
        INF_TRY(narrow_use(widening, graph->outputs[i].value));
    return INF_OK;
}

static enum inf_code init_widening(struct widening *widening, struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    *widening = (struct widening){.rewrite = rewrite, .graph = graph};
    widening->wide = calloc((size_t)graph->value_count + 1, sizeof *widening->wide);
    widening->original = calloc((size_t)graph->value_count + 1, sizeof *widening->original);
    if (widening->wide == NULL || widening->original == NULL)
        return no_memory(widening);
    for (uint32_t v = 0; v < graph->value_count; v++) {
        widening->wide[v] = INF_VALUE_NONE;
        // Graph inputs and constants exist from the start. Another 16-bit value exists only after a
        // node that computes it was appended.
        widening->original[v] = graph->values[v].producer == INF_NODE_NONE;
    }
    return INF_OK;
}

// Replaces the nodes of the graph by the new list.
static enum inf_code replace_nodes(struct widening *widening)
{
    struct inf_rewrite *rewrite = widening->rewrite;
    bool *removed = calloc((size_t)widening->count + 1, sizeof *removed);
    if (removed == NULL)
        return no_memory(widening);
    free(rewrite->removed);
    rewrite->removed = removed;
    free(widening->graph->nodes);
    widening->graph->nodes = widening->nodes;
    widening->graph->node_count = widening->count;
    widening->graph->node_capacity = widening->capacity;
    widening->nodes = NULL;
    rewrite->changed = true;
    return INF_OK;
}

enum inf_code inf_pass_widen(struct inf_rewrite *rewrite)
{
    struct widening widening;
    if (!needs_widening(rewrite->graph))
        return INF_OK;
    enum inf_code code = init_widening(&widening, rewrite);
    if (code == INF_OK)
        code = write_nodes(&widening);
    if (code == INF_OK)
        code = replace_nodes(&widening);
    free(widening.nodes);
    free(widening.wide);
    free(widening.original);
    return code;
}
