// SPDX-License-Identifier: Apache-2.0
// What exporters write around a network with channels first, such as shuffles of channels or
// pixels. The layout pass must leave few copies of it, and change no result.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/ref/ref.h"
#include "tests/conformance/layout/layout_maker.h"

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

Test(layout_forms, forms_of_exporters_need_few_copies)
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
    const struct inf_pass_options options = {.disabled = MAKER_OTHER_PASSES,
                                             .evaluator = &evaluator};
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
Test(layout_forms, outputs_in_two_orders_settle)
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
