// SPDX-License-Identifier: Apache-2.0
// Padding between elements, and reductions whose function is a subgraph of the file.
//
// The function of a reduction must be one operator on two numbers that is associative and
// commutative. A reduction over windows is then done axis by axis: the strided slices of the padded
// operand that begin at each element of the window are combined.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"

// The most slices of one reduction over windows.
#define TAPS_MAX 4096
// The most elements of a padded axis.
#define AXIS_MAX INT32_MAX

// --- padding ---

// Adds x with `count` copies of the scalar `value` between neighbours along an axis.
static uint32_t add_between(struct inf_builder *b, uint32_t x, int32_t axis, int64_t count,
                            uint32_t value)
{
    struct inf_shape shape = inf_build_known_shape(b, x);
    int64_t before = 1, after = 1;
    if (count == 0 || !inf_build_ok(b) || shape.dims[axis] < 2)
        return x;
    if (count > AXIS_MAX / shape.dims[axis] - 1) {
        inf_build_fail(b, INF_EXHAUSTED, "puts %lld elements between %lld", (long long)count,
                       (long long)shape.dims[axis]);
        return INF_VALUE_NONE;
    }
    for (int32_t i = 0; i < shape.rank; i++) {
        before *= i < axis ? shape.dims[i] : 1;
        after *= i > axis ? shape.dims[i] : 1;
    }
    int64_t size = shape.dims[axis] * (count + 1);
    x = inf_build_reshape(b, x, (int64_t[]){before, shape.dims[axis], 1, after}, 4);
    x = inf_build_pad(b, x, (int64_t[]){0, 0, 0, 0, 0, count, 0, 0}, 4, INF_PAD_CONSTANT, value);
    x = inf_build_reshape(b, x, (int64_t[]){before, size, after}, 3);
    x = inf_build_slice(b, x, 1, 0, size - count, 1);
    shape.dims[axis] = size - count;
    return inf_build_reshape(b, x, shape.dims, shape.rank);
}

// Adds nodes that pad x along `axis`: `low` copies of `value` before its elements, and `high`
// copies after them. A negative `low` or `high` removes that many elements at its end of the axis
// instead.
static uint32_t add_edges(struct inf_builder *b, uint32_t x, int32_t axis, int64_t low,
                          int64_t high, uint32_t value)
{
    int64_t amounts[2 * INF_LIMIT_RANK] = {0};
    int64_t size = inf_build_known_dim(b, x, axis);
    if (low < -AXIS_MAX || low > AXIS_MAX || high < -AXIS_MAX || high > AXIS_MAX ||
        size + low + high < 0 || size + low + high > AXIS_MAX) {
        inf_build_fail(b, INF_INVALID, "pads %lld elements with %lld and %lld", (long long)size,
                       (long long)low, (long long)high);
        return INF_VALUE_NONE;
    }
    amounts[2 * axis] = INF_MAX(low, 0);
    amounts[2 * axis + 1] = INF_MAX(high, 0);
    x = inf_build_pad(b, x, amounts, inf_build_rank(b, x), INF_PAD_CONSTANT, value);
    if (low >= 0 && high >= 0)
        return x;
    int64_t begin = INF_MAX(-low, 0);
    return inf_build_slice(b, x, axis, begin, begin + size + low + high, 1);
}

// Returns the scalar that pads, which is input `index`.
static uint32_t read_scalar(struct inf_tflite_scope *s, uint32_t index)
{
    return inf_build_reshape(&s->b, inf_tflite_data(s, index), NULL, 0);
}

static void lower_pad(struct inf_tflite_scope *s)
{
    static const char *const names[] = {"edge_padding_low", "edge_padding_high",
                                        "interior_padding"};
    uint32_t x = inf_tflite_data(s, 0), value = read_scalar(s, 1);
    struct inf_shape shape = inf_build_known_shape(&s->b, x);
    struct inf_build_ints lists[3];
    for (uint32_t i = 0; i < 3; i++) {
        lists[i] = inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_PAD, i, names[i]);
        if (lists[i].count != (uint32_t)shape.rank)
            inf_build_fail(&s->b, INF_INVALID, "option %s has %u elements for %d axes", names[i],
                           lists[i].count, shape.rank);
    }
    for (int32_t axis = 0; inf_build_ok(&s->b) && axis < shape.rank; axis++) {
        if (lists[2].values[axis] < 0)
            inf_build_fail(&s->b, INF_INVALID, "option interior_padding has %lld",
                           (long long)lists[2].values[axis]);
        x = add_between(&s->b, x, axis, lists[2].values[axis], value);
        x = add_edges(&s->b, x, axis, lists[0].values[axis], lists[1].values[axis], value);
    }
    s->outputs[0] = x;
}

// DILATE: input 1 says by how many places the elements of each axis move apart.
static void lower_dilate(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_data(s, 0), value = read_scalar(s, 2);
    struct inf_build_ints steps = inf_build_const_ints(&s->b, inf_tflite_list(s, 1), "the steps");
    int32_t rank = inf_build_rank(&s->b, x);
    if (inf_build_ok(&s->b) && steps.count != (uint32_t)rank)
        inf_build_fail(&s->b, INF_INVALID, "has %u steps for %d axes", steps.count, rank);
    for (int32_t axis = 0; inf_build_ok(&s->b) && axis < rank; axis++) {
        if (steps.values[axis] < 1)
            inf_build_fail(&s->b, INF_INVALID, "moves elements apart by %lld",
                           (long long)steps.values[axis]);
        x = add_between(&s->b, x, axis, steps.values[axis] - 1, value);
    }
    s->outputs[0] = x;
}

// --- reductions ---

// What a reduction does with two numbers.
struct combination {
    enum inf_binary_kind binary;
    enum inf_reduce_kind reduce;
};

// Finds the function of a subgraph of two numbers.
static struct combination read_combination(struct inf_tflite_scope *s, int64_t number)
{
    static const struct {
        int32_t builtins[2];
        struct combination combination;
    } rows[] = {
        {{INF_TFLITE_STABLEHLO_ADD, INF_TFLITE_ADD}, {INF_BINARY_ADD, INF_REDUCE_SUM}},
        {{INF_TFLITE_STABLEHLO_MULTIPLY, INF_TFLITE_MUL}, {INF_BINARY_MUL, INF_REDUCE_PROD}},
        {{INF_TFLITE_STABLEHLO_MAXIMUM, INF_TFLITE_MAXIMUM}, {INF_BINARY_MAX, INF_REDUCE_MAX}},
        {{INF_TFLITE_STABLEHLO_MINIMUM, INF_TFLITE_MINIMUM}, {INF_BINARY_MIN, INF_REDUCE_MIN}},
        {{INF_TFLITE_STABLEHLO_AND, INF_TFLITE_LOGICAL_AND},
         {INF_BINARY_LOGICAL_AND, INF_REDUCE_ALL}},
        {{INF_TFLITE_STABLEHLO_OR, INF_TFLITE_LOGICAL_OR}, {INF_BINARY_LOGICAL_OR, INF_REDUCE_ANY}},
    };
    const struct inf_tflite_model *model = s->import->model;
    if (number < 0 || number >= (int64_t)model->subgraph_count) {
        inf_build_fail(&s->b, INF_INVALID, "names subgraph %lld, there are %u", (long long)number,
                       model->subgraph_count);
        return rows[0].combination;
    }
    const struct inf_tflite_subgraph *body = &model->subgraphs[number];
    const struct inf_tflite_operator *op = body->operators;
    bool plain = body->operator_count == 1 && body->inputs.count == 2 && body->outputs.count == 1 &&
                 op->inputs.count == 2 && op->outputs.count == 1 &&
                 op->outputs.items[0] == body->outputs.items[0] &&
                 op->inputs.items[0] != op->inputs.items[1];
    for (uint32_t i = 0; plain && i < 2; i++)
        plain = op->inputs.items[i] == body->inputs.items[0] ||
                op->inputs.items[i] == body->inputs.items[1];
    for (size_t i = 0; plain && i < INF_ARRAY_LENGTH(rows); i++)
        if (op->code->builtin == rows[i].builtins[0] || op->code->builtin == rows[i].builtins[1])
            return rows[i].combination;
    inf_build_fail(&s->b, INF_UNSUPPORTED,
                   "reduces by subgraph %lld, which is no sum, product, maximum, minimum, and, or",
                   (long long)number);
    return rows[0].combination;
}

static void lower_reduce(struct inf_tflite_scope *s)
{
    struct inf_build_ints list =
        inf_tflite_option_2_list(s, INF_TFLITE_OPTIONS_2_REDUCE, 0, "dimensions");
    struct combination c =
        read_combination(s, inf_tflite_option_2_int(s, INF_TFLITE_OPTIONS_2_REDUCE, INF_FB_I32, 1,
                                                    "body_subgraph_index"));
    uint32_t x = inf_tflite_data(s, 0), first = read_scalar(s, 1);
    int32_t rank = inf_build_rank(&s->b, x);
    struct inf_ints axes = {0};
    for (int32_t axis = 0; inf_build_ok(&s->b) && axis < rank; axis++)
        for (uint32_t i = 0; i < list.count; i++)
            if (list.values[i] == axis)
                axes.values[axes.count++] = axis;
    if (inf_build_ok(&s->b) && axes.count != (int32_t)list.count)
        inf_build_fail(&s->b, INF_INVALID, "option dimensions is no list of axes of %d", rank);
    if (inf_build_ok(&s->b))
        s->outputs[0] = inf_build_binary(&s->b, c.binary,
                                         inf_build_reduce(&s->b, c.reduce, x, &axes, false), first);
}

// How windows lie along each axis.
struct windows {
    struct inf_build_ints sizes, strides, steps, between, edges;
};

// Adds x, whose edges are padded, reduced over windows along one axis.
static uint32_t add_window(struct inf_builder *b, uint32_t x, int32_t axis,
                           enum inf_binary_kind kind, int64_t size, int64_t stride, int64_t step)
{
    uint32_t sum = INF_VALUE_NONE;
    int64_t elements = inf_build_known_dim(b, x, axis);
    if (size < 1 || stride < 1 || step < 1 || size > TAPS_MAX || step > AXIS_MAX ||
        (size - 1) * step + 1 > elements) {
        inf_build_fail(b, INF_UNSUPPORTED,
                       "has windows of %lld elements %lld apart, every %lld of %lld",
                       (long long)size, (long long)step, (long long)stride, (long long)elements);
        return x;
    }
    int64_t last = (elements - ((size - 1) * step + 1)) / stride * stride;
    for (int64_t i = 0; inf_build_ok(b) && i < size; i++) {
        uint32_t part = inf_build_slice(b, x, axis, i * step, i * step + last + 1, stride);
        sum = i == 0 ? part : inf_build_binary(b, kind, sum, part);
    }
    return sum;
}

// Adds a reduction over windows. Padding has the value that the reduction begins with.
static void add_windows(struct inf_tflite_scope *s, const struct windows *w, struct combination c)
{
    struct inf_builder *b = &s->b;
    uint32_t x = inf_tflite_data(s, 0), first = read_scalar(s, 1);
    int32_t rank = inf_build_known_shape(b, x).rank;
    const struct inf_build_ints *lists[] = {&w->sizes, &w->strides, &w->steps, &w->between};
    for (size_t i = 0; inf_build_ok(b) && i < INF_ARRAY_LENGTH(lists); i++)
        if (lists[i]->count != (uint32_t)rank)
            inf_build_fail(b, INF_INVALID, "describes windows of %u axes, x has %d",
                           lists[i]->count, rank);
    if (inf_build_ok(b) && w->edges.count != 2 * (uint32_t)rank)
        inf_build_fail(b, INF_INVALID, "option padding has %u elements for %d axes", w->edges.count,
                       rank);
    for (int32_t axis = 0; inf_build_ok(b) && axis < rank; axis++) {
        if (w->between.values[axis] < 1)
            inf_build_fail(b, INF_INVALID, "option base_dilations has %lld",
                           (long long)w->between.values[axis]);
        x = add_between(b, x, axis, w->between.values[axis] - 1, first);
        x = add_edges(b, x, axis, w->edges.values[2 * axis], w->edges.values[2 * axis + 1], first);
    }
    // All axes are padded before the first one is reduced: windows of padding are reduced too.
    for (int32_t axis = 0; inf_build_ok(b) && axis < rank; axis++)
        x = add_window(b, x, axis, c.binary, w->sizes.values[axis], w->strides.values[axis],
                       w->steps.values[axis]);
    s->outputs[0] = inf_build_binary(b, c.binary, x, first);
}

// Sets an absent list to `count` times `value`.
static void complete_list(struct inf_build_ints *list, uint32_t count, int64_t value)
{
    for (uint32_t i = 0; list->count == 0 && i < count; i++)
        list->values[i] = value;
    list->count = list->count == 0 ? count : list->count;
}

static void lower_reduce_window(struct inf_tflite_scope *s)
{
    const enum inf_tflite_options_2 type = INF_TFLITE_OPTIONS_2_REDUCE_WINDOW;
    uint32_t rank = (uint32_t)inf_build_rank(&s->b, inf_tflite_data(s, 0));
    struct windows w = {.sizes = inf_tflite_option_2_list(s, type, 0, "window_dimensions"),
                        .strides = inf_tflite_option_2_list(s, type, 1, "window_strides"),
                        .between = inf_tflite_option_2_list(s, type, 2, "base_dilations"),
                        .steps = inf_tflite_option_2_list(s, type, 3, "window_dilations"),
                        .edges = inf_tflite_option_2_list(s, type, 4, "padding")};
    complete_list(&w.strides, rank, 1);
    complete_list(&w.between, rank, 1);
    complete_list(&w.steps, rank, 1);
    complete_list(&w.edges, 2 * rank, 0);
    struct combination c =
        read_combination(s, inf_tflite_option_2_int(s, type, INF_FB_I32, 5, "body_subgraph_index"));
    if (inf_build_ok(&s->b))
        add_windows(s, &w, c);
}

// REDUCE_WINDOW has its windows as inputs, no padding, and the function as a number.
static void lower_old_reduce_window(struct inf_tflite_scope *s)
{
    static const struct combination functions[] = {
        {INF_BINARY_ADD, INF_REDUCE_SUM},         {INF_BINARY_MUL, INF_REDUCE_PROD},
        {INF_BINARY_MIN, INF_REDUCE_MIN},         {INF_BINARY_MAX, INF_REDUCE_MAX},
        {INF_BINARY_LOGICAL_AND, INF_REDUCE_ALL}, {INF_BINARY_LOGICAL_OR, INF_REDUCE_ANY}};
    struct windows w = {
        .sizes = inf_build_const_ints(&s->b, inf_tflite_list(s, 2), "the window"),
        .strides = inf_build_const_ints(&s->b, inf_tflite_list(s, 3), "the strides"),
        .steps = inf_build_const_ints(&s->b, inf_tflite_list(s, 4), "the dilations")};
    int64_t function = inf_tflite_option_2_int(s, INF_TFLITE_OPTIONS_2_REDUCE_WINDOW_OLD,
                                               INF_FB_I32, 0, "reduce_function");
    if (function < 1 || function > (int64_t)INF_ARRAY_LENGTH(functions)) {
        inf_build_fail(&s->b, INF_INVALID, "option reduce_function is %lld", (long long)function);
        return;
    }
    if (w.sizes.count > INF_LIMIT_RANK)
        inf_build_fail(&s->b, INF_INVALID, "has windows of %u axes", w.sizes.count);
    if (!inf_build_ok(&s->b))
        return;
    complete_list(&w.between, w.sizes.count, 1);
    complete_list(&w.edges, 2 * w.sizes.count, 0);
    add_windows(s, &w, functions[function - 1]);
}

#define OP(name, lower, inputs, mode)                                                              \
    {                                                                                              \
        INF_TFLITE_##name, NULL, lower, inputs, inputs, 1, INF_TFLITE_MODE_##mode, 0, 0            \
    }

static const struct inf_tflite_op ops[] = {
    OP(STABLEHLO_PAD, lower_pad, 2, MOVE),
    OP(DILATE, lower_dilate, 3, MOVE),
    OP(STABLEHLO_REDUCE, lower_reduce, 2, REAL),
    OP(STABLEHLO_REDUCE_WINDOW, lower_reduce_window, 2, REAL),
    OP(REDUCE_WINDOW, lower_old_reduce_window, 5, REAL),
};

const struct inf_tflite_op_table inf_tflite_ops_window = {ops, INF_ARRAY_LENGTH(ops)};
