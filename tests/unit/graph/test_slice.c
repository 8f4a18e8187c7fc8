// SPDX-License-Identifier: Apache-2.0
// Slices, compared with the results of NumPy.
#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "tests/unit/graph/graph_kit.h"

struct masks {
    int32_t begin, end, ellipsis, new_axis, shrink;
};

struct slice_case {
    const char *python; // the NumPy expression, applied to an array of shape `x`
    struct inf_shape x;
    int32_t positions;
    int32_t begin[4], end[4], stride[4];
    struct masks masks;
    const char *shape; // the shape that NumPy returns; NULL if NumPy raises an error
    // first index and number of indices that the slice takes of each axis of x
    int64_t first[4], count[4];
};

#define S INF_SHAPE
static const struct slice_case cases[] = {
    {"x[1:4, 0:7:2]", S(5, 7), 2, {1, 0}, {4, 7}, {1, 2}, {0}, "[3,4]", {1, 0}, {3, 4}},
    {"x[::-1]", S(5, 7), 1, {3}, {3}, {-1}, {.begin = 1, .end = 1}, "[5,7]", {4, 0}, {5, 7}},
    {"x[-3:-1]", S(5, 7), 1, {-3}, {-1}, {1}, {0}, "[2,7]", {2, 0}, {2, 7}},
    {"x[3:1]", S(5, 7), 1, {3}, {1}, {1}, {0}, "[0,7]", {3, 0}, {0, 7}},
    {"x[3:1:-1]", S(5, 7), 1, {3}, {1}, {-1}, {0}, "[2,7]", {3, 0}, {2, 7}},
    {"x[10:-10:-1]", S(5, 7), 1, {10}, {-10}, {-1}, {0}, "[5,7]", {4, 0}, {5, 7}},
    {"x[-100:100]", S(5, 7), 1, {-100}, {100}, {1}, {0}, "[5,7]", {0, 0}, {5, 7}},
    {"x[4::-2]", S(5, 7), 1, {4}, {0}, {-2}, {.end = 1}, "[3,7]", {4, 0}, {3, 7}},
    {"x[:2]", S(5, 7), 1, {3}, {2}, {1}, {.begin = 1}, "[2,7]", {0, 0}, {2, 7}},
    {"x[1]", S(5, 7), 1, {1}, {2}, {1}, {.shrink = 1}, "[7]", {1, 0}, {1, 7}},
    {"x[-1]", S(5, 7), 1, {-1}, {0}, {1}, {.shrink = 1}, "[7]", {4, 0}, {1, 7}},
    {"x[5]", S(5, 7), 1, {5}, {6}, {1}, {.shrink = 1}, NULL, {0}, {0}},
    {"x[-6]", S(5, 7), 1, {-6}, {-5}, {1}, {.shrink = 1}, NULL, {0}, {0}},
    {"x[2, 3]", S(5, 7), 2, {2, 3}, {3, 4}, {1, 1}, {.shrink = 3}, "[]", {2, 3}, {1, 1}},
    {"x[None, 1:3]",
     S(5, 7),
     2,
     {0, 1},
     {0, 3},
     {1, 1},
     {.new_axis = 1},
     "[1,2,7]",
     {1, 0},
     {2, 7}},
    {"x[..., 2]",
     S(2, 3, 4),
     2,
     {0, 2},
     {0, 3},
     {1, 1},
     {.ellipsis = 1, .shrink = 2},
     "[2,3]",
     {0, 0, 2},
     {2, 3, 1}},
    {"x[0, ..., None]",
     S(2, 3, 4),
     3,
     {0, 0, 0},
     {1, 0, 0},
     {1, 1, 1},
     {.ellipsis = 2, .new_axis = 4, .shrink = 1},
     "[3,4,1]",
     {0, 0, 0},
     {1, 3, 4}},
    {"x[..., None, 1:3]",
     S(2, 3, 4),
     3,
     {0, 0, 1},
     {0, 0, 3},
     {1, 1, 1},
     {.ellipsis = 1, .new_axis = 2},
     "[2,3,1,2]",
     {0, 0, 1},
     {2, 3, 2}},
    {"x[1, ..., ::-3]",
     S(2, 3, 4),
     3,
     {1, 0, 0},
     {2, 0, 0},
     {1, 1, -3},
     {.begin = 4, .end = 4, .ellipsis = 2, .shrink = 1},
     "[3,2]",
     {1, 0, 3},
     {1, 3, 2}},
    {"x[0:1, ..., 0:1]",
     S(2, 3),
     3,
     {0, 0, 0},
     {1, 0, 1},
     {1, 1, 1},
     {.ellipsis = 2},
     "[1,1]",
     {0, 0},
     {1, 1}},
    {"x[0, 0, 0]", S(2, 3), 3, {0}, {1, 1, 1}, {1, 1, 1}, {.shrink = 7}, NULL, {0}, {0}},
    {"x[..., ...]", S(2, 3), 2, {0}, {0}, {1, 1}, {.ellipsis = 3}, NULL, {0}, {0}},
    {"x[::0]", S(5), 1, {0}, {5}, {0}, {0}, NULL, {0}, {0}},
    {"tensorflow refuses a dropped axis of negative stride",
     S(5),
     1,
     {1},
     {2},
     {-1},
     {.shrink = 1},
     NULL,
     {0},
     {0}},
    {"x[-2**31:2**31-1:3]", S(10), 1, {INT32_MIN}, {INT32_MAX}, {3}, {0}, "[4]", {0}, {4}},
    {"x[9:0:-2**31]", S(10), 1, {9}, {0}, {INT32_MIN}, {0}, "[1]", {9}, {1}},
    {"x[::2**31-1]", S(10), 1, {0}, {10}, {INT32_MAX}, {0}, "[1]", {0}, {1}},
    {"x[::-1]", S(0), 1, {0}, {0}, {-1}, {.begin = 1, .end = 1}, "[0]", {-1}, {0}},
    {"x[0]", S(0), 1, {0}, {1}, {1}, {.shrink = 1}, NULL, {0}, {0}},
    {"x[()]", S(5, 7), 0, {0}, {0}, {0}, {0}, "[5,7]", {0, 0}, {5, 7}},
};
#undef S

static void set_masks(struct inf_graph *graph, struct masks masks)
{
    struct inf_attrs_slice *attrs = &last_attrs(graph)->slice;
    attrs->begin_mask = masks.begin;
    attrs->end_mask = masks.end;
    attrs->ellipsis_mask = masks.ellipsis;
    attrs->new_axis_mask = masks.new_axis;
    attrs->shrink_axis_mask = masks.shrink;
}

static struct inf_graph *slice_graph(const struct slice_case *c)
{
    struct inf_graph *graph = new_graph();
    struct inf_shape list = INF_SHAPE(c->positions);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, c->x);
    uint32_t begin = add_constant(graph, INF_DTYPE_I32, list, c->begin);
    uint32_t end = add_constant(graph, INF_DTYPE_I32, list, c->end);
    uint32_t stride = add_constant(graph, INF_DTYPE_I32, list, c->stride);
    add_output(graph, "y", node(graph, INF_OP_SLICE, "s", x, begin, end, stride));
    set_masks(graph, c->masks);
    return graph;
}

Test(slice, takes_what_numpy_takes)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(cases); i++) {
        const struct slice_case *c = &cases[i];
        struct inf_graph *graph = slice_graph(c);
        struct inf_error err = {0};
        struct inf_slice_plan plan;
        char text[INF_SHAPE_TEXT_SIZE];
        enum inf_code code = inf_shape_infer(graph, &err);
        cr_assert_eq(code, c->shape == NULL ? INF_INVALID : INF_OK, "%s: %s", c->python, err.text);
        bool planned = inf_node_slice_plan(graph, &graph->nodes[0], &plan);
        cr_assert_eq(planned, c->shape != NULL, "%s", c->python);
        if (c->shape != NULL) {
            inf_shape_print(&graph->values[graph->outputs[0].value].shape, text);
            cr_assert_str_eq(text, c->shape, "%s: %s", c->python, text);
            cr_assert_eq(plan.rank, c->x.rank);
        }
        for (int32_t axis = 0; c->shape != NULL && axis < c->x.rank; axis++) {
            cr_assert_eq(plan.begin[axis], c->first[axis], "%s axis %d", c->python, axis);
            cr_assert_eq(plan.count[axis], c->count[axis], "%s axis %d", c->python, axis);
        }
        inf_graph_destroy(&graph);
    }
}

static uint64_t mix_hash(uint64_t hash, uint64_t value)
{
    return (hash ^ value) * 0x100000001b3u;
}

// The expected value is the FNV-1a hash over the length and first index of every range(n)[b:e:s],
// computed by CPython 3:
// for n in range(6): for b in range(-7, 8): for e in range(-7, 8): for s in -3, -2, -1, 1, 2, 3:
// r = range(n)[b:e:s]; h = mix(mix(h, len(r)), r[0] if r else 99)
Test(slice, agrees_with_python_everywhere_near_zero)
{
    uint64_t hash = 0xcbf29ce484222325u;
    for (int32_t n = 0; n < 6; n++)
        for (int32_t begin = -7; begin < 8; begin++)
            for (int32_t end = -7; end < 8; end++)
                for (int32_t stride = -3; stride <= 3; stride++) {
                    if (stride == 0)
                        continue;
                    const struct slice_case c = {
                        .x = INF_SHAPE(n), .positions = 1, {begin}, {end}, {stride}};
                    struct inf_graph *graph = slice_graph(&c);
                    struct inf_slice_plan plan;
                    cr_assert(inf_node_slice_plan(graph, &graph->nodes[0], &plan));
                    hash = mix_hash(hash, (uint64_t)plan.count[0]);
                    hash = mix_hash(hash, plan.count[0] > 0 ? (uint64_t)plan.begin[0] : 99);
                    inf_graph_destroy(&graph);
                }
    cr_assert_eq(hash, 0x60120e5f2baab721u);
}

// Returns the inferred result, as text, of slicing x with begin, end and stride lists of two
// elements. The list `begin` is a constant if `known`, and an input of the graph otherwise.
static const char *of_unknown(struct inf_shape x, struct masks masks, bool known)
{
    static char text[INF_SHAPE_TEXT_SIZE];
    struct inf_graph *graph = new_graph();
    uint32_t value = add_input(graph, "x", INF_DTYPE_F32, x);
    uint32_t begin = known ? ints(graph, 0, 1) : add_input(graph, "b", INF_DTYPE_I32, INF_SHAPE(2));
    uint32_t y = node(graph, INF_OP_SLICE, "s", value, begin, ints(graph, 2, 3), ints(graph, 1, 1));
    set_masks(graph, masks);
    struct inf_slice_plan plan;
    cr_assert_not(inf_node_slice_plan(graph, &graph->nodes[0], &plan));
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    inf_shape_print(&graph->values[y].shape, text);
    inf_graph_destroy(&graph);
    return text;
}

Test(slice, keeps_what_it_can_know)
{
    cr_assert_str_eq(of_unknown(INF_SHAPE(-1, 7), (struct masks){0}, true), "[?,2]");
    cr_assert_str_eq(of_unknown(INF_SHAPE(-1, 7), (struct masks){.shrink = 1}, true), "[2]");
    cr_assert_str_eq(of_unknown(INF_SHAPE(-1, 7, 5), (struct masks){0}, true), "[?,2,5]");
    cr_assert_str_eq(of_unknown(INF_SHAPE(4, 7, 5), (struct masks){0}, false), "[?,?,5]");
    cr_assert_str_eq(of_unknown(INF_SHAPE(4, 7, 5), (struct masks){.shrink = 2}, false), "[?,5]");
    cr_assert_str_eq(of_unknown(INF_SHAPE(4, 7, 5), (struct masks){.ellipsis = 1}, false),
                     "[4,7,?]");
    cr_assert_str_eq(of_unknown(INF_SHAPE(4, 7, 5), (struct masks){.begin = 1, .end = 1}, false),
                     "[4,?,5]");
    cr_assert_str_eq(of_unknown(ANY, (struct masks){0}, true), "[*]");
}

Test(slice, operands_of_different_length_are_refused)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(4, 4));
    node(graph, INF_OP_SLICE, "odd", x, ints(graph, 0), ints(graph, 1, 1), ints(graph, 1));
    cr_assert_eq(inf_shape_infer(graph, &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "'odd'"));
    inf_graph_destroy(&graph);
}
