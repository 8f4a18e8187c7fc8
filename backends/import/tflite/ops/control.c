// SPDX-License-Identifier: Apache-2.0
// Branches, loops and calls of subgraphs. A call, and a branch whose condition is known, are
// lowered in place. Other subgraphs become subgraphs of a node: they read nothing but their inputs,
// in the file as in the graph.
#include <stdio.h>

#include "backends/graph/build/operators.h"
#include "backends/graph/shape/infer.h"
#include "backends/import/tflite/callees.h"
#include "backends/import/tflite/lower.h"
#include "backends/import/tflite/op_table.h"

// The values that an operator gives to a subgraph.
struct operands {
    uint32_t values[INF_LIMIT_TENSORS];
    uint32_t count;
};

// Collects the inputs from `first` on.
static struct operands collect_operands(struct inf_tflite_scope *s, uint32_t first)
{
    struct operands operands = {0};
    for (uint32_t i = first; i < s->op->inputs.count; i++) {
        if (operands.count == INF_LIMIT_TENSORS || !inf_tflite_has_input(s, i)) {
            inf_build_fail(&s->b, INF_UNSUPPORTED,
                           "gives %u tensors to a subgraph, at most %u "
                           "are supported, all present",
                           s->op->inputs.count - first, INF_LIMIT_TENSORS);
            break;
        }
        operands.values[operands.count++] = inf_tflite_stored(s, i);
    }
    return operands;
}

// Adds the inputs of a subgraph to `graph`, with the types and shapes of the operands.
static void add_inputs(struct inf_tflite_scope *s, struct inf_graph *graph,
                       const struct operands *operands, uint32_t *values)
{
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < operands->count; i++) {
        char name[16];
        const struct inf_value *outer = &s->b.graph->values[operands->values[i]];
        snprintf(name, sizeof name, "%u", i);
        s->b.code = inf_graph_add_value(graph, outer->name, outer->dtype, &outer->shape, &values[i],
                                        s->b.err);
        if (inf_build_ok(&s->b))
            s->b.code = inf_graph_add_input(graph, name, values[i], s->b.err);
    }
}

// Makes values the outputs of a subgraph. Each gets an identity node, because a node must compute
// every output.
static void add_outputs(struct inf_builder *b, const uint32_t *values, uint32_t count)
{
    for (uint32_t i = 0; inf_build_ok(b) && i < count; i++) {
        char name[16];
        struct inf_build_node node =
            inf_build_describe(INF_OP_IDENTITY, values[i], INF_VALUE_NONE, INF_VALUE_NONE);
        b->fold = NULL;
        uint32_t value = inf_build_value(b, &node);
        snprintf(name, sizeof name, "%u", i);
        if (inf_build_ok(b))
            b->code = inf_graph_add_output(b->graph, name, value, b->err);
    }
}

// Lowers subgraph `number` of the file into a subgraph of the graph. Returns its index.
static int32_t lower_separately(struct inf_tflite_scope *s, int32_t number,
                                const struct operands *operands, uint32_t output_count)
{
    uint32_t inputs[INF_LIMIT_TENSORS], outputs[INF_LIMIT_TENSORS], index = 0;
    struct inf_tflite_scope inner = *s;
    struct inf_graph *graph = NULL;
    if (output_count > INF_LIMIT_TENSORS)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "has %u outputs, at most %u are supported",
                       output_count, INF_LIMIT_TENSORS);
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_create_inside(&graph, s->b.graph, s->b.err);
    if (!inf_build_ok(&s->b))
        return 0;
    add_inputs(s, graph, operands, inputs);
    inner.b.graph = graph;
    inner.b.code = s->b.code;
    inf_tflite_lower_inline(&inner, number, inputs, operands->count, outputs, output_count);
    add_outputs(&inner.b, outputs, output_count);
    s->b.code = inner.b.code;
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_add_subgraph(s->b.graph, &graph, &index, s->b.err);
    inf_graph_destroy(&graph);
    return (int32_t)index;
}

static void lower_if(struct inf_tflite_scope *s)
{
    int32_t callees[INF_TFLITE_CALLEES_MAX];
    double condition;
    (void)inf_tflite_callees(s->op, callees);
    struct operands operands = collect_operands(s, 1);
    uint32_t count = s->op->outputs.count, choice = inf_tflite_stored(s, 0);
    if (inf_build_const_number(&s->b, choice, &condition)) {
        inf_tflite_lower_inline(s, callees[condition != 0 ? 0 : 1], operands.values, operands.count,
                                s->outputs, count);
        return;
    }
    uint32_t inputs[INF_LIMIT_TENSORS + 1] = {inf_build_reshape(&s->b, choice, NULL, 0)};
    for (uint32_t i = 0; i < operands.count; i++)
        inputs[i + 1] = operands.values[i];
    struct inf_build_node node = inf_build_describe_list(INF_OP_BRANCH, inputs, operands.count + 1);
    node.attrs.branch.then_graph = lower_separately(s, callees[0], &operands, count);
    node.attrs.branch.else_graph = lower_separately(s, callees[1], &operands, count);
    node.output_count = count;
    inf_build_emit(&s->b, &node, s->outputs);
}

static void lower_while(struct inf_tflite_scope *s)
{
    int32_t callees[INF_TFLITE_CALLEES_MAX];
    (void)inf_tflite_callees(s->op, callees);
    struct operands operands = collect_operands(s, 0);
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_LOOP, operands.values, operands.count);
    if (s->op->outputs.count != operands.count)
        inf_build_fail(&s->b, INF_INVALID, "has %u inputs and %u outputs", operands.count,
                       s->op->outputs.count);
    node.attrs.loop.condition_graph = lower_separately(s, callees[0], &operands, 1);
    node.attrs.loop.body_graph = lower_separately(s, callees[1], &operands, operands.count);
    node.output_count = operands.count;
    inf_build_emit(&s->b, &node, s->outputs);
}

// CALL and STABLEHLO_COMPOSITE, whose subgraph says what the composite computes.
static void lower_call(struct inf_tflite_scope *s)
{
    int32_t callees[INF_TFLITE_CALLEES_MAX];
    (void)inf_tflite_callees(s->op, callees);
    struct operands operands = collect_operands(s, 0);
    inf_tflite_lower_inline(s, callees[0], operands.values, operands.count, s->outputs,
                            s->op->outputs.count);
}

static const struct inf_tflite_op ops[] = {
    {INF_TFLITE_IF, NULL, lower_if, 1, INF_LIMIT_TENSORS, INF_LIMIT_TENSORS, INF_TFLITE_MODE_STORED,
     INF_TFLITE_OPTIONS_IF, 0},
    {INF_TFLITE_WHILE, NULL, lower_while, 1, INF_LIMIT_TENSORS, INF_LIMIT_TENSORS,
     INF_TFLITE_MODE_STORED, INF_TFLITE_OPTIONS_WHILE, 0},
    {INF_TFLITE_STABLEHLO_WHILE, NULL, lower_while, 1, INF_LIMIT_TENSORS, INF_LIMIT_TENSORS,
     INF_TFLITE_MODE_STORED, INF_TFLITE_OPTIONS_NONE, 0},
    {INF_TFLITE_CALL, NULL, lower_call, 0, INF_LIMIT_TENSORS, INF_LIMIT_TENSORS,
     INF_TFLITE_MODE_STORED, INF_TFLITE_OPTIONS_CALL, 0},
    {INF_TFLITE_STABLEHLO_COMPOSITE, NULL, lower_call, 0, INF_LIMIT_TENSORS, INF_LIMIT_TENSORS,
     INF_TFLITE_MODE_STORED, INF_TFLITE_OPTIONS_NONE, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_control = {ops, INF_ARRAY_LENGTH(ops)};
