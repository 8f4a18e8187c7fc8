// SPDX-License-Identifier: Apache-2.0
// Builds a graph whose shapes do not depend on the length of the history.
//
// The idea: let C be the greatest length for which the new rows still fit the buffers. All shapes
// are those for the length C. What follows from shapes alone is known for C from a sample; for
// another length, it is
//
//   the same              a constant of the new graph
//   sample + slope * s    integers such as positions; s is the length minus C
//   something else        computed by the node, with operands that are changed in this way
//
// A concatenation of an input and new rows becomes a node that writes the rows into the buffer,
// behind the used ones. In a buffer, and in all values that are computed from it row by row, only
// the first rows are used. The rules (rules.c) make sure that the others have no effect:
//
//   keys    k k k n . .        k history, n new, . unused
//   scores  x x x x . .   + 0 0 0 0 -inf -inf, so that the softmax gives 0 for unused keys
//   values  v v v n . .   * 0 where unused
#include <stdlib.h>
#include <string.h>

#include "backends/graph/history/append.h"
#include "backends/graph/history/emit.h"
#include "backends/graph/history/rules.h"
#include "backends/graph/pass/heads.h"
#include "backends/graph/shape/infer.h"

// Most rows for which a product reads its second operand transposed instead of transposing it.
#define FEW_ROWS 32

// --- translating nodes ---

// Returns the input of the graph to which the node appends rows; input_count if there is none.
static uint32_t find_appended_input(const struct inf_history_builder *b,
                                    const struct inf_node *node, struct inf_history_append *append)
{
    for (uint32_t i = 0; i < b->source->input_count; i++)
        if (b->history.outputs[i] != INF_HISTORY_NONE &&
            b->source->outputs[b->history.outputs[i]].value == node->outputs[0] &&
            inf_history_find_append(b->source, node->outputs[0], append))
            return i;
    return b->source->input_count;
}

// Adds the positions [n] at which new rows are written: the length of the history. If the graph
// computes positions, an element that is not the length becomes -1, which fails the run.
static enum inf_code emit_positions(struct inf_history_builder *b, uint32_t positions,
                                    uint32_t *out_value)
{
    uint32_t given, cells[3];
    union inf_attrs attrs = {0};
    attrs.expand_dims.axes = (struct inf_ints){.count = 1};
    INF_TRY(
        inf_history_emit_node(b, INF_OP_EXPAND_DIMS, "history", &b->length, 1, &attrs, out_value));
    if (positions == INF_VALUE_NONE)
        return INF_OK;
    INF_TRY(inf_history_find_operand(b, positions, &given));
    cells[1] = *out_value;
    union inf_attrs equal = {0};
    equal.compare.kind = INF_COMPARE_EQUAL;
    INF_TRY(inf_history_emit_node(b, INF_OP_COMPARE, "history", (uint32_t[]){given, cells[1]}, 2,
                                  &equal, cells));
    INF_TRY(inf_history_emit_i32(b, -1, &cells[2]));
    return inf_history_emit_node(b, INF_OP_SELECT, "history", cells, 3, NULL, out_value);
}

static enum inf_code translate_append(struct inf_history_builder *b, const struct inf_node *node,
                                      const struct inf_history_append *append, uint32_t input)
{
    uint32_t inputs[3];
    union inf_attrs attrs = {0};
    attrs.append.axis = b->row_axes[input];
    attrs.append.ring = append->ring;
    attrs.append.in_place = true;
    inputs[0] = b->graph->inputs[input].value;
    INF_TRY(inf_history_find_operand(b, append->rows, &inputs[2]));
    if (b->values[append->rows].axis >= 0 ||
        (append->kept != INF_VALUE_NONE && !inf_history_append_keeps_rows(b->longest, append)))
        return inf_fail(b->err, INF_UNSUPPORTED, "node '%s' appends a part of the history",
                        node->name);
    if (b->overwrites)
        INF_TRY(inf_history_find_operand(b, append->positions, &inputs[1]));
    else
        INF_TRY(emit_positions(b, append->positions, &inputs[1]));
    b->positions[input] = inputs[1];
    return inf_history_emit_node(b, INF_OP_APPEND, node->name, inputs, 3, &attrs,
                                 &b->map[node->outputs[0]]);
}

// Returns the only axis along which a slice selects a part. The number of selected elements is the
// same for both samples, but not always the place where they begin. Returns -1 if there is no such
// axis, or if the slice selects parts along several.
static int32_t find_sliding_axis(const struct inf_history_builder *b, const struct inf_node *node,
                                 struct inf_slice_plan *mid, struct inf_slice_plan *high)
{
    const struct inf_attrs_slice *attrs = &node->attrs.slice;
    const struct inf_shape *x = &b->longest->values[node->inputs[0]].shape;
    int32_t axis = -1;
    if (attrs->ellipsis_mask != 0 || attrs->new_axis_mask != 0 || attrs->shrink_axis_mask != 0 ||
        b->values[node->inputs[0]].axis >= 0 || !inf_node_slice_plan(b->second, node, mid) ||
        !inf_node_slice_plan(b->longest, node, high))
        return -1;
    for (int32_t i = 0; i < mid->rank; i++) {
        if (mid->begin[i] == high->begin[i] && mid->begin[i] == 0 && mid->stride[i] == 1 &&
            high->count[i] == x->dims[i])
            continue;
        if (axis != -1 || mid->stride[i] != 1 || mid->count[i] != high->count[i])
            return -1;
        axis = i;
    }
    return axis;
}

// Translates a slice to a gather whose indices depend on the length: for example, the positions of
// the new rows out of a table of all positions. Sets *done to false if the slice is another one.
static enum inf_code translate_sliding_slice(struct inf_history_builder *b,
                                             const struct inf_node *node, bool *done)
{
    struct inf_slice_plan mid, high;
    int32_t axis = find_sliding_axis(b, node, &mid, &high);
    uint32_t indices, slope, inputs[2];
    void *elements;
    *done = axis >= 0;
    if (!*done)
        return INF_OK;
    INF_TRY(inf_history_emit_constant(b, INF_DTYPE_I32, &INF_SHAPE(mid.count[axis]), &elements,
                                      &indices));
    for (int64_t i = 0; i < mid.count[axis]; i++)
        ((int32_t *)elements)[i] = (int32_t)(high.begin[axis] + i);
    INF_TRY(inf_history_emit_i32(b, (int32_t)(high.begin[axis] - mid.begin[axis]), &slope));
    INF_TRY(inf_history_emit_binary(b, INF_BINARY_MUL, "history", slope, b->shift, &slope));
    INF_TRY(inf_history_emit_binary(b, INF_BINARY_ADD, "history", indices, slope, &inputs[1]));
    INF_TRY(inf_history_find_operand(b, node->inputs[0], &inputs[0]));
    union inf_attrs attrs = {0};
    attrs.gather.axis = axis;
    return inf_history_emit_node(b, INF_OP_GATHER, node->name, inputs, 2, &attrs,
                                 &b->map[node->outputs[0]]);
}

static enum inf_code emit_reshape(struct inf_history_builder *b, const char *name, uint32_t x,
                                  const int64_t dims[4], uint32_t *out_value)
{
    uint32_t inputs[2] = {x};
    void *elements;
    INF_TRY(inf_history_emit_constant(b, INF_DTYPE_I32, &INF_SHAPE(4), &elements, &inputs[1]));
    for (int i = 0; i < 4; i++)
        ((int32_t *)elements)[i] = (int32_t)dims[i];
    return inf_history_emit_node(b, INF_OP_RESHAPE, name, inputs, 2, NULL, out_value);
}

// Translates a product with repeated heads to a product with the heads as they are (heads.h). Sets
// *done to false if the node is something else.
static enum inf_code translate_shared_heads(struct inf_history_builder *b,
                                            const struct inf_node *node, bool *done)
{
    struct inf_heads_repeat repeat;
    uint32_t inputs[2], product;
    union inf_attrs attrs = node->attrs;
    *done = node->op == INF_OP_MATMUL && node->input_count == 2 && !attrs.matmul.transpose_a &&
            inf_heads_find_repeat(b->longest, node->inputs[1], &repeat) &&
            b->map[repeat.source] != INF_VALUE_NONE;
    if (!*done)
        return INF_OK;
    const struct inf_shape *x = &b->longest->values[node->inputs[0]].shape;
    const struct inf_shape *keys = &b->longest->values[repeat.source].shape;
    const struct inf_shape *y = &b->longest->values[node->outputs[0]].shape;
    int64_t rows = repeat.times * x->dims[2];
    *done = x->rank == 4 && x->dims[0] == keys->dims[0] &&
            x->dims[1] == repeat.times * keys->dims[1] && (!repeat.swapped || rows <= FEW_ROWS);
    if (!*done)
        return INF_OK;
    attrs.matmul.transpose_b ^= repeat.swapped;
    INF_TRY(inf_history_find_operand(b, node->inputs[0], &inputs[0]));
    INF_TRY(emit_reshape(b, node->name, inputs[0],
                         (int64_t[]){x->dims[0], keys->dims[1], rows, x->dims[3]}, &inputs[0]));
    inputs[1] = b->map[repeat.source];
    INF_TRY(inf_history_emit_node(b, INF_OP_MATMUL, node->name, inputs, 2, &attrs, &product));
    return emit_reshape(b, node->name, product, y->dims, &b->map[node->outputs[0]]);
}

// Copies a node, with the operands of the new graph.
static enum inf_code copy_node(struct inf_history_builder *b, const struct inf_node *node,
                               bool hides)
{
    uint32_t inputs[INF_LIMIT_NODE_INPUTS], copy, bias;
    for (uint32_t i = 0; i < node->input_count; i++) {
        bool size = inf_history_is_size(node->op, i) && node->inputs[i] != INF_VALUE_NONE;
        INF_TRY(size ? inf_history_find_constant(b, node->inputs[i], &inputs[i])
                     : inf_history_find_operand(b, node->inputs[i], &inputs[i]));
    }
    if (hides) {
        const struct inf_shape *x = &b->longest->values[node->inputs[0]].shape;
        INF_TRY(inf_history_emit_tail_bias(b, x->dims[x->rank - 1], &bias));
        INF_TRY(
            inf_history_emit_binary(b, INF_BINARY_ADD, node->name, inputs[0], bias, &inputs[0]));
    }
    INF_TRY(inf_graph_add_node(b->graph, node->op, node->name, node->source, inputs,
                               node->input_count, node->output_count, &copy, b->err));
    b->graph->nodes[copy].attrs = node->attrs;
    for (uint32_t i = 0; i < node->output_count; i++)
        b->map[node->outputs[i]] = b->graph->nodes[copy].outputs[i];
    return INF_OK;
}

static enum inf_code translate_node(struct inf_history_builder *b, const struct inf_node *node)
{
    struct inf_history_append append;
    uint32_t appended = find_appended_input(b, node, &append);
    struct inf_history_rule rule;
    bool done = false;
    const struct inf_history_facts facts = {b->longest, b->values, b->zero};
    if (appended < b->source->input_count)
        return translate_append(b, node, &append, appended);
    for (uint32_t i = 0; i < node->output_count; i++)
        if (b->values[node->outputs[i]].kind == INF_HISTORY_OTHER)
            return inf_fail(b->err, INF_UNSUPPORTED, "node '%s': its shape depends on the history",
                            node->name);
    if (node->op == INF_OP_SLICE)
        INF_TRY(translate_sliding_slice(b, node, &done));
    if (done)
        return INF_OK;
    INF_TRY(inf_history_check_node(&facts, node, &rule, b->err));
    for (uint32_t i = 0; i < node->output_count; i++)
        b->zero[node->outputs[i]] = rule.zero;
    INF_TRY(translate_shared_heads(b, node, &done));
    if (done)
        return INF_OK;
    return copy_node(b, node, rule.hides);
}

// Returns true if the node must be computed in a run: a needed result does not follow from the
// length alone.
static bool is_computed(const struct inf_history_builder *b, const struct inf_node *node)
{
    for (uint32_t i = 0; i < node->output_count; i++) {
        enum inf_history_kind kind = b->values[node->outputs[i]].kind;
        if (b->needed[node->outputs[i]] && kind != INF_HISTORY_CONSTANT &&
            kind != INF_HISTORY_LINEAR)
            return true;
    }
    return false;
}

static void mark_needed(struct inf_history_builder *b)
{
    struct inf_history_append append;
    for (uint32_t i = 0; i < b->source->output_count; i++)
        b->needed[b->source->outputs[i].value] = true;
    for (uint32_t n = b->source->node_count; n-- > 0;) {
        const struct inf_node *node = &b->source->nodes[n];
        if (!is_computed(b, node))
            continue;
        if (find_appended_input(b, node, &append) < b->source->input_count) {
            b->needed[append.rows] = true;
            if (append.positions != INF_VALUE_NONE)
                b->needed[append.positions] = true;
            continue;
        }
        for (uint32_t i = 0; i < node->input_count; i++)
            if (node->inputs[i] != INF_VALUE_NONE && !inf_history_is_size(node->op, i))
                b->needed[node->inputs[i]] = true;
    }
}

static enum inf_code translate_nodes(struct inf_history_builder *b)
{
    mark_needed(b);
    for (uint32_t n = 0; n < b->source->node_count; n++)
        if (is_computed(b, &b->source->nodes[n]))
            INF_TRY(translate_node(b, &b->source->nodes[n]));
    for (uint32_t i = 0; i < b->source->output_count; i++) {
        const struct inf_port *port = &b->source->outputs[i];
        uint32_t value;
        bool appended = false;
        for (uint32_t k = 0; k < b->source->input_count; k++)
            appended |= b->history.outputs[k] == i;
        if (!appended && b->values[port->value].axis >= 0)
            return inf_fail(b->err, INF_UNSUPPORTED, "output '%s' grows with the history",
                            port->name);
        INF_TRY(inf_history_find_operand(b, port->value, &value));
        INF_TRY(inf_graph_add_output(b->graph, port->name, value, b->err));
    }
    return INF_OK;
}

// Adds the output that tells where rows were written. One list of positions is enough if all caches
// have the same.
static enum inf_code add_positions_output(struct inf_history_builder *b)
{
    uint32_t lists[INF_LIMIT_TENSORS], count = 0, value;
    union inf_attrs concat = {0}, expand = {0};
    bool same = true;
    expand.expand_dims.axes = (struct inf_ints){.count = 1};
    for (uint32_t i = 0; i < b->source->input_count; i++)
        if (b->history.outputs[i] != INF_HISTORY_NONE) {
            lists[count++] = b->positions[i];
            same = same && lists[count - 1] == lists[0];
        }
    if (same)
        count = 1;
    for (uint32_t i = 0; i < count; i++) {
        INF_TRY(inf_history_emit_cast(b, lists[i], INF_DTYPE_I64, &lists[i]));
        INF_TRY(inf_history_emit_node(b, INF_OP_EXPAND_DIMS, "history", &lists[i], 1, &expand,
                                      &lists[i]));
    }
    INF_TRY(inf_history_emit_node(b, INF_OP_CONCAT, "history", lists, count, &concat, &value));
    return inf_graph_add_output(b->graph, "#positions", value, b->err);
}

// --- inputs, samples and memory ---

static enum inf_code add_inputs(struct inf_history_builder *b, uint32_t room)
{
    for (uint32_t i = 0; i < b->source->input_count; i++) {
        const struct inf_port *port = &b->source->inputs[i];
        const struct inf_value *value = &b->longest->values[port->value];
        struct inf_shape shape = value->shape;
        bool appended = b->history.outputs[i] != INF_HISTORY_NONE;
        uint32_t input;
        if (appended)
            shape.dims[b->row_axes[i]] = room;
        INF_TRY(inf_graph_add_value(b->graph, value->name, value->dtype, &shape, &input, b->err));
        INF_TRY(inf_graph_add_input(b->graph, port->name, input, b->err));
        // Nodes other than those that append must not read a buffer.
        b->map[port->value] = appended ? INF_VALUE_NONE : input;
        b->zero[port->value] = !appended && b->history.axes[i] != INF_HISTORY_NONE;
    }
    uint32_t capacity;
    INF_TRY(inf_graph_add_value(b->graph, "history", INF_DTYPE_I32, &(struct inf_shape){0},
                                &b->length, b->err));
    INF_TRY(inf_graph_add_input(b->graph, "#history", b->length, b->err));
    INF_TRY(
        inf_history_emit_i32(b, (int32_t)b->samples.lengths[INF_HISTORY_SAMPLES - 1], &capacity));
    return inf_history_emit_binary(b, INF_BINARY_SUB, "history", b->length, capacity, &b->shift);
}

// Takes the sample for a history of `length` rows.
static enum inf_code take_sample(struct inf_history_builder *b,
                                 const struct inf_evaluator *evaluator,
                                 const struct inf_history_request *request, int64_t length,
                                 struct inf_graph **out_sample)
{
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    for (uint32_t i = 0; i < b->source->input_count; i++) {
        shapes[i] = request->shapes[i];
        if (b->history.axes[i] != INF_HISTORY_NONE)
            shapes[i].dims[b->history.axes[i]] += length;
    }
    return inf_history_sample(b->source, evaluator, shapes, out_sample, b->err);
}

// Returns the rows that an output appends to an input in a sample; 0 if it does something else.
static int64_t count_rows_of(const struct inf_history_builder *b, const struct inf_graph *sample,
                             uint32_t input, int64_t length)
{
    uint32_t output = b->source->outputs[b->history.outputs[input]].value;
    const struct inf_shape *x = &sample->values[b->source->inputs[input].value].shape;
    const struct inf_shape *y = &sample->values[output].shape;
    struct inf_history_append append;
    if (!b->overwrites)
        return y->dims[b->row_axes[input]] - length;
    if (!inf_history_find_append(b->source, output, &append) || !inf_shape_equal(x, y))
        return 0;
    return sample->values[append.rows].shape.dims[append.axis];
}

// Returns the rows that each output appends in a sample; 0 if their numbers differ.
static int64_t count_rows(const struct inf_history_builder *b, const struct inf_graph *sample,
                          int64_t length)
{
    int64_t rows = -1;
    for (uint32_t i = 0; i < b->source->input_count; i++) {
        if (b->history.outputs[i] == INF_HISTORY_NONE)
            continue;
        int64_t more = count_rows_of(b, sample, i, length);
        if (rows >= 0 && more != rows)
            return 0;
        rows = more;
    }
    return rows;
}

// Takes samples for an empty history, for about half of the greatest length C, and for C - 1 and C.
// A sample for a greater length than C might not fit tables of the model.
static enum inf_code take_samples(struct inf_history_builder *b,
                                  const struct inf_evaluator *evaluator,
                                  const struct inf_history_request *request, uint32_t *out_rows)
{
    struct inf_graph **graphs = b->samples.graphs;
    int64_t *lengths = b->samples.lengths;
    INF_TRY(take_sample(b, evaluator, request, 0, &graphs[0]));
    int64_t rows = count_rows(b, graphs[0], 0);
    lengths[3] = request->room - rows;
    lengths[2] = lengths[3] - 1;
    lengths[1] = lengths[3] / 2;
    if (rows < 1 || lengths[1] < 1 || lengths[1] >= lengths[2])
        return inf_fail(b->err, INF_RANGE, "%lld new rows in a buffer of %u", (long long)rows,
                        request->room);
    for (uint32_t i = 1; i < INF_HISTORY_SAMPLES; i++)
        INF_TRY(take_sample(b, evaluator, request, lengths[i], &graphs[i]));
    b->longest = graphs[3];
    b->second = graphs[2];
    *out_rows = (uint32_t)rows;
    return INF_OK;
}

static enum inf_code compare_samples(struct inf_history_builder *b)
{
    size_t count = (size_t)b->source->value_count + 1;
    b->values = calloc(count, sizeof *b->values);
    b->zero = calloc(count, sizeof *b->zero);
    b->needed = calloc(count, sizeof *b->needed);
    b->map = malloc(count * sizeof *b->map);
    b->constants = malloc(count * sizeof *b->constants);
    if (b->values == NULL || b->zero == NULL || b->needed == NULL || b->map == NULL ||
        b->constants == NULL)
        return inf_fail_reason(b->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory to build a graph of %u values", b->source->value_count);
    memset(b->map, 0xff, count * sizeof *b->map);             // INF_VALUE_NONE
    memset(b->constants, 0xff, count * sizeof *b->constants); // INF_VALUE_NONE
    for (uint32_t v = 0; v < b->source->value_count; v++)
        b->values[v] = inf_history_compare(&b->samples, v);
    return INF_OK;
}

static enum inf_code build_graph(struct inf_history_builder *b,
                                 const struct inf_evaluator *evaluator,
                                 const struct inf_history_request *request, uint32_t *out_rows)
{
    INF_TRY(take_samples(b, evaluator, request, out_rows));
    INF_TRY(compare_samples(b));
    INF_TRY(inf_graph_create_inside(&b->graph, b->source, b->err));
    INF_TRY(add_inputs(b, request->room));
    INF_TRY(translate_nodes(b));
    if (b->overwrites)
        INF_TRY(add_positions_output(b));
    return inf_shape_infer(b->graph, b->err);
}

enum inf_code inf_history_build(const struct inf_graph *graph,
                                const struct inf_evaluator *evaluator,
                                const struct inf_history_request *request,
                                struct inf_graph **out_graph, uint32_t *out_rows,
                                struct inf_error *err)
{
    struct inf_history_builder b = {.source = graph, .history = *request->history, .err = err};
    b.overwrites = inf_history_overwrites(request);
    b.row_axes = b.overwrites ? request->history->cache_axes : request->history->axes;
    for (uint32_t i = 0; b.overwrites && i < graph->input_count; i++) {
        if (b.history.outputs[i] != INF_HISTORY_NONE)
            b.history.axes[i] = INF_HISTORY_NONE;
        b.history.outputs[i] = b.history.caches[i];
    }
    enum inf_code code = build_graph(&b, evaluator, request, out_rows);
    if (code == INF_OK) {
        *out_graph = b.graph;
        b.graph = NULL;
    }
    inf_graph_destroy(&b.graph);
    for (uint32_t i = 0; i < INF_HISTORY_SAMPLES; i++)
        inf_graph_destroy(&b.samples.graphs[i]);
    free(b.values);
    free(b.zero);
    free(b.needed);
    free(b.map);
    free(b.constants);
    return code == INF_OK || code == INF_EXHAUSTED || code == INF_RANGE ? code : INF_UNSUPPORTED;
}
