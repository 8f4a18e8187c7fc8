// SPDX-License-Identifier: Apache-2.0
// Parts of the graphs of test_history and test_join: inputs, scores of attention, and outputs.
#include "tests/conformance/history/history_graph.h"

#include <criterion/criterion.h>

struct inf_builder begin_graph(struct inf_error *err)
{
    struct inf_graph *graph = NULL;
    cr_assert_eq(inf_graph_create(&graph, err), INF_OK);
    return (struct inf_builder){
        .graph = graph, .noun = "node", .name = "n", .source = "", .err = err};
}

uint32_t add_typed_input(struct inf_builder *b, const char *name, enum inf_dtype dtype,
                         struct inf_shape shape)
{
    uint32_t value;
    cr_assert_eq(inf_graph_add_value(b->graph, name, dtype, &shape, &value, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(b->graph, name, value, NULL), INF_OK);
    return value;
}

uint32_t add_input(struct inf_builder *b, const char *name, struct inf_shape shape)
{
    return add_typed_input(b, name, INF_DTYPE_F32, shape);
}

uint32_t add_scores(struct inf_builder *b, uint32_t x, uint32_t rows)
{
    struct inf_build_node product = inf_build_describe(INF_OP_MATMUL, x, rows, INF_VALUE_NONE);
    product.attrs.matmul.transpose_b = true;
    return inf_build_value(b, &product);
}

struct inf_graph *end_graph(struct inf_builder *b, uint32_t y, uint32_t rows)
{
    cr_assert_eq(b->code, INF_OK, "%s", b->err->text);
    cr_assert_eq(inf_graph_add_output(b->graph, "y", y, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_output(b->graph, "rows", rows, NULL), INF_OK);
    return b->graph;
}
