// SPDX-License-Identifier: Apache-2.0
// Products of bytes whose weights have a zero point: sums are exact whether weights have carries
// (backends/cpu/quantized/fold.h) or not, and carries take little memory beside the weights.
#include <criterion/criterion.h>
#include <string.h>

#include "backends/cpu/cpu.h"
#include "backends/graph/shape/infer.h"

#define ROWS    5
#define DEPTH   260
#define COLUMNS 70

static uint32_t draw_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

static uint32_t add_bytes(struct inf_graph *graph, const struct inf_shape *shape,
                          const uint8_t *bytes)
{
    uint32_t value;
    size_t size = inf_shape_elements(shape);
    struct inf_blob *blob = inf_blob_create(size);
    memcpy(blob->data, bytes, size);
    cr_assert_eq(inf_graph_add_const(graph, "c", INF_DTYPE_U8, shape, blob, &value, NULL), INF_OK);
    return value;
}

// Multiplies bytes with weights, whose zero point is `zero`, and checks the sums. Returns the bytes
// that the device has for the weights.
static uint64_t check_product(const uint8_t *weights, uint8_t zero)
{
    static uint8_t x[ROWS * DEPTH + INF_BLOB_SLACK_BYTES];
    static int32_t y[ROWS * COLUMNS + INF_BLOB_SLACK_BYTES];
    uint32_t state = 3, inputs[5], node;
    struct inf_graph *graph = NULL;
    struct inf_device *device = NULL;
    struct inf_program *program = NULL;
    struct inf_binding bindings[8] = {0};
    struct inf_ticket ticket;
    const struct inf_device_options options = {.slots = 1, .threads = 1};
    for (size_t i = 0; i < ROWS * DEPTH; i++)
        x[i] = (uint8_t)draw_bits(&state);
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(
        inf_graph_add_value(graph, "x", INF_DTYPE_U8, &INF_SHAPE(ROWS, DEPTH), &inputs[0], NULL),
        INF_OK);
    inputs[1] = add_bytes(graph, &INF_SHAPE(DEPTH, COLUMNS), weights);
    inputs[2] = INF_VALUE_NONE;
    inputs[3] = add_bytes(graph, &INF_SHAPE(1), (const uint8_t[]){7});
    inputs[4] = add_bytes(graph, &INF_SHAPE(1), &zero);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_QMATMUL, "node", "", inputs, 5, 1, &node, NULL),
                 INF_OK);
    graph->nodes[node].attrs.qmatmul.dtype = INF_DTYPE_I32;
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, NULL), INF_OK);
    const struct inf_segment segment = {
        .graph = graph, .nodes = &node, .node_count = 1, .slots = 1};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, NULL), INF_OK);
    bindings[inputs[0]].host = x;
    bindings[graph->nodes[node].outputs[0]].host = y;
    const struct inf_run run = {.bindings = bindings};
    cr_assert_eq(inf_program_run(program, &run, &ticket, NULL), INF_OK);
    for (size_t row = 0; row < ROWS; row++)
        for (size_t column = 0; column < COLUMNS; column++) {
            int32_t sum = 0;
            for (size_t k = 0; k < DEPTH; k++)
                sum += (x[row * DEPTH + k] - 7) * (weights[k * COLUMNS + column] - zero);
            cr_assert_eq(y[row * COLUMNS + column], sum, "row %zu, column %zu", row, column);
        }
    uint64_t bytes = inf_device_memory(device).weight_bytes;
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&graph);
    return bytes;
}

// `zero` is the zero point of the weights, and `far` the weight that differs most from it.
static void check_carries(uint8_t zero, uint8_t far)
{
    static uint8_t weights[DEPTH * COLUMNS];
    uint32_t state = 1;
    memset(weights, zero, sizeof weights);
    uint64_t none = check_product(weights, zero);
    weights[7] = far; // carries for one group of four rows
    uint64_t one = check_product(weights, zero);
    cr_expect_gt(one, none);
    for (size_t i = 0; i < sizeof weights; i++)
        weights[i] = (uint8_t)draw_bits(&state);
    uint64_t many = check_product(weights, zero);
    cr_expect_leq(one, none + sizeof weights / 8);
    cr_expect_leq(many, none + sizeof weights / 8, "%lu bytes without carries, %lu with many", none,
                  many);
}

Test(q8_carries, take_little_memory_and_change_no_sum)
{
    check_carries(128 + 60, 0);   // weights minus zero are -188 to 67
    check_carries(128 - 60, 255); // and -68 to 187
}
