// SPDX-License-Identifier: Apache-2.0
// The layout pass must change no bit of a result. Random graphs with many transposes run on the
// reference device `ref` before and after the pass.
#include <criterion/criterion.h>
#include <stdio.h>
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

static uint32_t add_list(struct maker *maker, const int32_t *elements, int32_t count)
{
    uint32_t value;
    cr_assert_eq(
        inf_graph_add_const_i32(maker->graph, "l", elements, (uint32_t)count, &value, NULL), 0);
    return value;
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

// Runs the pass, and asserts that a round before the last possible one changes nothing.
static void run_pass_until_settled(struct inf_graph *graph)
{
    char *rounds = NULL;
    size_t size;
    struct inf_error err;
    FILE *file = open_memstream(&rounds, &size);
    cr_assert_not_null(file);
    const struct inf_pass_options options = {.disabled = LAYOUT, .dump = file};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
    fclose(file);
    cr_expect_not_null(strstr(rounds, "round 1,"));
    cr_expect_null(strstr(rounds, "round 6,"), "the pass changes the graph in each round");
    free(rounds);
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

// --- what exporters write around a network with channels first ---

static uint32_t transpose_to(struct maker *maker, uint32_t x, const int64_t *perm, int32_t rank)
{
    uint32_t y = add_node(maker, INF_OP_TRANSPOSE, &x, 1);
    struct inf_ints *ints = &last_attrs(maker)->transpose.perm;
    ints->count = rank;
    memcpy(ints->values, perm, (size_t)rank * sizeof *perm);
    return y;
}

static uint32_t reshape_to(struct maker *maker, uint32_t x, const int32_t *dims, int32_t rank)
{
    const uint32_t inputs[] = {x, add_list(maker, dims, rank)};
    return add_node(maker, INF_OP_RESHAPE, inputs, 2);
}

#define TRANSPOSE(x, ...)                                                                          \
    transpose_to(maker, (x), (const int64_t[]){__VA_ARGS__},                                       \
                 (int32_t)(sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t)))
#define RESHAPE(x, ...)                                                                            \
    reshape_to(maker, (x), (const int32_t[]){__VA_ARGS__},                                         \
               (int32_t)(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)))

static uint32_t shuffle_channels(struct maker *maker, uint32_t x)
{
    uint32_t y = RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 2, 4, 4, 6);
    y = RESHAPE(TRANSPOSE(y, 0, 2, 1, 3, 4), 1, 8, 4, 6);
    // The first part of a split in two, as ShuffleNet v2 has it.
    uint32_t inputs[] = {y, add_list(maker, (const int32_t[]){0, 0}, 2),
                         add_list(maker, (const int32_t[]){1, 4}, 2),
                         add_list(maker, (const int32_t[]){1, 1}, 2)};
    return TRANSPOSE(add_node(maker, INF_OP_SLICE, inputs, 4), 0, 2, 3, 1);
}

static uint32_t shuffle_pixels(struct maker *maker, uint32_t x)
{
    uint32_t y = RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 2, 2, 2, 4, 6);
    y = RESHAPE(TRANSPOSE(y, 0, 1, 4, 2, 5, 3), 1, 2, 8, 12);
    return TRANSPOSE(add_node(maker, INF_OP_UNARY, &y, 1), 0, 2, 3, 1);
}

// A pixel shuffle whose result has a second reader, which takes any order of axes.
static uint32_t shuffle_and_reduce(struct maker *maker, uint32_t x)
{
    uint32_t y = RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 2, 2, 2, 4, 6);
    y = RESHAPE(TRANSPOSE(y, 0, 1, 4, 2, 5, 3), 1, 2, 8, 12);
    uint32_t largest = add_node(maker, INF_OP_REDUCE, &y, 1);
    last_attrs(maker)->reduce = (struct inf_attrs_reduce){
        .kind = INF_REDUCE_MAX, .axes = {.count = 2, .values = {2, 3}}, .keep_dims = true};
    const uint32_t factors[] = {TRANSPOSE(y, 0, 2, 3, 1), TRANSPOSE(largest, 0, 2, 3, 1)};
    return add_node(maker, INF_OP_BINARY, factors, 2);
}

// A factor for each channel that a dense layer computed.
static uint32_t scale_channels(struct maker *maker, uint32_t x)
{
    uint32_t y = TRANSPOSE(x, 0, 3, 1, 2);
    uint32_t mean = add_node(maker, INF_OP_REDUCE, &y, 1);
    last_attrs(maker)->reduce =
        (struct inf_attrs_reduce){.kind = INF_REDUCE_MAX, .axes = {.count = 2, .values = {2, 3}}};
    const uint32_t product[] = {mean, add_constant(maker, &INF_SHAPE(8, 8))};
    uint32_t gate = RESHAPE(add_node(maker, INF_OP_MATMUL, product, 2), 1, 8, 1, 1);
    const uint32_t factors[] = {y, gate};
    return TRANSPOSE(add_node(maker, INF_OP_BINARY, factors, 2), 0, 2, 3, 1);
}

static uint32_t flatten_channels(struct maker *maker, uint32_t x)
{
    const uint32_t inputs[] = {RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 192),
                               add_constant(maker, &INF_SHAPE(192, 5))};
    return add_node(maker, INF_OP_MATMUL, inputs, 2);
}

static uint32_t flatten_for_transposed(struct maker *maker, uint32_t x)
{
    const uint32_t inputs[] = {RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 192),
                               add_constant(maker, &INF_SHAPE(5, 192))};
    uint32_t y = add_node(maker, INF_OP_MATMUL, inputs, 2);
    last_attrs(maker)->matmul.transpose_b = true;
    return y;
}

// The flat view has a second reader, which needs the order of channels first.
static uint32_t flatten_for_two(struct maker *maker, uint32_t x)
{
    const uint32_t inputs[] = {RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 192),
                               add_constant(maker, &INF_SHAPE(192, 5))};
    const uint32_t part[] = {inputs[0], add_list(maker, (const int32_t[]){0, 3}, 2),
                             add_list(maker, (const int32_t[]){1, 8}, 2),
                             add_list(maker, (const int32_t[]){1, 1}, 2)};
    const uint32_t sum[] = {add_node(maker, INF_OP_MATMUL, inputs, 2),
                            add_node(maker, INF_OP_SLICE, part, 4)};
    return add_node(maker, INF_OP_BINARY, sum, 2);
}

// The reader of the reshape tears the axes apart that the reshape made of channels and rows.
static uint32_t tear_group(struct maker *maker, uint32_t x)
{
    return TRANSPOSE(RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 16, 2, 6), 0, 1, 3, 2);
}

// Indices for each picture, which gather does not read from a permuted batch.
static uint32_t gather_by_batch(struct maker *maker, uint32_t x)
{
    uint32_t y = TRANSPOSE(x, 3, 0, 1, 2);
    const int32_t dims[] = {8, 1};
    const int32_t zeros[8] = {0};
    const uint32_t inputs[] = {
        y, reshape_to(maker, add_list(maker, zeros, INF_ARRAY_LENGTH(zeros)), dims, 2)};
    uint32_t z = add_node(maker, INF_OP_GATHER, inputs, 2);
    last_attrs(maker)->gather.axis = 1;
    last_attrs(maker)->gather.batch_dims = 1;
    return TRANSPOSE(z, 1, 2, 3, 0);
}

// The index of the largest channel, and a factor for each pixel that is no factor for each channel.
static uint32_t find_largest(struct maker *maker, uint32_t x)
{
    uint32_t y = TRANSPOSE(x, 0, 3, 1, 2);
    uint32_t best = add_node(maker, INF_OP_ARG, &y, 1);
    last_attrs(maker)->arg.axis = 1;
    uint32_t cast = add_node(maker, INF_OP_CAST, &best, 1);
    last_attrs(maker)->cast.dtype = INF_DTYPE_F32;
    const uint32_t factors[] = {y, RESHAPE(cast, 1, 1, 4, 6)};
    return TRANSPOSE(add_node(maker, INF_OP_BINARY, factors, 2), 0, 2, 3, 1);
}

// Gathers channels by indices that are a view too, of one axis.
static uint32_t gather_by_view(struct maker *maker, uint32_t x)
{
    uint32_t y = TRANSPOSE(x, 0, 3, 1, 2);
    uint32_t best = add_node(maker, INF_OP_ARG, &y, 1);
    last_attrs(maker)->arg.axis = 1;
    const uint32_t inputs[] = {y, TRANSPOSE(RESHAPE(best, 24), 0)};
    uint32_t z = add_node(maker, INF_OP_GATHER, inputs, 2);
    last_attrs(maker)->gather.axis = 1;
    return TRANSPOSE(z, 0, 2, 3, 1);
}

static uint32_t normalize_pictures(struct maker *maker, uint32_t x)
{
    const uint32_t inputs[] = {TRANSPOSE(x, 0, 3, 1, 2), add_constant(maker, &INF_SHAPE(8, 1, 1)),
                               add_constant(maker, &INF_SHAPE(8, 1, 1))};
    uint32_t y = add_node(maker, INF_OP_NORMALIZE, inputs, 3);
    last_attrs(maker)->normalize.axes = (struct inf_ints){.count = 2, .values = {2, 3}};
    return TRANSPOSE(y, 0, 2, 3, 1);
}

// Normalises along the last axis, with a scale that differs along it. Devices have no kernel for
// such a scale along another axis, so the pass must not move the transposes past this node: it
// leaves one copy before the node, and one for each of the graph's two outputs.
static uint32_t normalize_rows(struct maker *maker, uint32_t x)
{
    const uint32_t inputs[] = {TRANSPOSE(x, 0, 3, 1, 2), add_constant(maker, &INF_SHAPE(6))};
    uint32_t y = add_node(maker, INF_OP_NORMALIZE, inputs, 2);
    last_attrs(maker)->normalize.axes = (struct inf_ints){.count = 1, .values = {-1}};
    return TRANSPOSE(y, 0, 2, 3, 1);
}

// The heads of an attention layer: the copy stays, and no second one is made.
static uint32_t join_heads(struct maker *maker, uint32_t x)
{
    return RESHAPE(TRANSPOSE(x, 0, 2, 1, 3), 1, 6, 32);
}

// Merges axes that need a copy. Makes the result an output of the graph, and `count` transposes of
// it further outputs.
static void output_merge_and_turned(struct maker *maker, uint32_t x, int count)
{
    uint32_t y = RESHAPE(TRANSPOSE(x, 0, 3, 1, 2), 1, 32, 6);
    y = add_node(maker, INF_OP_UNARY, &y, 1);
    cr_assert_eq(inf_graph_add_output(maker->graph, "y", y, NULL), INF_OK);
    for (int i = 0; i < count; i++) {
        uint32_t turned = TRANSPOSE(y, 0, 2, 1);
        char name[] = {(char)('a' + i), '\0'};
        cr_assert_eq(inf_graph_add_output(maker->graph, name, turned, NULL), INF_OK);
    }
}

// Counts transposes of values that a run computes.
static uint32_t count_copies(const struct inf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        const struct inf_node *node = &graph->nodes[i];
        uint32_t x = node->inputs[0];
        while (node->op == INF_OP_TRANSPOSE && graph->values[x].producer != INF_NODE_NONE &&
               graph->nodes[graph->values[x].producer].op == INF_OP_RESHAPE)
            x = graph->nodes[graph->values[x].producer].inputs[0];
        count += node->op == INF_OP_TRANSPOSE && graph->values[x].data == NULL;
    }
    return count;
}

static enum inf_code refuse_node(void *context, const struct inf_graph *graph, uint32_t node,
                                 struct inf_blob *const *outputs, const atomic_bool *cancelled,
                                 struct inf_error *err)
{
    (void)context, (void)graph, (void)node, (void)outputs, (void)cancelled;
    return inf_fail(err, INF_UNSUPPORTED, "nothing is folded here");
}

Test(layout, forms_of_exporters_need_few_copies)
{
    static const struct {
        uint32_t (*make)(struct maker *maker, uint32_t x);
        uint32_t copies;
    } cases[] = {
        {shuffle_channels, 1},       {shuffle_pixels, 1},
        {scale_channels, 0},         {flatten_channels, 0},
        {normalize_pictures, 0},     {join_heads, 1},
        {flatten_for_transposed, 0}, {normalize_rows, 3},
        {flatten_for_two, 1},        {tear_group, 3},
        {gather_by_batch, 3},        {find_largest, 0},
        {gather_by_view, 0},         {shuffle_and_reduce, 1},
    };
    struct inf_device *ref;
    const struct inf_device_options device_options = {.slots = 1};
    const struct inf_evaluator evaluator = {.run = refuse_node};
    const struct inf_pass_options options = {.disabled = LAYOUT, .evaluator = &evaluator};
    cr_assert_eq(inf_device_open(&ref, &inf_ref_backend, 0, &device_options, NULL), INF_OK);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct maker maker = {.state = i};
        struct inf_error err;
        const struct inf_shape shape = INF_SHAPE(1, 4, 6, 8);
        uint32_t x, y;
        cr_assert_eq(inf_graph_create(&maker.graph, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_value(maker.graph, "x", INF_DTYPE_F32, &shape, &x, NULL), 0);
        cr_assert_eq(inf_graph_add_input(maker.graph, "x", x, NULL), INF_OK);
        y = cases[i].make(&maker, x);
        for (int output = 0; output < 2; output++)
            cr_assert_eq(inf_graph_add_output(maker.graph, output == 0 ? "y" : "z",
                                              add_node(&maker, INF_OP_IDENTITY, &y, 1), NULL),
                         INF_OK);
        cr_assert_eq(inf_shape_infer(maker.graph, &err), INF_OK, "%s", err.text);
        struct inf_blob *first = join_outputs(ref, maker.graph);
        cr_assert_eq(inf_passes_run(maker.graph, &options, &err), INF_OK, "%s", err.text);
        cr_expect_eq(count_copies(maker.graph), cases[i].copies, "case %zu: %u copies", i,
                     count_copies(maker.graph));
        struct inf_blob *second = join_outputs(ref, maker.graph);
        for (size_t k = 0; k < first->size_bytes / sizeof(float); k++)
            cr_assert_float_eq(((float *)first->data)[k], ((float *)second->data)[k], 1e-5,
                               "case %zu, element %zu", i, k);
        inf_blob_unref(&first);
        inf_blob_unref(&second);
        inf_graph_destroy(&maker.graph);
    }
    inf_device_unref(&ref);
}

// With one transpose, no order of the copy is better than the other, so the pass must not exchange
// them in each round. With several, the order of the transposes needs fewer copies.
Test(layout, outputs_in_two_orders_settle)
{
    for (int count = 1; count < 4; count++) {
        struct maker maker = {0};
        const struct inf_shape shape = INF_SHAPE(1, 4, 6, 8);
        uint32_t x;
        cr_assert_eq(inf_graph_create(&maker.graph, NULL), INF_OK);
        cr_assert_eq(inf_graph_add_value(maker.graph, "x", INF_DTYPE_F32, &shape, &x, NULL), 0);
        cr_assert_eq(inf_graph_add_input(maker.graph, "x", x, NULL), INF_OK);
        output_merge_and_turned(&maker, x, count);
        run_pass_until_settled(maker.graph);
        cr_expect_eq(count_transposes(maker.graph), 2, "%d transposes of %d are left",
                     count_transposes(maker.graph), count);
        inf_graph_destroy(&maker.graph);
    }
}
