// SPDX-License-Identifier: Apache-2.0
// Graphs of one node, compiled and run on the cpu device. Helpers that return no code assert that
// they succeeded.
#ifndef INF_TESTS_UNIT_CPU_SINGLE_NODE_H
#define INF_TESTS_UNIT_CPU_SINGLE_NODE_H

#include <criterion/criterion.h>
#include <string.h>

#include "backends/cpu/cpu.h"

// A graph of one node. Add its operands first, and the node last.
struct single {
    struct inf_graph *graph;
    uint32_t node;
    uint32_t operands[4]; // indices of the node's operands among the values of the graph
    uint32_t count;
};

static inline void start_graph(struct single *single)
{
    *single = (struct single){0};
    cr_assert_eq(inf_graph_create(&single->graph, NULL), INF_OK);
}

static inline void add_operand(struct single *single, enum inf_dtype dtype,
                               const struct inf_shape *shape)
{
    uint32_t *value = &single->operands[single->count++];
    cr_assert_eq(inf_graph_add_value(single->graph, "x", dtype, shape, value, NULL), INF_OK);
}

// Adds a constant operand of type f32, or of type i32 if `floats` is NULL.
static inline void add_constant(struct single *single, const struct inf_shape *shape,
                                const float *floats, const int32_t *integers)
{
    size_t size = inf_shape_elements(shape) * 4;
    struct inf_blob *blob = inf_blob_create(size);
    memcpy(blob->data, floats != NULL ? (const void *)floats : integers, size);
    cr_assert_eq(inf_graph_add_const(single->graph, "c",
                                     floats != NULL ? INF_DTYPE_F32 : INF_DTYPE_I32, shape, blob,
                                     &single->operands[single->count++], NULL),
                 INF_OK);
}

static inline union inf_attrs *add_node(struct single *single, enum inf_op op)
{
    cr_assert_eq(inf_graph_add_node(single->graph, op, "node", "", single->operands, single->count,
                                    1, &single->node, NULL),
                 INF_OK);
    return &single->graph->nodes[single->node].attrs;
}

static inline uint32_t get_output(const struct single *single)
{
    return single->graph->nodes[single->node].outputs[0];
}

static inline struct inf_device *device_of(uint32_t slots, uint32_t threads)
{
    struct inf_device *device = NULL;
    struct inf_device_options options = {.slots = slots, .threads = threads};
    struct inf_error err = {0};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, &err), INF_OK, "%s",
                 err.text);
    return device;
}

static inline struct inf_program *program_of(struct inf_device *device, const struct single *single,
                                             uint32_t slots)
{
    struct inf_segment segment = {
        .graph = single->graph, .nodes = &single->node, .node_count = 1, .slots = slots};
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_OK, "%s", err.text);
    return program;
}

// Runs the program in the slot that `options` names. x is the first operand, y the result.
static inline enum inf_code run_program(struct inf_program *program, const struct single *single,
                                        void *x, void *y, struct inf_run options)
{
    struct inf_binding bindings[8] = {0};
    struct inf_ticket ticket;
    bindings[single->operands[0]].host = x;
    bindings[get_output(single)].host = y;
    options.bindings = bindings;
    return inf_program_run(program, &options, &ticket, NULL);
}

// Memory for an operand, followed by slack bytes that kernels may read but not write.
struct buffer {
    _Alignas(64) float data[64];
    char slack[INF_BLOB_SLACK_BYTES];
};

#endif
