// SPDX-License-Identifier: Apache-2.0
// Inference for the operators that move data. Operators that compute are tested in
// test_shape_infer.c.
#include <criterion/criterion.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "tests/unit/graph/graph_kit.h"

// Runs inference on the graph and destroys the graph. Returns the shape of `value`, such as
// "[1,2]", or "invalid".
static const char *infer_value(struct inf_graph *graph, uint32_t value)
{
    static char text[INF_SHAPE_TEXT_SIZE];
    enum inf_code code = inf_shape_infer(graph, NULL);
    if (code == INF_OK)
        inf_shape_print(&graph->values[value].shape, text);
    else
        snprintf(text, sizeof text, "%s", code == INF_INVALID ? "invalid" : inf_code_name(code));
    inf_graph_destroy(&graph);
    return text;
}

// Returns the inferred shape, as text, of a node that applies `op` to x and a constant list.
static const char *with_list(enum inf_op op, struct inf_shape x, uint32_t count,
                             const int32_t *elements)
{
    struct inf_graph *graph = new_graph();
    uint32_t value = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t list = add_constant(graph, INF_DTYPE_I32, INF_SHAPE(count), elements);
    return infer_value(graph, node(graph, op, "n", value, list));
}

#define LIST(...)                                                                                  \
    sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t), (const int32_t[])                    \
    {                                                                                              \
        __VA_ARGS__                                                                                \
    }

Test(infer, reshape_computes_one_size)
{
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3, 4), LIST(4, 6)), "[4,6]");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3, 4), LIST(-1, 8)), "[3,8]");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3, 4), LIST(-1)), "[24]");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(1, 1), 0, NULL), "[]");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(0, 4), LIST(-1, 5)), "[0,5]");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(-1, 4), LIST(-1, 2)), "[?,2]");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, ANY, LIST(3, 2)), "[3,2]");
}

Test(infer, reshape_keeps_the_number_of_elements)
{
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3), LIST(4, 2)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3), LIST(-1, 4)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3), LIST(-1, -1)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3), LIST(-2, -3)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(0, 3), LIST(-1, 0)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(2, 3), LIST(1, 1, 1, 1, 1, 1, 1, 1, 6)),
                     "invalid");
    // 65536^4 elements are 2^64. If the product wrapped around, it would be 0, which is the size of
    // x.
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, INF_SHAPE(0), LIST(65536, 65536, 65536, 65536)),
                     "invalid");
    cr_assert_str_eq(with_list(INF_OP_RESHAPE, ANY, LIST(65536, 65536, 65536, 65536)), "invalid");
}

// Returns the inferred shape of x after a reshape to [size of axis 0 of x, -1, 5]. If `is_cast`,
// the list of sizes is cast to i32 before the reshape.
static const char *with_batch(struct inf_shape x, bool is_cast)
{
    struct inf_graph *graph = new_graph();
    uint32_t value = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t shape = node(graph, INF_OP_SHAPE, "shape", value);
    uint32_t batch =
        node(graph, INF_OP_SLICE, "batch", shape, ints(graph, 0), ints(graph, 1), ints(graph, 1));
    uint32_t list = node(graph, INF_OP_CONCAT, "list", batch, ints(graph, -1, 5));
    if (is_cast) {
        list = node(graph, INF_OP_CAST, "cast", list);
        last_attrs(graph)->cast.dtype = INF_DTYPE_I32;
    }
    return infer_value(graph, node(graph, INF_OP_RESHAPE, "n", value, list));
}

Test(infer, reshape_by_a_list_known_in_part)
{
    cr_assert_str_eq(with_batch(INF_SHAPE(-1, 4, 10), false), "[?,?,5]");
    cr_assert_str_eq(with_batch(INF_SHAPE(-1, 4, 10), true), "[?,?,5]");
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(-1));
    uint32_t like = add_input(graph, "like", INF_DTYPE_F32, INF_SHAPE(-1, 7));
    uint32_t list = node(graph, INF_OP_SHAPE, "shape", like);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESHAPE, "n", x, list)), "[?,7]");
    // If a part of the list of sizes has unknown length, the rank of the result is unknown.
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(-1));
    uint32_t part = add_input(graph, "part", INF_DTYPE_I32, INF_SHAPE(-1));
    list = node(graph, INF_OP_CONCAT, "list", ints(graph, 3), part, ints(graph, 5));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESHAPE, "n", x, list)), "[*]");
}

Test(infer, reshape_by_a_shape_not_known_yet)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3));
    uint32_t s = add_input(graph, "s", INF_DTYPE_I32, INF_SHAPE(3));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESHAPE, "r", x, s)), "[?,?,?]");
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3));
    s = add_input(graph, "s", INF_DTYPE_I32, INF_SHAPE(-1));
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESHAPE, "r", x, s)), "[*]");
    graph = new_graph();
    x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3));
    s = add_input(graph, "s", INF_DTYPE_I32, SCALAR);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_RESHAPE, "r", x, s)), "invalid");
}

// Returns the inferred shape, as text, of a node that applies `op` to x and has a list of axes as
// its only attribute.
static const char *with_axes(enum inf_op op, struct inf_shape x, struct inf_ints axes)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = node(graph, op, "n", add_input(graph, "x", INF_DTYPE_F32, x));
    if (op == INF_OP_EXPAND_DIMS)
        last_attrs(graph)->expand_dims.axes = axes;
    else if (op == INF_OP_SQUEEZE)
        last_attrs(graph)->squeeze.axes = axes;
    else
        last_attrs(graph)->transpose.perm = axes;
    return infer_value(graph, y);
}

#define AXES(...)                                                                                  \
    ((struct inf_ints){.count = (int32_t)(sizeof((int64_t[]){__VA_ARGS__}) / sizeof(int64_t)),     \
                       .values = {__VA_ARGS__}})
#define NO_AXES ((struct inf_ints){0})

Test(infer, axes_come_and_go)
{
    cr_assert_str_eq(with_axes(INF_OP_EXPAND_DIMS, INF_SHAPE(2, 3), AXES(0, -1)), "[1,2,3,1]");
    cr_assert_str_eq(with_axes(INF_OP_EXPAND_DIMS, INF_SHAPE(2, 3), AXES(3)), "invalid");
    cr_assert_str_eq(with_axes(INF_OP_EXPAND_DIMS, INF_SHAPE(2, 3), AXES(0, -4)), "invalid");
    cr_assert_str_eq(with_axes(INF_OP_EXPAND_DIMS, INF_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), AXES(0)),
                     "invalid");
    cr_assert_str_eq(with_axes(INF_OP_SQUEEZE, INF_SHAPE(1, 2, 1, 3), NO_AXES), "[2,3]");
    cr_assert_str_eq(with_axes(INF_OP_SQUEEZE, INF_SHAPE(1, 2, 1, 3), AXES(-2)), "[1,2,3]");
    cr_assert_str_eq(with_axes(INF_OP_SQUEEZE, INF_SHAPE(1, 2, 1, 3), AXES(1)), "invalid");
    cr_assert_str_eq(with_axes(INF_OP_SQUEEZE, INF_SHAPE(-1, 2, 1), AXES(0)), "[2,1]");
    cr_assert_str_eq(with_axes(INF_OP_SQUEEZE, INF_SHAPE(-1, 2, 1), NO_AXES), "[*]");
    cr_assert_str_eq(with_axes(INF_OP_TRANSPOSE, INF_SHAPE(2, 3, 4), AXES(1, -1, 0)), "[3,4,2]");
    cr_assert_str_eq(with_axes(INF_OP_TRANSPOSE, INF_SHAPE(2, 3, 4), NO_AXES), "[4,3,2]");
    cr_assert_str_eq(with_axes(INF_OP_TRANSPOSE, INF_SHAPE(2, 3, 4), AXES(0, 1)), "invalid");
    cr_assert_str_eq(with_axes(INF_OP_TRANSPOSE, INF_SHAPE(2, 3, 4), AXES(0, 1, 1)), "invalid");
    cr_assert_str_eq(with_axes(INF_OP_TRANSPOSE, ANY, AXES(1, 0)), "[?,?]");
    cr_assert_str_eq(with_axes(INF_OP_TRANSPOSE, ANY, NO_AXES), "[*]");
}

static const char *infer_concat(struct inf_shape a, struct inf_shape b, int32_t axis)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "a", INF_DTYPE_F32, a);
    uint32_t y = node(graph, INF_OP_CONCAT, "c", x, add_input(graph, "b", INF_DTYPE_F32, b), x);
    last_attrs(graph)->concat.axis = axis;
    return infer_value(graph, y);
}

Test(infer, concat_adds_along_one_axis)
{
    cr_assert_str_eq(infer_concat(INF_SHAPE(2, 3), INF_SHAPE(2, 5), 1), "[2,11]");
    cr_assert_str_eq(infer_concat(INF_SHAPE(2, 3), INF_SHAPE(2, 5), -1), "[2,11]");
    cr_assert_str_eq(infer_concat(INF_SHAPE(2, 3), INF_SHAPE(2, 5), 0), "invalid");
    cr_assert_str_eq(infer_concat(INF_SHAPE(2, 3), INF_SHAPE(2, 5), 2), "invalid");
    cr_assert_str_eq(infer_concat(INF_SHAPE(2, 3), INF_SHAPE(2), 0), "invalid");
    cr_assert_str_eq(infer_concat(SCALAR, SCALAR, 0), "invalid");
    cr_assert_str_eq(infer_concat(INF_SHAPE(-1, 3), INF_SHAPE(2, -1), 1), "[2,?]");
    cr_assert_str_eq(infer_concat(INF_SHAPE(2, 3), ANY, 1), "[2,?]");
    cr_assert_str_eq(infer_concat(ANY, ANY, 1), "[*]");
    cr_assert_str_eq(infer_concat(INF_SHAPE(1 << 30), INF_SHAPE(INT32_MAX), 0), "invalid");
}

// Returns the inferred shapes of all parts of a split, in one text.
static const char *infer_split(struct inf_shape x, int32_t axis, uint32_t parts,
                               const int32_t *sizes)
{
    static char text[256];
    char shape[INF_SHAPE_TEXT_SIZE];
    struct inf_graph *graph = new_graph();
    uint32_t inputs[2] = {add_input(graph, "x", INF_DTYPE_F32, x)};
    if (sizes != NULL)
        inputs[1] = add_constant(graph, INF_DTYPE_I32, INF_SHAPE(parts), sizes);
    add_node(graph, INF_OP_SPLIT, "s", inputs, sizes == NULL ? 1 : 2, parts);
    last_attrs(graph)->split.axis = axis;
    snprintf(text, sizeof text, "invalid");
    if (inf_shape_infer(graph, NULL) == INF_OK) {
        text[0] = '\0';
        for (uint32_t i = 0; i < parts; i++)
            strncat(text, inf_shape_print(&graph->values[graph->nodes[0].outputs[i]].shape, shape),
                    64);
    }
    inf_graph_destroy(&graph);
    return text;
}

Test(infer, split_cuts_into_equal_or_given_parts)
{
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 6), 1, 3, NULL), "[2,2][2,2][2,2]");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 7), 1, 3, NULL), "invalid");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 7), -1, 3, (int32_t[]){1, 0, 6}), "[2,1][2,0][2,6]");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 7), -1, 3, (int32_t[]){1, -1, 2}), "[2,1][2,4][2,2]");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 7), -1, 3, (int32_t[]){1, -1, 7}), "invalid");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 7), -1, 3, (int32_t[]){1, -1, -1}), "invalid");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 7), -1, 3, (int32_t[]){9, -2, 0}), "invalid");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, 7), 2, 1, NULL), "invalid");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, -1), 1, 2, NULL), "[2,?][2,?]");
    cr_assert_str_eq(infer_split(INF_SHAPE(2, -1), 1, 2, (int32_t[]){-1, 3}), "[2,?][2,3]");
    cr_assert_str_eq(infer_split(ANY, 1, 2, NULL), "[*][*]");
}

static const char *infer_pad(struct inf_shape x, enum inf_pad_mode mode, const int32_t paddings[4])
{
    struct inf_graph *graph = new_graph();
    uint32_t value = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t y = node(graph, INF_OP_PAD, "p", value,
                      add_constant(graph, INF_DTYPE_I32, INF_SHAPE(2, 2), paddings));
    last_attrs(graph)->pad.mode = mode;
    return infer_value(graph, y);
}

Test(infer, pad_grows_as_far_as_its_mode_can)
{
    const int32_t some[] = {1, 2, 0, 3};
    const int32_t negative[] = {-1, 2, 0, 3};
    cr_assert_str_eq(infer_pad(INF_SHAPE(4, 5), INF_PAD_CONSTANT, some), "[7,8]");
    cr_assert_str_eq(infer_pad(INF_SHAPE(4, 5), INF_PAD_CONSTANT, negative), "invalid");
    cr_assert_str_eq(infer_pad(INF_SHAPE(4, 4), INF_PAD_REFLECT, some), "[7,7]");
    cr_assert_str_eq(infer_pad(INF_SHAPE(4, 3), INF_PAD_REFLECT, some), "invalid");
    cr_assert_str_eq(infer_pad(INF_SHAPE(4, 3), INF_PAD_SYMMETRIC, some), "[7,6]");
    cr_assert_str_eq(infer_pad(INF_SHAPE(1, 3), INF_PAD_SYMMETRIC, some), "invalid");
    cr_assert_str_eq(infer_pad(INF_SHAPE(1, 1), INF_PAD_EDGE, some), "[4,4]");
    cr_assert_str_eq(infer_pad(INF_SHAPE(0, 1), INF_PAD_EDGE, some), "invalid");
    cr_assert_str_eq(infer_pad(INF_SHAPE(0, 1), INF_PAD_CONSTANT, some), "[3,4]");
    cr_assert_str_eq(infer_pad(INF_SHAPE(-1, 5), INF_PAD_REFLECT, some), "[?,8]");
    cr_assert_str_eq(infer_pad(INF_SHAPE(4, 5, 6), INF_PAD_CONSTANT, some), "invalid");
    cr_assert_str_eq(infer_pad(ANY, INF_PAD_CONSTANT, some), "[?,?]");
    const int32_t huge[] = {INT32_MAX, INT32_MAX, 0, 0};
    cr_assert_str_eq(infer_pad(INF_SHAPE(4, 5), INF_PAD_CONSTANT, huge), "invalid");
}

Test(infer, tile_broadcast_and_fill)
{
    cr_assert_str_eq(with_list(INF_OP_TILE, INF_SHAPE(2, 3), LIST(2, 0)), "[4,0]");
    cr_assert_str_eq(with_list(INF_OP_TILE, INF_SHAPE(2, 3), LIST(2)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_TILE, INF_SHAPE(2, 3), LIST(2, -1)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_TILE, INF_SHAPE(2, -1), LIST(2, 2)), "[4,?]");
    cr_assert_str_eq(with_list(INF_OP_TILE, INF_SHAPE(65536, 3), LIST(65536, 1)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_BROADCAST, INF_SHAPE(3, 1), LIST(2, 3, 4)), "[2,3,4]");
    cr_assert_str_eq(with_list(INF_OP_BROADCAST, INF_SHAPE(3, 2), LIST(3, 1)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_BROADCAST, INF_SHAPE(3, 1), LIST(3)), "invalid");
    cr_assert_str_eq(with_list(INF_OP_BROADCAST, INF_SHAPE(1), LIST(0)), "[0]");
    struct inf_graph *graph = new_graph();
    uint32_t one = floats(graph, SCALAR, 1);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_FILL, "f", ints(graph, 3, 0), one)),
                     "[3,0]");
    graph = new_graph();
    one = floats(graph, SCALAR, 1);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_FILL, "f", ints(graph, 3, -1), one)),
                     "invalid");
    graph = new_graph();
    one = floats(graph, SCALAR, 1);
    uint32_t dims = ints(graph, 65535, 65535);
    cr_assert_str_eq(infer_value(graph, node(graph, INF_OP_FILL, "f", dims, one)), "invalid",
                     "16 GiB are no tensor");
}

static const char *infer_gather(struct inf_shape x, struct inf_shape indices, int32_t axis,
                                int32_t batch_dims)
{
    struct inf_graph *graph = new_graph();
    uint32_t a = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t y = node(graph, INF_OP_GATHER, "g", a, add_input(graph, "i", INF_DTYPE_I32, indices));
    last_attrs(graph)->gather.axis = axis;
    last_attrs(graph)->gather.batch_dims = batch_dims;
    return infer_value(graph, y);
}

Test(infer, gather_puts_the_indices_in_place_of_the_axis)
{
    cr_assert_str_eq(infer_gather(INF_SHAPE(5, 6, 7), INF_SHAPE(2, 3), 1, 0), "[5,2,3,7]");
    cr_assert_str_eq(infer_gather(INF_SHAPE(5, 6, 7), SCALAR, -1, 0), "[5,6]");
    cr_assert_str_eq(infer_gather(INF_SHAPE(5, 6, 7), INF_SHAPE(5, 2), 1, 1), "[5,2,7]");
    cr_assert_str_eq(infer_gather(INF_SHAPE(5, 6, 7), INF_SHAPE(4, 2), 1, 1), "invalid");
    cr_assert_str_eq(infer_gather(INF_SHAPE(5, 6, 7), INF_SHAPE(5, 2), 0, 1), "invalid");
    cr_assert_str_eq(infer_gather(INF_SHAPE(5, 6, 7), SCALAR, 2, 1), "invalid");
    cr_assert_str_eq(infer_gather(INF_SHAPE(5, 6, 7), SCALAR, 3, 0), "invalid");
    cr_assert_str_eq(infer_gather(INF_SHAPE(1, 1, 1, 1, 1, 1, 1, 1), INF_SHAPE(1, 1), 0, 0),
                     "invalid");
    cr_assert_str_eq(infer_gather(ANY, INF_SHAPE(2), 0, 0), "[*]");
}

static const char *infer_blocks(enum inf_op op, struct inf_shape x, int32_t block)
{
    struct inf_graph *graph = new_graph();
    uint32_t y = node(graph, op, "b", add_input(graph, "x", INF_DTYPE_F32, x));
    last_attrs(graph)->space_to_depth.block = block; // the only attribute of both operators
    return infer_value(graph, y);
}

Test(infer, blocks_move_between_space_and_depth)
{
    cr_assert_str_eq(infer_blocks(INF_OP_SPACE_TO_DEPTH, INF_SHAPE(1, 4, 6, 3), 2), "[1,2,3,12]");
    cr_assert_str_eq(infer_blocks(INF_OP_SPACE_TO_DEPTH, INF_SHAPE(1, 4, 5, 3), 2), "invalid");
    cr_assert_str_eq(infer_blocks(INF_OP_SPACE_TO_DEPTH, INF_SHAPE(1, 4, 6, 3), 0), "invalid");
    cr_assert_str_eq(infer_blocks(INF_OP_DEPTH_TO_SPACE, INF_SHAPE(1, 2, 3, 12), 2), "[1,4,6,3]");
    cr_assert_str_eq(infer_blocks(INF_OP_DEPTH_TO_SPACE, INF_SHAPE(1, 2, 3, 10), 2), "invalid");
    cr_assert_str_eq(infer_blocks(INF_OP_DEPTH_TO_SPACE, INF_SHAPE(-1, -1, 3, 12), 2), "[?,?,6,3]");
    cr_assert_str_eq(infer_blocks(INF_OP_SPACE_TO_DEPTH, ANY, 2), "[?,?,?,?]");
}

Test(infer, shape_of_a_shape_is_the_rank)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(-1, 3, 4));
    uint32_t y = node(graph, INF_OP_SHAPE, "s", x);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_assert_eq(graph->values[y].dtype, INF_DTYPE_I32);
    cr_assert_str_eq(infer_value(graph, y), "[3]");
    graph = new_graph();
    y = node(graph, INF_OP_SHAPE, "s", add_input(graph, "x", INF_DTYPE_F32, ANY));
    cr_assert_str_eq(infer_value(graph, y), "[?]");
}

static const char *int_range(int64_t start, int64_t limit, int64_t delta)
{
    struct inf_graph *graph = new_graph();
    uint32_t a = add_constant(graph, INF_DTYPE_I64, SCALAR, &start);
    uint32_t b = add_constant(graph, INF_DTYPE_I64, SCALAR, &limit);
    uint32_t c = add_constant(graph, INF_DTYPE_I64, SCALAR, &delta);
    return infer_value(graph, node(graph, INF_OP_RANGE, "r", a, b, c));
}

static const char *float_range(float start, float limit, float delta)
{
    struct inf_graph *graph = new_graph();
    uint32_t a = floats(graph, SCALAR, start);
    uint32_t b = floats(graph, SCALAR, limit);
    uint32_t c = floats(graph, SCALAR, delta);
    return infer_value(graph, node(graph, INF_OP_RANGE, "r", a, b, c));
}

Test(infer, ranges_are_as_long_as_numpy_makes_them)
{
    cr_assert_str_eq(int_range(0, 5, 1), "[5]");
    cr_assert_str_eq(int_range(0, 5, 2), "[3]");
    cr_assert_str_eq(int_range(5, 0, -2), "[3]");
    cr_assert_str_eq(int_range(5, 0, 1), "[0]");
    cr_assert_str_eq(int_range(0, 5, 0), "invalid");
    cr_assert_str_eq(int_range(INT64_MIN, INT64_MAX, INT64_MAX), "[3]");
    cr_assert_str_eq(int_range(INT64_MAX, INT64_MIN, INT64_MIN), "[2]");
    cr_assert_str_eq(int_range(INT64_MIN, INT64_MAX, 1), "invalid");
    cr_assert_str_eq(float_range(0, 1, 0.25f), "[4]");
    cr_assert_str_eq(float_range(1, 0, -0.3f), "[4]");
    cr_assert_str_eq(float_range(0, 1, 0), "invalid");
    cr_assert_str_eq(float_range(0, NAN, 1), "invalid");
    cr_assert_str_eq(float_range(0, INFINITY, 1), "invalid");
    cr_assert_str_eq(float_range(0, -INFINITY, 1), "[0]");
    cr_assert_str_eq(float_range(0, 1, 1e-30f), "invalid");
}
