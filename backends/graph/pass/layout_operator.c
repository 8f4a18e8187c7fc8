// SPDX-License-Identifier: Apache-2.0
// Operators that work on the source of a view instead of the view. Each family says which
// attributes name axes. The attributes are renumbered to the axes of the source, and the output is
// a view again:
//
//     t = transpose(s, perm)                 t is a view of s
//     y = softmax(t, axis 1)        becomes  z = softmax(s, axis perm[1]),  y is a view of z
//
// An element-wise operator takes several operands. All views among them must have the same
// permutation; constants are permuted back, which constant folding then does once.
#include "backends/graph/pass/layout_operator.h"

#include <string.h>

#include "backends/graph/pass/layout_view.h"

// --- operands that are not views: constants and single elements ---

// Permutes a constant to the axes of a view's source, so that both can be operands of one node. The
// constant is first extended to the view's rank. Constant folding computes the result later.
static enum inf_code permute_constant(struct inf_layout *layout, const struct inf_node *like,
                                      const struct inf_layout_view *view, uint32_t value,
                                      uint32_t *out_value)
{
    const struct inf_shape *shape = &layout->graph->values[value].shape;
    struct inf_shape wide = {.rank = view->rank}, permuted = {.rank = view->rank};
    int32_t missing = view->rank - shape->rank;
    union inf_attrs attrs;
    for (int32_t i = 0; i < view->rank; i++)
        wide.dims[i] = i < missing ? 1 : shape->dims[i - missing];
    uint32_t reshaped = value;
    if (missing > 0) {
        INF_TRY(inf_layout_add_value(layout, value, &wide, &reshaped));
        INF_TRY(inf_layout_add_reshape(layout, like, &wide, value, reshaped));
    }
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    attrs.transpose.perm.count = view->rank;
    for (int32_t i = 0; i < view->rank; i++) {
        attrs.transpose.perm.values[view->perm[i]] = i;
        permuted.dims[view->perm[i]] = wide.dims[i];
    }
    INF_TRY(inf_layout_add_value(layout, value, &permuted, out_value));
    return inf_layout_add_op(layout, like, INF_OP_TRANSPOSE, &reshaped, 1, *out_value, &attrs);
}

// Returns whether an element-wise node that works on the source of `view` instead of the view can
// have `value` as another operand: `value` must be a view with the same permutation, a constant, or
// a single element.
static bool can_join(const struct inf_layout *layout, const struct inf_layout_view *view,
                     uint32_t value)
{
    const struct inf_layout_view *own = inf_layout_find_view(layout, value);
    const struct inf_value *operand = &layout->graph->values[value];
    size_t count;
    if (own->source != INF_VALUE_NONE)
        return inf_layout_view_same(own, view);
    if (operand->shape.rank < 0 || operand->shape.rank > view->rank)
        return false;
    // A single element broadcasts the same way for any order of axes.
    if (inf_shape_count(&operand->shape, &count) && count == 1)
        return true;
    return operand->data != NULL && inf_shape_known(&operand->shape);
}

// Stores in *out_value the value that replaces operand `value` when the node works on the view's
// source.
static enum inf_code join_operand(struct inf_layout *layout, const struct inf_node *like,
                                  const struct inf_layout_view *view, uint32_t value,
                                  uint32_t *out_value)
{
    const struct inf_layout_view *own = inf_layout_find_view(layout, value);
    size_t count;
    *out_value = own->source != INF_VALUE_NONE ? own->source : value;
    if (own->source != INF_VALUE_NONE ||
        (inf_shape_count(&layout->graph->values[value].shape, &count) && count == 1))
        return INF_OK;
    return permute_constant(layout, like, view, value, out_value);
}

// --- operators that work on the source of a view ---

// Groups of operators whose attributes and output change in the same way if the node works on the
// source of a view, whose axes are permuted, instead of on the view.
enum family {
    FAMILY_NONE,
    FAMILY_ELEMENTS, // elementwise operators: no attribute names an axis
    // quantize and dequantize: the first operand may be a view, and no attribute names an axis of
    // the others
    FAMILY_QUANTIZE,
    FAMILY_CONCAT,
    FAMILY_REDUCE,
    FAMILY_AXIS, // one attribute names an axis; the output has the shape of the input
    FAMILY_SQUEEZE,
    FAMILY_EXPAND,
    FAMILY_PAD,
    FAMILY_RESHAPE, // works on the source of a view only if the view moves only axes of size 1
};

static enum family find_family(const struct inf_graph *graph, const struct inf_node *node)
{
    size_t count;
    switch (node->op) {
    case INF_OP_UNARY:
    case INF_OP_BINARY:
    case INF_OP_COMPARE:
    case INF_OP_SELECT:
    case INF_OP_CLIP:
    case INF_OP_PRELU:
    case INF_OP_CAST:
    case INF_OP_IDENTITY:
        return FAMILY_ELEMENTS;
    case INF_OP_QUANTIZE:
    case INF_OP_DEQUANTIZE:
        return inf_shape_count(&graph->values[node->inputs[1]].shape, &count) && count == 1
                   ? FAMILY_QUANTIZE
                   : FAMILY_NONE;
    case INF_OP_CONCAT:
        return FAMILY_CONCAT;
    case INF_OP_REDUCE:
        return FAMILY_REDUCE;
    case INF_OP_SOFTMAX:
    case INF_OP_SPLIT:
        return FAMILY_AXIS;
    case INF_OP_SQUEEZE:
        return node->attrs.squeeze.axes.count > 0 ? FAMILY_SQUEEZE : FAMILY_NONE;
    case INF_OP_EXPAND_DIMS:
        return FAMILY_EXPAND;
    case INF_OP_PAD:
        return FAMILY_PAD;
    case INF_OP_RESHAPE:
        return FAMILY_RESHAPE;
    default:
        return FAMILY_NONE;
    }
}

// Adds a constant with the padding amounts of a pad node, reordered from the axes of the view to
// the axes of its source, and makes that constant the node's input.
static enum inf_code permute_pads(struct inf_layout *layout, struct inf_node *node,
                                  const struct inf_layout_view *view)
{
    int64_t pads[2 * INF_LIMIT_RANK];
    int32_t permuted[2 * INF_LIMIT_RANK];
    uint32_t count, value;
    struct inf_shape shape = INF_SHAPE(view->rank, 2);
    if (!inf_graph_const_ints(layout->graph, node->inputs[1], pads, 2 * INF_LIMIT_RANK, &count))
        return inf_fail(layout->rewrite->err, INF_INTERNAL, "pads are not constant");
    for (int32_t i = 0; i < view->rank; i++) {
        permuted[2 * view->perm[i]] = (int32_t)pads[2 * i];
        permuted[2 * view->perm[i] + 1] = (int32_t)pads[2 * i + 1];
    }
    struct inf_blob *data = inf_blob_create((size_t)count * sizeof *permuted);
    if (data != NULL)
        memcpy(data->data, permuted, data->size_bytes);
    INF_TRY(inf_graph_add_const(layout->graph, node->name, INF_DTYPE_I32, &shape, data, &value,
                                layout->rewrite->err));
    node->inputs[1] = value;
    return INF_OK;
}

// Returns how many of a node's inputs, counted from the first, are tensors that may be views.
static uint32_t count_data_inputs(const struct inf_node *node, enum family family)
{
    return family == FAMILY_ELEMENTS || family == FAMILY_CONCAT ? node->input_count : 1;
}

// Returns true if the node can read, instead of each operand that is a view, the source of that
// view. A view is another value, its source, with the axes permuted. *view becomes the view of one
// operand; NULL if no operand is a view.
static bool can_rewrite(const struct inf_layout *layout, const struct inf_node *node,
                        enum family family, const struct inf_layout_view **view)
{
    int64_t ignored[2 * INF_LIMIT_RANK];
    uint32_t count, inputs = count_data_inputs(node, family);
    *view = NULL;
    for (uint32_t i = 0; i < inputs; i++)
        if (inf_layout_find_view(layout, node->inputs[i])->source != INF_VALUE_NONE)
            *view = inf_layout_find_view(layout, node->inputs[i]);
    if (*view == NULL)
        return false;
    for (uint32_t i = 0; i < inputs; i++) {
        if (!can_join(layout, *view, node->inputs[i]))
            return false;
    }
    // An operand of higher rank would give the result more axes than the view has.
    if (family == FAMILY_ELEMENTS &&
        layout->graph->values[node->outputs[0]].shape.rank != (*view)->rank)
        return false;
    if (family == FAMILY_EXPAND &&
        (*view)->rank + node->attrs.expand_dims.axes.count > INF_LIMIT_RANK)
        return false;
    if (family == FAMILY_PAD)
        return inf_graph_const_ints(layout->graph, node->inputs[1], ignored, 2 * INF_LIMIT_RANK,
                                    &count) &&
               count == 2 * (uint32_t)(*view)->rank;
    return family != FAMILY_RESHAPE ||
           inf_layout_view_is_reshape(*view, &layout->graph->values[(*view)->source].shape);
}

// Changes the axis numbers in the node's attributes from axes of the view to axes of the view's
// source. *result becomes the view that describes the node's outputs.
static void permute_attrs(struct inf_node *node, enum family family,
                          const struct inf_layout_view *view, struct inf_layout_view *result)
{
    bool hit[INF_LIMIT_RANK] = {false};
    *result = *view;
    switch (family) {
    case FAMILY_CONCAT:
        node->attrs.concat.axis = inf_layout_view_axis(view, node->attrs.concat.axis);
        break;
    case FAMILY_AXIS: {
        int32_t *axis =
            node->op == INF_OP_SPLIT ? &node->attrs.split.axis : &node->attrs.softmax.axis;
        *axis = inf_layout_view_axis(view, *axis);
        break;
    }
    case FAMILY_REDUCE:
        inf_layout_view_map(view, &node->attrs.reduce.axes, hit);
        if (node->attrs.reduce.axes.count == 0 && !node->attrs.reduce.keep_dims)
            result->rank = 0;
        else if (!node->attrs.reduce.keep_dims)
            *result = inf_layout_view_drop(view, hit);
        break;
    case FAMILY_SQUEEZE:
        inf_layout_view_map(view, &node->attrs.squeeze.axes, hit);
        *result = inf_layout_view_drop(view, hit);
        break;
    case FAMILY_EXPAND:
        *result = inf_layout_view_insert(view, &node->attrs.expand_dims.axes);
        break;
    case FAMILY_RESHAPE:
        result->rank = 0;
        break;
    default:
        break;
    }
}

// Gives a node new values as outputs, and records each old output as a view of the new one.
static enum inf_code replace_outputs(struct inf_layout *layout, struct inf_node *node,
                                     const struct inf_layout_view *result)
{
    uint32_t *outputs =
        inf_arena_alloc(&layout->graph->arena, node->output_count * sizeof *outputs);
    if (outputs == NULL)
        return inf_layout_no_memory(layout);
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t value = node->outputs[i];
        struct inf_shape shape =
            inf_layout_view_source_shape(result, &layout->graph->values[value].shape);
        INF_TRY(inf_layout_add_value(layout, value, &shape, &outputs[i]));
        layout->graph->values[value].producer = INF_NODE_NONE;
        layout->views[value] = *result;
        layout->views[value].source = outputs[i];
    }
    node->outputs = outputs;
    return INF_OK;
}

// Appends a copy of the node `old`. Each operand of `old` that is a view is replaced in the copy by
// the value of which it is a view. A view is another value with its axes permuted. Axis numbers in
// the attributes are renumbered.
static enum inf_code rewrite_node(struct inf_layout *layout, const struct inf_node *old,
                                  enum family family, const struct inf_layout_view *given)
{
    struct inf_layout_view view = *given, result;
    struct inf_node node = *old;
    node.inputs = inf_arena_alloc(&layout->graph->arena, old->input_count * sizeof *node.inputs);
    if (node.inputs == NULL)
        return inf_layout_no_memory(layout);
    memcpy(node.inputs, old->inputs, old->input_count * sizeof *node.inputs);
    for (uint32_t i = 0; i < count_data_inputs(old, family); i++)
        INF_TRY(join_operand(layout, old, &view, old->inputs[i], &node.inputs[i]));
    if (family == FAMILY_PAD)
        INF_TRY(permute_pads(layout, &node, &view));
    permute_attrs(&node, family, &view, &result);
    layout->rewrite->changed = true;
    // If the result's view is the identity, the node can produce the old output values directly.
    if (!inf_layout_view_is_identity(&result))
        INF_TRY(replace_outputs(layout, &node, &result));
    return inf_layout_add_node(layout, &node);
}

enum inf_code inf_layout_rewrite_operator(struct inf_layout *layout, const struct inf_node *node,
                                          bool *out_done)
{
    const struct inf_layout_view *view;
    enum family family = find_family(layout->graph, node);
    *out_done = family != FAMILY_NONE && can_rewrite(layout, node, family, &view);
    return *out_done ? rewrite_node(layout, node, family, view) : INF_OK;
}
