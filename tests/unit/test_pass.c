// SPDX-License-Identifier: Apache-2.0
// What passes make of a graph; that they change no answer is tested in tests/conformance.
#include "backends/graph/pass.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/graph/shape_infer.h"
#include "tests/unit/graph_kit.h"

// An evaluator that can add two INT32 lists and fill FP32 tensors, and nothing else.
static enum inf_code evaluate(void *context, const struct inf_graph *graph, uint32_t index,
                              struct inf_blob *const *outputs, struct inf_error *err)
{
    const struct inf_node *node = &graph->nodes[index];
    const struct inf_value *a = &graph->values[node->inputs[0]];
    int *calls = context;
    (*calls)++;
    if (node->op == INF_OP_FILL)
        return INF_OK; // with zeros
    if (node->op != INF_OP_BINARY || a->dtype != INF_DTYPE_I32)
        return inf_fail(err, INF_UNSUPPORTED, "not here");
    const int32_t *x = a->data->data;
    const int32_t *y = graph->values[node->inputs[1]].data->data;
    for (size_t i = 0; i < outputs[0]->size_bytes / 4; i++)
        ((int32_t *)outputs[0]->data)[i] = x[i] + y[i];
    return INF_OK;
}

// Runs one pass only, and drop_dead.
static void run_only(struct inf_graph *graph, enum inf_pass pass)
{
    int calls = 0;
    struct inf_error err = {0};
    const struct inf_evaluator evaluator = {.run = evaluate, .context = &calls};
    const struct inf_pass_options options = {.disabled = ~(1u << pass | 1u << INF_PASS_DROP_DEAD),
                                             .evaluator = &evaluator};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
}

static const float *data_of(const struct inf_graph *graph, uint32_t value)
{
    cr_assert(inf_graph_is_const(graph, value));
    return graph->values[value].data->data;
}

Test(pass, names_lead_back_to_passes)
{
    for (int pass = 0; pass < INF_PASS_COUNT; pass++)
        cr_assert_eq(inf_pass_parse(inf_pass_name((enum inf_pass)pass)), (enum inf_pass)pass);
    cr_assert_str_eq(inf_pass_name(INF_PASS_FOLD_BATCH_NORM), "fold_batch_norm");
    cr_assert_str_eq(inf_pass_name(INF_PASS_COUNT), "?");
    cr_assert_eq(inf_pass_parse("inlined"), INF_PASS_COUNT);
}

Test(pass, a_wrong_graph_is_refused_before_anything_is_done)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    output(graph, "y", node(graph, INF_OP_BINARY, "sum", x, floats(graph, INF_SHAPE(3), 1, 2, 3)));
    cr_assert_eq(inf_passes_run(graph, &(struct inf_pass_options){0}, &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "'sum'"));
    inf_graph_destroy(&graph);
}

// --- drop_identities ---

Test(drop_identities, an_output_may_become_an_input)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3));
    uint32_t y = node(graph, INF_OP_IDENTITY, "identity", x);
    y = node(graph, INF_OP_RESHAPE, "reshape", y, ints(graph, -1, 3));
    y = node(graph, INF_OP_CAST, "cast", y);
    y = node(graph, INF_OP_CLIP, "clip", y);
    y = node(graph, INF_OP_SQUEEZE, "squeeze", y);
    y = node(graph, INF_OP_EXPAND_DIMS, "expand", y);
    y = node(graph, INF_OP_CONCAT, "concat", y);
    y = node(graph, INF_OP_TRANSPOSE, "transpose", y);
    last_attrs(graph)->transpose.perm = (struct inf_ints){.count = 2, .values = {0, -1}};
    y = node(graph, INF_OP_PAD, "pad", y, constant(graph, INF_DTYPE_I32, INF_SHAPE(2, 2), NULL));
    y = node(graph, INF_OP_TILE, "tile", y, ints(graph, 1, 1));
    y = node(graph, INF_OP_BROADCAST, "broadcast", y, ints(graph, 2, 3));
    output(graph, "y", y);
    output(graph, "z", node(graph, INF_OP_IDENTITY, "again", floats(graph, INF_SHAPE(1), 5)));
    run_only(graph, INF_PASS_DROP_IDENTITIES);
    cr_assert_eq(graph->node_count, 0);
    cr_assert_eq(graph->output_count, 2);
    cr_assert_str_eq(graph->outputs[0].name, "y");
    cr_assert_eq(graph->outputs[0].value, x);
    cr_assert_eq(data_of(graph, graph->outputs[1].value)[0], 5.0f);
    inf_graph_destroy(&graph);
}

Test(drop_identities, what_does_something_stays)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(3, 3));
    uint32_t y = node(graph, INF_OP_RESHAPE, "reshape", x, ints(graph, 9));
    y = node(graph, INF_OP_CLIP, "clip", y);
    last_attrs(graph)->clip.max = 1;
    y = node(graph, INF_OP_CAST, "cast", y);
    last_attrs(graph)->cast.dtype = INF_DTYPE_I32;
    output(graph, "y", y);
    output(graph, "t", node(graph, INF_OP_TRANSPOSE, "transpose", x));
    uint32_t flip =
        node(graph, INF_OP_SLICE, "flip", x, ints(graph, 0), ints(graph, 0), ints(graph, -1));
    last_attrs(graph)->slice.begin_mask = 1;
    last_attrs(graph)->slice.end_mask = 1;
    output(graph, "f", flip);
    run_only(graph, INF_PASS_DROP_IDENTITIES);
    cr_assert_eq(graph->node_count, 5);
    inf_graph_destroy(&graph);
}

Test(drop_identities, a_reshape_of_unknown_sizes_stays)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(-1, -1));
    uint32_t s = input(graph, "s", INF_DTYPE_I32, INF_SHAPE(2));
    output(graph, "y", node(graph, INF_OP_RESHAPE, "reshape", x, s));
    run_only(graph, INF_PASS_DROP_IDENTITIES);
    cr_assert_eq(graph->node_count, 1);
    inf_graph_destroy(&graph);
}

// --- fold_constants ---

// y = reshape(x, shape(x) + [0, 0] ...): all but the reshape can be known.
Test(fold_constants, folding_settles_shapes_behind_it)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 6));
    uint32_t shape = node(graph, INF_OP_SHAPE, "shape", x);
    uint32_t wanted = node(graph, INF_OP_BINARY, "add", shape, ints(graph, 4, -3));
    uint32_t y = node(graph, INF_OP_RESHAPE, "reshape", x, wanted);
    uint32_t again = node(graph, INF_OP_SHAPE, "again", y);
    output(graph, "y", y);
    output(graph, "s", again);
    run_only(graph, INF_PASS_FOLD_CONSTANTS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_str_eq(graph->nodes[0].name, "reshape");
    cr_assert(inf_shape_equal(&graph->values[y].shape, &INF_SHAPE(8, 3)));
    int64_t elements[2];
    uint32_t count;
    cr_assert(inf_graph_const_ints(graph, again, elements, 2, &count));
    cr_assert_eq(elements[0], 8);
    cr_assert_eq(elements[1], 3);
    cr_assert_null(graph->values[shape].data, "a constant nobody uses keeps no data");
    inf_graph_destroy(&graph);
}

Test(fold_constants, without_an_evaluator_nothing_folds)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 6));
    output(graph, "s", node(graph, INF_OP_SHAPE, "shape", x));
    cr_assert_eq(inf_passes_run(graph, &(struct inf_pass_options){0}, NULL), INF_OK);
    cr_assert_eq(graph->node_count, 1);
    inf_graph_destroy(&graph);
}

Test(fold_constants, what_the_evaluator_refuses_stays)
{
    struct inf_graph *graph = new_graph();
    uint32_t c = floats(graph, INF_SHAPE(2), 1, 2);
    output(graph, "y", node(graph, INF_OP_UNARY, "exp", c));
    run_only(graph, INF_PASS_FOLD_CONSTANTS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert(inf_graph_is_const(graph, c));
    inf_graph_destroy(&graph);
}

Test(fold_constants, a_small_file_makes_no_large_graph)
{
    struct inf_graph *graph = new_graph();
    uint32_t zero = floats(graph, SCALAR, 0);
    // 64 MiB is too much for one; of those just below, the budget of the whole allows one.
    output(graph, "a", node(graph, INF_OP_FILL, "a", ints(graph, 16 << 20), zero));
    output(graph, "b", node(graph, INF_OP_FILL, "b", ints(graph, (16 << 20) - 1), zero));
    output(graph, "c", node(graph, INF_OP_FILL, "c", ints(graph, (16 << 20) - 1), zero));
    run_only(graph, INF_PASS_FOLD_CONSTANTS);
    cr_assert_eq(graph->node_count, 2);
    cr_assert_str_eq(graph->nodes[0].name, "a");
    cr_assert_str_eq(graph->nodes[1].name, "c");
    inf_graph_destroy(&graph);
}

// Of two windows over 1024 constants, one looks at 11 and the other at millions for each.
Test(fold_constants, a_small_file_makes_no_long_work)
{
    struct inf_graph *graph = new_graph();
    uint32_t c = constant(graph, INF_DTYPE_F32, INF_SHAPE(1, 1024), NULL);
    output(graph, "near", node(graph, INF_OP_LRN, "near", c));
    output(graph, "far", node(graph, INF_OP_LRN, "far", c));
    last_attrs(graph)->lrn.before = 1 << 24;
    int calls = 0;
    const struct inf_evaluator evaluator = {.run = evaluate, .context = &calls};
    const struct inf_pass_options options = {.evaluator = &evaluator};
    cr_assert_eq(inf_passes_run(graph, &options, NULL), INF_OK);
    cr_assert_eq(calls, 1);
    cr_assert_eq(inf_node_work(graph, &graph->nodes[0]), 2048u * 11);
    cr_assert_eq(inf_node_work(graph, &graph->nodes[1]), 2048u * ((UINT64_C(1) << 24) + 6));
    inf_graph_destroy(&graph);
}

Test(fold_constants, a_fault_that_folding_reveals_is_named)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4));
    uint32_t wanted = node(graph, INF_OP_BINARY, "add", ints(graph, 1), ints(graph, 2));
    output(graph, "y", node(graph, INF_OP_RESHAPE, "bad", x, wanted));
    int calls = 0;
    struct inf_error err = {0};
    const struct inf_evaluator evaluator = {.run = evaluate, .context = &calls};
    const struct inf_pass_options options = {.evaluator = &evaluator};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "'bad'"), "%s", err.text);
    cr_assert_eq(calls, 1);
    inf_graph_destroy(&graph);
}

// --- fold_batch_norm ---

enum linear {
    CONV,
    CONV_BIAS,
    DEPTHWISE,
    TRANSPOSE,
    MATMUL,
    MATMUL_B
};

// A linear node of two output channels with the filter 1, 2, 3, 4; its output.
static uint32_t linear_node(struct inf_graph *graph, enum linear kind)
{
    bool flat = kind == MATMUL || kind == MATMUL_B;
    uint32_t x = input(graph, "x", INF_DTYPE_F32, flat ? INF_SHAPE(5, 2) : INF_SHAPE(1, 4, 4, 2));
    uint32_t w = floats(graph, flat ? INF_SHAPE(2, 2) : INF_SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
    uint32_t y = INF_VALUE_NONE;
    switch (kind) {
    case CONV:
        return node(graph, INF_OP_CONV2D, "linear", x, w);
    case CONV_BIAS:
        return node(graph, INF_OP_CONV2D, "linear", x, w, floats(graph, INF_SHAPE(2), 10, 20));
    case DEPTHWISE:
        w = floats(graph, INF_SHAPE(2, 1, 2, 1), 1, 2, 3, 4);
        return node(graph, INF_OP_DEPTHWISE_CONV2D, "linear", x, w);
    case TRANSPOSE:
        return node(graph, INF_OP_CONV2D_TRANSPOSE, "linear", x, w, ints(graph, 1, 4, 4, 2));
    case MATMUL:
        return node(graph, INF_OP_MATMUL, "linear", x, w);
    case MATMUL_B:
        y = node(graph, INF_OP_MATMUL, "linear", x, w);
        last_attrs(graph)->matmul.transpose_b = true;
        return y;
    }
    return y;
}

// scale 4 / sqrt(3 + 1) = 2 and 9 / sqrt(8 + 1) = 3; means 1 and 2; offsets 1 and 1.
static uint32_t batch_norm_node(struct inf_graph *graph, uint32_t x)
{
    uint32_t y = node(graph, INF_OP_BATCH_NORM, "norm", x, floats(graph, INF_SHAPE(2), 4, 9),
                      floats(graph, INF_SHAPE(2), 1, 1), floats(graph, INF_SHAPE(2), 1, 2),
                      floats(graph, INF_SHAPE(2), 3, 8));
    last_attrs(graph)->batch_norm.epsilon = 1;
    return y;
}

Test(fold_batch_norm, scales_weights_and_moves_the_bias)
{
    static const struct {
        enum linear kind;
        float filter[4], bias[2];
    } cases[] = {
        {CONV, {2, 6, 6, 12}, {-1, -5}},      {CONV_BIAS, {2, 6, 6, 12}, {19, 55}},
        {DEPTHWISE, {2, 6, 6, 12}, {-1, -5}}, {TRANSPOSE, {2, 4, 9, 12}, {-1, -5}},
        {MATMUL, {2, 6, 6, 12}, {-1, -5}},    {MATMUL_B, {2, 4, 9, 12}, {-1, -5}},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t y = batch_norm_node(graph, linear_node(graph, cases[i].kind));
        output(graph, "y", y);
        run_only(graph, INF_PASS_FOLD_BATCH_NORM);
        cr_assert_eq(graph->node_count, 1, "case %zu", i);
        const struct inf_node *only = &graph->nodes[0];
        uint32_t bias = cases[i].kind == TRANSPOSE ? 3 : 2;
        cr_assert_str_eq(only->name, "linear");
        cr_assert_eq(only->outputs[0], y);
        cr_assert_eq(only->input_count, bias + 1);
        for (int j = 0; j < 4; j++)
            cr_assert_eq(data_of(graph, only->inputs[1])[j], cases[i].filter[j], "case %zu", i);
        for (int j = 0; j < 2; j++)
            cr_assert_eq(data_of(graph, only->inputs[bias])[j], cases[i].bias[j], "case %zu", i);
        inf_graph_destroy(&graph);
    }
}

Test(fold_batch_norm, a_multiplier_of_depthwise_keeps_its_order)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 1, 1, 2));
    uint32_t w = floats(graph, INF_SHAPE(1, 1, 2, 2), 1, 1, 1, 1);
    uint32_t y = node(graph, INF_OP_DEPTHWISE_CONV2D, "linear", x, w);
    output(graph, "y",
           node(graph, INF_OP_BINARY, "mul", y, floats(graph, INF_SHAPE(4), 1, 2, 3, 4)));
    run_only(graph, INF_PASS_FOLD_BATCH_NORM);
    cr_assert_eq(graph->node_count, 2, "an add is not for this pass");
    graph->nodes[1].attrs.binary.kind = INF_BINARY_MUL;
    run_only(graph, INF_PASS_FOLD_BATCH_NORM);
    cr_assert_eq(graph->node_count, 1);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(data_of(graph, graph->nodes[0].inputs[1])[i], (float)(i + 1));
    inf_graph_destroy(&graph);
}

// Whether the linear node and what follows it stay two.
static void stays(struct inf_graph *graph, enum inf_pass pass)
{
    uint32_t before = graph->node_count;
    run_only(graph, pass);
    cr_assert_eq(graph->node_count, before);
    inf_graph_destroy(&graph);
}

Test(fold_batch_norm, leaves_what_it_would_change)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = linear_node(graph, CONV);
    output(graph, "before", y);
    output(graph, "y", batch_norm_node(graph, y));
    stays(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    output(graph, "y", batch_norm_node(graph, y));
    output(graph, "z", node(graph, INF_OP_UNARY, "neg", y));
    stays(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    last_attrs(graph)->conv2d.activation = INF_ACTIVATION_RELU;
    output(graph, "y", batch_norm_node(graph, y));
    stays(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    graph->nodes[0].inputs[1] = input(graph, "w", INF_DTYPE_F32, INF_SHAPE(1, 1, 2, 2));
    output(graph, "y", batch_norm_node(graph, y));
    stays(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    output(graph, "y", batch_norm_node(graph, y));
    last_attrs(graph)->batch_norm.epsilon = -3; // 3 - 3: the answer is infinite
    stays(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 2));
    output(graph, "y", batch_norm_node(graph, y));
    stays(graph, INF_PASS_FOLD_BATCH_NORM);
}

// y = op(linear, c) or op(c, linear) of the given shape for c, elements 2, 3.
static struct inf_graph *with_binary(enum inf_binary_kind kind, struct inf_shape shape, bool first)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = linear_node(graph, CONV_BIAS);
    float elements[32] = {2, 3};
    uint32_t c = constant(graph, INF_DTYPE_F32, shape, elements);
    uint32_t y = first ? node(graph, INF_OP_BINARY, "binary", c, x)
                       : node(graph, INF_OP_BINARY, "binary", x, c);
    last_attrs(graph)->binary.kind = kind;
    output(graph, "y", y);
    return graph;
}

Test(fold_batch_norm, takes_factors_for_each_channel_or_all)
{
    static const struct {
        struct inf_shape shape;
        bool first;
        float filter[4], bias[2];
    } cases[] = {
        {{.rank = 1, .dims = {2}}, false, {2, 6, 6, 12}, {20, 60}},
        {{.rank = 4, .dims = {1, 1, 1, 2}}, true, {2, 6, 6, 12}, {20, 60}},
        {{.rank = 0}, true, {2, 4, 6, 8}, {20, 40}},
        {{.rank = 2, .dims = {1, 1}}, false, {2, 4, 6, 8}, {20, 40}},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = with_binary(INF_BINARY_MUL, cases[i].shape, cases[i].first);
        graph->nodes[1].attrs.binary.activation = INF_ACTIVATION_CLIP;
        graph->nodes[1].attrs.binary.activation_max = 7;
        run_only(graph, INF_PASS_FOLD_BATCH_NORM);
        cr_assert_eq(graph->node_count, 1);
        const struct inf_node *only = &graph->nodes[0];
        for (int j = 0; j < 4; j++)
            cr_assert_eq(data_of(graph, only->inputs[1])[j], cases[i].filter[j], "case %zu", i);
        for (int j = 0; j < 2; j++)
            cr_assert_eq(data_of(graph, only->inputs[2])[j], cases[i].bias[j], "case %zu", i);
        cr_assert_eq(only->attrs.conv2d.activation, INF_ACTIVATION_CLIP, "it moves along");
        cr_assert_eq(only->attrs.conv2d.activation_max, 7.0f);
        inf_graph_destroy(&graph);
    }
    stays(with_binary(INF_BINARY_MUL, INF_SHAPE(4, 2), false), INF_PASS_FOLD_BATCH_NORM);
    stays(with_binary(INF_BINARY_MUL, INF_SHAPE(4, 1), false), INF_PASS_FOLD_BATCH_NORM);
    stays(with_binary(INF_BINARY_MUL, INF_SHAPE(1, 1, 1, 1, 2), false), INF_PASS_FOLD_BATCH_NORM);
    stays(with_binary(INF_BINARY_DIV, INF_SHAPE(2), false), INF_PASS_FOLD_BATCH_NORM);
    struct inf_graph *graph = with_binary(INF_BINARY_MUL, INF_SHAPE(2), false);
    ((float *)graph->values[graph->nodes[1].inputs[1]].data->data)[1] = INFINITY;
    stays(graph, INF_PASS_FOLD_BATCH_NORM);
}

// --- fuse_bias ---

Test(fuse_bias, adds_to_what_bias_there_is)
{
    struct inf_graph *graph = with_binary(INF_BINARY_ADD, INF_SHAPE(1, 1, 1, 2), true);
    run_only(graph, INF_PASS_FUSE_BIAS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[0], 12.0f);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[1], 23.0f);
    inf_graph_destroy(&graph);
    graph = with_binary(INF_BINARY_SUB, SCALAR, false);
    run_only(graph, INF_PASS_FUSE_BIAS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[0], 8.0f);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[1], 18.0f);
    inf_graph_destroy(&graph);
    stays(with_binary(INF_BINARY_SUB, INF_SHAPE(2), true), INF_PASS_FUSE_BIAS);
    stays(with_binary(INF_BINARY_ADD, INF_SHAPE(1, 4, 4, 2), false), INF_PASS_FUSE_BIAS);
    stays(with_binary(INF_BINARY_ADD, INF_SHAPE(5, 1, 1, 1, 2), false), INF_PASS_FUSE_BIAS);
}

Test(fuse_bias, makes_a_bias_where_there_is_none)
{
    static const enum linear kinds[] = {CONV, DEPTHWISE, TRANSPOSE, MATMUL, MATMUL_B};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t x = linear_node(graph, kinds[i]);
        uint32_t filter = graph->nodes[0].inputs[1];
        output(graph, "y",
               node(graph, INF_OP_BINARY, "add", x, floats(graph, INF_SHAPE(1, 2), 7, 8)));
        run_only(graph, INF_PASS_FUSE_BIAS);
        cr_assert_eq(graph->node_count, 1);
        uint32_t bias = kinds[i] == TRANSPOSE ? 3 : 2;
        cr_assert_eq(graph->nodes[0].input_count, bias + 1);
        cr_assert_eq(graph->nodes[0].inputs[1], filter);
        cr_assert_eq(data_of(graph, graph->nodes[0].inputs[bias])[1], 8.0f);
        cr_assert(
            inf_shape_equal(&graph->values[graph->nodes[0].inputs[bias]].shape, &INF_SHAPE(2)));
        inf_graph_destroy(&graph);
    }
}

Test(fuse_bias, leaves_sums_of_two_results)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = linear_node(graph, CONV);
    uint32_t other = input(graph, "other", INF_DTYPE_F32, INF_SHAPE(2));
    output(graph, "y", node(graph, INF_OP_BINARY, "residual", x, other));
    stays(graph, INF_PASS_FUSE_BIAS);
    graph = new_graph();
    x = linear_node(graph, CONV);
    output(graph, "y", node(graph, INF_OP_BINARY, "twice", x, x));
    stays(graph, INF_PASS_FUSE_BIAS);
}

// --- fuse_activation ---

Test(fuse_activation, unary_nodes_move_into_linear_ones)
{
    static const struct {
        enum inf_unary_kind unary;
        enum inf_activation activation;
    } cases[] = {
        {INF_UNARY_RELU, INF_ACTIVATION_RELU},
        {INF_UNARY_RELU6, INF_ACTIVATION_RELU6},
        {INF_UNARY_SIGMOID, INF_ACTIVATION_SIGMOID},
        {INF_UNARY_TANH, INF_ACTIVATION_TANH},
        {INF_UNARY_ELU, INF_ACTIVATION_ELU},
        {INF_UNARY_LEAKY_RELU, INF_ACTIVATION_LEAKY_RELU},
        {INF_UNARY_HARD_SWISH, INF_ACTIVATION_HARD_SWISH},
        {INF_UNARY_NEG, INF_ACTIVATION_NONE},
        {INF_UNARY_SELU, INF_ACTIVATION_NONE},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t y = node(graph, INF_OP_UNARY, "unary", linear_node(graph, CONV));
        last_attrs(graph)->unary.kind = cases[i].unary;
        last_attrs(graph)->unary.alpha = 0.25f;
        output(graph, "y", y);
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        bool fused = cases[i].activation != INF_ACTIVATION_NONE;
        bool scaled = cases[i].activation == INF_ACTIVATION_ELU ||
                      cases[i].activation == INF_ACTIVATION_LEAKY_RELU;
        cr_assert_eq(graph->node_count, fused ? 1 : 2, "case %zu", i);
        cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, cases[i].activation, "case %zu", i);
        cr_assert_eq(graph->nodes[0].attrs.conv2d.activation_alpha, scaled ? 0.25f : 0.0f);
        cr_assert_eq(graph->outputs[0].value, y);
        inf_graph_destroy(&graph);
    }
}

Test(fuse_activation, only_one_and_only_the_sole_user)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = linear_node(graph, CONV);
    y = node(graph, INF_OP_UNARY, "first", y);
    last_attrs(graph)->unary.kind = INF_UNARY_TANH;
    y = node(graph, INF_OP_UNARY, "second", y);
    last_attrs(graph)->unary.kind = INF_UNARY_SIGMOID;
    output(graph, "y", y);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 2);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, INF_ACTIVATION_TANH);
    cr_assert_str_eq(graph->nodes[1].name, "second");
    inf_graph_destroy(&graph);
    graph = new_graph();
    y = linear_node(graph, CONV);
    output(graph, "raw", y);
    output(graph, "y", node(graph, INF_OP_UNARY, "unary", y));
    last_attrs(graph)->unary.kind = INF_UNARY_RELU;
    stays(graph, INF_PASS_FUSE_ACTIVATION);
}

Test(fuse_activation, sums_take_bounds_only)
{
    static const struct {
        enum inf_binary_kind binary;
        enum inf_unary_kind unary;
        enum inf_dtype dtype;
        bool fused;
    } cases[] = {
        {INF_BINARY_ADD, INF_UNARY_RELU, INF_DTYPE_F32, true},
        {INF_BINARY_DIV, INF_UNARY_RELU6, INF_DTYPE_F32, true},
        {INF_BINARY_ADD, INF_UNARY_SIGMOID, INF_DTYPE_F32, false},
        {INF_BINARY_POW, INF_UNARY_RELU, INF_DTYPE_F32, false},
        {INF_BINARY_ADD, INF_UNARY_RELU, INF_DTYPE_I32, false},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t a = input(graph, "a", cases[i].dtype, INF_SHAPE(3));
        uint32_t b = input(graph, "b", cases[i].dtype, INF_SHAPE(3));
        uint32_t y = node(graph, INF_OP_BINARY, "binary", a, b);
        last_attrs(graph)->binary.kind = cases[i].binary;
        output(graph, "y", node(graph, INF_OP_UNARY, "unary", y));
        last_attrs(graph)->unary.kind = cases[i].unary;
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        cr_assert_eq(graph->node_count, cases[i].fused ? 1 : 2, "case %zu", i);
        cr_assert_eq(graph->nodes[0].attrs.binary.activation != INF_ACTIVATION_NONE,
                     cases[i].fused);
        inf_graph_destroy(&graph);
    }
}

// x -> kind_a(x, a) -> kind_b(c, b), after a convolution where `conv`.
static struct inf_graph *two_bounds(bool conv, enum inf_binary_kind kind_a, float a,
                                    enum inf_binary_kind kind_b, float b)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = conv ? linear_node(graph, CONV) : input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4));
    uint32_t y = node(graph, INF_OP_BINARY, "inner", x, floats(graph, SCALAR, a));
    last_attrs(graph)->binary.kind = kind_a;
    y = node(graph, INF_OP_BINARY, "outer", floats(graph, INF_SHAPE(1), b), y);
    last_attrs(graph)->binary.kind = kind_b;
    output(graph, "y", y);
    return graph;
}

Test(fuse_activation, min_of_max_is_a_clip)
{
    struct inf_graph *graph = two_bounds(false, INF_BINARY_MAX, -1, INF_BINARY_MIN, 2);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].op, INF_OP_CLIP);
    cr_assert_eq(graph->nodes[0].input_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.clip.min, -1.0f);
    cr_assert_eq(graph->nodes[0].attrs.clip.max, 2.0f);
    inf_graph_destroy(&graph);
    graph = two_bounds(true, INF_BINARY_MIN, 6, INF_BINARY_MAX, 0);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, INF_ACTIVATION_RELU6);
    inf_graph_destroy(&graph);
    graph = two_bounds(true, INF_BINARY_MAX, -3, INF_BINARY_MIN, 5);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation, INF_ACTIVATION_CLIP);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation_min, -3.0f);
    cr_assert_eq(graph->nodes[0].attrs.conv2d.activation_max, 5.0f);
    inf_graph_destroy(&graph);
}

Test(fuse_activation, bounds_that_do_not_meet_are_one_value)
{
    // max(x, 5) is at least 5, so min(.., 2) is 2 for every number: clip to [2, 2].
    struct inf_graph *graph = two_bounds(false, INF_BINARY_MAX, 5, INF_BINARY_MIN, 2);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.clip.min, 2.0f);
    cr_assert_eq(graph->nodes[0].attrs.clip.max, 2.0f);
    inf_graph_destroy(&graph);
    // min(x, 2) then max(.., 5) is 5.
    graph = two_bounds(false, INF_BINARY_MIN, 2, INF_BINARY_MAX, 5);
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->nodes[0].attrs.clip.min, 5.0f);
    cr_assert_eq(graph->nodes[0].attrs.clip.max, 5.0f);
    inf_graph_destroy(&graph);
}

// What clip(clip(x, a, b), c, d) becomes, for bounds the wrong way round: y = min(max(x, min), max).
Test(fuse_activation, bounds_the_wrong_way_round_keep_their_answer)
{
    static const float cases[][5] = {
        {5, 2, 0, 10, 2}, {5, 2, 3, 10, 3}, {0, 1, 5, 2, 2}, {5, 2, 9, 7, 7}}; // a, b, c, d, answer
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        struct inf_graph *graph = new_graph();
        uint32_t y =
            node(graph, INF_OP_CLIP, "inner", input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4)));
        last_attrs(graph)->clip.min = cases[i][0];
        last_attrs(graph)->clip.max = cases[i][1];
        y = node(graph, INF_OP_CLIP, "outer", y);
        last_attrs(graph)->clip.min = cases[i][2];
        last_attrs(graph)->clip.max = cases[i][3];
        output(graph, "y", y);
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        cr_assert_eq(graph->node_count, 1);
        for (float x = -20; x <= 20; x += 1)
            cr_assert_eq(
                fminf(fmaxf(x, graph->nodes[0].attrs.clip.min), graph->nodes[0].attrs.clip.max),
                cases[i][4], "case %zu", i);
        inf_graph_destroy(&graph);
    }
}

Test(fuse_activation, bounds_by_nan_or_by_tensors_stay)
{
    stays(two_bounds(false, INF_BINARY_MAX, NAN, INF_BINARY_MIN, NAN), INF_PASS_FUSE_ACTIVATION);
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    uint32_t y = node(graph, INF_OP_BINARY, "max", x, floats(graph, INF_SHAPE(2), 0, 0));
    last_attrs(graph)->binary.kind = INF_BINARY_MAX;
    output(graph, "y", y);
    output(graph, "z", node(graph, INF_OP_BINARY, "wider", x, floats(graph, INF_SHAPE(1, 1), 0)));
    last_attrs(graph)->binary.kind = INF_BINARY_MIN;
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->nodes[0].op, INF_OP_BINARY);
    cr_assert_eq(graph->nodes[1].op, INF_OP_BINARY, "it lengthens the shape");
    inf_graph_destroy(&graph);
}

static struct inf_graph *with_prelu(enum linear kind, struct inf_shape shape)
{
    struct inf_graph *graph = new_graph();
    const float elements[64] = {0.5f, 0.25f};
    uint32_t alpha = constant(graph, INF_DTYPE_F32, shape, elements);
    output(graph, "y", node(graph, INF_OP_PRELU, "prelu", linear_node(graph, kind), alpha));
    return graph;
}

Test(fuse_activation, prelu_brings_its_alpha_along)
{
    const struct inf_shape shapes[] = {INF_SHAPE(2), INF_SHAPE(1, 1, 2), INF_SHAPE(1, 1, 1, 2)};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(shapes); i++) {
        struct inf_graph *graph = with_prelu(i == 1 ? DEPTHWISE : CONV, shapes[i]);
        run_only(graph, INF_PASS_FUSE_ACTIVATION);
        cr_assert_eq(graph->node_count, 1);
        const struct inf_node *only = &graph->nodes[0];
        cr_assert_eq(only->input_count, 4);
        cr_assert_eq(only->inputs[2], INF_VALUE_NONE);
        cr_assert_eq(i == 1 ? only->attrs.depthwise_conv2d.activation
                            : only->attrs.conv2d.activation,
                     INF_ACTIVATION_PRELU);
        cr_assert_eq(data_of(graph, only->inputs[3])[1], 0.25f);
        cr_assert(inf_shape_equal(&graph->values[only->inputs[3]].shape, &INF_SHAPE(2)));
        inf_graph_destroy(&graph);
    }
    struct inf_graph *graph = with_prelu(CONV_BIAS, INF_SHAPE(2));
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(data_of(graph, graph->nodes[0].inputs[2])[0], 10.0f, "the bias stays");
    inf_graph_destroy(&graph);
}

Test(fuse_activation, prelu_of_one_alpha_is_leaky_relu)
{
    struct inf_graph *graph = with_prelu(TRANSPOSE, INF_SHAPE(1));
    run_only(graph, INF_PASS_FUSE_ACTIVATION);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_eq(graph->nodes[0].attrs.conv2d_transpose.activation, INF_ACTIVATION_LEAKY_RELU);
    cr_assert_eq(graph->nodes[0].attrs.conv2d_transpose.activation_alpha, 0.5f);
    inf_graph_destroy(&graph);
    stays(with_prelu(TRANSPOSE, INF_SHAPE(2)), INF_PASS_FUSE_ACTIVATION);
    stays(with_prelu(CONV, INF_SHAPE(4, 4, 2)), INF_PASS_FUSE_ACTIVATION);
}

// --- fuse_pad ---

// x -> pad -> conv of 3x3.
static struct inf_graph *with_pad(const int32_t paddings[8], enum inf_padding padding, float value)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 8, 8, 2));
    uint32_t p = constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), paddings);
    uint32_t padded = node(graph, INF_OP_PAD, "pad", x, p, floats(graph, SCALAR, value));
    uint32_t w = constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, 2, 2), NULL);
    output(graph, "y", node(graph, INF_OP_CONV2D, "conv", padded, w));
    last_attrs(graph)->conv2d.padding = padding;
    if (padding == INF_PADDING_EXPLICIT)
        last_attrs(graph)->conv2d.pad_left = 5;
    return graph;
}

static const int32_t image_pads[] = {0, 0, 1, 2, 3, 4, 0, 0};

Test(fuse_pad, zeros_around_an_image_become_padding)
{
    static const enum inf_padding kinds[] = {INF_PADDING_VALID, INF_PADDING_EXPLICIT};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(kinds); i++) {
        struct inf_graph *graph = with_pad(image_pads, kinds[i], 0);
        run_only(graph, INF_PASS_FUSE_PAD);
        cr_assert_eq(graph->node_count, 1);
        const struct inf_attrs_conv2d *attrs = &graph->nodes[0].attrs.conv2d;
        cr_assert_eq(graph->nodes[0].inputs[0], graph->inputs[0].value);
        cr_assert_eq(attrs->padding, INF_PADDING_EXPLICIT);
        cr_assert_eq(attrs->pad_top, 1);
        cr_assert_eq(attrs->pad_bottom, 2);
        cr_assert_eq(attrs->pad_left, kinds[i] == INF_PADDING_VALID ? 3 : 8);
        cr_assert_eq(attrs->pad_right, 4);
        inf_graph_destroy(&graph);
    }
}

Test(fuse_pad, other_padding_stays)
{
    static const int32_t batch[] = {1, 0, 0, 0, 0, 0, 0, 0};
    static const int32_t channels[] = {0, 0, 1, 1, 1, 1, 0, 0};
    static const int32_t huge[] = {0, 0, 65536, 0, 0, 0, 0, 0};
    stays(with_pad(batch, INF_PADDING_VALID, 0), INF_PASS_FUSE_PAD);
    stays(with_pad(image_pads, INF_PADDING_VALID, 1), INF_PASS_FUSE_PAD);
    stays(with_pad(image_pads, INF_PADDING_SAME, 0), INF_PASS_FUSE_PAD);
    stays(with_pad(huge, INF_PADDING_VALID, 0), INF_PASS_FUSE_PAD);
    struct inf_graph *graph = with_pad(channels, INF_PADDING_VALID, 0);
    graph->nodes[0].attrs.pad.mode = INF_PAD_REFLECT;
    stays(graph, INF_PASS_FUSE_PAD);
    graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 8, 8, 2));
    uint32_t p = constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), image_pads);
    x = node(graph, INF_OP_PAD, "pad", x, p);
    output(graph, "y", node(graph, INF_OP_POOL2D, "pool", x));
    stays(graph, INF_PASS_FUSE_PAD);
}

Test(fuse_pad, a_pad_with_other_readers_stays_for_them)
{
    struct inf_graph *graph = with_pad(image_pads, INF_PADDING_VALID, 0);
    output(graph, "padded", graph->nodes[0].outputs[0]);
    run_only(graph, INF_PASS_FUSE_PAD);
    cr_assert_eq(graph->node_count, 2);
    cr_assert_eq(graph->nodes[1].inputs[0], graph->inputs[0].value);
    inf_graph_destroy(&graph);
}

// --- layout ---

static uint32_t transposed(struct inf_graph *graph, uint32_t x, int64_t a, int64_t b, int64_t c)
{
    uint32_t y = node(graph, INF_OP_TRANSPOSE, "t", x);
    last_attrs(graph)->transpose.perm = (struct inf_ints){.count = 4, .values = {0, a, b, c}};
    return y;
}

static uint32_t transposes_left(const struct inf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->node_count; i++)
        count += graph->nodes[i].op == INF_OP_TRANSPOSE;
    return count;
}

// x (channels last) -> first -> relu, plus a constant a channel -> reduce over rows -> last.
Test(layout, transposes_meet_their_inverse_through_other_nodes)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 5, 6, 3));
    uint32_t y = transposed(graph, x, 3, 1, 2);
    y = node(graph, INF_OP_UNARY, "relu", y);
    y = node(graph, INF_OP_BINARY, "add", y, floats(graph, INF_SHAPE(1, 1), 2));
    y = node(graph, INF_OP_REDUCE, "mean", y);
    last_attrs(graph)->reduce.keep_dims = true;
    last_attrs(graph)->reduce.axes = (struct inf_ints){.count = 1, .values = {2}};
    output(graph, "y", transposed(graph, y, 2, 3, 1));
    run_only(graph, INF_PASS_LAYOUT);
    cr_assert_eq(transposes_left(graph), 0);
    cr_assert_eq(graph->node_count, 3);
    // Rows are axis 2 of channels first, and axis 1 of what is left.
    cr_assert_eq(graph->nodes[2].attrs.reduce.axes.values[0], 1);
    cr_assert(
        inf_shape_equal(&graph->values[graph->outputs[0].value].shape, &INF_SHAPE(1, 1, 6, 3)));
    inf_graph_destroy(&graph);
}

Test(layout, what_is_read_twice_may_stay_for_one)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 5, 6, 3));
    uint32_t y = transposed(graph, x, 3, 1, 2);
    output(graph, "first", y);
    output(graph, "last", node(graph, INF_OP_UNARY, "neg", transposed(graph, y, 2, 3, 1)));
    run_only(graph, INF_PASS_LAYOUT);
    cr_assert_eq(transposes_left(graph), 1);
    cr_assert(
        inf_shape_equal(&graph->values[graph->outputs[0].value].shape, &INF_SHAPE(1, 3, 5, 6)));
    cr_assert(
        inf_shape_equal(&graph->values[graph->outputs[1].value].shape, &INF_SHAPE(1, 5, 6, 3)));
    inf_graph_destroy(&graph);
}

Test(layout, moving_axes_of_size_one_is_a_reshape)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 1, 1, 3));
    uint32_t y = transposed(graph, x, 3, 1, 2);
    output(graph, "y", node(graph, INF_OP_POOL2D, "pool", y));
    run_only(graph, INF_PASS_LAYOUT);
    cr_assert_eq(transposes_left(graph), 0);
    cr_assert_eq(graph->nodes[0].op, INF_OP_RESHAPE);
    inf_graph_destroy(&graph);
}

// --- drop_dead and the whole ---

Test(drop_dead, nodes_and_data_nobody_uses_go)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4));
    uint32_t c = floats(graph, INF_SHAPE(1), 1);
    uint32_t lonely = floats(graph, INF_SHAPE(1), 2);
    uint32_t dead = node(graph, INF_OP_BINARY, "dead", x, c);
    node(graph, INF_OP_UNARY, "deader", dead);
    add_node(graph, INF_OP_SPLIT, "half", &x, 1, 2);
    output(graph, "y", graph->nodes[2].outputs[1]);
    run_only(graph, INF_PASS_DROP_DEAD);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_str_eq(graph->nodes[0].name, "half");
    cr_assert_null(graph->values[c].data);
    cr_assert_null(graph->values[lonely].data);
    cr_assert_eq(graph->input_count, 1, "inputs stay, used or not");
    inf_graph_destroy(&graph);
}

// pad, conv, mul, add, min(max): as exporters write what is one convolution.
static struct inf_graph *exported_graph(void)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 8, 8, 2));
    uint32_t p = constant(graph, INF_DTYPE_I32, INF_SHAPE(4, 2), image_pads);
    x = node(graph, INF_OP_PAD, "pad", x, p);
    x = node(graph, INF_OP_CONV2D, "conv", x, floats(graph, INF_SHAPE(1, 1, 2, 2), 1, 2, 3, 4));
    x = node(graph, INF_OP_IDENTITY, "identity", x);
    x = node(graph, INF_OP_BINARY, "mul", x, floats(graph, INF_SHAPE(2), 2, 3));
    last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    x = node(graph, INF_OP_BINARY, "add", x, floats(graph, INF_SHAPE(1, 2), 5, 6));
    x = node(graph, INF_OP_BINARY, "max", x, floats(graph, SCALAR, 0));
    last_attrs(graph)->binary.kind = INF_BINARY_MAX;
    x = node(graph, INF_OP_BINARY, "min", x, floats(graph, SCALAR, 6));
    last_attrs(graph)->binary.kind = INF_BINARY_MIN;
    output(graph, "y", x);
    return graph;
}

Test(pass, all_together_make_one_node_of_seven)
{
    struct inf_graph *graph = exported_graph();
    uint32_t y = graph->outputs[0].value;
    cr_assert_eq(inf_passes_run(graph, &(struct inf_pass_options){0}, NULL), INF_OK);
    cr_assert_eq(graph->node_count, 1);
    const struct inf_node *only = &graph->nodes[0];
    cr_assert_str_eq(only->name, "conv");
    cr_assert_eq(only->outputs[0], y);
    cr_assert_eq(only->attrs.conv2d.activation, INF_ACTIVATION_RELU6);
    cr_assert_eq(only->attrs.conv2d.pad_right, 4);
    cr_assert_eq(data_of(graph, only->inputs[1])[3], 12.0f);
    cr_assert_eq(data_of(graph, only->inputs[2])[0], 5.0f);
    cr_assert(inf_shape_equal(&graph->values[y].shape, &INF_SHAPE(1, 11, 15, 2)));
    inf_graph_destroy(&graph);
}

Test(pass, each_can_be_switched_off)
{
    for (int pass = 0; pass < INF_PASS_COUNT; pass++) {
        struct inf_graph *graph = exported_graph();
        const struct inf_pass_options options = {.disabled = 1u << pass};
        cr_assert_eq(inf_passes_run(graph, &options, NULL), INF_OK);
        // The graph has no transpose, no subgraph, no bytes, nothing dead or to fold.
        bool needed = pass != INF_PASS_DROP_DEAD && pass != INF_PASS_FOLD_CONSTANTS &&
                      pass != INF_PASS_LAYOUT && pass != INF_PASS_INLINE &&
                      pass != INF_PASS_QUANTIZE;
        cr_assert_eq(graph->node_count > 1, needed, "%s", inf_pass_name((enum inf_pass)pass));
        inf_graph_destroy(&graph);
    }
    struct inf_graph *graph = exported_graph();
    const struct inf_pass_options none = {.disabled = UINT32_MAX};
    cr_assert_eq(inf_passes_run(graph, &none, NULL), INF_OK);
    cr_assert_eq(graph->node_count, 7);
    inf_graph_destroy(&graph);
}

Test(pass, the_graph_is_dumped_after_each)
{
    struct inf_graph *graph = exported_graph();
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    const struct inf_pass_options options = {.dump = file};
    cr_assert_eq(inf_passes_run(graph, &options, NULL), INF_OK);
    fclose(file);
    cr_assert_not_null(strstr(text, "# round 1, after drop_identities\ninput  %0 \"x\""));
    cr_assert_not_null(strstr(text, "# round 1, after fold_constants: no change\n"));
    cr_assert_not_null(strstr(text, "activation=relu6"));
    free(text);
    inf_graph_destroy(&graph);
}

Test(pass, the_original_of_a_clone_stays_as_it_is)
{
    struct inf_graph *graph = exported_graph();
    struct inf_graph *copy;
    cr_assert_eq(inf_graph_clone(&copy, graph, NULL), INF_OK);
    cr_assert_eq(inf_passes_run(copy, &(struct inf_pass_options){0}, NULL), INF_OK);
    inf_graph_destroy(&copy);
    cr_assert_eq(graph->node_count, 7);
    cr_assert_eq(data_of(graph, graph->nodes[1].inputs[1])[3], 4.0f,
                 "shared weights are not written");
    inf_graph_destroy(&graph);
}
