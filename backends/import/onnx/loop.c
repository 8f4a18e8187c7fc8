// SPDX-License-Identifier: Apache-2.0
// Builds a LOOP node for Loop and Scan. The node has two subgraphs, condition and body, and a list
// of states that every iteration replaces:
//     state 0     number of the iteration (i64)
//     state 1     condition to continue (bool)
//     carried     the loop's own variables
//     stacked     one list for each scan output; each iteration appends one slice
// After the states come captured values, which stay the same. The condition subgraph computes
// state1 && state0 < most. The body gathers its slice of each scan input by state 0, runs the ONNX
// body, and appends to the lists.
// Shapes: the first attempt lowers the body with the shapes before the first iteration. If an
// iteration changes a shape, those dimensions become unknown and the body is lowered again. If that
// is not enough, the rank becomes unknown. Therefore the body is lowered at most a few times.
#include "backends/import/onnx/loop.h"

#include <stdio.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/narrow.h"

// Index of the first carried state. The iteration number and the condition come first; stacked
// outputs follow the carried states.
#define STATE_FIRST 2u
#define STATES_MAX  (STATE_FIRST + 2 * INF_ONNX_CARRIED_MAX)

// A Loop or Scan that is being built as a LOOP node.
struct builder {
    const struct inf_onnx_loop *loop;
    struct inf_onnx_captured captured;
    // captures[0] is for the condition subgraph, captures[1] for the body subgraph
    struct inf_onnx_capture captures[2];
    uint32_t initial[STATES_MAX]; // values of the outer graph before the first iteration
    enum inf_dtype dtypes[STATES_MAX];
    struct inf_shape shapes[STATES_MAX]; // shapes that hold in every iteration
    uint32_t state_count;
};

// --- initial values and shapes of the loop's states ---

static void add_state(struct inf_onnx_scope *s, struct builder *builder, uint32_t initial)
{
    uint32_t at = builder->state_count;
    if (!inf_build_ok(&s->b))
        return;
    if (initial == INF_VALUE_NONE || inf_onnx_is_sequence(initial) || inf_onnx_is_narrow(initial)) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "carries a sequence or a narrow tensor");
        return;
    }
    builder->initial[at] = initial;
    builder->dtypes[at] = s->b.graph->values[initial].dtype;
    builder->shapes[at] = s->b.graph->values[initial].shape;
    builder->state_count++;
}

// Adds the states from `first` on as inputs of the scope's subgraph.
static void add_inputs(struct inf_onnx_scope *s, const struct builder *builder, uint32_t first,
                       uint32_t *values)
{
    char name[24];
    for (uint32_t i = first; inf_build_ok(&s->b) && i < builder->state_count; i++) {
        snprintf(name, sizeof name, "state%u", i);
        s->b.code = inf_graph_add_value(s->b.graph, name, builder->dtypes[i], &builder->shapes[i],
                                        &values[i], s->b.err);
        if (inf_build_ok(&s->b))
            s->b.code = inf_graph_add_input(s->b.graph, name, values[i], s->b.err);
    }
}

static struct inf_onnx_scope enter_subgraph(struct inf_onnx_scope *s, struct builder *builder,
                                            int which)
{
    struct inf_onnx_scope inner = *s;
    struct inf_onnx_capture *capture = &builder->captures[which];
    *capture = (struct inf_onnx_capture){.outer = s->b.graph, .captured = &builder->captured};
    if (inf_build_ok(&s->b))
        inner.b.code = inf_graph_create_inside(&capture->graph, s->b.graph, s->b.err);
    inner.b.graph = capture->graph;
    return inner;
}

// --- lowering the body for one iteration ---

static uint32_t take_slice(struct inf_onnx_scope *s, struct builder *builder,
                           const struct inf_onnx_slices *slices, uint32_t round)
{
    struct inf_onnx_capture *capture = &builder->captures[1];
    uint32_t x = inf_onnx_capture(s, capture, slices->value), at = round;
    if (slices->backwards) {
        uint32_t last = inf_onnx_capture(s, capture, builder->loop->most);
        at = inf_build_sub(&s->b, inf_build_binary_number(&s->b, INF_BINARY_SUB, last, 1), round);
    }
    return inf_build_gather(&s->b, x, at, slices->axis);
}

// Lowers the body. states[] are the inputs of the subgraph. The body's outputs are written to
// outputs[], with the condition converted to a scalar.
static void lower_iteration(struct inf_onnx_scope *s, struct builder *builder,
                            const uint32_t *states, uint32_t *outputs)
{
    const struct inf_onnx_loop *loop = builder->loop;
    uint32_t inputs[STATES_MAX], count = 0;
    for (uint32_t i = loop->has_condition ? 0 : STATE_FIRST; i < STATE_FIRST + loop->carried; i++)
        inputs[count++] = states[i];
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < loop->slice_count; i++)
        inputs[count++] = take_slice(s, builder, &loop->slices[i], states[0]);
    if (!loop->has_condition)
        outputs[0] = states[1];
    if (loop->body != NULL) {
        struct inf_onnx_body body = *loop->body;
        body.capture = &builder->captures[1];
        inf_onnx_body_lower(s, &body, inputs, loop->has_condition ? outputs : outputs + 1);
    } else if (inf_build_ok(&s->b)) {
        loop->iterate(s, loop->context, inputs, outputs + 1);
    }
    if (inf_build_ok(&s->b) && (inf_onnx_is_sequence(outputs[0]) || inf_onnx_is_narrow(outputs[0])))
        inf_build_fail(&s->b, INF_INVALID, "its condition is a sequence or a narrow tensor");
    if (inf_build_ok(&s->b) && inf_build_rank(&s->b, outputs[0]) != 0)
        outputs[0] = inf_build_reshape(&s->b, outputs[0], NULL, 0);
}

// Makes each dimension of a carried value unknown that an iteration changes. If an iteration
// changes the rank, or `give_up` is set, makes the whole rank unknown. Returns true if any shape
// was changed.
static bool widen_shapes(struct inf_onnx_scope *s, struct builder *builder, const uint32_t *outputs,
                         bool give_up)
{
    bool changed = false;
    for (uint32_t i = 0; inf_build_ok(&s->b) && i < builder->loop->carried; i++) {
        struct inf_shape *shape = &builder->shapes[STATE_FIRST + i];
        if (inf_onnx_is_sequence(outputs[1 + i]) || inf_onnx_is_narrow(outputs[1 + i])) {
            inf_build_fail(&s->b, INF_UNSUPPORTED, "carries a sequence or a narrow tensor");
            return false;
        }
        const struct inf_shape *made = &s->b.graph->values[outputs[1 + i]].shape;
        if (shape->rank < 0 || inf_shape_equal(shape, made))
            continue;
        if (give_up || made->rank != shape->rank) {
            *shape = (struct inf_shape){.rank = INF_RANK_UNKNOWN};
            changed = true;
            continue;
        }
        for (int32_t k = 0; k < shape->rank; k++) {
            changed |= shape->dims[k] != INF_DIM_UNKNOWN && shape->dims[k] != made->dims[k];
            if (shape->dims[k] != made->dims[k])
                shape->dims[k] = INF_DIM_UNKNOWN;
        }
    }
    return changed;
}

static void drop_body(struct builder *builder)
{
    inf_onnx_capture_fini(&builder->captures[1]);
    inf_onnx_captured_fini(&builder->captured);
}

// Lowers the body repeatedly until no iteration changes a shape.
static struct inf_onnx_scope lower_body(struct inf_onnx_scope *s, struct builder *builder,
                                        uint32_t *states, uint32_t *outputs)
{
    for (int try = 0;; try++) {
        struct inf_onnx_scope inner = enter_subgraph(s, builder, 1);
        add_inputs(&inner, builder, 0, states);
        lower_iteration(&inner, builder, states, outputs);
        if (!inf_build_ok(&inner.b) || !widen_shapes(&inner, builder, outputs, try > 0))
            return inner;
        drop_body(builder);
    }
}

// --- stacked outputs: collecting the results of iterations in lists ---

// Adds an empty list for a stacked output. Its items have the shape of one iteration's result, as
// far as this shape is known.
static uint32_t add_empty_list(struct inf_onnx_scope *s, const struct inf_value *item)
{
    struct inf_shape shape = {.rank = item->shape.rank + 1};
    void *ignored;
    if (item->shape.rank < 0 || shape.rank > INF_LIMIT_RANK) {
        inf_build_fail(&s->b, INF_UNSUPPORTED, "the rank of what it stacks up is not known");
        return INF_VALUE_NONE;
    }
    for (int32_t i = 0; i < item->shape.rank; i++)
        shape.dims[i + 1] = INF_MAX(item->shape.dims[i], 0);
    return inf_build_const(&s->b, item->dtype, &shape, &ignored);
}

static void add_stacked_states(struct inf_onnx_scope *s, struct inf_onnx_scope *inner,
                               struct builder *builder, uint32_t *states, uint32_t *outputs)
{
    const struct inf_onnx_loop *loop = builder->loop;
    uint32_t first = builder->state_count;
    for (uint32_t i = 0; inf_build_ok(&inner->b) && inf_build_ok(&s->b) && i < loop->stacked; i++) {
        uint32_t item = outputs[1 + loop->carried + i];
        if (inf_onnx_is_sequence(item) || inf_onnx_is_narrow(item)) {
            inf_build_fail(&inner->b, INF_UNSUPPORTED, "stacks up sequences or narrow tensors");
            return;
        }
        add_state(s, builder, add_empty_list(s, &inner->b.graph->values[item]));
        // The length is unknown, because every iteration makes the list longer.
        builder->shapes[first + i].dims[0] = INF_DIM_UNKNOWN;
    }
    if (!inf_build_ok(&s->b))
        inner->b.code = s->b.code;
    add_inputs(inner, builder, first, states);
    for (uint32_t i = 0; inf_build_ok(&inner->b) && i < loop->stacked; i++) {
        const uint32_t inputs[] = {states[first + i], states[0], outputs[1 + loop->carried + i]};
        struct inf_build_node node = inf_build_describe_list(INF_OP_LIST_SET, inputs, 3);
        node.attrs.list_set.grow = true;
        outputs[1 + loop->carried + i] = inf_build_value(&inner->b, &node);
    }
}

// --- adding the LOOP node ---

static void lower_condition(struct inf_onnx_scope *s, struct builder *builder)
{
    uint32_t states[STATES_MAX];
    struct inf_onnx_scope inner = enter_subgraph(s, builder, 0);
    add_inputs(&inner, builder, 0, states);
    uint32_t keep = states[1];
    if (inf_build_ok(&inner.b) && builder->loop->most != INF_VALUE_NONE) {
        uint32_t most = inf_onnx_capture(&inner, &builder->captures[0], builder->loop->most);
        uint32_t more = inf_build_compare(&inner.b, INF_COMPARE_LESS, states[0], most);
        keep = inf_build_binary(&inner.b, INF_BINARY_LOGICAL_AND, keep, more);
    }
    inf_onnx_body_add_outputs(&inner, &keep, 1);
    s->b.code = inner.b.code;
}

static void emit_loop(struct inf_onnx_scope *s, struct builder *builder, uint32_t *outputs)
{
    uint32_t graphs[2], results[STATES_MAX];
    const struct inf_onnx_captured *captured = &builder->captured;
    for (int i = 0; i < 2; i++)
        inf_onnx_capture_end(s, &builder->captures[i]);
    for (int i = 0; inf_build_ok(&s->b) && i < 2; i++)
        s->b.code =
            inf_graph_add_subgraph(s->b.graph, &builder->captures[i].graph, &graphs[i], s->b.err);
    uint32_t count = builder->state_count + captured->count;
    uint32_t *inputs = inf_arena_alloc(s->import->arena, ((size_t)count + 1) * sizeof *inputs);
    if (inputs == NULL || count > INF_LIMIT_NODE_INPUTS)
        inf_build_fail(&s->b, INF_EXHAUSTED, "no room for %u values that it takes", count);
    if (!inf_build_ok(&s->b))
        return;
    for (uint32_t i = 0; i < count; i++)
        inputs[i] = i < builder->state_count ? builder->initial[i]
                                             : captured->values[i - builder->state_count];
    struct inf_build_node node = inf_build_describe_list(INF_OP_LOOP, inputs, count);
    node.attrs.loop.condition_graph = (int32_t)graphs[0];
    node.attrs.loop.body_graph = (int32_t)graphs[1];
    node.output_count = builder->state_count;
    inf_build_emit(&s->b, &node, results);
    for (uint32_t i = STATE_FIRST; i < builder->state_count; i++)
        outputs[i - STATE_FIRST] = results[i];
}

static void build_loop(struct inf_onnx_scope *s, struct builder *builder, uint32_t *outputs)
{
    const struct inf_onnx_loop *loop = builder->loop;
    uint32_t states[STATES_MAX], made[STATES_MAX];
    int64_t *round;
    add_state(s, builder, inf_build_const(&s->b, INF_DTYPE_I64, &(struct inf_shape){0}, &round));
    add_state(s, builder, loop->keep);
    for (uint32_t i = 0; i < loop->carried; i++)
        add_state(s, builder, loop->initial[i]);
    if (!inf_build_ok(&s->b))
        return;
    struct inf_onnx_scope inner = lower_body(s, builder, states, made);
    add_stacked_states(s, &inner, builder, states, made);
    if (inf_build_ok(&inner.b)) {
        uint32_t next = inf_build_binary_number(&inner.b, INF_BINARY_ADD, states[0], 1);
        inf_onnx_body_add_outputs(&inner, &next, 1);
        inf_onnx_body_add_outputs(&inner, made, 1 + loop->carried + loop->stacked);
    }
    s->b.code = inner.b.code;
    if (inf_build_ok(&s->b))
        lower_condition(s, builder);
    emit_loop(s, builder, outputs);
}

void inf_onnx_loop_lower(struct inf_onnx_scope *s, const struct inf_onnx_loop *loop,
                         uint32_t *outputs)
{
    struct builder builder = {.loop = loop};
    build_loop(s, &builder, outputs);
    for (int i = 0; i < 2; i++)
        inf_onnx_capture_fini(&builder.captures[i]);
    inf_onnx_captured_fini(&builder.captured);
}
