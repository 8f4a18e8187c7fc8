// SPDX-License-Identifier: Apache-2.0
// Builds BRANCH and LOOP nodes from Merge nodes, frames of loops, and calls of functions. Each side
// becomes a subgraph whose inputs are the outer values that it uses; constants are copied instead.
// A loop body is lowered with guessed shapes of its variables, because lowering depends on shapes.
// The guesses are tried in this order: the shapes before the first iteration; the dimensions that
// these shapes and the body's results have in common; unknown rank. A guess holds if the body
// returns shapes that match it. Example: a variable that starts as [1,8] and grows to [2,8] gets
// [?,8].
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/import/tfjs/control.h"
#include "backends/import/tfjs/region.h"

// The number of guesses for the shapes of variables: initial shapes, common dimensions, unknown
// rank.
#define LOOP_GUESSES 3

// One subgraph of a branch or loop, and what is needed to build it.
struct side {
    const struct inf_tfjs_inside *inside;
    int which;
    const uint32_t *values; // values of the outer graph that the subgraph uses
    uint32_t value_count;
    const struct inf_shape *shapes; // shapes of the first values inside the subgraph
    uint32_t shape_count;
    uint32_t output_count;
};

// Sets values[i] to the value in the subgraph for value i of the outer graph. It is a copy of a
// constant, or an input of the subgraph.
static enum inf_code enter_side(struct inf_tfjs_scope *inside, const struct inf_graph *outer,
                                const struct side *side, uint32_t *values, struct inf_error *err)
{
    for (uint32_t i = 0; i < side->value_count; i++) {
        const struct inf_value *value = &outer->values[side->values[i]];
        bool is_variable = i < side->shape_count;
        char name[16];
        if (value->data != NULL && !is_variable) {
            INF_TRY(inf_graph_add_const(inside->graph, value->name, value->dtype, &value->shape,
                                        inf_blob_ref(value->data), &values[i], err));
            continue;
        }
        INF_TRY(inf_graph_add_value(inside->graph, value->name, value->dtype,
                                    is_variable ? &side->shapes[i] : &value->shape, &values[i],
                                    err));
        snprintf(name, sizeof name, "%u", i);
        INF_TRY(inf_graph_add_input(inside->graph, name, values[i], err));
    }
    return INF_OK;
}

static enum inf_code fill_side(struct inf_tfjs_scope *inside, const struct inf_graph *outer,
                               const struct side *side, uint32_t *values, uint32_t *outputs,
                               struct inf_error *err)
{
    INF_TRY(enter_side(inside, outer, side, values, err));
    INF_TRY(side->inside->build(side->inside->context, inside, side->which, values, outputs, err));
    for (uint32_t i = 0; i < side->output_count; i++) {
        char name[16];
        snprintf(name, sizeof name, "%u", i);
        INF_TRY(inf_graph_add_output(inside->graph, name, outputs[i], err));
    }
    return INF_OK;
}

// Builds a subgraph, which the caller destroys.
static enum inf_code build_side(struct inf_tfjs_scope *scope, const struct side *side,
                                struct inf_graph **out_graph, struct inf_error *err)
{
    struct inf_tfjs_scope inside = *scope;
    uint32_t *values = calloc((size_t)side->value_count + 1, sizeof *values);
    uint32_t *outputs = calloc((size_t)side->output_count + 1, sizeof *outputs);
    inside.graph = NULL;
    inside.inputs = calloc(INF_LIMIT_NODE_INPUTS, sizeof *inside.inputs);
    enum inf_code code = INF_OK;
    if (values == NULL || outputs == NULL || inside.inputs == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory to build the graph");
    if (code == INF_OK)
        code = inf_graph_create_inside(&inside.graph, scope->graph, err);
    if (code == INF_OK)
        code = inf_tfjs_region_begin(&inside, err);
    if (code == INF_OK) {
        code = fill_side(&inside, scope->graph, side, values, outputs, err);
        inf_tfjs_region_end(&inside);
    }
    free(values);
    free(outputs);
    free(inside.inputs);
    if (code == INF_OK)
        *out_graph = inside.graph;
    else
        inf_graph_destroy(&inside.graph);
    return code;
}

// Adds the BRANCH or LOOP node, which takes ownership of its two subgraphs.
static enum inf_code emit_node(struct inf_tfjs_scope *scope, struct inf_build_node *call,
                               struct inf_graph *sides[2], uint32_t *out_values,
                               struct inf_error *err)
{
    uint32_t indices[2];
    enum inf_code code = INF_OK;
    for (int i = 0; i < 2; i++) {
        if (code == INF_OK)
            code = inf_graph_add_subgraph(scope->graph, &sides[i], &indices[i], err);
        inf_graph_destroy(&sides[i]);
    }
    INF_TRY(code);
    if (call->op == INF_OP_BRANCH) {
        call->attrs.branch.then_graph = (int32_t)indices[1];
        call->attrs.branch.else_graph = (int32_t)indices[0];
    } else {
        call->attrs.loop.condition_graph = (int32_t)indices[0];
        call->attrs.loop.body_graph = (int32_t)indices[1];
    }
    return inf_tfjs_emit(scope, call, out_values, err);
}

// Appends the values of the outer graph that are not constants to `list`, because they become
// inputs of the subgraphs.
static void list_inputs(const struct inf_tfjs_scope *scope, const uint32_t *values, uint32_t first,
                        uint32_t count, uint32_t *list, uint32_t *list_count)
{
    for (uint32_t i = first; i < count; i++)
        if (!inf_graph_is_const(scope->graph, values[i]))
            list[(*list_count)++] = values[i];
}

enum inf_code inf_tfjs_emit_branch(struct inf_tfjs_scope *scope,
                                   const struct inf_tfjs_branch_call *branch, uint32_t *out_values,
                                   struct inf_error *err)
{
    struct inf_graph *sides[2] = {NULL, NULL};
    uint32_t input_count = 1;
    uint32_t *inputs = calloc((size_t)branch->value_count + 1, sizeof *inputs);
    enum inf_code code = inputs == NULL ? inf_fail(err, INF_EXHAUSTED, "no memory") : INF_OK;
    for (int i = 0; i < 2 && code == INF_OK; i++) {
        struct side side = {.inside = &branch->inside,
                            .which = i,
                            .values = branch->values,
                            .value_count = branch->value_count,
                            .output_count = branch->output_count};
        code = build_side(scope, &side, &sides[i], err);
    }
    if (code == INF_OK) {
        inputs[0] = branch->predicate;
        list_inputs(scope, branch->values, 0, branch->value_count, inputs, &input_count);
        struct inf_build_node call = inf_build_describe_list(INF_OP_BRANCH, inputs, input_count);
        call.output_count = branch->output_count;
        code = emit_node(scope, &call, sides, out_values, err);
    }
    inf_graph_destroy(&sides[0]);
    inf_graph_destroy(&sides[1]);
    free(inputs);
    return code;
}

// Compares the shapes of the body's results with the guessed shapes. Makes each dimension or rank
// that differs unknown in the guess. Returns true if the guess was right.
static bool refine_guess(const struct inf_graph *body, struct inf_shape *shapes, uint32_t count,
                         bool give_up)
{
    bool held = true;
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_shape *made = &body->values[body->outputs[i].value].shape;
        struct inf_shape joined = shapes[i];
        if (made->rank != joined.rank)
            joined = (struct inf_shape){.rank = INF_RANK_UNKNOWN};
        for (int32_t axis = 0; axis < joined.rank; axis++)
            if (made->dims[axis] != joined.dims[axis])
                joined.dims[axis] = INF_DIM_UNKNOWN;
        held &= inf_shape_equal(&joined, &shapes[i]);
        shapes[i] = joined;
    }
    for (uint32_t i = 0; !held && give_up && i < count; i++)
        shapes[i] = (struct inf_shape){.rank = INF_RANK_UNKNOWN};
    return held;
}

// Builds condition and body with shapes that hold in every iteration.
static enum inf_code build_loop(struct inf_tfjs_scope *scope, const struct inf_tfjs_loop_call *loop,
                                struct inf_shape *shapes, struct inf_graph *sides[2],
                                struct inf_error *err)
{
    struct side side = {.inside = &loop->inside,
                        .values = loop->values,
                        .value_count = loop->value_count,
                        .shapes = shapes,
                        .shape_count = loop->variable_count};
    for (int guess = 1; guess <= LOOP_GUESSES; guess++) {
        inf_graph_destroy(&sides[1]);
        side.which = 1;
        side.output_count = loop->variable_count;
        INF_TRY(build_side(scope, &side, &sides[1], err));
        if (refine_guess(sides[1], shapes, loop->variable_count, guess == LOOP_GUESSES - 1))
            break;
    }
    side.which = 0;
    side.output_count = 1;
    return build_side(scope, &side, &sides[0], err);
}

enum inf_code inf_tfjs_emit_loop(struct inf_tfjs_scope *scope,
                                 const struct inf_tfjs_loop_call *loop, uint32_t *out_values,
                                 struct inf_error *err)
{
    struct inf_graph *sides[2] = {NULL, NULL};
    struct inf_shape *shapes = calloc((size_t)loop->variable_count + 1, sizeof *shapes);
    uint32_t *inputs = calloc((size_t)loop->value_count + 1, sizeof *inputs);
    enum inf_code code = INF_OK;
    if (shapes == NULL || inputs == NULL)
        code = inf_fail(err, INF_EXHAUSTED, "no memory to build the graph");
    for (uint32_t i = 0; code == INF_OK && i < loop->variable_count; i++) {
        shapes[i] = scope->graph->values[loop->values[i]].shape;
        inputs[i] = loop->values[i];
    }
    if (code == INF_OK)
        code = build_loop(scope, loop, shapes, sides, err);
    if (code == INF_OK) {
        uint32_t input_count = loop->variable_count;
        list_inputs(scope, loop->values, loop->variable_count, loop->value_count, inputs,
                    &input_count);
        struct inf_build_node call = inf_build_describe_list(INF_OP_LOOP, inputs, input_count);
        call.output_count = loop->variable_count;
        code = emit_node(scope, &call, sides, out_values, err);
    }
    inf_graph_destroy(&sides[0]);
    inf_graph_destroy(&sides[1]);
    free(shapes);
    free(inputs);
    return code;
}

// --- branches that end with a Merge ---

// Sets the values that captured nodes, which are outside a branch, have inside its subgraph.
static enum inf_code set_captures(const struct inf_tfjs_branch *branch,
                                  struct inf_tfjs_scope *inside, const uint32_t *values,
                                  struct inf_error *err)
{
    for (uint32_t i = 0; i < branch->capture_count; i++) {
        const struct inf_tfjs_ref *ref = &branch->captures[i].inner;
        bool is_switch = inside->source->control[ref->node].role == INF_TFJS_BRANCH_SWITCH;
        uint32_t *outputs;
        inside->node = &inside->source->nodes[ref->node];
        uint32_t value_count = is_switch ? 2 : inside->node->value_count;
        // If the other output of the Switch was set before, use its list of values and add to it.
        outputs = inside->node->values;
        if (inside->node->region != inf_tfjs_region_id(inside->region))
            INF_TRY(inf_tfjs_outputs(inside, INF_MAX(value_count, ref->port + 1), &outputs, err));
        outputs[is_switch ? 0 : ref->port] = values[i];
        if (is_switch)
            outputs[1] = values[i];
    }
    return INF_OK;
}

static enum inf_code build_merge(void *context, struct inf_tfjs_scope *inside, int side,
                                 const uint32_t *values, uint32_t *outputs, struct inf_error *err)
{
    const struct inf_tfjs_branch *branch = context;
    INF_TRY(set_captures(branch, inside, values, err));
    INF_TRY(inf_tfjs_lower_refs(inside, &branch->sides[side], 1, err));
    return inf_tfjs_value(inside, &branch->sides[side], &outputs[0], "a branch", err);
}

enum inf_code inf_tfjs_lower_merge(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    struct inf_tfjs_node *node = scope->node;
    struct inf_tfjs_branch *branch = scope->source->control[node - scope->source->nodes].branch;
    uint32_t result = INF_VALUE_NONE;
    if (branch == NULL)
        return inf_tfjs_fail(scope, err, INF_INVALID, "is part of a cycle");
    uint32_t *values = calloc((size_t)branch->capture_count + 1, sizeof *values);
    if (values == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to build the graph");
    struct inf_tfjs_branch_call call = {.inside = {build_merge, branch},
                                        .values = values,
                                        .value_count = branch->capture_count,
                                        .output_count = 1};
    enum inf_code code =
        inf_tfjs_value(scope, &branch->predicate, &call.predicate, node->name, err);
    for (uint32_t i = 0; i < branch->capture_count && code == INF_OK; i++)
        code = inf_tfjs_value(scope, &branch->captures[i].outer, &values[i], node->name, err);
    if (code == INF_OK)
        code = inf_tfjs_emit_branch(scope, &call, &result, err);
    free(values);
    INF_TRY(code);
    return inf_tfjs_result(scope, result, err);
}

// --- loops of TensorFlow 1 ---

// A loop that is being lowered.
struct loop {
    const struct inf_tfjs_frame *frame;
    uint32_t *constants; // Enter nodes whose values do not change in the loop
    uint32_t constant_count;
};

// Sets the value that a node at the border of a loop (Enter, Merge, Switch) has inside the loop.
static enum inf_code set_border(struct inf_tfjs_scope *inside, uint32_t node, uint32_t value,
                                struct inf_error *err)
{
    inside->node = &inside->source->nodes[node];
    return inf_tfjs_result(inside, value, err);
}

static enum inf_code build_loop_side(void *context, struct inf_tfjs_scope *inside, int side,
                                     const uint32_t *values, uint32_t *outputs,
                                     struct inf_error *err)
{
    const struct loop *loop = context;
    const struct inf_tfjs_frame *frame = loop->frame;
    for (uint32_t i = 0; i < frame->variable_count; i++)
        INF_TRY(set_border(inside, frame->merges[i], values[i], err));
    for (uint32_t i = 0; i < loop->constant_count; i++)
        INF_TRY(set_border(inside, loop->constants[i], values[frame->variable_count + i], err));
    uint32_t count = side == 0 ? 1 : frame->variable_count;
    for (uint32_t i = 0; i < count; i++) {
        uint32_t end = side == 0 ? frame->condition : frame->nexts[i];
        const struct inf_tfjs_ref *ref = &inside->source->nodes[end].inputs[0];
        INF_TRY(inf_tfjs_lower_refs(inside, ref, 1, err));
        INF_TRY(inf_tfjs_value(inside, ref, &outputs[i], "a loop", err));
    }
    return INF_OK;
}

static enum inf_code lower_frame(struct inf_tfjs_scope *scope, struct loop *loop, uint32_t *values,
                                 uint32_t *results, struct inf_error *err)
{
    const struct inf_tfjs_frame *frame = loop->frame;
    const struct inf_tfjs_node *nodes = scope->source->nodes;
    for (uint32_t i = 0; i < frame->enter_count; i++)
        if (!scope->source->control[frame->enters[i]].is_entrance)
            loop->constants[loop->constant_count++] = frame->enters[i];
    for (uint32_t i = 0; i < frame->variable_count; i++)
        INF_TRY(inf_tfjs_value(scope, &nodes[frame->entrances[i]].inputs[0], &values[i], "a loop",
                               err));
    for (uint32_t i = 0; i < loop->constant_count; i++)
        INF_TRY(inf_tfjs_value(scope, &nodes[loop->constants[i]].inputs[0],
                               &values[frame->variable_count + i], "a loop", err));
    struct inf_tfjs_loop_call call = {.inside = {build_loop_side, loop},
                                      .values = values,
                                      .value_count = frame->variable_count + loop->constant_count,
                                      .variable_count = frame->variable_count};
    return inf_tfjs_emit_loop(scope, &call, results, err);
}

// Sets the values of all Exit nodes of the loop.
static enum inf_code set_exits(struct inf_tfjs_scope *scope, const struct inf_tfjs_frame *frame,
                               const uint32_t *results, struct inf_error *err)
{
    const struct inf_tfjs_control *control = scope->source->control;
    for (uint32_t i = frame->first_exit; i != UINT32_MAX; i = control[i].next_exit)
        INF_TRY(set_border(scope, i, results[control[i].variable], err));
    return INF_OK;
}

enum inf_code inf_tfjs_lower_exit(struct inf_tfjs_scope *scope, struct inf_error *err)
{
    uint32_t index = scope->source->control[scope->node - scope->source->nodes].frame;
    struct loop loop = {.frame = &scope->source->frames[index]};
    if (loop.frame->condition == UINT32_MAX)
        return inf_tfjs_fail(scope, err, INF_INVALID, "its loop has no LoopCond");
    size_t count = (size_t)loop.frame->enter_count + 1;
    uint32_t *lists = calloc(count, 3 * sizeof *lists);
    if (lists == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to build the graph");
    loop.constants = lists;
    enum inf_code code = lower_frame(scope, &loop, lists + count, lists + 2 * count, err);
    if (code == INF_OK)
        code = set_exits(scope, loop.frame, lists + 2 * count, err);
    free(lists);
    return code;
}
