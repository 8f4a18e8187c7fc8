// SPDX-License-Identifier: Apache-2.0
// Control flow that can be settled when the model is imported: branches whose condition is constant,
// loops whose number of rounds is.
#include <stdio.h>
#include <string.h>

#include "backends/graph/shape_infer.h"
#include "backends/import/onnx_capture.h"

// Rounds of a loop that are worth writing out.
#define ROUNDS_MAX 256
// Values that one round carries on.
#define CARRIED_MAX 64

// A body that is being lowered in place.
struct body {
    struct inf_onnx_graph graph;
    struct inf_onnx_frame frame;
    struct inf_onnx_capture *capture; // where it becomes a subgraph; else NULL
};

static bool begin(struct inf_onnx_scope *s, struct body *body, const char *attribute)
{
    struct inf_span bytes = {0};
    *body = (struct body){0};
    if (!inf_ox_attr_graph(s, attribute, &bytes)) {
        inf_ox_fail(s, INF_INVALID, "lacks attribute '%s'", attribute);
        return false;
    }
    s->code = inf_onnx_graph_read(&body->graph, s->import->arena, bytes, s->err);
    return inf_ox_ok(s);
}

// Lowers the body once: `inputs` are the values of its inputs, its outputs go to `outputs`.
static void run(struct inf_onnx_scope *s, struct body *body, const uint32_t *inputs,
                uint32_t *outputs)
{
    body->frame = (struct inf_onnx_frame){.outer = s->frame,
                                          .opsets = s->frame->opsets,
                                          .capture = body->capture,
                                          .depth = s->frame->depth + 1};
    inf_onnx_lower_initializers(s, &body->frame, &body->graph);
    for (uint32_t i = 0; inf_ox_ok(s) && i < body->graph.input_count; i++) {
        bool known;
        if (!inf_onnx_names_add(&body->frame.names, body->graph.inputs[i].name, inputs[i], &known))
            inf_ox_fail(s, INF_EXHAUSTED, "no memory for names");
    }
    inf_onnx_lower_nodes(s, &body->frame, body->graph.nodes, body->graph.node_count);
    for (uint32_t i = 0; inf_ox_ok(s) && i < body->graph.output_count; i++)
        outputs[i] = inf_onnx_lookup(s, &body->frame, body->graph.outputs[i].name);
    for (uint32_t i = 0; inf_ox_ok(s) && i < body->graph.output_count; i++)
        if (inf_onnx_is_sequence(outputs[i]) && s->op != NULL && strcmp(s->op->name, "If") != 0)
            inf_ox_fail(s, INF_UNSUPPORTED, "its body makes a sequence");
    inf_onnx_names_fini(&body->frame.names);
}

// --- branches that only a run can choose ---

// Names the outputs of a branch's graph, each something that a node makes.
static void add_outputs(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count)
{
    char name[16];
    for (uint32_t i = 0; inf_ox_ok(s) && i < count; i++) {
        uint32_t node, value = values[i];
        snprintf(name, sizeof name, "%u", i);
        s->code = inf_graph_add_node(s->graph, INF_OP_IDENTITY, s->node->name, "", &value, 1, 1,
                                     &node, s->err);
        if (!inf_ox_ok(s))
            return;
        s->code = inf_shape_infer_node(s->graph, node, s->err);
        if (inf_ox_ok(s))
            s->code =
                inf_graph_add_output(s->graph, name, s->graph->nodes[node].outputs[0], s->err);
    }
}

// Lowers a branch into a graph of its own.
static void lower_side(struct inf_onnx_scope *s, const char *attribute,
                       struct inf_onnx_capture *capture)
{
    struct inf_onnx_scope inner = *s;
    struct body body;
    uint32_t *values = inf_arena_alloc(s->import->arena, s->output_count * sizeof *values);
    if (values == NULL)
        inf_ox_fail(s, INF_EXHAUSTED, "no memory");
    if (!inf_ox_ok(s) || !begin(s, &body, attribute))
        return;
    if (body.graph.output_count != s->output_count || body.graph.input_count != 0) {
        inf_ox_fail(s, INF_INVALID, "its branch has %u outputs, the node %u",
                    body.graph.output_count, s->output_count);
        return;
    }
    inner.graph = capture->graph;
    body.capture = capture;
    run(&inner, &body, NULL, values);
    add_outputs(&inner, values, s->output_count);
    s->code = inner.code;
}

// The node, its condition first, then what its branches take.
static void emit_branch(struct inf_onnx_scope *s, const struct inf_onnx_captured *captured,
                        const uint32_t sides[2])
{
    uint32_t *inputs =
        inf_arena_alloc(s->import->arena, ((size_t)captured->count + 1) * sizeof *inputs);
    if (inputs == NULL) {
        inf_ox_fail(s, INF_EXHAUSTED, "no memory");
        return;
    }
    inputs[0] = s->inputs[0];
    if (inf_ox_rank(s, inputs[0]) > 0)
        inputs[0] = inf_ox_reshape(s, inputs[0], NULL, 0);
    for (uint32_t i = 0; i < captured->count; i++)
        inputs[i + 1] = captured->values[i];
    struct inf_ox_call call = inf_ox_call(INF_OP_BRANCH, inputs, captured->count + 1);
    call.attrs.branch.then_graph = (int32_t)sides[0];
    call.attrs.branch.else_graph = (int32_t)sides[1];
    call.output_count = s->output_count;
    inf_ox_emit(s, &call, s->outputs);
}

static void lower_branches(struct inf_onnx_scope *s)
{
    static const char *const attributes[] = {"then_branch", "else_branch"};
    struct inf_onnx_captured captured = {0};
    struct inf_onnx_capture captures[2] = {0};
    uint32_t sides[2];
    for (int i = 0; inf_ox_ok(s) && i < 2; i++) {
        captures[i] = (struct inf_onnx_capture){.outer = s->graph, .captured = &captured};
        s->code = inf_graph_create(&captures[i].graph, s->err);
        if (inf_ox_ok(s))
            lower_side(s, attributes[i], &captures[i]);
    }
    // Only now is the list whole, which both have as inputs.
    for (int i = 0; i < 2; i++)
        inf_onnx_capture_end(s, &captures[i]);
    for (int i = 0; i < 2; i++) {
        if (inf_ox_ok(s))
            s->code = inf_graph_add_subgraph(s->graph, &captures[i].graph, &sides[i], s->err);
        inf_graph_destroy(&captures[i].graph);
    }
    if (inf_ox_ok(s))
        emit_branch(s, &captured, sides);
    inf_onnx_captured_fini(&captured);
}

static void lower_if(struct inf_onnx_scope *s)
{
    double condition = 0;
    struct body body;
    if (!inf_ox_const_number(s, s->inputs[0], &condition)) {
        lower_branches(s);
        return;
    }
    // Both count as asked for.
    (void)inf_ox_attr(s, "then_branch");
    (void)inf_ox_attr(s, "else_branch");
    if (!begin(s, &body, condition != 0 ? "then_branch" : "else_branch"))
        return;
    if (body.graph.output_count != s->output_count || body.graph.input_count != 0)
        inf_ox_fail(s, INF_INVALID, "its branch has %u outputs, the node %u",
                    body.graph.output_count, s->output_count);
    if (inf_ox_ok(s))
        run(s, &body, NULL, s->outputs);
}

// One value per round, joined along an axis.
struct stack {
    uint32_t values[ROUNDS_MAX];
    uint32_t count;
};

static uint32_t join(struct inf_onnx_scope *s, const struct stack *stack, int32_t axis)
{
    if (stack->count > 0)
        return inf_ox_concat(s, stack->values, stack->count, axis);
    inf_ox_fail(s, INF_UNSUPPORTED,
                "has no rounds, so that the shape of what it scans is not known");
    return INF_VALUE_NONE;
}

static void push(struct inf_onnx_scope *s, struct stack *stack, uint32_t value, int32_t axis)
{
    int64_t at = axis;
    if (stack->count < ROUNDS_MAX)
        stack->values[stack->count++] = inf_ox_expand_dims(s, value, &at, 1);
}

// Inputs: the most rounds, a condition, what is carried. The body's: round, condition, carried; it
// makes a condition, what is carried on, and what is stacked up.
static void lower_loop(struct inf_onnx_scope *s)
{
    uint32_t inputs[CARRIED_MAX + 2], outputs[2 * CARRIED_MAX + 2];
    struct stack *stacks;
    struct body body;
    double most = ROUNDS_MAX + 1, condition = 1;
    uint32_t carried = s->input_count >= 2 ? s->input_count - 2 : 0;
    if ((inf_ox_in(s, 0) != INF_VALUE_NONE && !inf_ox_const_number(s, s->inputs[0], &most)) ||
        (inf_ox_in(s, 1) != INF_VALUE_NONE && !inf_ox_const_number(s, s->inputs[1], &condition)))
        inf_ox_fail(s, INF_UNSUPPORTED, "its trip count or condition is not constant");
    if (!begin(s, &body, "body"))
        return;
    uint32_t scanned = s->output_count - INF_MIN(carried, s->output_count);
    if (carried > CARRIED_MAX || scanned > CARRIED_MAX || s->output_count < carried ||
        body.graph.input_count != carried + 2 || body.graph.output_count != 1 + carried + scanned)
        inf_ox_fail(s, INF_INVALID, "its body has %u inputs and %u outputs, which do not fit",
                    body.graph.input_count, body.graph.output_count);
    stacks = inf_arena_alloc(s->import->arena, ((size_t)scanned + 1) * sizeof *stacks);
    if (stacks == NULL)
        inf_ox_fail(s, INF_EXHAUSTED, "no memory");
    for (uint32_t i = 0; inf_ox_ok(s) && i < carried; i++)
        inputs[i + 2] = s->inputs[i + 2];
    for (uint32_t round = 0; inf_ox_ok(s) && condition != 0 && round < most; round++) {
        int64_t *index;
        if (round == ROUNDS_MAX) {
            inf_ox_fail(s, INF_UNSUPPORTED, "has more than %d rounds", ROUNDS_MAX);
            break;
        }
        inputs[0] = inf_ox_const(s, INF_DTYPE_I64, &(struct inf_shape){0}, &index);
        if (index != NULL)
            *index = round;
        inputs[1] = inf_ox_scalar(s, INF_DTYPE_BOOL, 1);
        run(s, &body, inputs, outputs);
        if (inf_ox_ok(s) && !inf_ox_const_number(s, outputs[0], &condition))
            inf_ox_fail(s, INF_UNSUPPORTED, "its condition hangs on what it computes");
        for (uint32_t i = 0; i < carried; i++)
            inputs[i + 2] = outputs[i + 1];
        for (uint32_t i = 0; inf_ox_ok(s) && i < scanned; i++)
            push(s, &stacks[i], outputs[1 + carried + i], 0);
    }
    for (uint32_t i = 0; inf_ox_ok(s) && i < carried; i++)
        s->outputs[i] = inputs[i + 2];
    for (uint32_t i = 0; inf_ox_ok(s) && i < scanned; i++)
        s->outputs[carried + i] = join(s, &stacks[i], 0);
}

static int64_t listed(const struct inf_ox_ints *ints, uint32_t index)
{
    return index < ints->count ? ints->values[index] : 0;
}

// Inputs: what is carried, then what is gone through slice by slice.
static void lower_scan(struct inf_onnx_scope *s)
{
    uint32_t inputs[CARRIED_MAX], outputs[CARRIED_MAX];
    struct inf_ox_ints in_axes, out_axes, in_ways, out_ways;
    struct stack *stacks;
    struct body body;
    int32_t slices = inf_ox_attr_int(s, "num_scan_inputs", 0);
    (void)inf_ox_attr_ints(s, "scan_input_axes", &in_axes);
    (void)inf_ox_attr_ints(s, "scan_output_axes", &out_axes);
    (void)inf_ox_attr_ints(s, "scan_input_directions", &in_ways);
    (void)inf_ox_attr_ints(s, "scan_output_directions", &out_ways);
    if (s->opset < 9)
        inf_ox_fail(s, INF_UNSUPPORTED, "in opset 8 it is another operator");
    if (!begin(s, &body, "body"))
        return;
    uint32_t carried = s->input_count - INF_MIN((uint32_t)INF_MAX(slices, 0), s->input_count);
    uint32_t stacked = s->output_count - INF_MIN(carried, s->output_count);
    if (slices < 1 || (uint32_t)slices > s->input_count || s->input_count > CARRIED_MAX ||
        s->output_count > CARRIED_MAX || body.graph.input_count != s->input_count ||
        body.graph.output_count != s->output_count || s->output_count < carried)
        inf_ox_fail(s, INF_INVALID, "its body has %u inputs and %u outputs, which do not fit",
                    body.graph.input_count, body.graph.output_count);
    stacks = inf_arena_alloc(s->import->arena, ((size_t)stacked + 1) * sizeof *stacks);
    if (stacks == NULL)
        inf_ox_fail(s, INF_EXHAUSTED, "no memory");
    if (!inf_ox_ok(s))
        return;
    int64_t rounds = inf_ox_known_dim(s, s->inputs[carried], (int32_t)listed(&in_axes, 0));
    if (rounds > ROUNDS_MAX)
        inf_ox_fail(s, INF_UNSUPPORTED, "has %lld rounds, at most %d are built", (long long)rounds,
                    ROUNDS_MAX);
    for (uint32_t i = 0; i < carried; i++)
        inputs[i] = s->inputs[i];
    for (int64_t round = 0; inf_ox_ok(s) && round < rounds; round++) {
        for (uint32_t i = 0; i < (uint32_t)slices; i++) {
            uint32_t x = s->inputs[carried + i];
            int64_t axis = inf_ox_axis(s, listed(&in_axes, i), inf_ox_rank(s, x));
            int64_t at = listed(&in_ways, i) != 0 ? rounds - 1 - round : round;
            inputs[carried + i] =
                inf_ox_squeeze(s, inf_ox_slice(s, x, (int32_t)axis, at, at + 1, 1), &axis, 1);
        }
        run(s, &body, inputs, outputs);
        for (uint32_t i = 0; i < carried; i++)
            inputs[i] = outputs[i];
        for (uint32_t i = 0; inf_ox_ok(s) && i < stacked; i++) {
            uint32_t value = outputs[carried + i];
            push(s, &stacks[i], value,
                 inf_ox_axis(s, listed(&out_axes, i), inf_ox_rank(s, value) + 1));
        }
    }
    for (uint32_t i = 0; inf_ox_ok(s) && i < carried; i++)
        s->outputs[i] = inputs[i];
    for (uint32_t i = 0; inf_ox_ok(s) && i < stacked; i++) {
        struct stack *stack = &stacks[i];
        for (uint32_t j = 0; listed(&out_ways, i) != 0 && j < stack->count / 2; j++) {
            uint32_t other = stack->values[stack->count - 1 - j];
            stack->values[stack->count - 1 - j] = stack->values[j];
            stack->values[j] = other;
        }
        int32_t rank = stack->count > 0 ? inf_ox_rank(s, stack->values[0]) : 1;
        s->outputs[carried + i] = join(s, stack, inf_ox_axis(s, listed(&out_axes, i), rank));
    }
}

static const struct inf_onnx_op ops[] = {
    {"If", lower_if, 1, 1, INF_LIMIT_NODE_INPUTS, 0},
    {"Loop", lower_loop, 2, INF_LIMIT_NODE_INPUTS, INF_LIMIT_NODE_INPUTS, 0},
    {"Scan", lower_scan, 1, INF_LIMIT_NODE_INPUTS, INF_LIMIT_NODE_INPUTS, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_control = {ops, INF_ARRAY_LENGTH(ops)};
