// SPDX-License-Identifier: Apache-2.0
// The layout pass must change no bit of a result. Random graphs with many transposes run on the
// reference device `ref` before and after the pass.
#include <criterion/criterion.h>
#include <stdlib.h>
#include <string.h>

#include "backends/exec/static_executable.h"
#include "backends/graph/pass/pass.h"
#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"

#define SEEDS  1200
#define STEPS  10
#define LAYOUT (~(1u << INF_PASS_LAYOUT | 1u << INF_PASS_DROP_DEAD))

struct maker {
    struct inf_graph *graph;
    uint64_t state;
    uint32_t values[STEPS + 4]; // the values that later nodes may read
    uint32_t count;
};

// Returns a number below `bound` from the SplitMix64 generator.
static uint32_t draw_below(struct maker *maker, uint32_t bound)
{
    uint64_t z = maker->state += 0x9e3779b97f4a7c15u;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9u;
    z = (z ^ z >> 27) * 0x94d049bb133111ebu;
    return (uint32_t)((z ^ z >> 31) >> 32) % bound;
}

static const struct inf_shape *shape_of(const struct maker *maker, uint32_t value)
{
    return &maker->graph->values[value].shape;
}

// Adds a node with one output. The caller sets its attributes through last_attrs().
static uint32_t add_node(struct maker *maker, enum inf_op op, const uint32_t *inputs,
                         uint32_t count)
{
    uint32_t node;
    cr_assert_eq(inf_graph_add_node(maker->graph, op, "n", "", inputs, count, 1, &node, NULL), 0);
    return maker->graph->nodes[node].outputs[0];
}

static union inf_attrs *last_attrs(struct maker *maker)
{
    return &maker->graph->nodes[maker->graph->node_count - 1].attrs;
}

static uint32_t add_constant(struct maker *maker, const struct inf_shape *shape)
{
    uint32_t value;
    struct inf_blob *data = inf_blob_create(inf_shape_elements(shape) * sizeof(float));
    for (size_t i = 0; i < inf_shape_elements(shape); i++)
        ((float *)data->data)[i] = (float)draw_below(maker, 1000) / 250 - 2;
    cr_assert_eq(inf_graph_add_const(maker->graph, "c", INF_DTYPE_F32, shape, data, &value, NULL),
                 0);
    return value;
}

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

static uint32_t add_step(struct maker *maker)
{
    uint32_t x = maker->values[maker->count - 1 - draw_below(maker, INF_MIN(maker->count, 2u))];
    int32_t rank = shape_of(maker, x)->rank;
    switch (draw_below(maker, 13)) {
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
        if (inf_shape_count(shape_of(maker, value), &count) && count < 5000 &&
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

// Runs the graph and returns both outputs in one blob, one after the other.
static struct inf_blob *join_outputs(struct inf_device *ref, const struct inf_graph *graph)
{
    struct inf_graph *copy = NULL;
    struct inf_executable *executable = NULL;
    struct inf_error err;
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    cr_assert_eq(inf_static_executable_create(&executable, &copy, &ref, 1, NULL, &err), INF_OK,
                 "%s", err.text);
    size_t counts[2];
    for (uint32_t i = 0; i < 2; i++)
        counts[i] = inf_shape_elements(&graph->values[graph->outputs[i].value].shape);
    struct inf_blob *input = inf_blob_create(4096), *result;
    for (size_t i = 0; i < 1024; i++)
        ((float *)input->data)[i] = (float)((i * 37) % 101) / 25 - 2;
    result = inf_blob_create((counts[0] + counts[1]) * sizeof(float));
    const void *inputs[] = {input->data};
    void *outputs[] = {result->data, (float *)result->data + counts[0]};
    struct inf_execution execution = {.inputs = inputs, .outputs = outputs};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_executable_destroy(&executable);
    inf_blob_unref(&input);
    return result;
}

static uint32_t count_transposes(const struct inf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == INF_OP_TRANSPOSE;
    return count;
}

Test(layout, changes_no_bit_and_settles)
{
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    const struct inf_pass_options options = {.disabled = LAYOUT};
    struct inf_error err;
    uint32_t before = 0, after = 0;
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    for (uint64_t seed = 1; seed <= SEEDS; seed++) {
        struct maker maker;
        make_graph(&maker, seed);
        struct inf_blob *first = join_outputs(ref, maker.graph);
        before += count_transposes(maker.graph);
        cr_assert_eq(inf_passes_run(maker.graph, &options, &err), INF_OK, "%s", err.text);
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
