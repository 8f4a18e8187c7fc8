// SPDX-License-Identifier: Apache-2.0
// Moves transposes towards the outputs, where they meet their inverses and cancel.
//
// Problem: a model with channels first (NCHW), such as most ONNX files, is imported with a
// transpose to NHWC before every convolution and one back behind it:
//
//     x -> T -> conv -> T' -> relu -> T -> conv -> T' -> y
//
// T' undoes T, but the relu lies between them. Idea: do not write a transpose at all. Remember its
// output as a view: "value s with its axes permuted" (view.h). Go through the nodes in order
// and write a new list (writer.h):
//
//     transpose                 nothing is written; its output becomes a view of s, or of the value
//                               that s is itself a view of, with the permutations composed
//     relu, slice, concat, ...  computed on s; the result is a view again (operator.h)
//     reshape                   computed on s if it keeps groups of axes apart (reshape.c)
//     all others                the view is computed by a transpose first, unless its permutation
//                               is the identity: then s itself is the operand
//
// After T' . relu . T the composed permutation is the identity, so both transposes are gone.
//
// The result is correct because each value is at any time either computed by a node that was
// written, or a view of such a value, and because an operator is only moved past a permutation if
// it treats all axes equally or names its axes in attributes or constants that can be reordered. A
// view is computed at most once, however many operators need it.
#include <stdlib.h>

#include "backends/graph/pass/layout/operator.h"
#include "backends/graph/pass/layout/view.h"
#include "backends/graph/pass/layout/writer.h"
#include "backends/graph/pass/passes.h"

// Returns whether a node is a transpose of known permutation, and describes its output as a view.
static bool read_transpose(const struct inf_layout *layout, const struct inf_node *node,
                           struct inf_layout_view *view)
{
    if (node->op != INF_OP_TRANSPOSE)
        return false;
    const struct inf_ints *perm = &node->attrs.transpose.perm;
    const struct inf_value *x = &layout->graph->values[node->inputs[0]];
    int32_t rank = x->shape.rank;
    // Skip a transpose of a constant, because constant folding computes it.
    if (rank < 0 || x->data != NULL || (perm->count != 0 && perm->count != rank))
        return false;
    const struct inf_layout_view *before = inf_layout_find_view(layout, node->inputs[0]);
    struct inf_layout_view base = before->source != INF_VALUE_NONE
                                      ? *before
                                      : inf_layout_view_identity(node->inputs[0], rank);
    *view = base;
    for (int32_t i = 0; i < rank; i++) {
        int64_t axis = perm->count == 0 ? rank - 1 - i : perm->values[i];
        axis = axis < 0 ? axis + rank : axis;
        view->perm[i] = base.perm[axis];
    }
    return true;
}

// Records the output of a transpose as a view, so that no node is written.
static void note_view(struct inf_layout *layout, const struct inf_node *node,
                      const struct inf_layout_view *view)
{
    uint32_t output = node->outputs[0];
    layout->rewrite->changed |=
        inf_layout_find_view(layout, node->inputs[0])->source != INF_VALUE_NONE;
    layout->graph->values[output].producer = INF_NODE_NONE;
    layout->views[output] = *view;
}

static enum inf_code visit_node(struct inf_layout *layout, struct inf_node *node)
{
    struct inf_layout_view view;
    bool done;
    if (read_transpose(layout, node, &view)) {
        note_view(layout, node, &view);
        return INF_OK;
    }
    INF_TRY(inf_layout_rewrite_operator(layout, node, &done));
    if (done)
        return INF_OK;
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(inf_layout_resolve_view(layout, node, &node->inputs[i]));
    return inf_layout_add_node(layout, node);
}

static enum inf_code write_nodes(struct inf_layout *layout)
{
    struct inf_graph *graph = layout->graph;
    const struct inf_node end = {.name = "output", .source = ""};
    for (uint32_t i = 0; i < graph->node_count; i++)
        INF_TRY(visit_node(layout, &graph->nodes[i]));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t value = graph->outputs[i].value;
        const struct inf_layout_view *view = inf_layout_find_view(layout, value);
        bool is_input =
            view->source != INF_VALUE_NONE && graph->values[view->source].producer == INF_NODE_NONE;
        // A graph output must be computed by a node. If the output is a view of a graph input or
        // constant, and the permutation of the view is the identity, add a node that copies the
        // input or constant.
        if (is_input && inf_layout_view_is_identity(view))
            INF_TRY(inf_layout_materialize(layout, &end, value));
        else
            INF_TRY(inf_layout_resolve_view(layout, &end, &graph->outputs[i].value));
    }
    return INF_OK;
}

// Replaces the nodes of the graph by the new list of nodes.
static enum inf_code replace_nodes(struct inf_layout *layout)
{
    struct inf_graph *graph = layout->graph;
    bool *removed = calloc((size_t)layout->count + 1, sizeof *removed);
    if (removed == NULL)
        return inf_layout_no_memory(layout);
    free(layout->rewrite->removed);
    layout->rewrite->removed = removed;
    free(graph->nodes);
    graph->nodes = layout->nodes;
    graph->node_count = layout->count;
    graph->node_capacity = layout->capacity;
    layout->nodes = NULL;
    return INF_OK;
}

// Returns true if the graph has a transpose. Without one, the pass has nothing to do.
static bool has_transpose(const struct inf_graph *graph)
{
    for (uint32_t i = 0; i < graph->node_count; i++)
        if (graph->nodes[i].op == INF_OP_TRANSPOSE)
            return true;
    return false;
}

enum inf_code inf_pass_layout(struct inf_rewrite *rewrite)
{
    struct inf_graph *graph = rewrite->graph;
    struct inf_layout layout = {
        .rewrite = rewrite, .graph = graph, .view_count = graph->value_count};
    if (!has_transpose(graph))
        return INF_OK;
    layout.views = calloc((size_t)graph->value_count + 1, sizeof *layout.views);
    layout.materialized = calloc((size_t)graph->value_count + 1, sizeof *layout.materialized);
    enum inf_code code = layout.views != NULL && layout.materialized != NULL
                             ? INF_OK
                             : inf_layout_no_memory(&layout);
    for (uint32_t i = 0; code == INF_OK && i < graph->value_count; i++)
        layout.views[i].source = INF_VALUE_NONE;
    if (code == INF_OK)
        code = write_nodes(&layout);
    if (code == INF_OK)
        code = replace_nodes(&layout);
    free(layout.nodes);
    free(layout.views);
    free(layout.materialized);
    return code;
}
