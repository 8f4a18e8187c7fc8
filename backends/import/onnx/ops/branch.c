// SPDX-License-Identifier: Apache-2.0
// If. If the condition is known, the selected branch is lowered in place. Otherwise both branches
// become subgraphs of a BRANCH node, and the condition selects one at run time.
// If the branches return tensors of different rank, the nodes after the If could not be lowered,
// because operators depend on ranks. In this case these nodes are lowered twice, at the end of each
// branch. The frame's outputs become the outputs of the BRANCH node:
//     y = If(c) {a} {b}; z = f(y)   becomes   z = If(c) {f(a)} {f(b)}
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/body.h"
#include "backends/import/onnx/lower.h"
#include "backends/import/onnx/op_table.h"

// The nodes after an If, for the case that they become part of its branches.
struct rest {
    struct inf_onnx_frame *frame; // the names of the graph or body that contains the If
    struct inf_onnx_node *nodes;
    uint32_t count;
    // Those outputs of the graph or body that the If, or a node after it, computes.
    const char **outputs;
    uint32_t output_count;
};

static void check_body(struct inf_onnx_scope *s, const struct inf_onnx_body *body)
{
    if (body->graph.output_count != s->output_count || body->graph.input_count != 0)
        inf_build_fail(&s->b, INF_INVALID, "its branch has %u outputs, the node %u",
                       body->graph.output_count, s->output_count);
}

// --- lowering one branch ---

// Lowers the nodes after the If into a branch. `values` are the outputs of the If in this branch.
static void lower_following_nodes(struct inf_onnx_scope *s, const struct rest *rest,
                                  const uint32_t *values, struct inf_onnx_capture *capture)
{
    struct inf_onnx_frame frame = {.outer = rest->frame,
                                   .opsets = rest->frame->opsets,
                                   .capture = capture,
                                   .outputs = rest->outputs,
                                   .output_count = rest->output_count,
                                   .depth = rest->frame->depth + 1};
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < s->output_count; i++) {
        bool known = false;
        if (inf_onnx_wants_output(s, i) &&
            !inf_onnx_names_add(&frame.names, s->node->outputs[i], values[i], &known))
            inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for names");
    }
    inf_onnx_lower_nodes(s, &frame, rest->nodes, rest->count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < rest->output_count; i++) {
        uint32_t value = inf_onnx_lookup(s, &frame, rest->outputs[i]);
        inf_onnx_body_add_outputs(s, &value, 1);
    }
    inf_onnx_names_fini(&frame.names);
}

// Lowers a branch into a separate graph, followed by the nodes after the If unless `rest` is NULL.
static void lower_branch(struct inf_onnx_scope *s, const char *attribute,
                         struct inf_onnx_capture *capture, const struct rest *rest)
{
    struct inf_onnx_scope inner = *s;
    struct inf_onnx_body body;
    uint32_t *values =
        inf_arena_alloc(s->import->arena, ((size_t)s->output_count + 1) * sizeof *values);
    if (values == NULL)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
    if (!inf_build_ok(&s->b) || !inf_onnx_body_read(s, &body, attribute))
        return;
    check_body(s, &body);
    inner.b.code = s->b.code;
    inner.b.graph = capture->graph;
    body.capture = capture;
    if (inf_build_ok(&s->b))
        inf_onnx_body_lower(&inner, &body, NULL, values);
    if (rest != NULL)
        lower_following_nodes(&inner, rest, values, capture);
    else
        inf_onnx_body_add_outputs(&inner, values, s->output_count);
    s->b.code = inner.b.code;
}

// --- branches that cannot be lowered ---

// Returns true if the import fails because a branch could not be lowered. Otherwise only a run that
// takes this branch fails.
static bool is_fatal(const struct inf_onnx_scope *s, const struct rest *rest)
{
    return rest == NULL || (s->b.code != INF_INVALID && s->b.code != INF_UNSUPPORTED);
}

// Adds a value of a given type and rank whose computation fails every run, because it reads beyond
// the end of a list.
static uint32_t add_failing_value(struct inf_onnx_scope *s, enum inf_dtype dtype, int32_t rank)
{
    uint32_t dims[INF_LIMIT_RANK];
    uint32_t nothing = inf_build_list(&s->b, (int64_t[]){0}, 1);
    uint32_t outside =
        inf_build_gather(&s->b, nothing, inf_build_list(&s->b, (int64_t[]){1}, 1), 0);
    if (rank <= 0)
        return inf_build_cast(&s->b, inf_build_reshape(&s->b, outside, NULL, 0), dtype);
    for (int32_t i = 0; i < rank; i++)
        dims[i] = outside;
    return inf_build_fill(&s->b, inf_build_concat(&s->b, dims, (uint32_t)rank, 0),
                          inf_build_scalar(&s->b, dtype, 0));
}

// Replaces a branch that could not be lowered by nodes that fail any run. The name of these nodes
// is the reason, so that the error of the run shows it.
static void replace_broken_branch(struct inf_onnx_scope *s, struct inf_onnx_capture *capture,
                                  const struct inf_graph *other, const char *reason)
{
    struct inf_onnx_scope inner = *s;
    struct inf_onnx_node node = *s->node;
    const char *name = "";
    struct inf_span text = {(const uint8_t *)reason, strlen(reason)};
    inf_graph_destroy(&capture->graph);
    for (uint32_t i = 0; i < capture->own_capacity; i++)
        capture->own[i] = INF_VALUE_NONE;
    s->b.code = inf_onnx_text(&name, s->import->arena, text, s->b.err);
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_create_inside(&capture->graph, capture->outer, s->b.err);
    node.name = name;
    inner.node = &node;
    inner.b.name = name;
    inner.b.code = s->b.code;
    inner.b.graph = capture->graph;
    for (uint32_t i = 0; inf_build_ok(&inner.b) && i < other->output_count; i++) {
        const struct inf_value *value = &other->values[other->outputs[i].value];
        uint32_t made = add_failing_value(&inner, value->dtype, value->shape.rank);
        inf_onnx_body_add_outputs(&inner, &made, 1);
    }
    s->b.code = inner.b.code;
}

// --- lowering both branches, and adding the BRANCH node ---

// Returns true if an output has different known ranks in the two branches.
static bool ranks_differ(const struct inf_graph *a, const struct inf_graph *b)
{
    for (uint32_t i = 0; i < a->output_count; i++) {
        int32_t left = a->values[a->outputs[i].value].shape.rank;
        int32_t right = b->values[b->outputs[i].value].shape.rank;
        if (left >= 0 && right >= 0 && left != right)
            return true;
    }
    return false;
}

// Adds the BRANCH node. Its inputs are the condition and the captured values.
static void emit_branch(struct inf_onnx_scope *s, const struct inf_onnx_captured *captured,
                        const uint32_t sides[2], uint32_t *outputs, uint32_t output_count)
{
    uint32_t *inputs =
        inf_arena_alloc(s->import->arena, ((size_t)captured->count + 1) * sizeof *inputs);
    if (inputs == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
        return;
    }
    inputs[0] = s->inputs[0];
    if (inf_build_rank(&s->b, inputs[0]) > 0)
        inputs[0] = inf_build_reshape(&s->b, inputs[0], NULL, 0);
    for (uint32_t i = 0; i < captured->count; i++)
        inputs[i + 1] = captured->values[i];
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_BRANCH, inputs, captured->count + 1);
    node.attrs.branch.then_graph = (int32_t)sides[0];
    node.attrs.branch.else_graph = (int32_t)sides[1];
    node.output_count = output_count;
    inf_build_emit(&s->b, &node, outputs);
}

// Lowers both branches and adds the node. If ranks differ and `rest` is NULL, returns false without
// adding the node.
static bool lower_branches(struct inf_onnx_scope *s, const struct rest *rest, uint32_t *outputs,
                           uint32_t output_count)
{
    static const char *const attributes[] = {"then_branch", "else_branch"};
    struct inf_onnx_captured captured = {0};
    struct inf_onnx_capture captures[2] = {0};
    uint32_t sides[2];
    int broken = -1;
    char reason[sizeof s->b.err->text];
    for (int i = 0; inf_build_ok(&s->b) && i < 2; i++) {
        captures[i] = (struct inf_onnx_capture){.outer = s->b.graph, .captured = &captured};
        s->b.code = inf_graph_create_inside(&captures[i].graph, s->b.graph, s->b.err);
        if (inf_build_ok(&s->b))
            lower_branch(s, attributes[i], &captures[i], rest);
        if (inf_build_ok(&s->b) || broken >= 0 || is_fatal(s, rest))
            continue;
        broken = i;
        snprintf(reason, sizeof reason, "%s", s->b.err->text);
        s->b.code = INF_OK;
    }
    if (inf_build_ok(&s->b) && broken >= 0)
        replace_broken_branch(s, &captures[broken], captures[!broken].graph, reason);
    bool diverge =
        inf_build_ok(&s->b) && rest == NULL && ranks_differ(captures[0].graph, captures[1].graph);
    // Add the captured values as inputs to both subgraphs here, because the list of captured values
    // is complete only after both branches are lowered.
    for (int i = 0; i < 2; i++)
        inf_onnx_capture_end(s, &captures[i]);
    for (int i = 0; i < 2; i++) {
        if (inf_build_ok(&s->b) && !diverge)
            s->b.code = inf_graph_add_subgraph(s->b.graph, &captures[i].graph, &sides[i], s->b.err);
        inf_onnx_capture_fini(&captures[i]);
    }
    if (inf_build_ok(&s->b) && !diverge)
        emit_branch(s, &captured, sides, outputs, output_count);
    inf_onnx_captured_fini(&captured);
    return !diverge;
}

static void lower_rest_in_branches(struct inf_onnx_scope *s, struct inf_onnx_frame *frame,
                                   struct inf_onnx_node *nodes, uint32_t count)
{
    struct inf_arena *arena = s->import->arena;
    struct rest rest = {.frame = frame, .nodes = nodes, .count = count};
    size_t room = (size_t)frame->output_count + 1;
    uint32_t *values = inf_arena_alloc(arena, room * sizeof *values);
    rest.outputs = inf_arena_alloc(arena, room * sizeof *rest.outputs);
    if (values == NULL || rest.outputs == NULL) {
        inf_build_fail(&s->b, INF_EXHAUSTED, "no memory");
        return;
    }
    for (uint32_t i = 0; i < frame->output_count; i++) {
        uint32_t ignored;
        if (!inf_onnx_names_find(&frame->names, frame->outputs[i], &ignored))
            rest.outputs[rest.output_count++] = frame->outputs[i];
    }
    if (rest.output_count > 0)
        (void)lower_branches(s, &rest, values, rest.output_count);
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < rest.output_count; i++) {
        bool known;
        if (!inf_onnx_names_add(&frame->names, rest.outputs[i], values[i], &known))
            inf_build_fail(&s->b, INF_EXHAUSTED, "no memory for names");
    }
}

static void lower_if(struct inf_onnx_scope *s)
{
    double condition = 0;
    struct inf_onnx_body body;
    if (!inf_build_const_number(&s->b, s->inputs[0], &condition)) {
        if (!lower_branches(s, NULL, s->outputs, s->output_count))
            s->lower_rest = lower_rest_in_branches;
        return;
    }
    // Mark both attributes as used, because a node with unused attributes is refused.
    (void)inf_onnx_find_attr(s, "then_branch");
    (void)inf_onnx_find_attr(s, "else_branch");
    if (!inf_onnx_body_read(s, &body, condition != 0 ? "then_branch" : "else_branch"))
        return;
    check_body(s, &body);
    if (inf_build_ok(&s->b))
        inf_onnx_body_lower(s, &body, NULL, s->outputs);
}

static const struct inf_onnx_op ops[] = {
    {"If", lower_if, 1, 1, INF_LIMIT_NODE_INPUTS, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_branch = {ops, INF_ARRAY_LENGTH(ops)};
