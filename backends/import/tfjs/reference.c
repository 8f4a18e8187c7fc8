// SPDX-License-Identifier: Apache-2.0
// Lowers the nodes on which references depend. A depth-first walk sorts the nodes so that every
// input is lowered before it is used. Then the function of each node's operator lowers it. The walk
// uses its own stack, because the depth of a model is limited only by its number of nodes.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/tfjs/complex.h"
#include "backends/import/tfjs/control.h"
#include "backends/import/tfjs/missing.h"
#include "backends/import/tfjs/region.h"

// Value of a node's `next` when the search has visited all inputs of the node.
#define DONE UINT32_MAX

static bool is_lowered(const struct inf_tfjs_scope *scope, uint32_t node)
{
    return scope->source->nodes[node].region == inf_tfjs_region_id(scope->region);
}

// --- finding the value of a reference ---

// Operators with named outputs, for references in functions: "node:indices:0" is output 1 of a
// TopKV2.
static const struct {
    const char *op, *output;
    uint32_t port;
} output_names[] = {
    {"TopKV2", "indices", 1},
    {"Unique", "idx", 1},
    {"UniqueV2", "idx", 1},
    {"ListDiff", "idx", 1},
    {"NonMaxSuppressionV4", "valid_outputs", 1},
    {"NonMaxSuppressionV5", "selected_scores", 1},
    {"NonMaxSuppressionV5", "valid_outputs", 2},
    {"MaxPoolWithArgmax", "argmax", 1},
    {"TensorArrayV3", "flow", 1},
    {"TensorListPopBack", "tensor", 1},
    {"TensorListConcat", "lengths", 1},
    {"TensorListConcatV2", "lengths", 1},
    {"TensorArrayConcatV3", "lengths", 1},
    {"Switch", "output_true", 1},
    {"StringSplit", "values", 1},
    {"StringSplit", "shape", 2},
    {"StringNGrams", "ngrams_splits", 1},
    {"RaggedRange", "rt_dense_values", 1},
    {"SparseReshape", "output_shape", 1},
    {"SparseFillEmptyRows", "output_values", 1},
    {"SparseFillEmptyRows", "empty_row_indicator", 2},
    {"SparseFillEmptyRows", "reverse_index_map", 3},
};

static uint32_t find_first_port(const char *op, const char *output_name)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(output_names); i++)
        if (strcmp(output_names[i].op, op) == 0 && strcmp(output_names[i].output, output_name) == 0)
            return output_names[i].port;
    return 0;
}

// Sets *out_value to the value of a reference whose node was lowered. Unlike inf_tfjs_value(),
// accepts a complex value and returns its real part.
static enum inf_code find_value(const struct inf_tfjs_scope *scope, const struct inf_tfjs_ref *ref,
                                uint32_t *out_value, const char *where, struct inf_error *err)
{
    const struct inf_tfjs_node *node = &scope->source->nodes[ref->node];
    const struct inf_tfjs_op *op = scope->library->find_op(node->op);
    if (op != NULL && op->only_output != NULL && *ref->output_name != '\0' &&
        strcmp(op->only_output, ref->output_name) != 0)
        return inf_fail(err, INF_UNSUPPORTED, "%s: takes output '%.40s' of node '%.200s' (%s)",
                        where, ref->output_name, node->name, node->op);
    uint64_t port = (uint64_t)ref->port + find_first_port(node->op, ref->output_name);
    if (port >= node->value_count || node->values[port] == INF_VALUE_NONE)
        return inf_fail(err, INF_INVALID, "%s: takes output %u of node '%.200s' (%s), which has %u",
                        where, ref->port, node->name, node->op, node->value_count);
    *out_value = node->values[port];
    return INF_OK;
}

enum inf_code inf_tfjs_value(const struct inf_tfjs_scope *scope, const struct inf_tfjs_ref *ref,
                             uint32_t *out_value, const char *where, struct inf_error *err)
{
    const struct inf_tfjs_node *node = &scope->source->nodes[ref->node];
    if (node->is_complex)
        return inf_fail(err, INF_UNSUPPORTED,
                        "%s: takes complex numbers from node '%.200s' (%s), wanted Real, Imag or "
                        "ComplexAbs between them",
                        where, node->name, node->op);
    return find_value(scope, ref, out_value, where, err);
}

// --- sorting nodes so that inputs are lowered first ---

// A list of nodes in which the inputs of a node come before the node, so that it can be lowered.
struct order {
    uint32_t *nodes;
    uint32_t count, capacity;
    uint32_t *stack;
    uint32_t depth, stack_capacity;
};

static enum inf_code push_item(uint32_t **list, uint32_t *count, uint32_t *capacity, uint32_t item,
                               struct inf_error *err)
{
    if (*count == *capacity) {
        uint32_t wanted = *capacity == 0 ? 64 : *capacity * 2;
        uint32_t *grown = realloc(*list, wanted * sizeof *grown);
        if (grown == NULL)
            return inf_fail(err, INF_EXHAUSTED, "no memory to walk the model's graph");
        *list = grown;
        *capacity = wanted;
    }
    (*list)[(*count)++] = item;
    return INF_OK;
}

// Appends `root` and the nodes that it depends on to the order of lowering, inputs first.
static enum inf_code walk_from(const struct inf_tfjs_scope *scope, struct order *order,
                               uint32_t root, uint32_t walk, struct inf_error *err)
{
    struct inf_tfjs_graph *graph = scope->source;
    if (is_lowered(scope, root) || graph->nodes[root].walk == walk)
        return INF_OK;
    graph->nodes[root].walk = walk;
    graph->nodes[root].next = 0;
    INF_TRY(push_item(&order->stack, &order->depth, &order->stack_capacity, root, err));
    while (order->depth > 0) {
        uint32_t index = order->stack[order->depth - 1];
        struct inf_tfjs_node *node = &graph->nodes[index];
        if (node->next == inf_tfjs_dependency_count(graph, index)) {
            node->next = DONE;
            order->depth--;
            INF_TRY(push_item(&order->nodes, &order->count, &order->capacity, index, err));
            continue;
        }
        uint32_t from = inf_tfjs_dependency(graph, index, node->next++).node;
        if (is_lowered(scope, from))
            continue;
        if (graph->nodes[from].walk == walk && graph->nodes[from].next != DONE)
            return inf_fail(err, INF_INVALID,
                            "node '%.200s' (%.40s): is part of a cycle through its input '%.200s'",
                            node->name, node->op, graph->nodes[from].name);
        if (graph->nodes[from].walk == walk)
            continue;
        graph->nodes[from].walk = walk;
        graph->nodes[from].next = 0;
        INF_TRY(push_item(&order->stack, &order->depth, &order->stack_capacity, from, err));
    }
    return INF_OK;
}

// Lowers a node that is not part of control flow, with the function of its operator.
static enum inf_code lower_plain(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_node *node = scope->node;
    scope->op = scope->library->find_op(node->op);
    if (scope->op == NULL)
        return inf_tfjs_fail(scope, err, INF_UNSUPPORTED, "is not supported: %s",
                             inf_tfjs_missing_reason(node->op));
    if (node->input_count < scope->op->inputs_min || node->input_count > scope->op->inputs_max)
        return inf_tfjs_fail(scope, err, INF_INVALID, "has %u inputs, wanted %u to %u",
                             node->input_count, scope->op->inputs_min, scope->op->inputs_max);
    char where[256];
    snprintf(where, sizeof where, "node '%.180s' (%.40s)", node->name, node->op);
    scope->input_count = node->input_count;
    scope->channels_first = 0;
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(find_value(scope, &node->inputs[i], &scope->inputs[i], where, err));
    return inf_tfjs_takes_complex(scope) ? inf_tfjs_lower_complex(scope, err)
                                         : scope->op->lower(scope, err);
}

// Inside a loop, both outputs of a variable's Switch have the value of the variable.
static enum inf_code lower_loop_switch(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t value, *values;
    INF_TRY(inf_tfjs_value(scope, &scope->node->inputs[0], &value, scope->node->name, err));
    INF_TRY(inf_tfjs_outputs(scope, 2, &values, err));
    values[0] = values[1] = value;
    return INF_OK;
}

static enum inf_code lower_node(struct inf_tfjs_scope *scope, uint32_t index, struct inf_error *err)
{
    scope->node = &scope->source->nodes[index];
    switch (scope->source->control[index].role) {
    case INF_TFJS_PLAIN:
        return lower_plain(scope, err);
    case INF_TFJS_LOOP_SWITCH:
        return lower_loop_switch(scope, err);
    case INF_TFJS_LOOP_EXIT:
        return scope->library->lower_exit(scope, err);
    case INF_TFJS_BRANCH_MERGE:
        return scope->library->lower_merge(scope, err);
    case INF_TFJS_BRANCH_SWITCH:
        return inf_tfjs_fail(scope, err, INF_INVALID, "its outputs are used, and meet in no Merge");
    default:
        return inf_tfjs_fail(scope, err, INF_INVALID,
                             "is used outside the loop it belongs to, without an Exit");
    }
}

enum inf_code inf_tfjs_lower_refs(struct inf_tfjs_scope *scope, const struct inf_tfjs_ref *refs,
                                  uint32_t count, struct inf_error *err)
{
    struct order order = {0};
    uint32_t walk = ++scope->source->walk_count;
    enum inf_code code = INF_OK;
    for (uint32_t i = 0; i < count && code == INF_OK; i++)
        code = walk_from(scope, &order, refs[i].node, walk, err);
    for (uint32_t i = 0; i < order.count && code == INF_OK; i++)
        // Skip nodes that are already lowered, because one Exit of a loop lowers all of them.
        if (!is_lowered(scope, order.nodes[i]))
            code = lower_node(scope, order.nodes[i], err);
    free(order.nodes);
    free(order.stack);
    return code;
}
