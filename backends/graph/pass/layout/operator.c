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
#include "backends/graph/pass/layout/operator.h"

#include <string.h>

#include "backends/graph/pass/layout/lists.h"
#include "backends/graph/pass/layout/reshape.h"
#include "backends/graph/pass/layout/view.h"

// --- operands that are not views: constants, single elements, and values along one axis ---

// Returns the shape with axes of size 1 in front, so that it has the rank of the view.
static struct inf_shape extend_shape(const struct inf_shape *shape,
                                     const struct inf_layout_view *view)
{
    struct inf_shape wide = {.rank = view->rank};
    int32_t missing = view->rank - shape->rank;
    for (int32_t i = 0; i < view->rank; i++)
        wide.dims[i] = i < missing ? 1 : shape->dims[i - missing];
    return wide;
}

// Describes a value of the view's rank as seen from the axes of the view's source.
static struct inf_layout_view invert_view(const struct inf_layout_view *view)
{
    struct inf_layout_view inverse = {.rank = view->rank};
    for (int32_t i = 0; i < view->rank; i++)
        inverse.perm[view->perm[i]] = i;
    return inverse;
}

// Permutes a value to the axes of a view's source, so that both can be operands of one node. The
// value is first extended to the view's rank. If it is a constant, constant folding computes the
// result later. Otherwise only axes of size 1 move (can_join), which a reshape does.
static enum inf_code permute_operand(struct inf_layout *layout, const struct inf_node *like,
                                     const struct inf_layout_view *view, uint32_t value,
                                     uint32_t *out_value)
{
    const struct inf_value *operand = &layout->graph->values[value];
    const struct inf_shape wide = extend_shape(&operand->shape, view);
    const struct inf_layout_view inverse = invert_view(view);
    const struct inf_shape permuted = inf_layout_view_shape(&inverse, &wide);
    const bool extend = operand->shape.rank < view->rank;
    const bool is_constant = operand->data != NULL;
    union inf_attrs attrs;
    uint32_t reshaped = value;
    if (!is_constant) {
        INF_TRY(inf_layout_add_value(layout, value, &permuted, out_value));
        return inf_layout_add_reshape(layout, like, &permuted, value, *out_value);
    }
    if (extend) {
        INF_TRY(inf_layout_add_value(layout, value, &wide, &reshaped));
        INF_TRY(inf_layout_add_reshape(layout, like, &wide, value, reshaped));
    }
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    attrs.transpose.perm.count = view->rank;
    for (int32_t i = 0; i < view->rank; i++)
        attrs.transpose.perm.values[i] = inverse.perm[i];
    INF_TRY(inf_layout_add_value(layout, value, &permuted, out_value));
    return inf_layout_add_op(layout, like, INF_OP_TRANSPOSE, &reshaped, 1, *out_value, &attrs);
}

// Returns whether an element-wise node that works on the source of `view` instead of the view can
// have `value` as another operand: `value` must be a view with the same permutation, a constant, a
// single element, or a value of which the permutation moves only axes of size 1, such as a computed
// factor for each channel.
static bool can_join(const struct inf_layout *layout, const struct inf_layout_view *view,
                     uint32_t value)
{
    const struct inf_layout_view *own = inf_layout_find_view(layout, value);
    size_t count;
    if (value == INF_VALUE_NONE)
        return true;
    if (own->source != INF_VALUE_NONE)
        return inf_layout_view_same(own, view);
    const struct inf_value *operand = &layout->graph->values[value];
    if (operand->shape.rank < 0 || operand->shape.rank > view->rank)
        return false;
    // A single element broadcasts the same way for any order of axes.
    if (inf_shape_count(&operand->shape, &count) && count == 1)
        return true;
    if (!inf_shape_known(&operand->shape))
        return false;
    const struct inf_shape wide = extend_shape(&operand->shape, view);
    const struct inf_layout_view inverse = invert_view(view);
    return operand->data != NULL || inf_layout_view_is_reshape(&inverse, &wide);
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
    if (own->source != INF_VALUE_NONE || value == INF_VALUE_NONE ||
        (inf_shape_count(&layout->graph->values[value].shape, &count) && count == 1))
        return INF_OK;
    return permute_operand(layout, like, view, value, out_value);
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
    FAMILY_AXIS,    // one attribute names an axis, which stays
    FAMILY_GATHER,  // an axis becomes the axes of the indices: none or one
    FAMILY_ARG,     // an axis is searched, and dropped or kept as size 1
    FAMILY_REVERSE, // a list of axes that stay
    FAMILY_LIST,    // the second operand has an element for each axis
    FAMILY_SLICE,
    FAMILY_NORMALIZE, // a list of neighbouring axes that stay; further operands broadcast
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
    case INF_OP_CUMULATE:
        return FAMILY_AXIS;
    case INF_OP_GATHER:
        return FAMILY_GATHER;
    case INF_OP_ARG:
        return FAMILY_ARG;
    case INF_OP_REVERSE:
        return FAMILY_REVERSE;
    case INF_OP_TILE:
    case INF_OP_BROADCAST:
        return FAMILY_LIST;
    case INF_OP_SLICE:
        return FAMILY_SLICE;
    case INF_OP_NORMALIZE:
        return node->attrs.normalize.axes.count > 0 ? FAMILY_NORMALIZE : FAMILY_NONE;
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

// Reorders the constant operands of a node that have elements for each axis.
static enum inf_code permute_lists(struct inf_layout *layout, struct inf_node *node,
                                   enum family family, const struct inf_layout_view *view)
{
    if (family == FAMILY_PAD)
        return inf_layout_permute_list(layout, node, 1, view, 2);
    if (family == FAMILY_LIST)
        return inf_layout_permute_list(layout, node, 1, view, 1);
    return family == FAMILY_SLICE ? inf_layout_permute_slice(layout, node, view) : INF_OK;
}

// Returns true if the operands and attributes of the node allow that it works on the source of the
// view.
static bool fits_family(const struct inf_layout *layout, const struct inf_node *node,
                        enum family family, const struct inf_layout_view *view)
{
    const struct inf_value *values = layout->graph->values;
    switch (family) {
    case FAMILY_ELEMENTS:
        // An operand of higher rank would give the result more axes than the view has.
        return values[node->outputs[0]].shape.rank == view->rank;
    case FAMILY_EXPAND:
        return view->rank + node->attrs.expand_dims.axes.count <= INF_LIMIT_RANK;
    case FAMILY_PAD:
        return inf_layout_has_list(layout, node, 1, view, 2);
    case FAMILY_LIST:
        return inf_layout_has_list(layout, node, 1, view, 1);
    case FAMILY_SLICE:
        return inf_layout_can_permute_slice(layout, node, view);
    case FAMILY_GATHER: {
        int32_t rank = values[node->inputs[1]].shape.rank;
        return node->attrs.gather.batch_dims == 0 && (rank == 0 || rank == 1);
    }
    case FAMILY_NORMALIZE:
        return inf_layout_can_normalize(layout, node, view);
    case FAMILY_RESHAPE:
        return inf_layout_view_is_reshape(view, &values[view->source].shape);
    default:
        return true;
    }
}

// Returns how many of a node's inputs, counted from the first, are tensors that may be views.
static uint32_t count_data_inputs(const struct inf_node *node, enum family family)
{
    bool all = family == FAMILY_ELEMENTS || family == FAMILY_CONCAT || family == FAMILY_NORMALIZE;
    return all ? node->input_count : 1;
}

// Returns true if the node can read, instead of each operand that is a view, the source of that
// view. A view is another value, its source, with the axes permuted. *view becomes the view of one
// operand; NULL if no operand is a view.
static bool can_rewrite(const struct inf_layout *layout, const struct inf_node *node,
                        enum family family, const struct inf_layout_view **view)
{
    uint32_t inputs = count_data_inputs(node, family);
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
    return fits_family(layout, node, family, *view);
}

// Returns the attribute that names the axis of an operator of FAMILY_AXIS, FAMILY_GATHER or
// FAMILY_ARG.
static int32_t *find_axis(struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_SPLIT:
        return &node->attrs.split.axis;
    case INF_OP_CUMULATE:
        return &node->attrs.cumulate.axis;
    case INF_OP_GATHER:
        return &node->attrs.gather.axis;
    case INF_OP_ARG:
        return &node->attrs.arg.axis;
    default:
        return &node->attrs.softmax.axis;
    }
}

// Renumbers the one axis that the node names. *result becomes the view that remains if the node
// drops the axis, otherwise it is `view`.
static void permute_axis(struct inf_node *node, bool drops, const struct inf_layout_view *view,
                         struct inf_layout_view *result)
{
    int32_t *axis = find_axis(node);
    bool hit[INF_LIMIT_RANK] = {false};
    hit[*axis < 0 ? *axis + view->rank : *axis] = true;
    *axis = inf_layout_view_axis(view, *axis);
    *result = drops ? inf_layout_view_drop(view, hit) : *view;
}

// Changes the axis numbers in the node's attributes from axes of the view to axes of the view's
// source. *result becomes the view that describes the node's outputs.
static void permute_attrs(const struct inf_graph *graph, struct inf_node *node, enum family family,
                          const struct inf_layout_view *view, struct inf_layout_view *result)
{
    bool hit[INF_LIMIT_RANK] = {false};
    *result = *view;
    switch (family) {
    case FAMILY_CONCAT:
        node->attrs.concat.axis = inf_layout_view_axis(view, node->attrs.concat.axis);
        break;
    case FAMILY_AXIS:
        permute_axis(node, false, view, result);
        break;
    case FAMILY_GATHER:
        permute_axis(node, graph->values[node->inputs[1]].shape.rank == 0, view, result);
        break;
    case FAMILY_ARG:
        permute_axis(node, !node->attrs.arg.keep_dims, view, result);
        break;
    case FAMILY_REVERSE:
        inf_layout_view_map(view, &node->attrs.reverse.axes, hit);
        break;
    case FAMILY_NORMALIZE:
        inf_layout_view_map(view, &node->attrs.normalize.axes, hit);
        break;
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
    // Further operands, such as the indices of gather, keep their order.
    for (uint32_t i = count_data_inputs(old, family); i < old->input_count; i++)
        INF_TRY(inf_layout_resolve_view(layout, old, &node.inputs[i]));
    INF_TRY(permute_lists(layout, &node, family, &view));
    permute_attrs(layout->graph, &node, family, &view, &result);
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
    if (family == FAMILY_RESHAPE) {
        INF_TRY(inf_layout_rewrite_reshape(layout, node, out_done));
        if (*out_done)
            return INF_OK;
    }
    *out_done = family != FAMILY_NONE && can_rewrite(layout, node, family, &view);
    return *out_done ? rewrite_node(layout, node, family, view) : INF_OK;
}
