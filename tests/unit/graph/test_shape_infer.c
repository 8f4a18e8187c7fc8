// SPDX-License-Identifier: Apache-2.0
// Inference of shapes and types for element-wise operators, reductions, windows and matrices, and
// the operands that inference refuses.
#include "backends/graph/shape/infer.h"

#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "tests/unit/graph/graph_kit.h"

// Runs inference on the graph and destroys the graph. Returns the type and shape of `value`, such
// as "FP32 [1,2]", or the name of the error code.
static const char *infer_value(struct inf_graph *graph, uint32_t value)
{
    static char text[INF_SHAPE_TEXT_SIZE + 16];
    char shape[INF_SHAPE_TEXT_SIZE];
    struct inf_error err = {0};
    enum inf_code code = inf_shape_infer(graph, &err);
    if (code == INF_OK)
        snprintf(text, sizeof text, "%s %s", inf_dtype_name(graph->values[value].dtype),
                 inf_shape_print(&graph->values[value].shape, shape));
    else
        snprintf(text, sizeof text, "%s", inf_code_name(code));
    if (code != INF_OK)
        cr_assert_not_null(strstr(err.text, "node '"), "the text names the node: %s", err.text);
    inf_graph_destroy(&graph);
    return text;
}

#define INVALID     "INVALID_ARGUMENT"
#define UNSUPPORTED "UNIMPLEMENTED"

// --- shapes of element-wise operators ---

// Returns the inferred type and shape of op's result, as text, for two FP32 inputs with these
// shapes.
static const char *infer_pair(enum inf_op op, struct inf_shape a, struct inf_shape b)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "a", INF_DTYPE_F32, a);
    return infer_value(graph, node(graph, op, "n", x, add_input(graph, "b", INF_DTYPE_F32, b)));
}

Test(infer, element_wise_operators_broadcast)
{
    cr_assert_str_eq(infer_pair(INF_OP_BINARY, INF_SHAPE(5, 1, 4), INF_SHAPE(3, 1)),
                     "FP32 [5,3,4]");
    cr_assert_str_eq(infer_pair(INF_OP_BINARY, INF_SHAPE(2, 3), INF_SHAPE(2)), INVALID);
    cr_assert_str_eq(infer_pair(INF_OP_BINARY, INF_SHAPE(-1, 3), INF_SHAPE(7, 1)), "FP32 [7,3]");
    cr_assert_str_eq(infer_pair(INF_OP_BINARY, INF_SHAPE(-1, 3), SCALAR), "FP32 [?,3]");
    cr_assert_str_eq(infer_pair(INF_OP_BINARY, ANY, INF_SHAPE(3)), "FP32 [*]");
    cr_assert_str_eq(infer_pair(INF_OP_BINARY, INF_SHAPE(0, 3), INF_SHAPE(1, 3)), "FP32 [0,3]");
    cr_assert_str_eq(infer_pair(INF_OP_COMPARE, INF_SHAPE(2, 1), INF_SHAPE(2)), "BOOL [2,2]");
}

Test(infer, prelu_stretches_alpha_only)
{
    cr_assert_str_eq(infer_pair(INF_OP_PRELU, INF_SHAPE(1, 4, 4, 8), INF_SHAPE(8)),
                     "FP32 [1,4,4,8]");
    cr_assert_str_eq(infer_pair(INF_OP_PRELU, INF_SHAPE(1, 4, 4, 8), INF_SHAPE(1, 1, 8)),
                     "FP32 [1,4,4,8]");
    cr_assert_str_eq(infer_pair(INF_OP_PRELU, INF_SHAPE(1, 4, 1, 8), INF_SHAPE(4, 8)), INVALID);
    cr_assert_str_eq(infer_pair(INF_OP_PRELU, INF_SHAPE(8), INF_SHAPE(1, 8)), INVALID);
    cr_assert_str_eq(infer_pair(INF_OP_PRELU, INF_SHAPE(1, -1), INF_SHAPE(-1, 8)), "FP32 [1,8]");
    cr_assert_str_eq(infer_pair(INF_OP_PRELU, ANY, INF_SHAPE(8)), "FP32 [*]");
}

Test(infer, select_wants_a_bool_first)
{
    struct inf_graph *graph = new_graph();
    uint32_t c = add_input(graph, "c", INF_DTYPE_BOOL, INF_SHAPE(4, 1));
    uint32_t a = add_input(graph, "a", INF_DTYPE_I32, INF_SHAPE(3));
    uint32_t b = add_input(graph, "b", INF_DTYPE_I32, SCALAR);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_SELECT, "s", c, a, b)), "INT32 [4,3]");
    graph = new_graph();
    a = add_input(graph, "a", INF_DTYPE_I32, INF_SHAPE(3));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_SELECT, "s", a, a, a)), INVALID);
}

// Returns the inferred type and shape of a unary node's result, as text.
static const char *infer_unary(enum inf_unary_kind kind, enum inf_dtype dtype)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = node(graph, INF_OP_UNARY, "u", add_input(graph, "x", dtype, INF_SHAPE(-1, 3)));
    last_attrs(graph)->unary.kind = kind;
    return infer_value(graph, y);
}

Test(infer, operators_refuse_types_they_are_not_defined_for)
{
    cr_assert_str_eq(infer_unary(INF_UNARY_NEG, INF_DTYPE_I32), "INT32 [?,3]");
    cr_assert_str_eq(infer_unary(INF_UNARY_NEG, INF_DTYPE_BOOL), UNSUPPORTED);
    cr_assert_str_eq(infer_unary(INF_UNARY_SIGMOID, INF_DTYPE_F16), "FP16 [?,3]");
    cr_assert_str_eq(infer_unary(INF_UNARY_SIGMOID, INF_DTYPE_I32), UNSUPPORTED);
    cr_assert_str_eq(infer_unary(INF_UNARY_LOGICAL_NOT, INF_DTYPE_BOOL), "BOOL [?,3]");
    cr_assert_str_eq(infer_unary(INF_UNARY_LOGICAL_NOT, INF_DTYPE_F32), UNSUPPORTED);
    cr_assert_str_eq(infer_unary(INF_UNARY_NEG, INF_DTYPE_NONE), INVALID);
}

Test(infer, operand_types_must_agree)
{
    struct inf_graph *graph = new_graph();
    uint32_t a = add_input(graph, "a", INF_DTYPE_F32, INF_SHAPE(3));
    uint32_t b = add_input(graph, "b", INF_DTYPE_I32, INF_SHAPE(3));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_BINARY, "n", a, b)), INVALID);
    graph = new_graph();
    a = add_input(graph, "a", INF_DTYPE_F32, INF_SHAPE(3));
    b = add_input(graph, "b", INF_DTYPE_F32, INF_SHAPE(3));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_GATHER, "n", a, b)), INVALID);
    graph = new_graph();
    a = add_input(graph, "a", INF_DTYPE_F32, INF_SHAPE(3));
    b = add_input(graph, "b", INF_DTYPE_I64, INF_SHAPE(2));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_GATHER, "n", a, b)), "FP32 [2]");
}

// Infers y of matmul_blocks with 4 bits and blocks of 16, whose weights are [3,2,8] unless changed:
// two blocks of three columns. `changed` is the operand that has `shape` instead of its own.
static const char *infer_blocks(int32_t bits, uint32_t changed, struct inf_shape shape)
{
    struct inf_shape shapes[] = {INF_SHAPE(5, 20), INF_SHAPE(3, 2, 8), INF_SHAPE(3, 2),
                                 INF_SHAPE(3, 4), INF_SHAPE(3)};
    static const enum inf_dtype dtypes[] = {INF_DTYPE_F32, INF_DTYPE_U8, INF_DTYPE_F32,
                                            INF_DTYPE_U8, INF_DTYPE_F32};
    struct inf_graph *graph = new_graph();
    uint32_t inputs[5];
    if (changed < 5)
        shapes[changed] = shape;
    for (uint32_t i = 0; i < 5; i++)
        inputs[i] =
            add_input(graph, (const char *[]){"x", "w", "s", "z", "b"}[i], dtypes[i], shapes[i]);
    uint32_t y = add_node(graph, INF_OP_MATMUL_BLOCKS, "n", inputs, 5, 1);
    last_attrs(graph)->matmul_blocks.bits = bits;
    last_attrs(graph)->matmul_blocks.block = 16;
    return infer_value(graph, y);
}

Test(infer, weights_in_blocks_fit_their_scales_and_zero_points)
{
    cr_assert_str_eq(infer_blocks(4, 5, SCALAR), "FP32 [5,3]");
    cr_assert_str_eq(infer_blocks(4, 0, INF_SHAPE(2, 7, 32)), "FP32 [2,7,3]");
    cr_assert_str_eq(infer_blocks(4, 0, INF_SHAPE(17)), "FP32 [3]");
    cr_assert_str_eq(infer_blocks(4, 0, ANY), "FP32 [*]");
    cr_assert_str_eq(infer_blocks(4, 0, SCALAR), INVALID);
    cr_assert_str_eq(infer_blocks(4, 0, INF_SHAPE(5, 33)), INVALID);
    cr_assert_str_eq(infer_blocks(4, 0, INF_SHAPE(5, 16)), INVALID);
    cr_assert_str_eq(infer_blocks(4, 1, INF_SHAPE(3, 16)), INVALID);
    cr_assert_str_eq(infer_blocks(4, 1, INF_SHAPE(3, 2, 7)), INVALID);
    cr_assert_str_eq(infer_blocks(4, 2, INF_SHAPE(6)), "FP32 [5,3]");
    cr_assert_str_eq(infer_blocks(4, 2, INF_SHAPE(5)), INVALID);
    cr_assert_str_eq(infer_blocks(4, 3, INF_SHAPE(3, 2)), INVALID);
    cr_assert_str_eq(infer_blocks(4, 4, INF_SHAPE(2)), INVALID);
    cr_assert_str_eq(infer_blocks(3, 5, SCALAR), INVALID);
    cr_assert_str_eq(infer_blocks(8, 5, SCALAR), INVALID);
}

Test(infer, cast_and_arg_have_the_type_they_name)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = node(graph, INF_OP_CAST, "c", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(3)));
    last_attrs(graph)->cast.dtype = INF_DTYPE_U8;
    cr_assert_str_eq(infer_value(graph, y), "UINT8 [3]");
    graph = new_graph();
    y = node(graph, INF_OP_CAST, "c", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(3)));
    last_attrs(graph)->cast.dtype = INF_DTYPE_NONE;
    cr_assert_str_eq(infer_value(graph, y), INVALID);
    graph = new_graph();
    y = node(graph, INF_OP_ARG, "c", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(3, 4)));
    last_attrs(graph)->arg.axis = -2;
    last_attrs(graph)->arg.dtype = INF_DTYPE_I64;
    cr_assert_str_eq(infer_value(graph, y), "INT64 [4]");
    graph = new_graph();
    y = node(graph, INF_OP_ARG, "c", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(3, 4)));
    last_attrs(graph)->arg.dtype = INF_DTYPE_F32;
    cr_assert_str_eq(infer_value(graph, y), INVALID);
}

// --- shapes of reductions ---

static const char *infer_reduce(struct inf_shape shape, struct inf_ints axes, bool keep_dims)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = node(graph, INF_OP_REDUCE, "r", add_input(graph, "x", INF_DTYPE_F32, shape));
    last_attrs(graph)->reduce.axes = axes;
    last_attrs(graph)->reduce.keep_dims = keep_dims;
    return infer_value(graph, y);
}

#define AXES(...)                                                                                  \
    ((struct inf_ints){.count = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),     \
                       .values = {__VA_ARGS__}})
#define NO_AXES ((struct inf_ints){0})

Test(infer, reductions_drop_or_keep_axes)
{
    cr_assert_str_eq(infer_reduce(INF_SHAPE(2, 3, 4), AXES(1), false), "FP32 [2,4]");
    cr_assert_str_eq(infer_reduce(INF_SHAPE(2, 3, 4), AXES(-1, 0), true), "FP32 [1,3,1]");
    cr_assert_str_eq(infer_reduce(INF_SHAPE(2, 3, 4), NO_AXES, false), "FP32 []");
    cr_assert_str_eq(infer_reduce(INF_SHAPE(2, 3, 4), NO_AXES, true), "FP32 [1,1,1]");
    cr_assert_str_eq(infer_reduce(INF_SHAPE(-1, 3, -1), AXES(0), false), "FP32 [3,?]");
    cr_assert_str_eq(infer_reduce(ANY, NO_AXES, false), "FP32 []");
    cr_assert_str_eq(infer_reduce(ANY, AXES(1), false), "FP32 [*]");
    cr_assert_str_eq(infer_reduce(INF_SHAPE(2, 3), AXES(2), false), INVALID);
    cr_assert_str_eq(infer_reduce(INF_SHAPE(2, 3), AXES(INT64_MIN), false), INVALID);
    cr_assert_str_eq(infer_reduce(INF_SHAPE(2, 3), AXES(1, -1), false), INVALID);
    cr_assert_str_eq(infer_reduce(SCALAR, AXES(0), false), INVALID);
}

Test(infer, an_extreme_of_nothing_is_refused)
{
    struct inf_graph *graph = new_graph();
    uint32_t y =
        node(graph, INF_OP_ARG, "a", add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(0, 4)));
    cr_assert_str_eq(infer_value(graph, y), INVALID);
    graph = new_graph();
    y = node(graph, INF_OP_SOFTMAX, "s", add_input(graph, "x", INF_DTYPE_F32, SCALAR));
    cr_assert_str_eq(infer_value(graph, y), INVALID);
}

// --- number of windows along an axis, and their padding ---

struct window_case {
    int64_t input, kernel;
    int32_t stride, dilation;
    enum inf_padding padding;
    int32_t before, after;         // the padding attributes, used by EXPLICIT
    int64_t output;                // expected size; -1 if no window fits
    int32_t pad_before, pad_after; // the expected padding
};

// Expected values follow TensorFlow's rule: SAME gives ceil(input / stride) windows, and an odd
// padding element is added at the end.
static const struct window_case window_cases[] = {
    {5, 3, 2, 1, INF_PADDING_SAME, 0, 0, 3, 1, 1},
    {224, 3, 2, 1, INF_PADDING_SAME, 0, 0, 112, 0, 1},
    {7, 3, 1, 1, INF_PADDING_SAME, 0, 0, 7, 1, 1},
    {6, 3, 2, 1, INF_PADDING_SAME, 0, 0, 3, 0, 1},
    {5, 2, 1, 1, INF_PADDING_SAME, 0, 0, 5, 0, 1},
    {4, 1, 3, 1, INF_PADDING_SAME, 0, 0, 2, 0, 0},
    {10, 3, 1, 2, INF_PADDING_SAME, 0, 0, 10, 2, 2},
    {1, 7, 5, 1, INF_PADDING_SAME, 0, 0, 1, 3, 3},
    {9, 5, 4, 1, INF_PADDING_SAME, 0, 0, 3, 2, 2},
    {11, 4, 3, 1, INF_PADDING_SAME, 0, 0, 4, 1, 1},
    {7, 2, 3, 1, INF_PADDING_SAME, 0, 0, 3, 0, 1},
    {13, 3, 2, 3, INF_PADDING_SAME, 0, 0, 7, 3, 3},
    {224, 3, 2, 1, INF_PADDING_VALID, 9, 9, 111, 0, 0},
    {7, 7, 1, 1, INF_PADDING_VALID, 0, 0, 1, 0, 0},
    {5, 3, 2, 1, INF_PADDING_VALID, 0, 0, 2, 0, 0},
    {10, 3, 1, 2, INF_PADDING_VALID, 0, 0, 6, 0, 0},
    {2, 3, 1, 1, INF_PADDING_VALID, 0, 0, -1, 0, 0},
    {224, 7, 2, 1, INF_PADDING_EXPLICIT, 3, 3, 112, 3, 3},
    {6, 3, 2, 1, INF_PADDING_EXPLICIT, 0, 1, 3, 0, 1},
    {1, 3, 1, 1, INF_PADDING_EXPLICIT, 1, 0, -1, 0, 0},
    {1, 3, 65535, 1, INF_PADDING_EXPLICIT, 2, 0, 1, 2, 0},
    {0, 3, 1, 1, INF_PADDING_EXPLICIT, 1, 2, 1, 1, 2},
};

// Makes a conv2d whose width has the sizes of the case and whose height is 1.
static struct inf_graph *window_graph(const struct window_case *c)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 1, c->input, 1));
    add_output(graph, "y",
               node(graph, INF_OP_CONV2D, "conv", x,
                    add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1, c->kernel, 1, 4), NULL)));
    struct inf_attrs_conv2d *attrs = &last_attrs(graph)->conv2d;
    attrs->stride_w = c->stride;
    attrs->dilation_w = c->dilation;
    attrs->padding = c->padding;
    attrs->pad_left = c->before;
    attrs->pad_right = c->after;
    return graph;
}

Test(infer, windows_are_those_of_tensorflow)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(window_cases); i++) {
        const struct window_case *c = &window_cases[i];
        struct inf_graph *graph = window_graph(c);
        enum inf_code code = inf_shape_infer(graph, NULL);
        if (c->output < 0) {
            cr_assert_eq(code, INF_INVALID, "case %zu", i);
            inf_graph_destroy(&graph);
            continue;
        }
        cr_assert_eq(code, INF_OK, "case %zu", i);
        cr_assert(inf_shape_equal(&graph->values[graph->outputs[0].value].shape,
                                  &INF_SHAPE(2, 1, c->output, 4)),
                  "case %zu", i);
        struct inf_window height;
        struct inf_window width;
        inf_node_windows(graph, &graph->nodes[0], &height, &width);
        cr_assert_eq(height.output, 1);
        cr_assert_eq(height.kernel, 1);
        cr_assert_eq(width.input, c->input);
        cr_assert_eq(width.output, c->output);
        cr_assert_eq(width.kernel, c->kernel);
        cr_assert_eq(width.stride, c->stride);
        cr_assert_eq(width.dilation, c->dilation);
        cr_assert_eq(width.pad_before, c->pad_before, "case %zu", i);
        cr_assert_eq(width.pad_after, c->pad_after, "case %zu", i);
        inf_graph_destroy(&graph);
    }
}

// --- shapes of convolutions, pooling and matrix products ---

static const char *infer_conv(struct inf_shape x, struct inf_shape filter, int32_t groups)
{
    struct inf_graph *graph = new_graph();
    uint32_t a = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t y = node(graph, INF_OP_CONV2D, "c", a, add_input(graph, "f", INF_DTYPE_F32, filter));
    last_attrs(graph)->conv2d.groups = groups;
    return infer_value(graph, y);
}

Test(infer, conv2d_checks_channels_and_groups)
{
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, 3), INF_SHAPE(3, 2, 3, 8), 1), "FP32 [1,3,5,8]");
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, 4), INF_SHAPE(3, 2, 2, 8), 2), "FP32 [1,3,5,8]");
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, 4), INF_SHAPE(3, 2, 4, 8), 2), INVALID);
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, 5), INF_SHAPE(3, 2, 2, 8), 2), INVALID);
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, 4), INF_SHAPE(3, 2, 2, 7), 2), INVALID);
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, 3), INF_SHAPE(3, 2, 3, 8), 0), INVALID);
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, 3), INF_SHAPE(0, 2, 3, 8), 1), INVALID);
    cr_assert_str_eq(infer_conv(INF_SHAPE(5, 6, 3), INF_SHAPE(3, 2, 3, 8), 1), INVALID);
    cr_assert_str_eq(infer_conv(INF_SHAPE(0, 5, 6, 3), INF_SHAPE(3, 2, 3, 8), 1), "FP32 [0,3,5,8]");
}

Test(infer, conv2d_knows_what_can_be_known)
{
    cr_assert_str_eq(infer_conv(INF_SHAPE(-1, -1, 6, 3), INF_SHAPE(3, 2, 3, 8), 1),
                     "FP32 [?,?,5,8]");
    cr_assert_str_eq(infer_conv(ANY, INF_SHAPE(3, 2, 3, 8), 1), "FP32 [?,?,?,8]");
    cr_assert_str_eq(infer_conv(INF_SHAPE(1, 5, 6, -1), INF_SHAPE(3, 2, 3, -1), 1),
                     "FP32 [1,3,5,?]");
    cr_assert_str_eq(infer_conv(ANY, ANY, 3), "FP32 [?,?,?,?]");
}

Test(infer, every_stride_and_group_out_of_range_is_refused)
{
    static const int32_t bad[] = {0, -1, INT32_MIN, INT32_MAX};
    const struct inf_op_info *info = inf_op_info(INF_OP_CONV2D);
    for (size_t i = 0; i < info->attr_count; i++) {
        if (info->attrs[i].type == INF_ATTR_TYPE_FLOAT)
            continue;
        for (size_t j = 0; j < INF_ARRAY_LENGTH(bad); j++) {
            if (bad[j] >= info->attrs[i].min && bad[j] <= info->attrs[i].max)
                continue;
            struct inf_graph *graph = new_graph();
            uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 9, 9, 2));
            uint32_t f = add_input(graph, "f", INF_DTYPE_F32, INF_SHAPE(3, 3, 2, 2));
            uint32_t y = node(graph, INF_OP_CONV2D, "c", x, f);
            memcpy((char *)last_attrs(graph) + info->attrs[i].offset, &bad[j], sizeof bad[j]);
            cr_assert_str_eq(infer_value(graph, y), INVALID, "%s = %d", info->attrs[i].name,
                             bad[j]);
        }
    }
}

Test(infer, bias_and_alpha_are_one_for_each_channel)
{
    for (int variant = 0; variant < 6; variant++) {
        struct inf_graph *graph = new_graph();
        uint32_t inputs[] = {add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 2)),
                             add_input(graph, "f", INF_DTYPE_F32, INF_SHAPE(1, 1, 2, 8)),
                             add_input(graph, "b", INF_DTYPE_F32, INF_SHAPE(variant == 1 ? 7 : 8)),
                             add_input(graph, "a", INF_DTYPE_F32, INF_SHAPE(variant == 2 ? 2 : 8))};
        if (variant == 5)
            inputs[2] = INF_VALUE_NONE;
        uint32_t y = add_node(graph, INF_OP_CONV2D, "c", inputs, variant == 3 ? 3 : 4, 1);
        if (variant != 4)
            last_attrs(graph)->conv2d.activation = INF_ACTIVATION_PRELU;
        bool right = variant == 0 || variant == 5;
        cr_assert_str_eq(infer_value(graph, y), right ? "FP32 [1,4,4,8]" : INVALID, "variant %d",
                         variant);
    }
}

static const char *infer_depthwise(struct inf_shape x, struct inf_shape filter)
{
    struct inf_graph *graph = new_graph();
    uint32_t a = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t f = add_input(graph, "f", INF_DTYPE_F32, filter);
    return infer_value(graph, node(graph, INF_OP_DEPTHWISE_CONV2D, "d", a, f));
}

Test(infer, depthwise_multiplies_channels)
{
    cr_assert_str_eq(infer_depthwise(INF_SHAPE(1, 5, 5, 3), INF_SHAPE(3, 3, 3, 2)),
                     "FP32 [1,3,3,6]");
    cr_assert_str_eq(infer_depthwise(INF_SHAPE(1, 5, 5, 4), INF_SHAPE(3, 3, 3, 2)), INVALID);
    cr_assert_str_eq(infer_depthwise(INF_SHAPE(1, 5, 5, -1), INF_SHAPE(3, 3, 3, 2)),
                     "FP32 [1,3,3,6]");
    cr_assert_str_eq(infer_depthwise(INF_SHAPE(1, 5, 5, -1), INF_SHAPE(3, 3, -1, 2)),
                     "FP32 [1,3,3,?]");
    cr_assert_str_eq(infer_depthwise(INF_SHAPE(1, 1, 1, 1 << 30), INF_SHAPE(1, 1, 1 << 30, 2)),
                     INVALID);
}

static const char *infer_transposed(struct inf_shape x, struct inf_shape filter, uint32_t *want,
                                    enum inf_padding padding, int32_t stride)
{
    struct inf_graph *graph = new_graph();
    uint32_t a = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t f = add_input(graph, "f", INF_DTYPE_F32, filter);
    uint32_t size = want == NULL ? add_input(graph, "s", INF_DTYPE_I32, INF_SHAPE(4))
                                 : ints(graph, (int32_t)want[0], (int32_t)want[1], (int32_t)want[2],
                                        (int32_t)want[3]);
    uint32_t y = node(graph, INF_OP_CONV2D_TRANSPOSE, "t", a, f, size);
    last_attrs(graph)->conv2d_transpose.padding = padding;
    last_attrs(graph)->conv2d_transpose.stride_h = stride;
    last_attrs(graph)->conv2d_transpose.stride_w = stride;
    return infer_value(graph, y);
}

Test(infer, a_transposed_convolution_must_lead_back)
{
    struct inf_shape x = INF_SHAPE(1, 4, 4, 8);
    struct inf_shape filter = INF_SHAPE(3, 3, 5, 8);
    uint32_t even[] = {1, 8, 8, 5};
    uint32_t odd[] = {1, 7, 7, 5};
    uint32_t valid[] = {1, 9, 9, 5};
    uint32_t wrong[] = {1, 6, 6, 5};
    uint32_t channels[] = {1, 8, 8, 6};
    uint32_t open[] = {UINT32_MAX, 8, 8, UINT32_MAX}; // UINT32_MAX is -1: any size
    cr_assert_str_eq(infer_transposed(x, filter, even, INF_PADDING_SAME, 2), "FP32 [1,8,8,5]");
    cr_assert_str_eq(infer_transposed(x, filter, odd, INF_PADDING_SAME, 2), "FP32 [1,7,7,5]");
    cr_assert_str_eq(infer_transposed(x, filter, valid, INF_PADDING_VALID, 2), "FP32 [1,9,9,5]");
    cr_assert_str_eq(infer_transposed(x, filter, wrong, INF_PADDING_SAME, 2), INVALID);
    cr_assert_str_eq(infer_transposed(x, filter, channels, INF_PADDING_SAME, 2), INVALID);
    cr_assert_str_eq(infer_transposed(x, filter, open, INF_PADDING_SAME, 2), "FP32 [1,8,8,5]");
    cr_assert_str_eq(infer_transposed(x, filter, NULL, INF_PADDING_SAME, 2), "FP32 [1,?,?,5]");
    cr_assert_str_eq(infer_transposed(ANY, filter, even, INF_PADDING_SAME, 2), "FP32 [1,8,8,5]");
}

Test(infer, a_transposed_window_is_that_of_its_convolution)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 3, 8));
    uint32_t f = add_input(graph, "f", INF_DTYPE_F32, INF_SHAPE(3, 2, 5, 8));
    node(graph, INF_OP_CONV2D_TRANSPOSE, "t", x, f, ints(graph, 1, 8, 6, 5));
    last_attrs(graph)->conv2d_transpose.padding = INF_PADDING_SAME;
    last_attrs(graph)->conv2d_transpose.stride_h = 2;
    last_attrs(graph)->conv2d_transpose.stride_w = 2;
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    struct inf_window height;
    struct inf_window width;
    inf_node_windows(graph, &graph->nodes[0], &height, &width);
    cr_assert_eq(height.input, 8);
    cr_assert_eq(height.output, 4);
    cr_assert_eq(height.pad_before, 0);
    cr_assert_eq(height.pad_after, 1);
    cr_assert_eq(width.input, 6);
    cr_assert_eq(width.output, 3);
    cr_assert_eq(width.pad_before + width.pad_after, 0);
    inf_graph_destroy(&graph);
}

static const char *infer_matmul(struct inf_shape a, struct inf_shape b, bool transpose_a,
                                bool transpose_b)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "a", INF_DTYPE_F32, a);
    uint32_t y = node(graph, INF_OP_MATMUL, "m", x, add_input(graph, "b", INF_DTYPE_F32, b));
    last_attrs(graph)->matmul.transpose_a = transpose_a;
    last_attrs(graph)->matmul.transpose_b = transpose_b;
    return infer_value(graph, y);
}

Test(infer, matrices_meet_at_their_depth)
{
    cr_assert_str_eq(infer_matmul(INF_SHAPE(2, 3), INF_SHAPE(3, 5), false, false), "FP32 [2,5]");
    cr_assert_str_eq(infer_matmul(INF_SHAPE(3, 2), INF_SHAPE(3, 5), true, false), "FP32 [2,5]");
    cr_assert_str_eq(infer_matmul(INF_SHAPE(2, 3), INF_SHAPE(5, 3), false, true), "FP32 [2,5]");
    cr_assert_str_eq(infer_matmul(INF_SHAPE(3, 2), INF_SHAPE(5, 3), true, true), "FP32 [2,5]");
    cr_assert_str_eq(infer_matmul(INF_SHAPE(2, 3), INF_SHAPE(5, 3), false, false), INVALID);
    cr_assert_str_eq(infer_matmul(INF_SHAPE(7, 1, 2, 3), INF_SHAPE(4, 3, 5), false, false),
                     "FP32 [7,4,2,5]");
    cr_assert_str_eq(infer_matmul(INF_SHAPE(7, 2, 3), INF_SHAPE(4, 3, 5), false, false), INVALID);
    cr_assert_str_eq(infer_matmul(INF_SHAPE(-1, 3), INF_SHAPE(3, -1), false, false), "FP32 [?,?]");
    cr_assert_str_eq(infer_matmul(INF_SHAPE(3), INF_SHAPE(3, 5), false, false), INVALID);
    cr_assert_str_eq(infer_matmul(ANY, INF_SHAPE(3, 5), false, false), "FP32 [*]");
}

static const char *infer_pool(struct inf_shape x, int32_t kernel, int32_t stride,
                              enum inf_padding padding, int32_t pad)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = node(graph, INF_OP_POOL2D, "p", add_input(graph, "x", INF_DTYPE_F32, x));
    struct inf_attrs_pool2d *attrs = &last_attrs(graph)->pool2d;
    attrs->kernel_h = attrs->kernel_w = kernel;
    attrs->stride_h = attrs->stride_w = stride;
    attrs->padding = padding;
    attrs->pad_top = attrs->pad_left = pad;
    return infer_value(graph, y);
}

Test(infer, pools_never_look_at_padding_only)
{
    cr_assert_str_eq(infer_pool(INF_SHAPE(1, 5, 7, 3), 2, 2, INF_PADDING_VALID, 0),
                     "FP32 [1,2,3,3]");
    cr_assert_str_eq(infer_pool(INF_SHAPE(1, 5, 7, 3), 2, 2, INF_PADDING_SAME, 0),
                     "FP32 [1,3,4,3]");
    cr_assert_str_eq(infer_pool(INF_SHAPE(1, 5, 7, 3), 3, 1, INF_PADDING_EXPLICIT, 2),
                     "FP32 [1,5,7,3]");
    cr_assert_str_eq(infer_pool(INF_SHAPE(1, 5, 7, 3), 3, 1, INF_PADDING_EXPLICIT, 3), INVALID);
    cr_assert_str_eq(infer_pool(INF_SHAPE(1, 0, 7, 3), 1, 1, INF_PADDING_SAME, 0),
                     "FP32 [1,0,7,3]");
    cr_assert_str_eq(infer_pool(INF_SHAPE(1, 1, 1, 3), 2, 1, INF_PADDING_VALID, 0), INVALID);
    cr_assert_str_eq(infer_pool(INF_SHAPE(-1, -1, 7, 3), 2, 2, INF_PADDING_SAME, 0),
                     "FP32 [?,?,4,3]");
}

Test(infer, batch_norm_and_resize)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 2));
    uint32_t p = floats(graph, INF_SHAPE(2), 1, 2);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_BATCH_NORM, "b", x, p, p, p, p)),
                     "FP32 [1,4,4,2]");
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    p = floats(graph, INF_SHAPE(2), 1, 2);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_BATCH_NORM, "b", x, p, p, p, p)),
                     INVALID);
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(-1, 4, 4, 3));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESIZE, "r", x, ints(graph, 9, 1))),
                     "FP32 [?,9,1,3]");
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESIZE, "r", x, ints(graph, 0, 1))),
                     INVALID);
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    uint32_t size = add_input(graph, "s", INF_DTYPE_I32, INF_SHAPE(2));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESIZE, "r", x, size)),
                     "FP32 [1,?,?,3]");
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, 4, 4, 3));
    uint32_t y = node(graph, INF_OP_RESIZE, "r", x, ints(graph, 2, 2));
    last_attrs(graph)->resize.align_corners = true;
    last_attrs(graph)->resize.half_pixel_centers = true;
    cr_assert_str_eq(infer_value(graph, y), INVALID);
}

// --- giving the inputs of a graph concrete shapes ---

Test(infer, bound_shapes_must_fit_what_is_declared)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err;
    uint32_t x = add_input(graph, "image", INF_DTYPE_F32, INF_SHAPE(-1, 8, 8, 3));
    uint32_t y = node(graph, INF_OP_REDUCE, "mean", x);
    last_attrs(graph)->reduce.axes = AXES(1, 2);
    struct inf_shape shape = INF_SHAPE(2, 8, 9, 3);
    cr_assert_eq(inf_graph_bind_shapes(graph, &shape, &err), INF_INVALID);
    cr_assert_eq(err.reason, INF_REASON_SHAPE_MISMATCH);
    cr_assert_not_null(strstr(err.text, "'image'"));
    cr_assert_not_null(strstr(err.text, "[2,8,9,3]"));
    cr_assert_not_null(strstr(err.text, "[?,8,8,3]"));
    shape = INF_SHAPE(-1, 8, 8, 3);
    cr_assert_eq(inf_graph_bind_shapes(graph, &shape, &err), INF_INVALID, "still unknown");
    shape = INF_SHAPE(INT32_MAX, 8, 8, 3);
    cr_assert_eq(inf_graph_bind_shapes(graph, &shape, &err), INF_INVALID, "too large");
    shape = INF_SHAPE(2, 8, 8, 3);
    cr_assert_eq(inf_graph_bind_shapes(graph, &shape, &err), INF_OK);
    cr_assert_str_eq(infer_value(graph, y), "FP32 [2,3]");
}
