// SPDX-License-Identifier: Apache-2.0
// Models in lower precision than fp32. Pinned nodes stay in fp32, the other nodes are rounded, and
// the result always reports its precision.
#include <criterion/criterion.h>
#include <math.h>

#include "backends/exec/model/model.h"
#include "backends/ref/ref.h"
#include "proto/core/span.h"
#include "tests/support/device/odd_devices.h"

#define COUNT 4

static struct inf_device *open_device(const struct inf_backend *backend)
{
    struct inf_device *device = NULL;
    cr_assert_eq(inf_device_open(&device, backend, 0, NULL, NULL), INF_OK);
    return device;
}

// Makes a model of y = -(x * x), with the nodes "square" and "y".
static struct inf_model *make_model(struct inf_device *host)
{
    struct inf_graph *graph;
    struct inf_model *model;
    const struct inf_shape shape = INF_SHAPE(COUNT);
    uint32_t x, square, negated;
    const struct inf_pass_options passes = {.evaluator = inf_ref_evaluator()};
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &shape, &x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_BINARY, "square", "", (uint32_t[]){x, x}, 2, 1,
                                    &square, NULL),
                 INF_OK);
    graph->nodes[square].attrs.binary.kind = INF_BINARY_MUL;
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_UNARY, "y", "", &graph->nodes[square].outputs[0],
                                    1, 1, &negated, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_output(graph, "y", graph->nodes[negated].outputs[0], NULL), INF_OK);
    cr_assert_eq(inf_model_create(&model, &graph, &host, 1, &passes, NULL), INF_OK);
    return model;
}

// Runs the model with these options. Returns the precision that the result reports.
static enum inf_precision run_model(struct inf_model *model, struct inf_device *device,
                                    const struct inf_run_options *options, const float x[COUNT],
                                    float y[COUNT], atomic_bool *overflowed)
{
    const struct inf_shape shape = INF_SHAPE(COUNT);
    struct inf_executable *executable = NULL;
    struct inf_error err = {0};
    enum inf_code code =
        options != NULL ? inf_model_acquire_with(model, device, options, &shape, &executable, &err)
                        : inf_model_acquire(model, device, &shape, &executable, &err);
    cr_assert_eq(code, INF_OK, "%s", err.text);
    enum inf_precision precision = inf_executable_precision(executable);
    const struct inf_execution execution = {
        .inputs = (const void *[]){x}, .outputs = (void *[]){y}, .overflowed = overflowed};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_model_release(model, &executable);
    return precision;
}

// 1.0009765625 = 1 + 2^-10 is exact in half precision. Its square 1 + 2^-9 + 2^-20 rounds to 1 +
// 2^-9 in half precision. In bfloat16, which has 8 bits, 1 + 2^-10 rounds to 1.
Test(precision, rounds_what_is_not_pinned_and_says_so)
{
    struct inf_device *half = open_device(&inf_half_backend), *ref = open_device(&inf_ref_backend);
    struct inf_model *model = make_model(ref);
    const float x[COUNT + 16] = {1.0009765625f, 2, 300, -1};
    float y[COUNT + 16];
    const struct inf_run_options fp16 = {.precision = INF_PRECISION_FP16};
    const struct inf_run_options bf16 = {.precision = INF_PRECISION_BF16};
    const struct inf_run_options plain = {0};
    cr_expect_eq(run_model(model, half, &plain, x, y, NULL), INF_PRECISION_FP32);
    cr_expect_eq(y[0], -1.0019540786743164f);
    cr_expect_eq(y[2], -90000.f);
    cr_expect_eq(run_model(model, half, &fp16, x, y, NULL), INF_PRECISION_FP16);
    cr_expect_eq(y[0], -1.001953125f);
    cr_expect_eq(y[1], -4.f);
    cr_expect_eq(y[2], -INFINITY);
    cr_expect_eq(run_model(model, half, &bf16, x, y, NULL), INF_PRECISION_BF16);
    cr_expect_eq(y[0], -1.f);
    cr_expect_eq(y[2], -90112.f); // 90000 rounded to 8 bits is 176 * 512
    // The model keeps one executable for each of the three precisions.
    cr_expect_eq(inf_model_memory(model).executables, 3u);
    inf_model_unref(&model);
    inf_device_unref(&half);
    inf_device_unref(&ref);
}

Test(precision, pinned_nodes_stay_whole)
{
    struct inf_device *half = open_device(&inf_half_backend), *ref = open_device(&inf_ref_backend);
    struct inf_model *model = make_model(ref);
    const float x[COUNT + 16] = {300, 1.0009765625f, 0, 0};
    float y[COUNT + 16];
    const struct inf_run_options fp16 = {.precision = INF_PRECISION_FP16};
    const struct inf_graph *graph = inf_model_graph(model);
    uint64_t pins[4];
    cr_assert_leq(graph->node_count, 4u);
    for (uint32_t n = 0; n < graph->node_count; n++)
        pins[n] = inf_node_hash(&graph->nodes[n]);
    cr_assert_eq(inf_model_pin(model, INF_PRECISION_FP16, pins, graph->node_count, NULL), INF_OK);
    cr_expect_eq(run_model(model, half, &fp16, x, y, NULL), INF_PRECISION_FP32,
                 "nothing is lowered");
    cr_expect_eq(y[0], -90000.f);
    cr_expect_eq(y[1], -1.0019540786743164f);
    inf_model_unref(&model);
    model = make_model(ref); // a new model, in which only the first node is pinned
    cr_assert_eq(inf_model_pin(model, INF_PRECISION_FP16, pins, 1, NULL), INF_OK);
    cr_expect_eq(run_model(model, half, &fp16, x, y, NULL), INF_PRECISION_FP16);
    cr_expect_eq(y[1], -1.001953125f);
    inf_model_unref(&model);
    inf_device_unref(&half);
    inf_device_unref(&ref);
}

Test(precision, is_refused_by_devices_that_do_not_offer_it)
{
    struct inf_device *half = open_device(&inf_half_backend), *ref = open_device(&inf_ref_backend);
    struct inf_model *model = make_model(ref);
    const uint32_t nodes[] = {0};
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    struct inf_segment segment = {.graph = inf_model_graph(model),
                                  .nodes = nodes,
                                  .node_count = 1,
                                  .slots = 1,
                                  .precision = INF_PRECISION_INT8};
    cr_expect_eq(inf_program_compile(&program, half, &segment, 0, &err), INF_UNSUPPORTED);
    cr_expect_str_eq(err.text, "device 'half' does not compute in int8");
    segment.precision = INF_PRECISION_FP16;
    cr_expect_eq(inf_program_compile(&program, ref, &segment, 0, &err), INF_UNSUPPORTED);
    // `ref` does not compute in half precision, so its executable runs in fp32.
    const float x[COUNT + 16] = {300, 1.0009765625f, 0, 0};
    float y[COUNT + 16];
    cr_expect_eq(
        run_model(model, ref, &(struct inf_run_options){INF_PRECISION_FP16, 0}, x, y, NULL),
        INF_PRECISION_FP32);
    cr_expect_eq(y[0], -90000.f);
    inf_model_unref(&model);
    inf_device_unref(&half);
    inf_device_unref(&ref);
}

Test(precision, what_is_preferred_holds_for_one_device_and_can_change)
{
    struct inf_device *half = open_device(&inf_telling_backend),
                      *ref = open_device(&inf_ref_backend);
    struct inf_model *model = make_model(ref);
    const float x[COUNT + 16] = {300, 1.0009765625f, 0, 0};
    float y[COUNT + 16];
    atomic_bool overflowed = false;
    const struct inf_run_options fp16 = {.precision = INF_PRECISION_FP16};
    inf_model_set_default_options(model, half, &fp16);
    cr_expect_eq(run_model(model, half, NULL, x, y, &overflowed), INF_PRECISION_FP16);
    cr_expect(atomic_load(&overflowed));
    cr_expect_eq(run_model(model, ref, NULL, x, y, NULL), INF_PRECISION_FP32);
    cr_expect_eq(inf_model_default_options(model, ref).precision, INF_PRECISION_FP32);
    inf_model_set_default_options(model, half, &(struct inf_run_options){0});
    atomic_store(&overflowed, false);
    cr_expect_eq(run_model(model, half, NULL, x, y, &overflowed), INF_PRECISION_FP32);
    cr_expect(!atomic_load(&overflowed));
    cr_expect_eq(y[0], -90000.f);
    inf_model_unref(&model);
    inf_device_unref(&half);
    inf_device_unref(&ref);
}
