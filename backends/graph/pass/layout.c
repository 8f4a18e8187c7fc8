// SPDX-License-Identifier: Apache-2.0
// Transposes move towards the outputs and cancel. Models with channels first come with a transpose
// before and one behind every convolution; nearly all of them meet their inverse on the way.
//
// The nodes are gone through in order and written down anew. A transpose is not: its output is
// remembered as a view, "value s with its axes permuted". Operators that do not mind where an axis
// stands take s, and what they make is a view again; before all others the view becomes a node.
#include <stdlib.h>
#include <string.h>

#include "backends/graph/pass/layout_view.h"
#include "backends/graph/pass/pass_private.h"

// A pass on its way through the graph.
struct layout {
    struct inf_rewrite *rewrite;
    struct inf_graph *graph;
    struct inf_layout_view *views; // by value; of the values there were at the beginning
    uint32_t view_count;
    bool *made; // by value: the node that makes the view of it is written down
    struct inf_node *nodes;
    uint32_t count, capacity;
};

static enum inf_code no_memory(const struct layout *layout)
{
    return inf_fail_reason(layout->rewrite->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                           "no memory to rewrite a graph of %u values", layout->graph->value_count);
}

// --- writing nodes down ---

static enum inf_code put(struct layout *layout, const struct inf_node *node)
{
    if (layout->count == layout->capacity) {
        uint32_t wanted = layout->capacity * 2 + 16;
        struct inf_node *grown = realloc(layout->nodes, wanted * sizeof *grown);
        if (grown == NULL)
            return no_memory(layout);
        layout->nodes = grown;
        layout->capacity = wanted;
    }
    for (uint32_t i = 0; i < node->output_count; i++)
        layout->graph->values[node->outputs[i]].producer = layout->count;
    layout->nodes[layout->count++] = *node;
    return INF_OK;
}

// A node of the pass's own: `op` from `inputs` to the value `output`, in the name of `like`.
static enum inf_code put_new(struct layout *layout, const struct inf_node *like, enum inf_op op,
                             const uint32_t *inputs, uint32_t input_count, uint32_t output,
                             union inf_attrs *attrs)
{
    struct inf_arena *arena = &layout->graph->arena;
    struct inf_node node = {.op = op,
                            .name = like->name,
                            .source = like->source,
                            .input_count = input_count,
                            .inputs = inf_arena_alloc(arena, input_count * sizeof *node.inputs),
                            .output_count = 1,
                            .outputs = inf_arena_alloc(arena, sizeof *node.outputs)};
    if (node.inputs == NULL || node.outputs == NULL)
        return no_memory(layout);
    memcpy(node.inputs, inputs, input_count * sizeof *inputs);
    node.outputs[0] = output;
    node.attrs = *attrs;
    return put(layout, &node);
}

// A value for what a node makes now that its axes are where the source's are.
static enum inf_code new_value(struct layout *layout, uint32_t like, const struct inf_shape *shape,
                               uint32_t *out_value)
{
    const struct inf_value *value = &layout->graph->values[like];
    return inf_graph_add_value(layout->graph, value->name, value->dtype, shape, out_value,
                               layout->rewrite->err);
}

static const struct inf_layout_view *view_of(const struct layout *layout, uint32_t value)
{
    static const struct inf_layout_view none = {.source = INF_VALUE_NONE};
    return value < layout->view_count ? &layout->views[value] : &none;
}

// Writes down the reshape that a view amounts to.
static enum inf_code put_reshape(struct layout *layout, const struct inf_node *like,
                                 const struct inf_shape *shape, uint32_t from, uint32_t to)
{
    int32_t dims[INF_LIMIT_RANK];
    uint32_t inputs[] = {from, INF_VALUE_NONE};
    union inf_attrs attrs;
    for (int32_t i = 0; i < shape->rank; i++)
        dims[i] = (int32_t)shape->dims[i];
    INF_TRY(inf_graph_add_const_i32(layout->graph, like->name, dims, (uint32_t)shape->rank,
                                    &inputs[1], layout->rewrite->err));
    inf_attrs_init(&attrs, INF_OP_RESHAPE);
    return put_new(layout, like, INF_OP_RESHAPE, inputs, 2, to, &attrs);
}

// Writes down the node that makes `value`, a view, unless that is done.
static enum inf_code materialize(struct layout *layout, const struct inf_node *like, uint32_t value)
{
    const struct inf_layout_view *view = view_of(layout, value);
    union inf_attrs attrs;
    if (view->source == INF_VALUE_NONE || layout->made[value])
        return INF_OK;
    layout->made[value] = true;
    struct inf_shape shape =
        inf_layout_view_shape(view, &layout->graph->values[view->source].shape);
    if (inf_shape_known(&shape) &&
        inf_layout_view_is_reshape(view, &layout->graph->values[view->source].shape))
        return put_reshape(layout, like, &shape, view->source, value);
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    attrs.transpose.perm.count = view->rank;
    for (int32_t i = 0; i < view->rank; i++)
        attrs.transpose.perm.values[i] = view->perm[i];
    return put_new(layout, like, INF_OP_TRANSPOSE, &view->source, 1, value, &attrs);
}

// --- views of what nodes make ---

// Whether a node is a transpose whose permutation can be known; as a view of its input.
static bool read_transpose(const struct layout *layout, const struct inf_node *node,
                           struct inf_layout_view *view)
{
    if (node->op != INF_OP_TRANSPOSE)
        return false;
    const struct inf_ints *perm = &node->attrs.transpose.perm;
    const struct inf_value *x = &layout->graph->values[node->inputs[0]];
    int32_t rank = x->shape.rank;
    // Transposes of constants are folded, which is better still.
    if (rank < 0 || x->data != NULL || (perm->count != 0 && perm->count != rank))
        return false;
    const struct inf_layout_view *before = view_of(layout, node->inputs[0]);
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

// --- operands that are no views ---

// A constant for use beside a view's source: stretched to its rank, its axes moved back. Folding
// makes a constant of it again.
static enum inf_code turn_constant(struct layout *layout, const struct inf_node *like,
                                   const struct inf_layout_view *view, uint32_t value,
                                   uint32_t *out_value)
{
    const struct inf_shape *shape = &layout->graph->values[value].shape;
    struct inf_shape wide = {.rank = view->rank}, turned = {.rank = view->rank};
    int32_t missing = view->rank - shape->rank;
    union inf_attrs attrs;
    for (int32_t i = 0; i < view->rank; i++)
        wide.dims[i] = i < missing ? 1 : shape->dims[i - missing];
    uint32_t reshaped = value;
    if (missing > 0) {
        INF_TRY(new_value(layout, value, &wide, &reshaped));
        INF_TRY(put_reshape(layout, like, &wide, value, reshaped));
    }
    inf_attrs_init(&attrs, INF_OP_TRANSPOSE);
    attrs.transpose.perm.count = view->rank;
    for (int32_t i = 0; i < view->rank; i++) {
        attrs.transpose.perm.values[view->perm[i]] = i;
        turned.dims[view->perm[i]] = wide.dims[i];
    }
    INF_TRY(new_value(layout, value, &turned, out_value));
    return put_new(layout, like, INF_OP_TRANSPOSE, &reshaped, 1, *out_value, &attrs);
}

// Whether `value` can stand beside a view in an element-wise node.
static bool can_join(const struct layout *layout, const struct inf_layout_view *view,
                     uint32_t value)
{
    const struct inf_layout_view *own = view_of(layout, value);
    const struct inf_value *operand = &layout->graph->values[value];
    size_t count;
    if (own->source != INF_VALUE_NONE)
        return inf_layout_view_same(own, view);
    if (operand->shape.rank < 0 || operand->shape.rank > view->rank)
        return false;
    // One element stretches the same way whatever the axes.
    if (inf_shape_count(&operand->shape, &count) && count == 1)
        return true;
    return operand->data != NULL && inf_shape_known(&operand->shape);
}

// What stands beside the view's source in place of `value`.
static enum inf_code join(struct layout *layout, const struct inf_node *like,
                          const struct inf_layout_view *view, uint32_t value, uint32_t *out_value)
{
    const struct inf_layout_view *own = view_of(layout, value);
    size_t count;
    *out_value = own->source != INF_VALUE_NONE ? own->source : value;
    if (own->source != INF_VALUE_NONE ||
        (inf_shape_count(&layout->graph->values[value].shape, &count) && count == 1))
        return INF_OK;
    return turn_constant(layout, like, view, value, out_value);
}

// --- operators that views go through ---

// How attributes change when axis i of the operand is axis perm[i] of what it is a view of, and
// which view the output is then. Families by what they look at.
enum family {
    FAMILY_NONE,
    FAMILY_ELEMENTS, // nothing but elements
    FAMILY_QUANTIZE, // the same, of the first operand
    FAMILY_CONCAT,
    FAMILY_REDUCE,
    FAMILY_AXIS, // one axis attribute, shape kept
    FAMILY_SQUEEZE,
    FAMILY_EXPAND,
    FAMILY_PAD,
    FAMILY_RESHAPE, // free where only axes of size 1 have moved
};

static enum family family_of(const struct inf_graph *graph, const struct inf_node *node)
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

// Pads moved to the source's axes: a new constant for the node.
static enum inf_code turn_pads(struct layout *layout, struct inf_node *node,
                               const struct inf_layout_view *view)
{
    int64_t pads[2 * INF_LIMIT_RANK];
    int32_t turned[2 * INF_LIMIT_RANK];
    uint32_t count, value;
    struct inf_shape shape = INF_SHAPE(view->rank, 2);
    if (!inf_graph_const_ints(layout->graph, node->inputs[1], pads, 2 * INF_LIMIT_RANK, &count))
        return inf_fail(layout->rewrite->err, INF_INTERNAL, "pads are not constant");
    for (int32_t i = 0; i < view->rank; i++) {
        turned[2 * view->perm[i]] = (int32_t)pads[2 * i];
        turned[2 * view->perm[i] + 1] = (int32_t)pads[2 * i + 1];
    }
    struct inf_blob *data = inf_blob_create((size_t)count * sizeof *turned);
    if (data != NULL)
        memcpy(data->data, turned, data->size_bytes);
    INF_TRY(inf_graph_add_const(layout->graph, node->name, INF_DTYPE_I32, &shape, data, &value,
                                layout->rewrite->err));
    node->inputs[1] = value;
    return INF_OK;
}

// How many of a node's inputs, from the first, are tensors that views matter to.
static uint32_t data_inputs(const struct inf_node *node, enum family family)
{
    return family == FAMILY_ELEMENTS || family == FAMILY_CONCAT ? node->input_count : 1;
}

// Whether a node can take its operands as views. *view is that of one of them.
static bool can_pass(const struct layout *layout, const struct inf_node *node, enum family family,
                     const struct inf_layout_view **view)
{
    int64_t ignored[2 * INF_LIMIT_RANK];
    uint32_t count, inputs = data_inputs(node, family);
    *view = NULL;
    for (uint32_t i = 0; i < inputs; i++)
        if (view_of(layout, node->inputs[i])->source != INF_VALUE_NONE)
            *view = view_of(layout, node->inputs[i]);
    if (*view == NULL)
        return false;
    for (uint32_t i = 0; i < inputs; i++) {
        const struct inf_layout_view *own = view_of(layout, node->inputs[i]);
        if (family == FAMILY_CONCAT && own->source == INF_VALUE_NONE)
            return false;
        if (!can_join(layout, *view, node->inputs[i]))
            return false;
    }
    // An operand of higher rank would stretch the result beyond the view.
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

// Changes attributes to the source's axes; *result is the view that outputs are.
static void turn_attrs(struct inf_node *node, enum family family,
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

// Gives a node new values as outputs, of which the old ones are views.
static enum inf_code turn_outputs(struct layout *layout, struct inf_node *node,
                                  const struct inf_layout_view *result)
{
    uint32_t *outputs =
        inf_arena_alloc(&layout->graph->arena, node->output_count * sizeof *outputs);
    if (outputs == NULL)
        return no_memory(layout);
    for (uint32_t i = 0; i < node->output_count; i++) {
        uint32_t value = node->outputs[i];
        struct inf_shape shape =
            inf_layout_view_source_shape(result, &layout->graph->values[value].shape);
        INF_TRY(new_value(layout, value, &shape, &outputs[i]));
        layout->graph->values[value].producer = INF_NODE_NONE;
        layout->views[value] = *result;
        layout->views[value].source = outputs[i];
    }
    node->outputs = outputs;
    return INF_OK;
}

// Writes down a node that works on what its operands are views of.
static enum inf_code pass_through(struct layout *layout, const struct inf_node *old,
                                  enum family family, const struct inf_layout_view *given)
{
    struct inf_layout_view view = *given, result;
    struct inf_node node = *old;
    node.inputs = inf_arena_alloc(&layout->graph->arena, old->input_count * sizeof *node.inputs);
    if (node.inputs == NULL)
        return no_memory(layout);
    memcpy(node.inputs, old->inputs, old->input_count * sizeof *node.inputs);
    for (uint32_t i = 0; i < data_inputs(old, family); i++)
        INF_TRY(join(layout, old, &view, old->inputs[i], &node.inputs[i]));
    if (family == FAMILY_PAD)
        INF_TRY(turn_pads(layout, &node, &view));
    turn_attrs(&node, family, &view, &result);
    layout->rewrite->changed = true;
    // Where no axis is left in another place, the old value is what the node makes.
    if (!inf_layout_view_is_identity(&result))
        INF_TRY(turn_outputs(layout, &node, &result));
    return put(layout, &node);
}

// --- the whole ---

// Notes a transpose as a view. One whose view is not moved at all is its source.
static void note_view(struct layout *layout, const struct inf_node *node,
                      const struct inf_layout_view *view)
{
    uint32_t output = node->outputs[0];
    layout->rewrite->changed |= view_of(layout, node->inputs[0])->source != INF_VALUE_NONE;
    layout->graph->values[output].producer = INF_NODE_NONE;
    layout->views[output] = *view;
}

// What stands for `value` where views do not go: the source of a view that moves nothing, or the
// value itself, made by a node.
static enum inf_code settle(struct layout *layout, const struct inf_node *like, uint32_t *value)
{
    if (*value == INF_VALUE_NONE)
        return INF_OK;
    const struct inf_layout_view *view = view_of(layout, *value);
    if (view->source != INF_VALUE_NONE && inf_layout_view_is_identity(view)) {
        *value = view->source;
        return INF_OK;
    }
    return materialize(layout, like, *value);
}

static enum inf_code visit(struct layout *layout, struct inf_node *node)
{
    struct inf_layout_view view;
    const struct inf_layout_view *given;
    enum family family = family_of(layout->graph, node);
    if (read_transpose(layout, node, &view)) {
        note_view(layout, node, &view);
        return INF_OK;
    }
    if (family != FAMILY_NONE && can_pass(layout, node, family, &given))
        return pass_through(layout, node, family, given);
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(settle(layout, node, &node->inputs[i]));
    return put(layout, node);
}

static enum inf_code write_down(struct layout *layout)
{
    struct inf_graph *graph = layout->graph;
    const struct inf_node end = {.name = "output", .source = ""};
    for (uint32_t i = 0; i < graph->node_count; i++)
        INF_TRY(visit(layout, &graph->nodes[i]));
    for (uint32_t i = 0; i < graph->output_count; i++) {
        uint32_t value = graph->outputs[i].value;
        const struct inf_layout_view *view = view_of(layout, value);
        bool is_input =
            view->source != INF_VALUE_NONE && graph->values[view->source].producer == INF_NODE_NONE;
        // An output is always something that a node makes.
        if (is_input && inf_layout_view_is_identity(view))
            INF_TRY(materialize(layout, &end, value));
        else
            INF_TRY(settle(layout, &end, &graph->outputs[i].value));
    }
    return INF_OK;
}

// Takes the nodes written down for the graph's.
static enum inf_code take_over(struct layout *layout)
{
    struct inf_graph *graph = layout->graph;
    bool *gone = calloc((size_t)layout->count + 1, sizeof *gone);
    if (gone == NULL)
        return no_memory(layout);
    free(layout->rewrite->gone);
    layout->rewrite->gone = gone;
    free(graph->nodes);
    graph->nodes = layout->nodes;
    graph->node_count = layout->count;
    graph->node_capacity = layout->capacity;
    layout->nodes = NULL;
    return INF_OK;
}

// Whether there is anything to do: most graphs have no transpose.
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
    struct layout layout = {.rewrite = rewrite, .graph = graph, .view_count = graph->value_count};
    if (!has_transpose(graph))
        return INF_OK;
    layout.views = calloc((size_t)graph->value_count + 1, sizeof *layout.views);
    layout.made = calloc((size_t)graph->value_count + 1, sizeof *layout.made);
    enum inf_code code = layout.views != NULL && layout.made != NULL ? INF_OK : no_memory(&layout);
    for (uint32_t i = 0; code == INF_OK && i < graph->value_count; i++)
        layout.views[i].source = INF_VALUE_NONE;
    if (code == INF_OK)
        code = write_down(&layout);
    if (code == INF_OK)
        code = take_over(&layout);
    free(layout.nodes);
    free(layout.views);
    free(layout.made);
    return code;
}
