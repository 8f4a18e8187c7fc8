// SPDX-License-Identifier: Apache-2.0
// The graph builder: expressions, constants, folding, and errors. After an error, all further calls
// do nothing.
#include "backends/graph/build/builder.h"

#include <criterion/criterion.h>

#include "backends/graph/build/operators.h"
#include "tests/unit/graph/graph_kit.h"

static struct inf_builder make_builder(struct inf_graph *graph, struct inf_error *err)
{
    return (struct inf_builder){
        .graph = graph, .noun = "node", .name = "n", .source = "Op", .err = err};
}

Test(builder, adds_nodes_with_inferred_shapes)
{
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, NULL);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3));
    uint32_t y = inf_build_transpose(&b, inf_build_add(&b, x, x), (int64_t[]){1, 0}, 2);
    cr_assert(inf_build_ok(&b));
    cr_assert_eq(graph->node_count, 2);
    cr_assert_str_eq(graph->nodes[0].name, "n");
    cr_assert_str_eq(graph->nodes[0].source, "Op");
    cr_assert(inf_shape_equal(inf_build_shape_of(&b, y), &INF_SHAPE(3, 2)));
    cr_assert_eq(inf_build_dtype(&b, y), INF_DTYPE_F32);
    cr_assert_eq(inf_build_rank(&b, y), 2);
    cr_assert_eq(inf_build_dim(&b, y, -1), 2);
    inf_graph_destroy(&graph);
}

Test(builder, adds_no_node_if_nothing_changes)
{
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, NULL);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2, 3));
    cr_assert_eq(inf_build_cast(&b, x, INF_DTYPE_F32), x);
    cr_assert_eq(inf_build_transpose(&b, x, (int64_t[]){0, 1}, 2), x);
    cr_assert_eq(inf_build_expand_dims(&b, x, NULL, 0), x);
    cr_assert_eq(inf_build_squeeze(&b, x, NULL, 0), x);
    cr_assert_eq(inf_build_concat(&b, &x, 1, 0), x);
    cr_assert_eq(inf_build_reduce(&b, INF_REDUCE_SUM, x, &(struct inf_ints){.count = 0}, true), x);
    cr_assert_eq(inf_build_channels_last(&b, x), x);
    cr_assert_eq(graph->node_count, 0);
    inf_graph_destroy(&graph);
}

Test(builder, keeps_the_first_failure_and_does_nothing_after_it)
{
    struct inf_error err = {0};
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, &err);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, ANY);
    uint32_t values = graph->value_count;
    cr_assert_eq(inf_build_slice(&b, x, 0, 0, 1, 1), INF_VALUE_NONE);
    cr_assert_eq(b.code, INF_UNSUPPORTED);
    cr_assert_str_eq(err.text, "node 'n' (Op): the rank of 'x' is not known");
    inf_build_fail(&b, INF_INVALID, "a later failure");
    uint32_t y = inf_build_mul(&b, x, inf_build_scalar(&b, INF_DTYPE_F32, 2));
    cr_assert_eq(y, INF_VALUE_NONE);
    cr_assert_eq(inf_build_dim(&b, y, 3), 1);
    cr_assert_eq(inf_build_shape_of(&b, y)->rank, INF_RANK_UNKNOWN);
    cr_assert_eq(inf_build_dtype(&b, y), INF_DTYPE_NONE);
    cr_assert_not(inf_build_is_const(&b, y));
    cr_assert_eq(b.code, INF_UNSUPPORTED);
    cr_assert_str_eq(err.text, "node 'n' (Op): the rank of 'x' is not known");
    cr_assert_eq(graph->node_count, 0);
    cr_assert_eq(graph->value_count, values);
    inf_graph_destroy(&graph);
}

Test(builder, refuses_axes_out_of_range)
{
    struct inf_error err = {0};
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, &err);
    cr_assert_eq(inf_build_axis(&b, -2, 2), 0);
    cr_assert_eq(inf_build_axis(&b, 1, 2), 1);
    cr_assert_eq(inf_build_axis(&b, 2, 2), 0);
    cr_assert_eq(b.code, INF_INVALID);
    cr_assert_str_eq(err.text, "node 'n' (Op): axis 2 is out of range for rank 2");
    inf_graph_destroy(&graph);
}

Test(builder, stores_scalars_in_their_element_type)
{
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, NULL);
    static const enum inf_dtype dtypes[] = {INF_DTYPE_F32,  INF_DTYPE_F64, INF_DTYPE_F16,
                                            INF_DTYPE_BF16, INF_DTYPE_I8,  INF_DTYPE_I32,
                                            INF_DTYPE_I64};
    for (size_t i = 0; i < sizeof dtypes / sizeof *dtypes; i++) {
        double number = 0;
        uint32_t value = inf_build_scalar(&b, dtypes[i], -3);
        cr_assert_eq(inf_build_dtype(&b, value), dtypes[i]);
        cr_assert(inf_build_const_number(&b, value, &number));
        cr_assert_eq(number, -3, "%s", inf_dtype_name(dtypes[i]));
    }
    inf_graph_destroy(&graph);
}

Test(builder, clamps_lists_to_int32)
{
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, NULL);
    uint32_t list = inf_build_list(&b, (int64_t[]){INT64_MIN, -1, INT64_MAX}, 3);
    struct inf_build_ints ints = inf_build_const_ints(&b, list, "the list");
    cr_assert_eq(ints.count, 3);
    cr_assert_eq(ints.values[0], INT32_MIN);
    cr_assert_eq(ints.values[1], -1);
    cr_assert_eq(ints.values[2], INT32_MAX);
    cr_assert_eq(inf_build_const_int(&b, list, "the list"), 0);
    cr_assert_eq(b.code, INF_INVALID);
    inf_graph_destroy(&graph);
}

Test(builder, folds_shapes_without_an_evaluator)
{
    struct inf_graph *graph = new_graph();
    struct inf_fold fold = {.evaluator = NULL};
    struct inf_builder b = make_builder(graph, NULL);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(5, 7));
    b.fold = &fold;
    struct inf_build_ints ints = inf_build_const_ints(&b, inf_build_shape(&b, x), "the shape");
    cr_assert(inf_build_ok(&b));
    cr_assert_eq(ints.count, 2);
    cr_assert_eq(ints.values[0], 5);
    cr_assert_eq(ints.values[1], 7);
    cr_assert_eq(graph->node_count, 0);
    cr_assert_eq(fold.folded_bytes, 8);
    inf_graph_destroy(&graph);
}

Test(builder, limits_the_nodes_of_an_import)
{
    struct inf_error err = {0};
    struct inf_graph *graph = new_graph();
    uint64_t total = INF_LIMIT_GRAPH_NODES - 1;
    struct inf_builder b = make_builder(graph, &err);
    b.node_total = &total;
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(2));
    uint32_t y = inf_build_unary(&b, INF_UNARY_NEG, x);
    cr_assert(inf_build_ok(&b));
    cr_assert_eq(inf_build_unary(&b, INF_UNARY_NEG, y), INF_VALUE_NONE);
    cr_assert_eq(b.code, INF_EXHAUSTED);
    inf_graph_destroy(&graph);
}

Test(builder, flattens_shapes_with_one_unknown_dimension)
{
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, NULL);
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(INF_DIM_UNKNOWN, 3, 4));
    uint32_t y = inf_build_flatten(&b, x, 1);
    cr_assert(inf_build_ok(&b));
    cr_assert(inf_shape_equal(inf_build_shape_of(&b, y), &INF_SHAPE(INF_DIM_UNKNOWN, 12)));
    inf_graph_destroy(&graph);
}

Test(builder, multiplies_vectors_as_numpy_does)
{
    struct inf_graph *graph = new_graph();
    struct inf_builder b = make_builder(graph, NULL);
    uint32_t v = add_input(graph, "v", INF_DTYPE_F32, INF_SHAPE(3));
    uint32_t m = add_input(graph, "m", INF_DTYPE_F32, INF_SHAPE(3, 5));
    cr_assert_eq(inf_build_rank(&b, inf_build_matmul(&b, v, v)), 0);
    cr_assert(inf_shape_equal(inf_build_shape_of(&b, inf_build_matmul(&b, v, m)), &INF_SHAPE(5)));
    cr_assert(inf_build_ok(&b));
    inf_graph_destroy(&graph);
}
