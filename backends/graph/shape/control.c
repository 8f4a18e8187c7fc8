// SPDX-License-Identifier: Apache-2.0
// Branches and loops: copies types and shapes of a node's inputs to the inputs of its subgraphs,
// and takes the node's output types and shapes from the outputs of the subgraphs.
#include <stdlib.h>

#include "backends/graph/shape/rules.h"

// If a loop body changes the shape of a loop variable, its shapes are inferred again. After
// ROUNDS_MAX such rounds the shapes of all variables of the loop become unknown. The number is
// small, because the rounds of nested loops multiply.
#define ROUNDS_MAX 1

// One of the two subgraphs of a branch or loop node, and how the node's inputs and outputs
// correspond to it. The subgraph gets the node's inputs from `first_input` on; inputs before that,
// such as the condition, are not passed to it.
struct subgraph_use {
    const char *name;
    const struct inf_graph *graph;
    uint32_t first_input;  // index of the node's input that becomes input 0 of the subgraph
    uint32_t output_count; // number of outputs that the subgraph must have
    // infers the shapes of a subgraph; NULL if shapes are only checked
    enum inf_code (*infer_graph)(struct inf_graph *graph, struct inf_error *err);
};

static void list_subgraphs(const struct inf_graph *graph, const struct inf_node *node,
                           struct subgraph_use subgraphs[2])
{
    if (node->op == INF_OP_BRANCH) {
        subgraphs[0] = (struct subgraph_use){
            "then_graph", graph->subgraphs[node->attrs.branch.then_graph], 1, node->output_count};
        subgraphs[1] = (struct subgraph_use){
            "else_graph", graph->subgraphs[node->attrs.branch.else_graph], 1, node->output_count};
        return;
    }
    subgraphs[0] = (struct subgraph_use){"condition_graph",
                                         graph->subgraphs[node->attrs.loop.condition_graph], 0, 1};
    subgraphs[1] = (struct subgraph_use){
        "body_graph", graph->subgraphs[node->attrs.loop.body_graph], 0, node->output_count};
}

static enum inf_code check_subgraph(const struct inf_node *node, const struct subgraph_use *use,
                                    struct inf_error *err)
{
    uint32_t input_count = node->input_count - use->first_input;
    if (use->graph->input_count != input_count || use->graph->output_count != use->output_count)
        return inf_fail(err, INF_INVALID,
                        "node '%s': its %s has %u inputs and %u outputs, wanted %u and %u",
                        node->name, use->name, use->graph->input_count, use->graph->output_count,
                        input_count, use->output_count);
    return INF_OK;
}

enum inf_code inf_subgraphs_check(const struct inf_graph *graph, const struct inf_node *node,
                                  struct inf_error *err)
{
    struct inf_node copy = *node;
    int32_t *indices[2];
    struct subgraph_use subgraphs[2];
    if (!inf_node_subgraphs(&copy, indices))
        return INF_OK;
    for (int i = 0; i < 2; i++)
        if (*indices[i] < 0 || (uint32_t)*indices[i] >= graph->subgraph_count ||
            graph->subgraphs[*indices[i]] == NULL)
            return inf_fail(err, INF_INVALID, "node '%s': subgraph %d of %u", node->name,
                            *indices[i], graph->subgraph_count);
    if (*indices[0] == *indices[1])
        return inf_fail(err, INF_INVALID, "node '%s': subgraph %d twice", node->name, *indices[0]);
    list_subgraphs(graph, node, subgraphs);
    for (int i = 0; i < 2; i++)
        INF_TRY(check_subgraph(node, &subgraphs[i], err));
    if (node->op == INF_OP_LOOP && node->output_count > node->input_count)
        return inf_fail(err, INF_INVALID, "node '%s': a loop of %u inputs cannot have %u outputs",
                        node->name, node->input_count, node->output_count);
    return INF_OK;
}

// Gives input `index` of both subgraphs the type and shape of a value.
static void set_input(struct subgraph_use subgraphs[2], uint32_t index, enum inf_dtype dtype,
                      const struct inf_shape *shape)
{
    for (int i = 0; i < 2; i++) {
        struct inf_value *value =
            &subgraphs[i].graph->values[subgraphs[i].graph->inputs[index].value];
        value->dtype = dtype;
        value->shape = *shape;
    }
}

static enum inf_code infer_subgraph(const struct subgraph_use *use, const struct inf_node *node,
                                    struct inf_error *err)
{
    enum inf_code code = use->infer_graph((struct inf_graph *)use->graph, err);
    if (code != INF_OK)
        return inf_error_prefix(err, code, "node '%s' (%s): in its %s", node->name,
                                inf_op_info(node->op)->name, use->name);
    return INF_OK;
}

static enum inf_code infer_both(struct subgraph_use subgraphs[2], const struct inf_node *node,
                                struct inf_error *err)
{
    for (int i = 0; i < 2; i++)
        INF_TRY(infer_subgraph(&subgraphs[i], node, err));
    return INF_OK;
}

// A branch often accepts some shapes only. If the shapes of its inputs do not fit together, the
// branch is inferred without them, so that only a run that takes this branch fails.
static enum inf_code infer_branches(struct subgraph_use subgraphs[2], const struct inf_node *node,
                                    struct inf_error *err)
{
    for (int i = 0; i < 2; i++) {
        const struct inf_graph *graph = subgraphs[i].graph;
        struct inf_error ignored;
        if (infer_subgraph(&subgraphs[i], node, &ignored) == INF_OK)
            continue;
        for (uint32_t k = 0; k < graph->input_count; k++) {
            struct inf_shape *shape = &graph->values[graph->inputs[k].value].shape;
            for (int32_t axis = 0; axis < shape->rank; axis++)
                shape->dims[axis] = INF_DIM_UNKNOWN;
        }
        INF_TRY(infer_subgraph(&subgraphs[i], node, err));
    }
    return INF_OK;
}

static const struct inf_value *output_of(const struct subgraph_use *use, uint32_t index)
{
    return &use->graph->values[use->graph->outputs[index].value];
}

// Merges two shapes: a rank or a dimension that differs becomes unknown.
static struct inf_shape join_shapes(const struct inf_shape *a, const struct inf_shape *b)
{
    struct inf_shape joined = *a;
    if (a->rank != b->rank || a->rank < 0)
        return (struct inf_shape){.rank = INF_RANK_UNKNOWN};
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            joined.dims[i] = INF_DIM_UNKNOWN;
    return joined;
}

// Sets to unknown each dimension of the subgraphs' inputs that the loop body changes between
// iterations. Returns true if any input was changed.
static bool widen_inputs(struct subgraph_use subgraphs[2], const struct inf_node *node)
{
    const struct subgraph_use *body = &subgraphs[1];
    bool changed = false;
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *input = &body->graph->values[body->graph->inputs[i].value];
        struct inf_shape joined = join_shapes(&input->shape, &output_of(body, i)->shape);
        if (inf_shape_equal(&joined, &input->shape))
            continue;
        set_input(subgraphs, i, input->dtype, &joined);
        changed = true;
    }
    return changed;
}

static void forget_shapes(struct subgraph_use subgraphs[2], const struct inf_node *node)
{
    const struct inf_shape unknown = {.rank = INF_RANK_UNKNOWN};
    for (uint32_t i = 0; i < node->output_count; i++)
        set_input(subgraphs, i,
                  subgraphs[1].graph->values[subgraphs[1].graph->inputs[i].value].dtype, &unknown);
}

enum inf_code inf_infer_subgraphs(struct inf_graph *graph, uint32_t index,
                                  enum inf_code (*infer_graph)(struct inf_graph *graph,
                                                               struct inf_error *err),
                                  struct inf_error *err)
{
    const struct inf_node *node = &graph->nodes[index];
    struct subgraph_use subgraphs[2];
    if (node->op != INF_OP_BRANCH && node->op != INF_OP_LOOP)
        return INF_OK;
    INF_TRY(inf_subgraphs_check(graph, node, err));
    list_subgraphs(graph, node, subgraphs);
    subgraphs[0].infer_graph = subgraphs[1].infer_graph = infer_graph;
    for (uint32_t i = subgraphs[0].first_input; i < node->input_count; i++) {
        const struct inf_value *value = &graph->values[node->inputs[i]];
        set_input(subgraphs, i - subgraphs[0].first_input, value->dtype, &value->shape);
    }
    if (node->op == INF_OP_BRANCH)
        return infer_branches(subgraphs, node, err);
    INF_TRY(infer_both(subgraphs, node, err));
    for (int round = 0; widen_inputs(subgraphs, node); round++) {
        if (round == ROUNDS_MAX)
            forget_shapes(subgraphs, node);
        INF_TRY(infer_both(subgraphs, node, err));
    }
    return INF_OK;
}

static enum inf_code check_condition(struct inf_infer *infer, const struct inf_value *value,
                                     const char *what)
{
    char text[INF_SHAPE_TEXT_SIZE];
    size_t count;
    bool is_one =
        !inf_shape_known(&value->shape) || (inf_shape_count(&value->shape, &count) && count == 1);
    if (value->dtype == INF_DTYPE_BOOL && is_one)
        return INF_OK;
    return inf_shape_fault(infer, "%s is %s %s, wanted one bool", what,
                           inf_dtype_name(value->dtype), inf_shape_print(&value->shape, text));
}

enum inf_code inf_infer_branch(struct inf_infer *infer)
{
    const struct inf_node *node = infer->node;
    struct subgraph_use subgraphs[2];
    INF_TRY(inf_subgraphs_check(infer->graph, node, infer->err));
    INF_TRY(check_condition(infer, &infer->graph->values[node->inputs[0]], "the condition"));
    list_subgraphs(infer->graph, node, subgraphs);
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_value *a = output_of(&subgraphs[0], i), *b = output_of(&subgraphs[1], i);
        if (a->dtype != b->dtype)
            return inf_fail_reason(infer->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                                   "output %u is %s in one branch and %s in the other", i,
                                   inf_dtype_name(a->dtype), inf_dtype_name(b->dtype));
        struct inf_shape shape = join_shapes(&a->shape, &b->shape);
        infer->dtypes[i] = a->dtype;
        INF_TRY(inf_infer_output(infer, i, &shape));
    }
    return INF_OK;
}

enum inf_code inf_infer_loop(struct inf_infer *infer)
{
    const struct inf_node *node = infer->node;
    struct subgraph_use subgraphs[2];
    INF_TRY(inf_subgraphs_check(infer->graph, node, infer->err));
    list_subgraphs(infer->graph, node, subgraphs);
    INF_TRY(check_condition(infer, output_of(&subgraphs[0], 0), "the condition"));
    for (uint32_t i = 0; i < node->output_count; i++) {
        const struct inf_graph *body = subgraphs[1].graph;
        const struct inf_value *input = &body->values[body->inputs[i].value];
        const struct inf_value *output = output_of(&subgraphs[1], i);
        if (input->dtype != output->dtype)
            return inf_fail_reason(infer->err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                                   "its body takes input %u as %s and gives it back as %s", i,
                                   inf_dtype_name(input->dtype), inf_dtype_name(output->dtype));
        infer->dtypes[i] = input->dtype;
        INF_TRY(inf_infer_output(infer, i, &input->shape));
    }
    return INF_OK;
}
