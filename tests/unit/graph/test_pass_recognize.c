// SPDX-License-Identifier: Apache-2.0
// The nodes that the pass `recognize` makes of long forms, and the forms that it leaves alone.
// tests/conformance checks that the pass does not change results.
#include <criterion/criterion.h>

#include "tests/unit/graph/pass_kit.h"

static struct inf_graph *graph;
static uint32_t x;

static void begin_graph(void)
{
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3, 4));
}

static uint32_t add_scalar(float number)
{
    return floats(graph, SCALAR, number);
}

static uint32_t add_binary(enum inf_binary_kind kind, uint32_t a, uint32_t b)
{
    uint32_t y = node(graph, INF_OP_BINARY, "binary", a, b);
    last_attrs(graph)->binary.kind = kind;
    return y;
}

static uint32_t add_unary(enum inf_unary_kind kind, uint32_t a)
{
    uint32_t y = node(graph, INF_OP_UNARY, "unary", a);
    last_attrs(graph)->unary.kind = kind;
    return y;
}

static uint32_t add_mean(uint32_t a, int64_t axis, bool keep)
{
    uint32_t y = node(graph, INF_OP_REDUCE, "mean", a);
    last_attrs(graph)->reduce.kind = INF_REDUCE_MEAN;
    last_attrs(graph)->reduce.keep_dims = keep;
    last_attrs(graph)->reduce.axes = (struct inf_ints){.count = 1, .values = {axis}};
    return y;
}

// Makes `y` the output of the graph, runs the pass `recognize`, and returns how many nodes are
// left.
static uint32_t count_after(uint32_t y)
{
    add_output(graph, "y", y);
    run_only(graph, INF_PASS_RECOGNIZE);
    return graph->node_count;
}

static void expect_unary(uint32_t y, enum inf_unary_kind kind)
{
    cr_assert_eq(count_after(y), 1);
    cr_assert_eq(graph->nodes[0].op, INF_OP_UNARY);
    cr_assert_eq(graph->nodes[0].attrs.unary.kind, kind);
    cr_assert_eq(graph->nodes[0].inputs[0], x);
    cr_assert_eq(graph->nodes[0].input_count, 1);
    inf_graph_destroy(&graph);
}

// x / 2 * (1 + erf(x * scale)) with constants that a test can change.
static uint32_t long_gelu(float scale, float one, float half)
{
    uint32_t e = add_unary(INF_UNARY_ERF, add_binary(INF_BINARY_MUL, x, add_scalar(scale)));
    uint32_t y = add_binary(INF_BINARY_MUL, x, add_binary(INF_BINARY_ADD, e, add_scalar(one)));
    return add_binary(INF_BINARY_MUL, y, add_scalar(half));
}

static uint32_t long_gelu_tanh(float power, float cubic, float scale)
{
    uint32_t p = add_binary(INF_BINARY_POW, x, add_scalar(power));
    p = add_binary(INF_BINARY_ADD, x, add_binary(INF_BINARY_MUL, p, add_scalar(cubic)));
    p = add_unary(INF_UNARY_TANH, add_binary(INF_BINARY_MUL, p, add_scalar(scale)));
    p = add_binary(INF_BINARY_ADD, add_scalar(1), p);
    return add_binary(INF_BINARY_MUL, add_binary(INF_BINARY_MUL, x, add_scalar(0.5f)), p);
}

Test(recognize, functions_in_parts_become_one_node)
{
    begin_graph();
    expect_unary(long_gelu(0.70710678f, 1, 0.5f), INF_UNARY_GELU);
    begin_graph();
    expect_unary(long_gelu_tanh(3, 0.044715f, 0.79788456f), INF_UNARY_GELU_TANH);
    begin_graph();
    expect_unary(add_binary(INF_BINARY_MUL, add_unary(INF_UNARY_SIGMOID, x), x), INF_UNARY_SILU);
    // gelu_tanh with the inner expression x * c * (1 + 0.044715 x^2), which exporters write for
    // gelu_fast
    begin_graph();
    uint32_t inner =
        add_binary(INF_BINARY_MUL, add_binary(INF_BINARY_MUL, x, x), add_scalar(0.044715f));
    inner = add_binary(INF_BINARY_ADD, inner, add_scalar(1));
    inner =
        add_binary(INF_BINARY_MUL, inner, add_binary(INF_BINARY_MUL, add_scalar(0.7978845608f), x));
    inner = add_binary(INF_BINARY_ADD, add_unary(INF_UNARY_TANH, inner), add_scalar(1));
    inner = add_binary(INF_BINARY_MUL, add_scalar(0.5f), add_binary(INF_BINARY_MUL, inner, x));
    expect_unary(inner, INF_UNARY_GELU_TANH);
}

static uint32_t add_clip(uint32_t a, float max)
{
    uint32_t y = node(graph, INF_OP_CLIP, "clip", a);
    last_attrs(graph)->clip.min = 0;
    last_attrs(graph)->clip.max = max;
    return y;
}

// x * clip(x + offset, 0, max) / divisor
static uint32_t long_hard_swish(float offset, float max, float divisor)
{
    uint32_t y = add_clip(add_binary(INF_BINARY_ADD, x, add_scalar(offset)), max);
    return add_binary(INF_BINARY_DIV, add_binary(INF_BINARY_MUL, x, y), add_scalar(divisor));
}

// x * clip(x * scale + offset, 0, max)
static uint32_t long_hard_sigmoid(float scale, float offset, float max)
{
    uint32_t y = add_binary(INF_BINARY_MUL, x, add_scalar(scale));
    y = add_clip(add_binary(INF_BINARY_ADD, y, add_scalar(offset)), max);
    return add_binary(INF_BINARY_MUL, y, x);
}

Test(recognize, both_forms_of_hard_swish_become_one_node)
{
    begin_graph();
    expect_unary(long_hard_swish(3, 6, 6), INF_UNARY_HARD_SWISH);
    begin_graph();
    expect_unary(long_hard_sigmoid(0.16666667f, 0.5f, 1), INF_UNARY_HARD_SWISH);
    begin_graph();
    uint32_t y = add_unary(INF_UNARY_RELU6, add_binary(INF_BINARY_ADD, x, add_scalar(3)));
    y = add_binary(INF_BINARY_MUL, add_binary(INF_BINARY_MUL, y, add_scalar(0.16666667f)), x);
    expect_unary(y, INF_UNARY_HARD_SWISH);
}

Test(recognize, other_clips_of_a_factor_stay)
{
    static const float others[][3] = {{2, 6, 6}, {3, 5, 6}, {3, 6, 5}, {3, 6, 1}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(others); i++) {
        begin_graph();
        cr_assert_eq(count_after(long_hard_swish(others[i][0], others[i][1], others[i][2])), 4,
                     "form %zu", i);
        inf_graph_destroy(&graph);
    }
    // 0.2 is the slope that ONNX and Keras use for hard_sigmoid by default.
    static const float sigmoids[][3] = {
        {0.2f, 0.5f, 1}, {0.16666667f, 0.4f, 1}, {0.16666667f, 0.5f, 2}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(sigmoids); i++) {
        begin_graph();
        cr_assert_eq(count_after(long_hard_sigmoid(sigmoids[i][0], sigmoids[i][1], sigmoids[i][2])),
                     4, "form %zu", i);
        inf_graph_destroy(&graph);
    }
    begin_graph();
    uint32_t y = long_hard_swish(3, 6, 6);
    graph->nodes[1].attrs.clip.min = -1;
    cr_assert_eq(count_after(y), 4);
    inf_graph_destroy(&graph);
    begin_graph();
    y = long_hard_sigmoid(0.16666667f, 0.5f, 1);
    cr_assert_gt(count_after(add_binary(INF_BINARY_MUL, y, add_scalar(0.5f))), 1);
    inf_graph_destroy(&graph);
    begin_graph();
    uint32_t other = add_input(graph, "other", INF_DTYPE_F32, INF_SHAPE(2, 3, 4));
    y = add_clip(add_binary(INF_BINARY_ADD, other, add_scalar(3)), 6);
    y = add_binary(INF_BINARY_DIV, add_binary(INF_BINARY_MUL, x, y), add_scalar(6));
    cr_assert_eq(count_after(y), 4);
    inf_graph_destroy(&graph);
}

Test(recognize, other_constants_and_operands_stay)
{
    static const struct {
        float scale, one, half;
    } cases[] = {{0.7f, 1, 0.5f}, {0.70710678f, 1.01f, 0.5f}, {0.70710678f, 1, 0.25f}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        begin_graph();
        cr_assert_eq(count_after(long_gelu(cases[i].scale, cases[i].one, cases[i].half)), 5);
        inf_graph_destroy(&graph);
    }
    static const struct {
        float power, cubic, scale;
    } others[] = {{2, 0.044715f, 0.79788456f}, {3, 0.0447f, 0.79788456f}, {3, 0.044715f, 0.8f}};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(others); i++) {
        begin_graph();
        cr_assert_eq(count_after(long_gelu_tanh(others[i].power, others[i].cubic, others[i].scale)),
                     8);
        inf_graph_destroy(&graph);
    }
    begin_graph();
    uint32_t other = add_input(graph, "other", INF_DTYPE_F32, INF_SHAPE(2, 3, 4));
    cr_assert_eq(count_after(add_binary(INF_BINARY_MUL, add_unary(INF_UNARY_SIGMOID, other), x)),
                 2);
    inf_graph_destroy(&graph);
    // The product with the input `other` stays a node. The nodes before it become one node, silu.
    begin_graph();
    other = add_input(graph, "other", INF_DTYPE_F32, INF_SHAPE(2, 3, 4));
    uint32_t y = add_binary(INF_BINARY_MUL, x, add_unary(INF_UNARY_SIGMOID, x));
    cr_assert_eq(count_after(add_binary(INF_BINARY_MUL, y, other)), 2);
    inf_graph_destroy(&graph);
}

Test(recognize, parts_with_other_readers_stay_for_them)
{
    begin_graph();
    uint32_t gate = add_unary(INF_UNARY_SIGMOID, x);
    add_output(graph, "gate", gate);
    cr_assert_eq(count_after(add_binary(INF_BINARY_MUL, x, gate)), 2);
    cr_assert_eq(graph->nodes[1].attrs.unary.kind, INF_UNARY_SILU);
    inf_graph_destroy(&graph);
}

// Adds the nodes of top / sqrt(mean(squared^2) + 0.25), written in one of three forms.
static uint32_t divide_by_root(uint32_t top, uint32_t squared, int64_t axis, int form)
{
    uint32_t square = form == 0 ? add_binary(INF_BINARY_MUL, squared, squared)
                                : add_binary(INF_BINARY_POW, squared, add_scalar(2));
    uint32_t sum = add_binary(INF_BINARY_ADD, add_mean(square, axis, true), add_scalar(0.25f));
    if (form == 0)
        return add_binary(INF_BINARY_DIV, top, add_unary(INF_UNARY_SQRT, sum));
    uint32_t root = add_unary(form == 1 ? INF_UNARY_RSQRT : INF_UNARY_SQRT, sum);
    if (form == 2)
        root = add_binary(INF_BINARY_DIV, add_scalar(1), root);
    return add_binary(INF_BINARY_MUL, root, top);
}

static void expect_norm(uint32_t y, enum inf_normalize_kind kind, uint32_t inputs)
{
    cr_assert_eq(count_after(y), 1);
    const struct inf_node *norm = &graph->nodes[0];
    cr_assert_eq(norm->op, INF_OP_NORMALIZE);
    cr_assert_eq(norm->attrs.normalize.kind, kind);
    cr_assert_eq(norm->attrs.normalize.epsilon, 0.25f);
    cr_assert_eq(norm->attrs.normalize.axes.count, 1);
    cr_assert_eq(norm->attrs.normalize.axes.values[0], -1);
    cr_assert_eq(norm->inputs[0], x);
    cr_assert_eq(norm->input_count, inputs);
    inf_graph_destroy(&graph);
}

Test(recognize, normalisations_in_parts_become_one_node)
{
    for (int form = 0; form < 3; form++) {
        begin_graph();
        expect_norm(divide_by_root(x, x, -1, form), INF_NORMALIZE_RMS, 1);
        begin_graph();
        uint32_t y = divide_by_root(x, x, -1, form);
        uint32_t scale = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(4), NULL);
        expect_norm(add_binary(INF_BINARY_MUL, scale, y), INF_NORMALIZE_RMS, 2);
        begin_graph();
        uint32_t d = add_binary(INF_BINARY_SUB, x, add_mean(x, -1, true));
        y = divide_by_root(d, d, -1, form);
        scale = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(4), NULL);
        uint32_t offset = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(4), NULL);
        y = add_binary(INF_BINARY_ADD, add_binary(INF_BINARY_MUL, y, scale), offset);
        expect_norm(y, INF_NORMALIZE_STANDARD, 3);
    }
    // The difference x - mean(x) is computed by two nodes.
    begin_graph();
    uint32_t m = add_mean(x, -1, true);
    expect_norm(
        divide_by_root(add_binary(INF_BINARY_SUB, x, m), add_binary(INF_BINARY_SUB, x, m), -1, 0),
        INF_NORMALIZE_STANDARD, 1);
}

Test(recognize, other_norms_stay)
{
    // The mean that is subtracted is over another axis, so the result is no layer normalisation of
    // x, but the RMS normalisation of the difference.
    begin_graph();
    uint32_t d = add_binary(INF_BINARY_SUB, x, add_mean(x, 1, true));
    cr_assert_eq(count_after(divide_by_root(d, d, -1, 0)), 3);
    cr_assert_eq(graph->nodes[2].attrs.normalize.kind, INF_NORMALIZE_RMS);
    cr_assert_eq(graph->nodes[2].inputs[0], d);
    inf_graph_destroy(&graph);
    // x - mean(x) is divided by the root of the mean of x^2, which is no normalisation
    begin_graph();
    d = add_binary(INF_BINARY_SUB, x, add_mean(x, -1, true));
    cr_assert_gt(count_after(divide_by_root(d, x, -1, 0)), 5);
    inf_graph_destroy(&graph);
    // the scale has more dimensions than x, so the product with it stays a node
    begin_graph();
    uint32_t scale = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(5, 1, 1, 4), NULL);
    cr_assert_eq(count_after(add_binary(INF_BINARY_MUL, divide_by_root(x, x, -1, 0), scale)), 2);
    inf_graph_destroy(&graph);
    // the mean has lost its axis, so it broadcasts along another axis, and all five nodes stay
    begin_graph();
    x = add_input(graph, "square", INF_DTYPE_F32, INF_SHAPE(4, 4));
    uint32_t sum = add_binary(INF_BINARY_ADD, add_mean(add_binary(INF_BINARY_MUL, x, x), -1, false),
                              add_scalar(0.25f));
    cr_assert_eq(count_after(add_binary(INF_BINARY_DIV, x, add_unary(INF_UNARY_SQRT, sum))), 5);
    inf_graph_destroy(&graph);
}

// --- padding ---

// Returns concat(front, x, back) over the last axis, where x is [2, 3, 4] and the constants, whose
// last dimension is 2, have these elements.
static uint32_t add_joined(const float front[12], const float back[12])
{
    uint32_t inputs[3], count = 0;
    if (front != NULL)
        inputs[count++] = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(2, 3, 2), front);
    inputs[count++] = x;
    if (back != NULL)
        inputs[count++] = add_constant(graph, INF_DTYPE_F32, INF_SHAPE(2, 3, 2), back);
    uint32_t y = add_node(graph, INF_OP_CONCAT, "concat", inputs, count, 1);
    last_attrs(graph)->concat.axis = -1;
    return y;
}

static void fill_elements(float elements[12], float number)
{
    for (int i = 0; i < 12; i++)
        elements[i] = number;
}

static void expect_pad(uint32_t y, int64_t before, int64_t behind, float number)
{
    int64_t amounts[6];
    uint32_t count;
    cr_assert_eq(count_after(y), 1);
    const struct inf_node *pad = &graph->nodes[0];
    cr_assert_eq(pad->op, INF_OP_PAD);
    cr_assert_eq(pad->attrs.pad.mode, INF_PAD_CONSTANT);
    cr_assert_eq(pad->inputs[0], x);
    cr_assert(inf_graph_const_ints(graph, pad->inputs[1], amounts, 6, &count) && count == 6);
    for (int i = 0; i < 4; i++)
        cr_assert_eq(amounts[i], 0);
    cr_assert_eq(amounts[4], before);
    cr_assert_eq(amounts[5], behind);
    cr_assert_eq(memcmp(data_of(graph, pad->inputs[2]), &number, sizeof number), 0);
    inf_graph_destroy(&graph);
}

Test(recognize, constants_of_one_number_beside_a_tensor_become_padding)
{
    float number[12];
    static const float numbers[] = {0, -0.0f, 2.5f};
    for (size_t i = 0; i < INF_ARRAY_LENGTH(numbers); i++) {
        fill_elements(number, numbers[i]);
        begin_graph();
        expect_pad(add_joined(NULL, number), 0, 2, numbers[i]);
        begin_graph();
        expect_pad(add_joined(number, NULL), 2, 0, numbers[i]);
        begin_graph();
        expect_pad(add_joined(number, number), 2, 2, numbers[i]);
    }
}

// Asserts that the pass leaves the concatenation.
static void expect_concat(uint32_t y)
{
    cr_assert_eq(count_after(y), 1);
    cr_assert_eq(graph->nodes[0].op, INF_OP_CONCAT);
    inf_graph_destroy(&graph);
}

Test(recognize, other_concatenations_stay)
{
    float zeros[12], last[12], negative[12];
    fill_elements(zeros, 0);
    fill_elements(last, 0);
    fill_elements(negative, -0.0f);
    last[11] = 1;
    begin_graph();
    expect_concat(add_joined(NULL, last));
    begin_graph();
    expect_concat(add_joined(zeros, negative));
    begin_graph();
    expect_concat(add_joined(NULL, NULL));
    begin_graph();
    uint32_t y = node(graph, INF_OP_CONCAT, "two", x, x,
                      add_constant(graph, INF_DTYPE_F32, INF_SHAPE(2, 3, 2), zeros));
    last_attrs(graph)->concat.axis = -1;
    expect_concat(y);
    // A constant without elements.
    begin_graph();
    y = node(graph, INF_OP_CONCAT, "none", x,
             add_constant(graph, INF_DTYPE_F32, INF_SHAPE(2, 3, 0), NULL));
    last_attrs(graph)->concat.axis = -1;
    expect_concat(y);
    // An unknown dimension, which the constant demands to be 2.
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(-1, 3, 4));
    expect_concat(add_joined(NULL, zeros));
}
