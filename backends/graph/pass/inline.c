// SPDX-License-Identifier: Apache-2.0
// Replaces a branch by the nodes of one of its subgraphs, if the condition is a constant, and a
// loop by the nodes of all its iterations, if the number of iterations follows from constants.
//
// Problem: a graph with branches and loops is interpreted node by node, without plan, fusion or
// preallocated memory. Converters write many that are decided before any input is known: counters
// from 0 to a constant, or a flag such as "training".
//
// Idea: walk the nodes once and write a new node list. To unroll a loop, evaluate its condition on
// a copy of the condition graph, with the current values as inputs. If the result is a constant
// true, append the nodes of the body and evaluate again on the body's outputs; small constant nodes
// are folded on the way, so that the counter stays a constant:
//
//     while (i < 2) { i = i + 1; x = f(x); }   with i = 0
//     0 < 2: append i1 = 1 (folded), x1 = f(x)
//     1 < 2: append i2 = 2 (folded), x2 = f(x1)
//     2 < 2 is false: the loop's outputs are i2 and x2
//
// Correctness: appended nodes are copies with their own values, and the loop's outputs are replaced
// only after the condition became false. If the condition is unknown or a limit is reached first,
// the appended nodes, values and subgraphs are removed again, and the loop stays as it was.
#include <stdlib.h>
#include <string.h>

#include "backends/graph/pass/passes.h"
#include "backends/graph/pass/rewrite.h"
#include "backends/graph/shape/infer.h"
#include "proto/core/span.h"

// A loop is not unrolled if it has more than UNROLL_MAX iterations, or if its iterations have more
// than UNROLL_NODES_MAX nodes together.
#define UNROLL_MAX       64u
#define UNROLL_NODES_MAX 8192u
// Maximum size of a folded result: enough for counters and conditions.
#define FOLD_BYTES_MAX ((size_t)64 << 10)

// State of the pass: the list of nodes that will replace the graph's nodes, and the value that
// replaces each value of the graph.
struct inliner {
    struct inf_graph *graph;
    const struct inf_evaluator *evaluator;
    struct inf_node *nodes;
    uint32_t count, capacity;
    // replaced[v] is the value that nodes read instead of value v of the original graph; it is v
    // itself if nothing replaces v.
    uint32_t *replaced;
    uint32_t replaced_count;
    bool changed;
    struct inf_error *err;
};

static enum inf_code no_memory(struct inf_error *err)
{
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory to inline subgraphs");
}

static enum inf_code append_node(struct inliner *inliner, const struct inf_node *node)
{
    if (inliner->count == inliner->capacity) {
        uint32_t wanted = inliner->capacity * 2 + 16;
        struct inf_node *grown = realloc(inliner->nodes, wanted * sizeof *grown);
        if (grown == NULL || inliner->count >= INF_LIMIT_GRAPH_NODES) {
            inliner->nodes = grown != NULL ? grown : inliner->nodes;
            return no_memory(inliner->err);
        }
        inliner->nodes = grown;
        inliner->capacity = wanted;
    }
    inliner->nodes[inliner->count++] = *node;
    return INF_OK;
}

static uint32_t follow_value(const struct inliner *inliner, uint32_t value)
{
    while (value < inliner->replaced_count && inliner->replaced[value] != value)
        value = inliner->replaced[value];
    return value;
}

// --- folding small constant nodes, such as loop counters and conditions ---

static bool all_const(const struct inf_graph *graph, const struct inf_node *node)
{
    if (node->op == INF_OP_BRANCH || node->op == INF_OP_LOOP)
        return false;
    for (uint32_t i = 0; i < node->input_count; i++)
        if (node->inputs[i] != INF_VALUE_NONE && !inf_graph_is_const(graph, node->inputs[i]))
            return false;
    return true;
}

// Computes node `index` of `graph` if its inputs are constants and its output is small. Handles
// only nodes with one output, because counters and conditions need no others.
static bool fold_small(const struct inf_graph *graph, uint32_t index,
                       const struct inf_evaluator *evaluator)
{
    const struct inf_node *node = &graph->nodes[index];
    struct inf_value *output = &graph->values[node->outputs[0]];
    size_t size_bytes;
    if (evaluator == NULL || node->output_count != 1 || !all_const(graph, node) ||
        !inf_shape_bytes(&output->shape, output->dtype, &size_bytes) || size_bytes > FOLD_BYTES_MAX)
        return false;
    struct inf_blob *blob;
    if (inf_evaluator_compute(evaluator, graph, index, &blob) != INF_OK)
        return false;
    output->data = blob;
    return true;
}

// --- copying the nodes of a subgraph into the graph ---

// Sets map[v], for each value v of a subgraph, to the value of the graph that stands for it. Inputs
// map to the operands of the branch or loop node; constants and results of nodes map to new values.
static enum inf_code map_values(struct inliner *inliner, const struct inf_graph *inner,
                                const uint32_t *inputs, uint32_t *map)
{
    for (uint32_t v = 0; v < inner->value_count; v++)
        map[v] = INF_VALUE_NONE;
    for (uint32_t i = 0; i < inner->input_count; i++)
        map[inner->inputs[i].value] = inputs[i];
    for (uint32_t v = 0; v < inner->value_count; v++) {
        const struct inf_value *value = &inner->values[v];
        if (map[v] != INF_VALUE_NONE)
            continue;
        if (value->data != NULL)
            INF_TRY(inf_graph_add_const(inliner->graph, value->name, value->dtype, &value->shape,
                                        inf_blob_ref(value->data), &map[v], inliner->err));
        else if (value->producer != INF_NODE_NONE)
            INF_TRY(inf_graph_add_value(inliner->graph, value->name, value->dtype, &value->shape,
                                        &map[v], inliner->err));
    }
    return INF_OK;
}

// Returns a copy of `list`, a node's inputs or outputs, in which map[v] replaces each value v. The
// copy is in the graph's arena.
static uint32_t *map_list(struct inliner *inliner, const uint32_t *list, uint32_t count,
                          const uint32_t *map)
{
    uint32_t *copy = inf_arena_alloc(&inliner->graph->arena, ((size_t)count + 1) * sizeof *copy);
    for (uint32_t i = 0; copy != NULL && i < count; i++)
        copy[i] = list[i] == INF_VALUE_NONE ? INF_VALUE_NONE : map[list[i]];
    return copy;
}

// Gives a copied node its own copies of its subgraphs.
static enum inf_code copy_subgraphs(struct inliner *inliner, const struct inf_graph *inner,
                                    struct inf_node *node)
{
    int32_t *indices[2];
    if (!inf_node_subgraphs(node, indices))
        return INF_OK;
    for (int i = 0; i < 2; i++) {
        struct inf_graph *copy = NULL;
        uint32_t index;
        INF_TRY(inf_graph_clone(&copy, inner->subgraphs[*indices[i]], inliner->err));
        INF_TRY(inf_graph_add_subgraph(inliner->graph, &copy, &index, inliner->err));
        *indices[i] = (int32_t)index;
    }
    return INF_OK;
}

// Infers the shapes of the node that was appended last, and folds the node if possible.
static enum inf_code settle_value(struct inliner *inliner)
{
    // Inference finds nodes through the graph, so the graph temporarily has the new list.
    struct inf_graph *graph = inliner->graph;
    struct inf_node *nodes = graph->nodes;
    uint32_t count = graph->node_count;
    graph->nodes = inliner->nodes;
    graph->node_count = inliner->count;
    enum inf_code code = inf_shape_infer_node(graph, inliner->count - 1, inliner->err);
    if (code == INF_OK && fold_small(graph, inliner->count - 1, inliner->evaluator))
        inliner->count--;
    graph->nodes = nodes;
    graph->node_count = count;
    return code;
}

// Appends copies of all nodes of a subgraph to the new list of nodes. outputs[i] becomes the value
// of the graph that replaces output i of the subgraph.
static enum inf_code append_subgraph(struct inliner *inliner, const struct inf_graph *inner,
                                     const uint32_t *inputs, uint32_t *outputs)
{
    uint32_t *map = calloc((size_t)inner->value_count + 1, sizeof *map);
    if (map == NULL)
        return no_memory(inliner->err);
    enum inf_code code = map_values(inliner, inner, inputs, map);
    for (uint32_t i = 0; i < inner->node_count && code == INF_OK; i++) {
        struct inf_node node = inner->nodes[i];
        node.name = inf_texts_add(inliner->graph->texts, node.name);
        node.source = inf_texts_add(inliner->graph->texts, node.source);
        node.inputs = map_list(inliner, node.inputs, node.input_count, map);
        node.outputs = map_list(inliner, node.outputs, node.output_count, map);
        if (node.name == NULL || node.source == NULL || node.inputs == NULL || node.outputs == NULL)
            code = no_memory(inliner->err);
        if (code == INF_OK)
            code = copy_subgraphs(inliner, inner, &node);
        if (code == INF_OK)
            code = append_node(inliner, &node);
        if (code == INF_OK)
            code = settle_value(inliner);
    }
    for (uint32_t i = 0; i < inner->output_count; i++)
        outputs[i] = map[inner->outputs[i].value];
    free(map);
    return code;
}

// --- replacing branches whose condition is a constant ---

// Reads a constant bool into the output argument. Returns false if `value` is not a constant bool.
static bool read_bool(const struct inf_graph *graph, uint32_t value, bool *out)
{
    const struct inf_value *constant = &graph->values[value];
    if (constant->data == NULL || constant->dtype != INF_DTYPE_BOOL ||
        constant->data->size_bytes != 1)
        return false;
    *out = *(const uint8_t *)constant->data->data != 0;
    return true;
}

static void replace_outputs(struct inliner *inliner, const struct inf_node *node,
                            const uint32_t *values)
{
    for (uint32_t i = 0; i < node->output_count; i++)
        inliner->replaced[node->outputs[i]] = values[i];
    inliner->changed = true;
}

static enum inf_code inline_branch(struct inliner *inliner, const struct inf_node *node,
                                   bool condition)
{
    int32_t index = condition ? node->attrs.branch.then_graph : node->attrs.branch.else_graph;
    uint32_t *outputs = calloc((size_t)node->output_count + 1, sizeof *outputs);
    if (outputs == NULL)
        return no_memory(inliner->err);
    enum inf_code code =
        append_subgraph(inliner, inliner->graph->subgraphs[index], node->inputs + 1, outputs);
    if (code == INF_OK)
        replace_outputs(inliner, node, outputs);
    free(outputs);
    return code;
}

// --- unrolling loops ---

// Evaluates the condition of a loop for the given values of its variables. *known is false if the
// result does not follow from constants, so that the loop cannot be unrolled.
static enum inf_code test_condition(struct inliner *inliner, const struct inf_graph *condition,
                                    const uint32_t *values, bool *known, bool *goes_on)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *copy = NULL;
    struct inf_error ignored = {0};
    *known = false;
    INF_TRY(inf_graph_clone(&copy, condition, inliner->err));
    for (uint32_t i = 0; i < copy->input_count; i++) {
        const struct inf_value *value = &inliner->graph->values[values[i]];
        struct inf_value *input = &copy->values[copy->inputs[i].value];
        input->shape = value->shape;
        if (value->data != NULL)
            input->data = inf_blob_ref(value->data);
    }
    for (uint32_t i = 0; i < copy->node_count; i++) {
        if (inf_shape_infer_node(copy, i, &ignored) != INF_OK)
            return INF_OK;
        (void)fold_small(copy, i, inliner->evaluator);
    }
    *known = read_bool(copy, copy->outputs[0].value, goes_on);
    return INF_OK;
}

// Appends iterations until the condition is false (sets *ended), unknown, or a limit is reached.
static enum inf_code unroll_loop(struct inliner *inliner, const struct inf_node *node,
                                 uint32_t *values, uint32_t *outputs, bool *ended)
{
    const struct inf_graph *graph = inliner->graph;
    uint32_t first = inliner->count;
    for (uint32_t iteration = 0; iteration <= UNROLL_MAX; iteration++) {
        bool known, goes_on = false;
        // Read `graph->subgraphs` again in each iteration: append_subgraph() may reallocate that
        // list.
        INF_TRY(test_condition(inliner, graph->subgraphs[node->attrs.loop.condition_graph], values,
                               &known, &goes_on));
        *ended = known && !goes_on;
        if (!known || !goes_on || iteration == UNROLL_MAX ||
            inliner->count - first > UNROLL_NODES_MAX)
            return INF_OK;
        INF_TRY(append_subgraph(inliner, graph->subgraphs[node->attrs.loop.body_graph], values,
                                outputs));
        memcpy(values, outputs, node->output_count * sizeof *values);
    }
    return INF_OK;
}

// The sizes of the graph's lists before an attempt to unroll a loop. take_back() restores them.
struct checkpoint {
    uint32_t nodes, values, subgraphs;
};

static void take_back(struct inliner *inliner, const struct checkpoint *checkpoint)
{
    struct inf_graph *graph = inliner->graph;
    inliner->count = checkpoint->nodes;
    while (graph->value_count > checkpoint->values)
        inf_blob_unref(&graph->values[--graph->value_count].data);
    while (graph->subgraph_count > checkpoint->subgraphs)
        inf_graph_destroy(&graph->subgraphs[--graph->subgraph_count]);
}

static enum inf_code inline_loop(struct inliner *inliner, const struct inf_node *node, bool *gone)
{
    struct checkpoint checkpoint = {inliner->count, inliner->graph->value_count,
                                    inliner->graph->subgraph_count};
    uint32_t *values = calloc((size_t)node->input_count + 1, sizeof *values);
    uint32_t *outputs = calloc((size_t)node->output_count + 1, sizeof *outputs);
    enum inf_code code = values == NULL || outputs == NULL ? no_memory(inliner->err) : INF_OK;
    *gone = false;
    if (code == INF_OK) {
        memcpy(values, node->inputs, node->input_count * sizeof *values);
        code = unroll_loop(inliner, node, values, outputs, gone);
    }
    if (code == INF_OK && *gone)
        replace_outputs(inliner, node, values);
    else
        take_back(inliner, &checkpoint);
    free(values);
    free(outputs);
    return code;
}

// --- running the pass over all nodes of the graph ---

static enum inf_code visit_node(struct inliner *inliner, struct inf_node node)
{
    bool condition, gone = false;
    for (uint32_t i = 0; i < node.input_count; i++)
        if (node.inputs[i] != INF_VALUE_NONE)
            node.inputs[i] = follow_value(inliner, node.inputs[i]);
    if (node.op == INF_OP_BRANCH && read_bool(inliner->graph, node.inputs[0], &condition))
        return inline_branch(inliner, &node, condition);
    if (node.op == INF_OP_LOOP) {
        INF_TRY(inline_loop(inliner, &node, &gone));
        if (gone)
            return INF_OK;
    }
    return append_node(inliner, &node);
}

// Makes the new list of nodes the nodes of the graph.
static void finish_graph(struct inliner *inliner)
{
    struct inf_graph *graph = inliner->graph;
    for (uint32_t i = 0; i < graph->output_count; i++)
        graph->outputs[i].value = follow_value(inliner, graph->outputs[i].value);
    free(graph->nodes);
    graph->nodes = inliner->nodes;
    graph->node_count = inliner->count;
    graph->node_capacity = inliner->capacity;
    inliner->nodes = NULL;
    for (uint32_t v = 0; v < graph->value_count; v++)
        graph->values[v].producer = INF_NODE_NONE;
    for (uint32_t i = 0; i < graph->node_count; i++)
        for (uint32_t k = 0; k < graph->nodes[i].output_count; k++)
            graph->values[graph->nodes[i].outputs[k]].producer = i;
    (void)inf_graph_compact_subgraphs(graph);
}

enum inf_code inf_pass_inline(struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    if (graph->subgraph_count == 0)
        return INF_OK;
    struct inliner inliner = {
        .graph = graph,
        .evaluator = rewrite->evaluator,
        .replaced = calloc((size_t)graph->value_count + 1, sizeof *inliner.replaced),
        .replaced_count = graph->value_count,
        .err = rewrite->err,
    };
    enum inf_code code = inliner.replaced == NULL ? no_memory(rewrite->err) : INF_OK;
    for (uint32_t v = 0; v < inliner.replaced_count && code == INF_OK; v++)
        inliner.replaced[v] = v;
    uint32_t node_count = graph->node_count;
    for (uint32_t i = 0; i < node_count && code == INF_OK; i++)
        code = visit_node(&inliner, graph->nodes[i]);
    if (code == INF_OK && inliner.changed) {
        finish_graph(&inliner);
        rewrite->changed = true;
    }
    free(inliner.nodes);
    free(inliner.replaced);
    return code;
}
