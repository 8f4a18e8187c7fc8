// SPDX-License-Identifier: Apache-2.0
// Einstein summation (Einsum) lowered to nodes. Expected results are from NumPy, with operands 1,
// 2, 3, ...
#include <criterion/criterion.h>
#include <string.h>

#include "backends/graph/pass/pass.h"
#include "backends/graph/shape/infer.h"
#include "backends/import/common/einsum.h"
#include "backends/ref/ref.h"

#define SHAPES(...) ((const struct inf_shape[]){__VA_ARGS__})

// Adds the equation with constant operands 1, 2, 3, ... of these shapes, and folds it.
static enum inf_code evaluate_einsum(const char *equation, const struct inf_shape *shapes,
                                     uint32_t count, struct inf_graph **out_graph,
                                     struct inf_error *err)
{
    struct inf_graph *graph = NULL;
    uint32_t inputs[4], y;
    cr_assert_eq(inf_graph_create(&graph, err), INF_OK);
    *out_graph = graph;
    for (uint32_t i = 0; i < count; i++) {
        size_t elements = inf_shape_elements(&shapes[i]);
        struct inf_blob *blob = inf_blob_create(elements * sizeof(float));
        for (size_t j = 0; j < elements; j++)
            ((float *)blob->data)[j] = (float)j + 1;
        cr_assert_eq(
            inf_graph_add_const(graph, "", INF_DTYPE_F32, &shapes[i], blob, &inputs[i], err),
            INF_OK);
    }
    INF_TRY(inf_graph_add_einsum(graph, "e", equation, inputs, count, &y, err));
    INF_TRY(inf_graph_add_output(graph, "y", y, err));
    struct inf_pass_options options = {.evaluator = inf_ref_evaluator()};
    return inf_passes_run(graph, &options, err);
}

static void check_result(const char *equation, const struct inf_shape *shapes, uint32_t count,
                         struct inf_shape shape, const float *wanted)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    struct inf_error err = {0};
    cr_assert_eq(evaluate_einsum(equation, shapes, count, &graph, &err), INF_OK, "%s: %s", equation,
                 err.text);
    const struct inf_value *y = &graph->values[graph->outputs[0].value];
    char text[INF_SHAPE_TEXT_SIZE];
    cr_assert(inf_shape_equal(&y->shape, &shape), "%s: shape %s", equation,
              inf_shape_print(&y->shape, text));
    cr_assert_not_null(y->data, "%s does not fold", equation);
    for (size_t i = 0; i < inf_shape_elements(&shape); i++)
        cr_assert_float_eq(((const float *)y->data->data)[i], wanted[i], 1e-5f,
                           "%s: element %zu is %g", equation, i,
                           (double)((const float *)y->data->data)[i]);
}

#define F32(...) ((const float[]){__VA_ARGS__})

Test(einsum, rearranges_and_sums_one_term)
{
    const struct inf_shape two_by_three = INF_SHAPE(2, 3), square = INF_SHAPE(2, 2);
    check_result("ij->ji", &two_by_three, 1, INF_SHAPE(3, 2), F32(1, 4, 2, 5, 3, 6));
    check_result("ba", &two_by_three, 1, INF_SHAPE(3, 2), F32(1, 4, 2, 5, 3, 6));
    check_result("ij->i", &two_by_three, 1, INF_SHAPE(2), F32(6, 15));
    check_result("ij->", &two_by_three, 1, (struct inf_shape){0}, F32(21));
    check_result("...j->...", &two_by_three, 1, INF_SHAPE(2), F32(6, 15));
    check_result("ii->i", &square, 1, INF_SHAPE(2), F32(1, 4));
    check_result("ii", &square, 1, (struct inf_shape){0}, F32(5));
    check_result(" i j -> j i ", &square, 1, INF_SHAPE(2, 2), F32(1, 3, 2, 4));
    check_result("...ii->...i", SHAPES(INF_SHAPE(2, 2, 2)), 1, INF_SHAPE(2, 2), F32(1, 4, 5, 8));
}

Test(einsum, multiplies_terms)
{
    check_result("i,i->", SHAPES(INF_SHAPE(3), INF_SHAPE(3)), 2, (struct inf_shape){0}, F32(14));
    check_result("i,j->ij", SHAPES(INF_SHAPE(2), INF_SHAPE(3)), 2, INF_SHAPE(2, 3),
                 F32(1, 2, 3, 2, 4, 6));
    check_result("ij,jk", SHAPES(INF_SHAPE(1, 2), INF_SHAPE(2, 2)), 2, INF_SHAPE(1, 2), F32(7, 10));
    check_result("ij,jk->ki", SHAPES(INF_SHAPE(1, 2), INF_SHAPE(2, 2)), 2, INF_SHAPE(2, 1),
                 F32(7, 10));
    check_result("bij,bjk->bik", SHAPES(INF_SHAPE(2, 1, 2), INF_SHAPE(2, 2, 1)), 2,
                 INF_SHAPE(2, 1, 1), F32(5, 25));
    check_result("...ij,...jk->...ik", SHAPES(INF_SHAPE(2, 1, 2), INF_SHAPE(2, 1)), 2,
                 INF_SHAPE(2, 1, 1), F32(5, 11));
    check_result("ijk,jk->i", SHAPES(INF_SHAPE(2, 2, 2), INF_SHAPE(2, 2)), 2, INF_SHAPE(2),
                 F32(30, 70));
    check_result("ab,b,b->a", SHAPES(INF_SHAPE(2, 2), INF_SHAPE(2), INF_SHAPE(2)), 3, INF_SHAPE(2),
                 F32(9, 19));
    // Each operand has two letters that the product keeps, and the result has them in another
    // order.
    check_result("abc,cde->edba", SHAPES(INF_SHAPE(1, 2, 1), INF_SHAPE(1, 1, 2)), 2,
                 INF_SHAPE(2, 1, 2, 1), F32(1, 2, 2, 4));
}

Test(einsum, refuses_what_makes_no_sense)
{
    static const struct {
        const char *equation, *needle;
    } rows[] = {
        {"ij,jk->ik", "terms as inputs"},  {"ijk->i", "as many axes"}, {"ij->k", "no term has"},
        {"ij->ii", "twice in the result"}, {"i1->i", "more than"},     {"..ij->i", "three dots"},
        {".i.j.->i", "stand apart"},       {"ij->i->j", "more than"},  {"", "as many axes"},
        {"...ijk->i", "as many axes"},     {",", "terms as inputs"},   {"i.->i", "three dots"},
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(rows); i++) {
        INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
        struct inf_error err = {0};
        enum inf_code code =
            evaluate_einsum(rows[i].equation, SHAPES(INF_SHAPE(2, 2)), 1, &graph, &err);
        cr_expect_neq(code, INF_OK, "'%s' is taken", rows[i].equation);
        cr_expect_not_null(strstr(err.text, rows[i].needle), "'%s': %s", rows[i].equation,
                           err.text);
    }
}

Test(einsum, refuses_terms_without_an_input)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_graph_create(&graph, &err), INF_OK);
    struct inf_blob *blob = inf_blob_create(4 * sizeof(float));
    uint32_t inputs[2] = {0, INF_VALUE_NONE}, y;
    cr_assert_eq(
        inf_graph_add_const(graph, "", INF_DTYPE_F32, &INF_SHAPE(2, 2), blob, &inputs[0], &err),
        INF_OK);
    cr_assert_eq(inf_graph_add_einsum(graph, "e", "ij,jk->ik", inputs, 2, &y, &err), INF_INVALID);
    cr_assert_not_null(strstr(err.text, "left out"), "%s", err.text);
}
