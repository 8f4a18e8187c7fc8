// SPDX-License-Identifier: Apache-2.0
// Products in bf16 on the cpu device. If only weights are rounded, results equal bit by bit the
// fp32 results with weights that were rounded beforehand, for all parts of a sum and for column
// counts that are no multiple of the vector width. If operands are rounded too, results stay within
// the error of that rounding. Pinned nodes (nodes that must stay in fp32) use unrounded weights.
#include <criterion/criterion.h>
#include <math.h>
#include <string.h>

#include "backends/base/half.h"
#include "backends/exec/static_executable.h"
#include "backends/graph/shape/infer.h"
#include "backends/registry.h"
#include "proto/core/span.h"

#define CHANNELS 37 // odd, so that the last row of weights has no row to pair with
#define HEIGHT   7
#define WIDTH    9
#define OUTPUTS  (HEIGHT * WIDTH * 70)

struct net {
    struct inf_graph *graph;
    uint32_t value;
    bool rounded; // constants are rounded to bf16 before the graph is built
};

// Returns numbers in -1 .. 1 that bf16 cannot represent.
static float draw_float(size_t i)
{
    return (float)((i * 2654435761u >> 8) % 65521) / 32760 - 1;
}

static uint32_t add_constant(struct net *net, const struct inf_shape *shape)
{
    uint32_t value;
    size_t count = inf_shape_elements(shape);
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    float *data = blob->data;
    for (size_t i = 0; i < count; i++)
        data[i] =
            net->rounded ? inf_bf16_to_float(inf_bf16_from_float(draw_float(i))) : draw_float(i);
    cr_assert_eq(inf_graph_add_const(net->graph, "w", INF_DTYPE_F32, shape, blob, &value, NULL),
                 INF_OK);
    return value;
}

static struct inf_node *add_node(struct net *net, enum inf_op op, const char *name,
                                 uint32_t weights)
{
    uint32_t index;
    uint32_t inputs[] = {net->value, weights};
    cr_assert_eq(inf_graph_add_node(net->graph, op, name, "", inputs, 2, 1, &index, NULL), INF_OK);
    net->value = net->graph->nodes[index].outputs[0];
    return &net->graph->nodes[index];
}

// Builds a 1x1 convolution, a 3x3 convolution, and a product with a transposed matrix.
static struct inf_graph *build_graph(bool rounded)
{
    struct net net = {.rounded = rounded};
    cr_assert_eq(inf_graph_create(&net.graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(net.graph, "x", INF_DTYPE_F32,
                                     &INF_SHAPE(1, HEIGHT, WIDTH, CHANNELS), &net.value, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(net.graph, "x", net.value, NULL), INF_OK);
    add_node(&net, INF_OP_CONV2D, "pixels", add_constant(&net, &INF_SHAPE(1, 1, CHANNELS, 39)))
        ->attrs.conv2d.padding = INF_PADDING_SAME;
    add_node(&net, INF_OP_CONV2D, "windows", add_constant(&net, &INF_SHAPE(3, 3, 39, 21)))
        ->attrs.conv2d.padding = INF_PADDING_SAME;
    add_node(&net, INF_OP_MATMUL, "product", add_constant(&net, &INF_SHAPE(70, 21)))
        ->attrs.matmul.transpose_b = true;
    cr_assert_eq(inf_graph_add_output(net.graph, "y", net.value, NULL), INF_OK);
    struct inf_error err = {0};
    cr_assert_eq(inf_shape_infer(net.graph, &err), INF_OK, "%s", err.text);
    return net.graph;
}

static struct inf_device *open_cpu(uint32_t threads, const char *isa_max)
{
    struct inf_device *device = NULL;
    const struct inf_device_options options = {.slots = 1, .threads = threads, .isa_max = isa_max};
    cr_assert_eq(inf_device_open(&device, inf_registry_find("cpu"), 0, &options, NULL), INF_OK);
    return device;
}

static void run_at(const char *isa_max, struct inf_graph *graph,
                   const struct inf_run_options *options, uint32_t threads, float *y)
{
    struct inf_device *devices[2] = {open_cpu(threads, isa_max), NULL};
    struct inf_error err = {0};
    cr_assert_eq(inf_device_open(&devices[1], inf_registry_find("ref"), 0, NULL, NULL), INF_OK);
    struct inf_blob *x = inf_blob_create(HEIGHT * WIDTH * CHANNELS * sizeof(float));
    for (size_t i = 0; i < HEIGHT * WIDTH * CHANNELS; i++)
        ((float *)x->data)[i] = draw_float(i * 31 + 7);
    struct inf_executable *executable = NULL;
    cr_assert_eq(inf_static_executable_create(&executable, &graph, devices, 2, options, &err),
                 INF_OK, "%s", err.text);
    cr_expect_eq(inf_executable_precision(executable), options->precision);
    const struct inf_execution execution = {.inputs = (const void *[]){x->data},
                                            .outputs = (void *[]){y}};
    cr_assert_eq(inf_executable_run(executable, &execution, &err), INF_OK, "%s", err.text);
    inf_executable_destroy(&executable);
    inf_blob_unref(&x);
    for (size_t i = 0; i < 2; i++)
        inf_device_unref(&devices[i]);
}

static void run_graph(struct inf_graph *graph, const struct inf_run_options *options, float *y)
{
    run_at(NULL, graph, options, 1, y);
}

static bool bf16_offered(void)
{
    struct inf_device *device = open_cpu(1, NULL);
    bool answer = inf_device_info(device)->precisions & INF_PRECISION_BIT(INF_PRECISION_BF16);
    inf_device_unref(&device);
    return answer;
}

static const struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32};

Test(bf16, is_fp32_with_weights_rounded_beforehand)
{
    if (!bf16_offered())
        cr_skip_test("this processor has no loops for bf16");
    static float wanted[OUTPUTS], got[OUTPUTS], exact[OUTPUTS];
    const struct inf_run_options bf16 = {.precision = INF_PRECISION_BF16};
    run_graph(build_graph(true), &fp32, wanted);
    run_graph(build_graph(false), &fp32, exact);
    cr_assert(memcmp(wanted, exact, sizeof wanted) != 0);
    for (uint32_t threads = 1; threads <= 2; threads++) {
        run_at("avx512_vnni", build_graph(false), &bf16, threads, got);
        cr_assert_arr_eq(got, wanted, sizeof wanted, "%u threads", threads);
    }
}

Test(bf16, is_near_it_where_operands_are_rounded_too)
{
    if (!bf16_offered())
        cr_skip_test("this processor has no loops for bf16");
    static float wanted[OUTPUTS], got[2][OUTPUTS];
    const struct inf_run_options bf16 = {.precision = INF_PRECISION_BF16};
    double largest = 0;
    run_graph(build_graph(true), &fp32, wanted);
    for (size_t i = 0; i < OUTPUTS; i++)
        largest = fmax(largest, fabs((double)wanted[i]));
    for (uint32_t threads = 1; threads <= 2; threads++) {
        run_at(NULL, build_graph(false), &bf16, threads, got[threads - 1]);
        // Three products follow one another, and each rounds its operands with a relative error of
        // at most 2^-9. So the tolerance is three times that error.
        for (size_t i = 0; i < OUTPUTS; i++)
            cr_assert_float_eq(got[threads - 1][i], wanted[i], largest * 3 / 512, "element %zu", i);
    }
    cr_assert_arr_eq(got[0], got[1], sizeof got[0], "threads change no bit");
}

Test(bf16, leaves_what_is_pinned_in_fp32)
{
    if (!bf16_offered())
        cr_skip_test("this processor has no loops for bf16");
    static float wanted[OUTPUTS], got[OUTPUTS], lowered[OUTPUTS];
    uint64_t hashes[3];
    struct inf_graph *graph = build_graph(false);
    for (uint32_t i = 0; i < 3; i++)
        hashes[i] = inf_node_hash(&graph->nodes[i]);
    inf_graph_destroy(&graph);
    const struct inf_run_options some = {
        .precision = INF_PRECISION_BF16, .pinned = hashes, .pinned_count = 2};
    const struct inf_run_options none = {.precision = INF_PRECISION_BF16};
    run_graph(build_graph(false), &fp32, wanted);
    run_graph(build_graph(false), &some, got);
    run_graph(build_graph(false), &none, lowered);
    cr_assert(memcmp(got, wanted, sizeof wanted) != 0, "the product was rounded");
    cr_assert(memcmp(got, lowered, sizeof wanted) != 0, "the convolutions were not");
}

Test(bf16, is_refused_where_there_are_no_loops_for_it)
{
    struct inf_device *device = open_cpu(1, "baseline");
    struct inf_graph *graph = build_graph(false);
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    const uint32_t nodes[] = {0, 1, 2};
    const struct inf_segment segment = {.graph = graph,
                                        .nodes = nodes,
                                        .node_count = 3,
                                        .slots = 1,
                                        .precision = INF_PRECISION_BF16};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_UNSUPPORTED);
    cr_assert(strstr(err.text, "does not compute in bf16") != NULL, "%s", err.text);
    inf_graph_destroy(&graph);
    inf_device_unref(&device);
}
