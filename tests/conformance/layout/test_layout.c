// SPDX-License-Identifier: Apache-2.0
// The layout pass must change no bit of a result. Random graphs with many transposes run on the
// reference device `ref` before and after the pass.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"
#include "tests/conformance/layout/layout_maker.h"

#define SEEDS 1200
#define STEPS 10
_Static_assert(STEPS + 1 <= MAKER_VALUES_MAX, "a graph has the input and a value for each step");

static void shuffle_axes(struct maker *maker, struct inf_ints *perm, int32_t rank)
{
    perm->count = rank;
    for (int32_t i = 0; i < rank; i++) {
        int32_t j = (int32_t)draw_below(maker, (uint32_t)i + 1);
        perm->values[i] = perm->values[j];
        perm->values[j] = i;
    }
}

static uint32_t add_transpose(struct maker *maker, uint32_t x)
{
    uint32_t y = add_node(maker, INF_OP_TRANSPOSE, &x, 1);
    shuffle_axes(maker, &last_attrs(maker)->transpose.perm, shape_of(maker, x)->rank);
    return y;
}

// Combines x with a constant that broadcasts to the shape of x.
static uint32_t add_binary(struct maker *maker, uint32_t x)
{
    struct inf_shape shape = {.rank = 0};
    const struct inf_shape own = *shape_of(maker, x);
    int32_t skipped = own.rank > 0 ? (int32_t)draw_below(maker, (uint32_t)own.rank) : 0;
    for (int32_t i = skipped; i < own.rank; i++)
        shape.dims[shape.rank++] = draw_below(maker, 2) ? own.dims[i] : 1;
    const uint32_t inputs[] = {x, add_constant(maker, &shape)};
    uint32_t y = add_node(maker, INF_OP_BINARY, inputs, 2);
    last_attrs(maker)->binary.kind = draw_below(maker, 2) ? INF_BINARY_SUB : INF_BINARY_MAX;
    return y;
}

// Adds a node that combines x with the latest value of the same shape, or with x itself if no other
// value has that shape. A third of the concatenations have a constant as the first operand.
static uint32_t add_sum(struct maker *maker, uint32_t x, bool joins)
{
    uint32_t other = x;
    for (uint32_t i = 0; i < maker->count; i++)
        if (inf_shape_equal(shape_of(maker, maker->values[i]), shape_of(maker, x)))
            other = maker->values[i];
    const struct inf_shape own = *shape_of(maker, x);
    uint32_t first = joins && draw_below(maker, 3) == 0 ? add_constant(maker, &own) : x;
    const uint32_t inputs[] = {first, other};
    uint32_t y = add_node(maker, joins ? INF_OP_CONCAT : INF_OP_BINARY, inputs, 2);
    if (joins)
        last_attrs(maker)->concat.axis =
            -1 - (int32_t)draw_below(maker, (uint32_t)shape_of(maker, x)->rank);
    return y;
}

static uint32_t add_pad(struct maker *maker, uint32_t x)
{
    int32_t rank = shape_of(maker, x)->rank;
    uint32_t pads;
    struct inf_shape shape = INF_SHAPE(rank, 2);
    struct inf_blob *data = inf_blob_create((size_t)rank * 2 * sizeof(int32_t));
    for (int32_t i = 0; i < 2 * rank; i++)
        ((int32_t *)data->data)[i] = (int32_t)draw_below(maker, 3) / 2;
    cr_assert_eq(inf_graph_add_const(maker->graph, "p", INF_DTYPE_I32, &shape, data, &pads, NULL),
                 0);
    const uint32_t inputs[] = {x, pads};
    return add_node(maker, INF_OP_PAD, inputs, 2);
}

static uint32_t add_reduce(struct maker *maker, uint32_t x)
{
    int32_t rank = shape_of(maker, x)->rank;
    uint32_t y = add_node(maker, INF_OP_REDUCE, &x, 1);
    struct inf_attrs_reduce *attrs = &last_attrs(maker)->reduce;
    attrs->kind = INF_REDUCE_MAX;
    attrs->keep_dims = draw_below(maker, 2) || rank < 3;
    attrs->axes.count = 1;
    attrs->axes.values[0] =
        (int64_t)draw_below(maker, (uint32_t)rank) - (draw_below(maker, 2) ? rank : 0);
    return y;
}

static uint32_t add_axis(struct maker *maker, uint32_t x, bool squeeze)
{
    const struct inf_shape shape = *shape_of(maker, x);
    uint32_t y = add_node(maker, squeeze ? INF_OP_SQUEEZE : INF_OP_EXPAND_DIMS, &x, 1);
    struct inf_ints *axes =
        squeeze ? &last_attrs(maker)->squeeze.axes : &last_attrs(maker)->expand_dims.axes;
    for (int32_t i = 0; squeeze && i < shape.rank && axes->count == 0; i++)
        if (shape.dims[i] == 1)
            axes->values[axes->count++] = i;
    if (!squeeze)
        axes->values[axes->count++] = draw_below(maker, (uint32_t)shape.rank + 1);
    return y;
}

static uint32_t add_reshape(struct maker *maker, uint32_t x)
{
    int32_t dims[] = {-1, (int32_t)shape_of(maker, x)->dims[shape_of(maker, x)->rank - 1], 1};
    uint32_t inputs[] = {x, 0};
    cr_assert_eq(inf_graph_add_const_i32(maker->graph, "s", dims, 3, &inputs[1], NULL), 0);
    return add_node(maker, INF_OP_RESHAPE, inputs, 2);
}

static uint32_t add_softmax(struct maker *maker, uint32_t x)
{
    uint32_t y = add_node(maker, INF_OP_SOFTMAX, &x, 1);
    last_attrs(maker)->softmax.axis =
        (int32_t)draw_below(maker, (uint32_t)shape_of(maker, x)->rank);
    return y;
}

// Takes a part of each axis from the first named axes on; strides may be negative.
static uint32_t add_slice(struct maker *maker, uint32_t x)
{
    int32_t lists[3][INF_LIMIT_RANK];
    uint32_t inputs[4] = {x};
    int32_t count = 1 + (int32_t)draw_below(maker, (uint32_t)shape_of(maker, x)->rank);
    const uint32_t begin_mask = draw_below(maker, 1u << count);
    const uint32_t end_mask = draw_below(maker, 1u << count);
    for (int32_t i = 0; i < count; i++) {
        int32_t size = (int32_t)shape_of(maker, x)->dims[i];
        bool back = draw_below(maker, 3) == 0;
        lists[0][i] = back ? size - 1 : (int32_t)draw_below(maker, 2);
        lists[1][i] = back ? -size - 1 : draw_below(maker, 2) ? INT32_MAX : size;
        lists[2][i] = (back ? -1 : 1) * (1 + (int32_t)draw_below(maker, 2));
    }
    for (uint32_t i = 0; i < 3; i++)
        inputs[1 + i] = add_list(maker, lists[i], count);
    uint32_t y = add_node(maker, INF_OP_SLICE, inputs, 4);
    last_attrs(maker)->slice.begin_mask = (int32_t)begin_mask;
    last_attrs(maker)->slice.end_mask = (int32_t)end_mask;
    return y;
}

// Repeats x along its axes, or stretches it to its own shape.
static uint32_t add_repeat(struct maker *maker, uint32_t x)
{
    int32_t list[INF_LIMIT_RANK];
    bool tile = draw_below(maker, 2) == 0;
    const struct inf_shape shape = *shape_of(maker, x);
    for (int32_t i = 0; i < shape.rank; i++)
        list[i] = (int32_t)(tile                 ? 1 + draw_below(maker, 2)
                            : shape.dims[i] == 1 ? 1 + draw_below(maker, 3)
                                                 : (uint32_t)shape.dims[i]);
    const uint32_t inputs[] = {x, add_list(maker, list, shape.rank)};
    return add_node(maker, tile ? INF_OP_TILE : INF_OP_BROADCAST, inputs, 2);
}

static uint32_t add_gather(struct maker *maker, uint32_t x)
{
    const int32_t indices[] = {0, 0};
    int32_t rank = shape_of(maker, x)->rank;
    uint32_t list;
    const struct inf_shape scalar = {.rank = 0};
    struct inf_blob *zero = inf_blob_create(sizeof(int32_t));
    cr_assert_eq(inf_graph_add_const(maker->graph, "i", INF_DTYPE_I32, &scalar, zero, &list, NULL),
                 0);
    if (draw_below(maker, 2) == 0 || rank < 2)
        list = add_list(maker, indices, 2);
    const uint32_t inputs[] = {x, list};
    uint32_t y = add_node(maker, INF_OP_GATHER, inputs, 2);
    last_attrs(maker)->gather.axis = (int32_t)draw_below(maker, (uint32_t)rank) - rank;
    return y;
}

// Turns x around along an axis, or cumulates along it.
static uint32_t add_line(struct maker *maker, uint32_t x)
{
    bool turn = draw_below(maker, 2) == 0;
    uint32_t axis = draw_below(maker, (uint32_t)shape_of(maker, x)->rank);
    uint32_t y = add_node(maker, turn ? INF_OP_REVERSE : INF_OP_CUMULATE, &x, 1);
    if (turn)
        last_attrs(maker)->reverse.axes = (struct inf_ints){.count = 1, .values = {axis}};
    else
        last_attrs(maker)->cumulate.axis = (int32_t)axis;
    return y;
}

// Cuts and joins axes at random: each axis keeps its size, or is cut in two, or is joined with the
// next one.
static uint32_t add_regroup(struct maker *maker, uint32_t x)
{
    const struct inf_shape shape = *shape_of(maker, x);
    int32_t dims[INF_LIMIT_RANK];
    int32_t rank = 0;
    for (int32_t i = 0; i < shape.rank; i++) {
        uint32_t what = draw_below(maker, 4);
        dims[rank++] = (int32_t)shape.dims[i];
        if (what == 0 && i + 1 < shape.rank) {
            dims[rank - 1] *= (int32_t)shape.dims[++i];
        } else if (what == 1 && rank + shape.rank - i < INF_LIMIT_RANK) {
            dims[rank] = dims[rank - 1] % 2 == 0 ? 2 : 1;
            dims[rank - 1] /= dims[rank];
            rank++;
        }
    }
    const uint32_t inputs[] = {x, add_list(maker, dims, rank)};
    return add_node(maker, INF_OP_RESHAPE, inputs, 2);
}

static uint32_t add_normalize(struct maker *maker, uint32_t x)
{
    const struct inf_shape shape = *shape_of(maker, x);
    struct inf_shape scale = {.rank = shape.rank};
    int32_t axis = (int32_t)draw_below(maker, (uint32_t)shape.rank);
    for (int32_t i = 0; i < shape.rank; i++)
        scale.dims[i] = draw_below(maker, 2) ? shape.dims[i] : 1;
    const uint32_t inputs[] = {x, add_constant(maker, &scale)};
    uint32_t y = add_node(maker, INF_OP_NORMALIZE, inputs, 2);
    struct inf_ints *axes = &last_attrs(maker)->normalize.axes;
    axes->values[axes->count++] = axis;
    if (axis + 1 < shape.rank && draw_below(maker, 2))
        axes->values[axes->count++] = axis + 1 - shape.rank;
    return y;
}

static uint32_t add_step(struct maker *maker)
{
    uint32_t x = maker->values[maker->count - 1 - draw_below(maker, INF_MIN(maker->count, 2u))];
    int32_t rank = shape_of(maker, x)->rank;
    switch (draw_below(maker, 20)) {
    case 0:
        return add_node(maker, INF_OP_UNARY, &x, 1);
    case 1:
        return add_binary(maker, x);
    case 2:
        return add_sum(maker, x, false);
    case 3:
        return add_sum(maker, x, true);
    case 4:
        return add_pad(maker, x);
    case 5:
        return rank > 1 ? add_reduce(maker, x) : x;
    case 6:
        return rank < 6 ? add_axis(maker, x, false) : x;
    case 7:
        return rank > 1 ? add_axis(maker, x, true) : x;
    case 8:
        return add_reshape(maker, x);
    case 9:
        return add_softmax(maker, x);
    case 10:
        return add_slice(maker, x);
    case 11:
        return add_repeat(maker, x);
    case 12:
        return add_gather(maker, x);
    case 13:
        return add_line(maker, x);
    case 14:
    case 15:
        return add_regroup(maker, x);
    case 16:
        return add_normalize(maker, x);
    default:
        return add_transpose(maker, x);
    }
}

static void make_graph(struct maker *maker, uint64_t seed)
{
    *maker = (struct maker){.state = seed};
    struct inf_shape shape = {.rank = 2 + (int32_t)draw_below(maker, 3)};
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = 1 + draw_below(maker, 3);
    cr_assert_eq(inf_graph_create(&maker->graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(maker->graph, "x", INF_DTYPE_F32, &shape, maker->values, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(maker->graph, "x", maker->values[0], NULL), INF_OK);
    maker->count = 1;
    for (uint32_t i = 0; i < STEPS; i++) {
        uint32_t value = add_step(maker);
        struct inf_error err;
        cr_assert_eq(inf_shape_infer(maker->graph, &err), INF_OK, "%s", err.text);
        size_t count;
        if (inf_shape_count(shape_of(maker, value), &count) && count > 0 && count < 5000 &&
            shape_of(maker, value)->rank > 0)
            maker->values[maker->count++] = value;
    }
    uint32_t last = maker->values[maker->count - 1];
    last = add_node(maker, INF_OP_IDENTITY, &last, 1);
    cr_assert_eq(inf_graph_add_output(maker->graph, "y", last, NULL), INF_OK);
    last = maker->values[maker->count / 2];
    last = add_node(maker, INF_OP_IDENTITY, &last, 1);
    cr_assert_eq(inf_graph_add_output(maker->graph, "z", last, NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(maker->graph, NULL), INF_OK);
}

Test(layout, changes_no_bit_and_settles)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    uint32_t before = 0, after = 0;
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct maker maker;
        make_graph(&maker, seed);
        struct inf_blob *first = join_outputs(ref, maker.graph);
        before += count_transposes(maker.graph);
        run_pass_until_settled(maker.graph);
        after += count_transposes(maker.graph);
        struct inf_blob *second = join_outputs(ref, maker.graph);
        cr_assert_eq(first->size_bytes, second->size_bytes);
        cr_assert_eq(memcmp(first->data, second->data, first->size_bytes), 0, "seed %llu",
                     (unsigned long long)seed);
        inf_blob_unref(&first);
        inf_blob_unref(&second);
        inf_graph_destroy(&maker.graph);
    }
    inf_device_unref(&ref);
    cr_assert_lt(after, before, "%u of %u transposes are left", after, before);
}
