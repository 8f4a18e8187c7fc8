// SPDX-License-Identifier: Apache-2.0
// The graphs that folding produces. tests/conformance checks that folding does not change results.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "tests/unit/graph/pass_kit.h"

// --- the pass fold_constants ---

// The graph is y = reshape(x, shape(x) + [4, -3]), and shape(y). All values except y can be
// computed in advance.
Test(fold_constants, folding_settles_shapes_behind_it)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 6));
    uint32_t shape = node(graph, INF_OP_SHAPE, "shape", x);
    uint32_t wanted = node(graph, INF_OP_BINARY, "add", shape, ints(graph, 4, -3));
    uint32_t y = node(graph, INF_OP_RESHAPE, "reshape", x, wanted);
    uint32_t again = node(graph, INF_OP_SHAPE, "again", y);
    add_output(graph, "y", y);
    add_output(graph, "s", again);
    run_only(graph, INF_PASS_FOLD_CONSTANTS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert_str_eq(graph->nodes[0].name, "reshape");
    cr_assert(inf_shape_equal(&graph->values[y].shape, &INF_SHAPE(8, 3)));
    int64_t elements[2];
    uint32_t count;
    cr_assert(inf_graph_const_ints(graph, again, elements, 2, &count));
    cr_assert_eq(elements[0], 8);
    cr_assert_eq(elements[1], 3);
    cr_assert_null(graph->values[shape].data, "an unused constant keeps no data");
    inf_graph_destroy(&graph);
}

Test(fold_constants, without_an_evaluator_nothing_folds)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 6));
    add_output(graph, "s", node(graph, INF_OP_SHAPE, "shape", x));
    cr_assert_eq(inf_passes_run(graph, &(struct inf_pass_options){0}, NULL), INF_OK);
    cr_assert_eq(graph->node_count, 1);
    inf_graph_destroy(&graph);
}

Test(fold_constants, what_the_evaluator_refuses_stays)
{
    struct inf_graph *graph = new_graph();
    uint32_t c = floats(graph, INF_SHAPE(2), 1, 2);
    add_output(graph, "y", node(graph, INF_OP_UNARY, "exp", c));
    run_only(graph, INF_PASS_FOLD_CONSTANTS);
    cr_assert_eq(graph->node_count, 1);
    cr_assert(inf_graph_is_const(graph, c));
    inf_graph_destroy(&graph);
}

// The evaluator of these tests does not transpose: folding does that itself for 4-byte elements.
Test(fold_constants, transposes_constants)
{
    static const float by_permutation[] = {1, 4, 2, 5, 3, 6, 7, 10, 8, 11, 9, 12};
    static const float reversed[] = {1, 7, 4, 10, 2, 8, 5, 11, 3, 9, 6, 12};
    static const int64_t axes[] = {0, -1, 1};
    for (int32_t count = 0; count <= 3; count += 3) {
        struct inf_graph *graph = new_graph();
        uint32_t c = floats(graph, INF_SHAPE(2, 2, 3), 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12);
        uint32_t y = node(graph, INF_OP_TRANSPOSE, "t", c);
        last_attrs(graph)->transpose.perm.count = count;
        memcpy(last_attrs(graph)->transpose.perm.values, axes, sizeof axes);
        add_output(graph, "y", y);
        run_only(graph, INF_PASS_FOLD_CONSTANTS);
        cr_assert_eq(graph->node_count, 0);
        cr_assert(inf_shape_equal(&graph->values[y].shape,
                                  count == 0 ? &INF_SHAPE(3, 2, 2) : &INF_SHAPE(2, 3, 2)));
        cr_assert_arr_eq(data_of(graph, y), count == 0 ? reversed : by_permutation,
                         sizeof reversed);
        inf_graph_destroy(&graph);
    }
}

Test(fold_constants, a_small_file_makes_no_large_graph)
{
    struct inf_graph *graph = new_graph();
    uint32_t zero = floats(graph, SCALAR, 0);
    // "a" is 64 MiB, which is too much for one constant. "b" and "c" are just below the limit, but
    // the budget of the whole graph allows only one of them.
    add_output(graph, "a", node(graph, INF_OP_FILL, "a", ints(graph, 16 << 20), zero));
    add_output(graph, "b", node(graph, INF_OP_FILL, "b", ints(graph, (16 << 20) - 1), zero));
    add_output(graph, "c", node(graph, INF_OP_FILL, "c", ints(graph, (16 << 20) - 1), zero));
    run_only(graph, INF_PASS_FOLD_CONSTANTS);
    cr_assert_eq(graph->node_count, 2);
    cr_assert_str_eq(graph->nodes[0].name, "a");
    cr_assert_str_eq(graph->nodes[1].name, "c");
    inf_graph_destroy(&graph);
}

// Two LRN nodes normalise 1024 constants. One reads 11 elements per result and is folded. The other
// reads millions of elements per result and is not folded.
Test(fold_constants, a_small_file_makes_no_long_work)
{
    struct inf_graph *graph = new_graph();
    uint32_t c = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1, 1024), NULL);
    add_output(graph, "near", node(graph, INF_OP_LRN, "near", c));
    add_output(graph, "far", node(graph, INF_OP_LRN, "far", c));
    last_attrs(graph)->lrn.before = 1 << 24;
    int calls = 0;
    const struct inf_evaluator evaluator = {.run = evaluate_node, .context = &calls};
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
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4));
    uint32_t wanted = node(graph, INF_OP_BINARY, "add", ints(graph, 1), ints(graph, 2));
    add_output(graph, "y", node(graph, INF_OP_RESHAPE, "bad", x, wanted));
    int calls = 0;
    struct inf_error err = {0};
    const struct inf_evaluator evaluator = {.run = evaluate_node, .context = &calls};
    const struct inf_pass_options options = {.evaluator = &evaluator};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "'bad'"), "%s", err.text);
    cr_assert_eq(calls, 1);
    inf_graph_destroy(&graph);
}

// --- the pass fold_batch_norm ---

// Adds a batch_norm with the scales 4 / sqrt(3 + 1) = 2 and 9 / sqrt(8 + 1) = 3, the means 1 and 2,
// and the offsets 1 and 1.
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
        add_output(graph, "y", y);
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
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 1, 1, 2));
    uint32_t w = floats(graph, INF_SHAPE(1, 1, 2, 2), 1, 1, 1, 1);
    uint32_t y = node(graph, INF_OP_DEPTHWISE_CONV2D, "linear", x, w);
    add_output(graph, "y",
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

Test(fold_batch_norm, leaves_what_it_would_change)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = linear_node(graph, CONV);
    add_output(graph, "before", y);
    add_output(graph, "y", batch_norm_node(graph, y));
    expect_unfused(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    add_output(graph, "y", batch_norm_node(graph, y));
    add_output(graph, "z", node(graph, INF_OP_UNARY, "neg", y));
    expect_unfused(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    last_attrs(graph)->conv2d.activation = INF_ACTIVATION_RELU;
    add_output(graph, "y", batch_norm_node(graph, y));
    expect_unfused(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    graph->nodes[0].inputs[1] = add_input(graph, "w", INF_DTYPE_F32, INF_SHAPE(1, 1, 2, 2));
    add_output(graph, "y", batch_norm_node(graph, y));
    expect_unfused(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = linear_node(graph, CONV);
    add_output(graph, "y", batch_norm_node(graph, y));
    last_attrs(graph)->batch_norm.epsilon = -3; // 3 - 3 is 0, so the result is infinite
    expect_unfused(graph, INF_PASS_FOLD_BATCH_NORM);

    graph = new_graph();
    y = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 2));
    add_output(graph, "y", batch_norm_node(graph, y));
    expect_unfused(graph, INF_PASS_FOLD_BATCH_NORM);
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
    expect_unfused(with_binary(INF_BINARY_MUL, INF_SHAPE(4, 2), false), INF_PASS_FOLD_BATCH_NORM);
    expect_unfused(with_binary(INF_BINARY_MUL, INF_SHAPE(4, 1), false), INF_PASS_FOLD_BATCH_NORM);
    expect_unfused(with_binary(INF_BINARY_MUL, INF_SHAPE(1, 1, 1, 1, 2), false),
                   INF_PASS_FOLD_BATCH_NORM);
    expect_unfused(with_binary(INF_BINARY_DIV, INF_SHAPE(2), false), INF_PASS_FOLD_BATCH_NORM);
    struct inf_graph *graph = with_binary(INF_BINARY_MUL, INF_SHAPE(2), false);
    ((float *)graph->values[graph->nodes[1].inputs[1]].data->data)[1] = INFINITY;
    expect_unfused(graph, INF_PASS_FOLD_BATCH_NORM);
}

// --- the pass fold_operand ---

// Makes a graph that computes conv((x * scale) + offset), without `scale` or `offset` if it is
// NULL. Each has `count` elements: 1, or 2 for the channels. The filter has the elements 1, 2, 3
// and 4: of a convolution [1,1,2,2], or of a depthwise one [2,1,2,1].
static struct inf_graph *scaled_operand(bool depthwise, const float *scale, const float *offset,
                                        int64_t count)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 2));
    if (scale != NULL) {
        uint32_t c = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(count), scale);
        x = node(graph, INF_OP_BINARY, "scale", x, c);
        last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    }
    if (offset != NULL) {
        uint32_t c = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(count), offset);
        x = node(graph, INF_OP_BINARY, "offset", c, x);
        last_attrs(graph)->binary.kind = INF_BINARY_ADD;
    }
    uint32_t w =
        floats(graph, depthwise ? INF_SHAPE(2, 1, 2, 1) : INF_SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
    add_output(graph, "y",
               node(graph, depthwise ? INF_OP_DEPTHWISE_CONV2D : INF_OP_CONV2D, "conv", x, w));
    return graph;
}

// Asserts that the graph is one convolution, with this filter and bias.
static void expect_folded(struct inf_graph *graph, const float *filter, const float *bias)
{
    run_only(graph, INF_PASS_FOLD_OPERAND);
    cr_assert_eq(graph->node_count, 1);
    const struct inf_node *conv = &graph->nodes[0];
    cr_expect_eq(conv->inputs[0], graph->inputs[0].value);
    for (int i = 0; i < 4; i++)
        cr_expect_eq(data_of(graph, conv->inputs[1])[i], filter[i], "weight %d", i);
    cr_assert_eq(conv->input_count, bias != NULL ? 3 : 2);
    for (int i = 0; i < 2 && bias != NULL; i++)
        cr_expect_eq(data_of(graph, conv->inputs[2])[i], bias[i], "bias %d", i);
    inf_graph_destroy(&graph);
}

Test(fold_operand, scales_and_offsets_input_channels)
{
    const float scale[] = {10, 100}, offset[] = {1, 2};
    const float filter[] = {1, 2, 3, 4}, scaled[] = {10, 20, 300, 400},
                tenfold[] = {10, 20, 30, 40};
    const float by_channel[] = {10, 200, 30, 400};
    expect_folded(scaled_operand(false, scale, NULL, 2), scaled, NULL);
    expect_folded(scaled_operand(false, NULL, offset, 2), filter, (const float[]){7, 10});
    expect_folded(scaled_operand(false, scale, offset, 2), scaled, (const float[]){7, 10});
    expect_folded(scaled_operand(false, scale, offset, 1), tenfold, (const float[]){4, 6});
    expect_folded(scaled_operand(true, scale, offset, 2), by_channel, (const float[]){4, 12});
}

// Padding is not offset, so an offset stays; a scale before it is still folded.
Test(fold_operand, an_offset_before_padding_stays)
{
    const float scale[] = {4, 8}, offset[] = {2, 16}, by_channel[] = {4, 16, 12, 32};
    for (int form = 0; form < 2; form++) {
        struct inf_graph *graph = scaled_operand(true, form == 1 ? scale : NULL, offset, 2);
        graph->nodes[graph->node_count - 1].attrs.depthwise_conv2d.pad_bottom = 1;
        run_only(graph, INF_PASS_FOLD_OPERAND);
        cr_assert_eq(graph->node_count, 2, "form %d", form);
        const float *kept = data_of(graph, graph->nodes[0].inputs[0]);
        cr_expect_eq(graph->nodes[0].inputs[1], graph->inputs[0].value);
        for (int i = 0; i < 2; i++)
            cr_expect_eq(kept[i], form == 1 ? offset[i] / scale[i] : offset[i]);
        for (int i = 0; i < 4; i++)
            cr_expect_eq(data_of(graph, graph->nodes[1].inputs[1])[i],
                         form == 1 ? by_channel[i] : (float)(i + 1));
        inf_graph_destroy(&graph);
    }
}

Test(fold_operand, leaves_what_it_would_change)
{
    const float scale[] = {2, 3}, zero[] = {0, 3}, large[] = {1e38f, 3}, offset[] = {1, 1};
    struct inf_graph *graph = scaled_operand(false, scale, NULL, 2);
    add_output(graph, "z", graph->nodes[0].outputs[0]);
    expect_unfused(graph, INF_PASS_FOLD_OPERAND);

    graph = scaled_operand(false, scale, NULL, 2);
    graph->nodes[0].attrs.binary.activation = INF_ACTIVATION_RELU;
    expect_unfused(graph, INF_PASS_FOLD_OPERAND);

    graph = scaled_operand(false, scale, NULL, 2);
    graph->nodes[0].attrs.binary.kind = INF_BINARY_SUB;
    expect_unfused(graph, INF_PASS_FOLD_OPERAND);

    // 1e38 * 4 is no finite weight, and 1 / 0 no finite offset.
    graph = scaled_operand(true, large, NULL, 2);
    ((float *)graph->values[graph->nodes[1].inputs[1]].data->data)[0] = 4;
    expect_unfused(graph, INF_PASS_FOLD_OPERAND);
    graph = scaled_operand(true, zero, offset, 2);
    graph->nodes[2].attrs.depthwise_conv2d.pad_bottom = 1;
    expect_unfused(graph, INF_PASS_FOLD_OPERAND);

    // Two groups of one channel each.
    graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 2));
    uint32_t y = node(graph, INF_OP_BINARY, "scale", x, floats(graph, INF_SHAPE(1), 3));
    last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    add_output(graph, "y",
               node(graph, INF_OP_CONV2D, "conv", y, floats(graph, INF_SHAPE(1, 1, 1, 2), 1, 2)));
    last_attrs(graph)->conv2d.groups = 2;
    expect_unfused(graph, INF_PASS_FOLD_OPERAND);

    // The scale gives x more elements.
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 1));
    y = node(graph, INF_OP_BINARY, "scale", x, floats(graph, INF_SHAPE(2), 3, 5));
    last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    add_output(
        graph, "y",
        node(graph, INF_OP_CONV2D, "conv", y, floats(graph, INF_SHAPE(1, 1, 2, 2), 1, 2, 3, 4)));
    expect_unfused(graph, INF_PASS_FOLD_OPERAND);
}

// --- filters that several convolutions read ---

// Makes a graph of `count` convolutions of one filter of 16 bytes. Each has a multiplication by the
// same two factors behind it or, if `before` is set, before it. All constants have 24 bytes.
static struct inf_graph *shared_filter(uint32_t count, bool before)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 2));
    uint32_t w = floats(graph, INF_SHAPE(1, 1, 2, 2), 1, 2, 3, 4);
    uint32_t factors = floats(graph, INF_SHAPE(2), 10, 100);
    for (uint32_t i = 0; i < count; i++) {
        char name[16];
        uint32_t y = x;
        for (int step = 0; step < 2; step++) {
            bool scales = (step == 0) == before;
            y = node(graph, scales ? INF_OP_BINARY : INF_OP_CONV2D, "n", y, scales ? factors : w);
            if (scales)
                last_attrs(graph)->binary.kind = INF_BINARY_MUL;
        }
        snprintf(name, sizeof name, "y%u", i);
        add_output(graph, name, y);
    }
    return graph;
}

// Copies of the filter may have half of the bytes of all constants. The last convolution that reads
// a filter needs no copy. A bias of 8 bytes for each folded multiplication is not counted.
Test(shared_filters, are_copied_within_a_budget)
{
    for (int before = 0; before < 2; before++) {
        enum inf_pass pass = before ? INF_PASS_FOLD_OPERAND : INF_PASS_FOLD_BATCH_NORM;
        struct inf_graph *graph = shared_filter(2, before);
        run_only(graph, pass);
        cr_expect_eq(graph->node_count, 4, "12 bytes are less than a copy");
        inf_graph_destroy(&graph);

        graph = shared_filter(20, before);
        floats(graph, INF_SHAPE(2), 1, 2); // the constants have 32 bytes, half of which are a copy
        run_only(graph, pass);
        cr_expect_eq(graph->node_count, 39);
        const struct inf_node *first = &graph->nodes[0],
                              *last = &graph->nodes[graph->node_count - 1];
        cr_expect_eq(data_of(graph, first->inputs[1])[0], 10);
        cr_expect_eq(data_of(graph, (before ? last : last - 1)->inputs[1])[0], 1);
        inf_graph_destroy(&graph);

        graph = shared_filter(2, before);
        floats(graph, INF_SHAPE(2), 1, 2);
        run_only(graph, pass);
        cr_expect_eq(graph->node_count, 2, "one copy; the other filter replaces the original");
        inf_graph_destroy(&graph);
    }
}

// Adds a node of the operator `reader` (BINARY or CONCAT) that reads an input and a dequantised
// constant of `count` bytes.
static void add_table(struct inf_graph *graph, const char *name, enum inf_op reader, int64_t count)
{
    uint32_t x = add_input(graph, name, INF_DTYPE_F32, INF_SHAPE(count));
    uint32_t bytes = add_constant(graph, INF_DTYPE_U8, INF_SHAPE(count), NULL);
    uint32_t table = node(graph, INF_OP_DEQUANTIZE, name, bytes, floats(graph, SCALAR, 0.5));
    add_output(graph, name, node(graph, reader, name, x, table));
}

Test(fold_constants, large_tables_of_bytes_for_element_wise_operators_stay_bytes)
{
    const int64_t large = (64 << 10) / (int64_t)sizeof(float);
    struct inf_graph *graph = new_graph();
    add_table(graph, "large", INF_OP_BINARY, large);
    add_table(graph, "small", INF_OP_BINARY, large - 1);
    add_table(graph, "joined", INF_OP_CONCAT, large);
    uint32_t bytes = add_constant(graph, INF_DTYPE_U8, INF_SHAPE(large), NULL);
    add_output(graph, "out",
               node(graph, INF_OP_DEQUANTIZE, "out", bytes, floats(graph, SCALAR, 1)));
    // Weights that are bytes times a constant.
    uint32_t weights = node(graph, INF_OP_DEQUANTIZE, "weights", bytes, floats(graph, SCALAR, 1));
    add_output(graph, "product",
               node(graph, INF_OP_BINARY, "product", weights, floats(graph, SCALAR, 3)));
    run_only(graph, INF_PASS_FOLD_CONSTANTS);
    uint32_t left = 0;
    for (uint32_t i = 0; i < graph->node_count; i++) {
        left += graph->nodes[i].op == INF_OP_DEQUANTIZE;
        if (graph->nodes[i].op == INF_OP_DEQUANTIZE)
            cr_expect_str_eq(graph->nodes[i].name, "large");
    }
    cr_expect_eq(left, 1u);
    inf_graph_destroy(&graph);
}
