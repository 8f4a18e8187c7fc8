// SPDX-License-Identifier: Apache-2.0
// Helpers that build small graphs in few lines. Every helper asserts that it succeeded.
#ifndef INF_TESTS_UNIT_GRAPH_GRAPH_KIT_H
#define INF_TESTS_UNIT_GRAPH_GRAPH_KIT_H

#include <criterion/criterion.h>
#include <string.h>

#include "backends/graph/graph.h"
#include "backends/graph/print.h"

#define SCALAR ((struct inf_shape){0})
#define ANY    ((struct inf_shape){.rank = INF_RANK_UNKNOWN})

static inline struct inf_graph *new_graph(void)
{
    struct inf_graph *graph;
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    return graph;
}

// Adds a graph input with this name, type and shape.
static inline uint32_t add_input(struct inf_graph *graph, const char *name, enum inf_dtype dtype,
                                 struct inf_shape shape)
{
    uint32_t value;
    cr_assert_eq(inf_graph_add_value(graph, name, dtype, &shape, &value, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, name, value, NULL), INF_OK);
    return value;
}

// Adds a constant with the elements `data`, or with zeros if `data` is NULL.
static inline uint32_t add_constant(struct inf_graph *graph, enum inf_dtype dtype,
                                    struct inf_shape shape, const void *data)
{
    uint32_t value;
    size_t size_bytes;
    cr_assert(inf_shape_bytes(&shape, dtype, &size_bytes));
    struct inf_blob *blob = inf_blob_create(size_bytes);
    cr_assert_not_null(blob);
    if (data != NULL && size_bytes > 0)
        memcpy(blob->data, data, size_bytes);
    cr_assert_eq(inf_graph_add_const(graph, "const", dtype, &shape, blob, &value, NULL), INF_OK);
    return value;
}

// Adds an FP32 constant, for example floats(graph, INF_SHAPE(3), 1, 2, 3).
#define floats(graph, shape, ...)                                                                  \
    add_constant((graph), INF_DTYPE_F32, (shape), (const float[]){__VA_ARGS__})

// Adds a constant list of INT32.
#define ints(graph, ...)                                                                           \
    add_constant((graph), INF_DTYPE_I32,                                                           \
                 INF_SHAPE(sizeof((const int32_t[]){__VA_ARGS__}) / sizeof(int32_t)),              \
                 (const int32_t[]){__VA_ARGS__})

// Adds a node with one output and default attributes, for example node(graph, INF_OP_BINARY, "sum",
// a, b).
#define node(graph, op, name, ...)                                                                 \
    add_node((graph), (op), (name), (const uint32_t[]){__VA_ARGS__},                               \
             sizeof((const uint32_t[]){__VA_ARGS__}) / sizeof(uint32_t), 1)

static inline uint32_t add_node(struct inf_graph *graph, enum inf_op op, const char *name,
                                const uint32_t *inputs, uint32_t input_count, uint32_t outputs)
{
    uint32_t index;
    struct inf_error err = {0};
    cr_assert_eq(
        inf_graph_add_node(graph, op, name, "", inputs, input_count, outputs, &index, &err), INF_OK,
        "%s", err.text);
    return graph->nodes[index].outputs[0];
}

// Returns the attributes of the node that was added last.
static inline union inf_attrs *last_attrs(struct inf_graph *graph)
{
    return &graph->nodes[graph->node_count - 1].attrs;
}

static inline void add_output(struct inf_graph *graph, const char *name, uint32_t value)
{
    cr_assert_eq(inf_graph_add_output(graph, name, value, NULL), INF_OK);
}

// Returns the text form of the graph, which the caller frees.
static inline char *print_to_text(const struct inf_graph *graph)
{
    char *text = NULL;
    size_t size;
    FILE *file = open_memstream(&text, &size);
    cr_assert_not_null(file);
    inf_graph_print(graph, file);
    fclose(file);
    return text;
}

#endif
