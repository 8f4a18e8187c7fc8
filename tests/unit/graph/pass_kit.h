// SPDX-License-Identifier: Apache-2.0
// Helpers for tests of passes: graphs that passes change, and checks of the changed graph.
#ifndef INF_TESTS_UNIT_GRAPH_PASS_KIT_H
#define INF_TESTS_UNIT_GRAPH_PASS_KIT_H

#include "backends/graph/pass/pass.h"
#include "tests/unit/graph/graph_kit.h"

// An evaluator that can only add two INT32 lists, fill FP32 tensors and dequantise zeros. It
// refuses all other nodes.
static inline enum inf_code evaluate_node(void *context, const struct inf_graph *graph,
                                          uint32_t index, struct inf_blob *const *outputs,
                                          const atomic_bool *cancelled, struct inf_error *err)
{
    (void)cancelled;
    const struct inf_node *node = &graph->nodes[index];
    const struct inf_value *a = &graph->values[node->inputs[0]];
    int *calls = context;
    (*calls)++;
    if (node->op == INF_OP_FILL || node->op == INF_OP_DEQUANTIZE)
        return INF_OK; // the output is all zeros
    if (node->op != INF_OP_BINARY || a->dtype != INF_DTYPE_I32)
        return inf_fail(err, INF_UNSUPPORTED, "not here");
    const int32_t *x = a->data->data;
    const int32_t *y = graph->values[node->inputs[1]].data->data;
    for (size_t i = 0; i < outputs[0]->size_bytes / 4; i++)
        ((int32_t *)outputs[0]->data)[i] = x[i] + y[i];
    return INF_OK;
}

// Runs only one pass, followed by drop_dead.
static inline void run_only(struct inf_graph *graph, enum inf_pass pass)
{
    int calls = 0;
    struct inf_error err = {0};
    const struct inf_evaluator evaluator = {.run = evaluate_node, .context = &calls};
    const struct inf_pass_options options = {.disabled = ~(1u << pass | 1u << INF_PASS_DROP_DEAD),
                                             .evaluator = &evaluator};
    cr_assert_eq(inf_passes_run(graph, &options, &err), INF_OK, "%s", err.text);
}

static inline const float *data_of(const struct inf_graph *graph, uint32_t value)
{
    cr_assert(inf_graph_is_const(graph, value));
    return graph->values[value].data->data;
}

enum linear {
    CONV,
    CONV_BIAS,
    DEPTHWISE,
    TRANSPOSE,
    MATMUL,
    MATMUL_B
};

// Adds a convolution or matrix product with two output channels and the filter elements 1, 2, 3, 4.
// Returns the node's output.
static inline uint32_t linear_node(struct inf_graph *graph, enum linear kind)
{
    bool flat = kind == MATMUL || kind == MATMUL_B;
    uint32_t x =
        add_input(graph, "x", INF_DTYPE_F32, flat ? INF_SHAPE(5, 2) : INF_SHAPE(1, 4, 4, 2));
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

// Asserts that the pass does not fuse the convolution or matrix product with the node after it.
// Destroys the graph.
static inline void expect_unfused(struct inf_graph *graph, enum inf_pass pass)
{
    uint32_t before = graph->node_count;
    run_only(graph, pass);
    cr_assert_eq(graph->node_count, before);
    inf_graph_destroy(&graph);
}

// Makes a graph that computes y = op(linear, c), or y = op(c, linear) if `first`, where linear is
// the result of a convolution or matrix product. The constant c has this shape, and its elements
// begin with 2, 3.
static inline struct inf_graph *with_binary(enum inf_binary_kind kind, struct inf_shape shape,
                                            bool first)
{
    struct inf_graph *graph = new_graph();
    uint32_t x = linear_node(graph, CONV_BIAS);
    float elements[32] = {2, 3};
    uint32_t c = add_constant(graph, INF_DTYPE_F32, shape, elements);
    uint32_t y = first ? node(graph, INF_OP_BINARY, "binary", c, x)
                       : node(graph, INF_OP_BINARY, "binary", x, c);
    last_attrs(graph)->binary.kind = kind;
    add_output(graph, "y", y);
    return graph;
}

static const int32_t image_pads[] = {0, 0, 1, 2, 3, 4, 0, 0};

#endif
