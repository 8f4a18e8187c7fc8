// SPDX-License-Identifier: Apache-2.0
// Tests when a program computes a convolution by Winograd's algorithm: only if a form of the
// algorithm won the race for the node, and only if its rounding error with the weights of the node
// is small.
#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/program/kernel_race.h"
#include "backends/graph/shape/infer.h"
#include "backends/storage/record.h"
#include "tests/unit/graph/graph_kit.h"

#define SIDE     20
#define CHANNELS 64
#define ELEMENTS (SIDE * SIDE * CHANNELS)

static char folder[] = "/tmp/inf-winograd-XXXXXX";
static char file[64];

static void create_folder(void)
{
    cr_assert_not_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/kernels.db", folder);
}

static void remove_folder(void)
{
    unlink(file);
    rmdir(folder);
}

TestSuite(winograd_race, .init = create_folder, .fini = remove_folder, .timeout = 60);

// Makes a graph of a 3x3 convolution whose weights are `weight` for the first output channel, and
// down to half as large for others. If `summed` is true, the input of the graph is added to the
// result of the convolution.
static struct inf_graph *make_graph(float weight, bool summed)
{
    static float w[9 * CHANNELS * CHANNELS];
    struct inf_graph *graph = new_graph();
    for (size_t i = 0; i < INF_ARRAY_LENGTH(w); i++)
        w[i] = weight * (1 - 0.25f * (float)(i % CHANNELS % 3));
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, SIDE, SIDE, CHANNELS));
    uint32_t y = node(graph, INF_OP_CONV2D, "conv", x,
                      add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, CHANNELS, CHANNELS), w));
    last_attrs(graph)->conv2d.padding = INF_PADDING_SAME;
    if (summed) {
        y = node(graph, INF_OP_BINARY, "sum", y, x);
        last_attrs(graph)->binary.kind = INF_BINARY_ADD;
    }
    add_output(graph, "y", y);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    return graph;
}

// Compiles the graph, runs it with an input of ones, and destroys it. Returns the central element
// of the result. Sets `kernel` to the name of the last step's kernel. `races`: the device runs
// races for kernels. `by_rule`: the program is compiled with kernels that are chosen by rules.
// `isa_max`: the limit of the device's ISA level; NULL: none.
static float run_graph_at(struct inf_graph *graph, bool races, bool by_rule, const char *isa_max,
                          char kernel[32])
{
    static float x[ELEMENTS + 16], between[ELEMENTS + 16], y[ELEMENTS + 16];
    struct inf_device *device = NULL;
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    struct inf_ticket ticket;
    struct inf_step_profile steps[2];
    struct inf_binding bindings[8] = {0};
    const struct inf_device_options options = {.slots = 1,
                                               .threads = 1,
                                               .cache_directory = folder,
                                               .kernel_races = races,
                                               .isa_max = isa_max};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, NULL), INF_OK);
    const uint32_t nodes[] = {0, 1};
    const struct inf_segment segment = {.graph = graph,
                                        .nodes = nodes,
                                        .node_count = graph->node_count,
                                        .slots = 1,
                                        .by_rule = by_rule};
    if (!by_rule)
        inf_device_choose_kernels(device, &segment);
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_OK, "%s", err.text);
    for (size_t i = 0; i < ELEMENTS; i++)
        x[i] = 1;
    bindings[graph->nodes[0].outputs[0]].host = between;
    bindings[graph->inputs[0].value].host = x;
    bindings[graph->outputs[0].value].host = y;
    const struct inf_run one = {.bindings = bindings, .profile = true};
    cr_assert_eq(inf_program_run(program, &one, &ticket, &err), INF_OK, "%s", err.text);
    uint32_t count = inf_program_profile(program, 0, steps, 2);
    snprintf(kernel, 32, "%s", steps[count - 1].kernel);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    inf_graph_destroy(&graph);
    return y[(SIDE / 2 * SIDE + SIDE / 2) * CHANNELS];
}

static float run_graph(struct inf_graph *graph, bool races, bool by_rule, char kernel[32])
{
    return run_graph_at(graph, races, by_rule, NULL, kernel);
}

// Returns whether one of the kernels that can compute a convolution of `channels` channels is
// Winograd's algorithm, for weights that fit `element`.
static bool lists_winograd(int64_t channels, enum inf_cpu_element element)
{
    struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES];
    struct inf_graph *graph = new_graph();
    size_t count = (size_t)(9 * channels * channels);
    float *w = malloc(count * sizeof *w);
    for (size_t i = 0; i < count; i++)
        w[i] = element == INF_CPU_ELEMENT_UNITS ? (float)(i % 251) - 125
               : element == INF_CPU_ELEMENT_F16 ? (float)(i % 2039) / 1024
                                                : (float)(i % 251) / 127 - 0.3f;
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, SIDE, SIDE, channels));
    add_output(graph, "y",
               node(graph, INF_OP_CONV2D, "conv", x,
                    add_constant(graph, INF_DTYPE_F32, INF_SHAPE(3, 3, channels, channels), w)));
    free(w);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
    uint32_t listed = inf_cpu_kernel_list(candidates, graph, &graph->nodes[0]);
    bool found = false;
    for (uint32_t i = 0; i < listed; i++)
        found |= strncmp(candidates[i].family, "winograd", 8) == 0;
    inf_graph_destroy(&graph);
    return found;
}

Test(winograd_race, is_declined_for_many_weights_that_are_packed_in_8_bits)
{
    cr_expect(lists_winograd(84, INF_CPU_ELEMENT_UNITS), "254,016 bytes in fp32");
    cr_expect_not(lists_winograd(86, INF_CPU_ELEMENT_UNITS), "266,256 bytes");
    cr_expect(lists_winograd(86, INF_CPU_ELEMENT_F16));
    cr_expect(lists_winograd(86, INF_CPU_ELEMENT_F32));
}

// Rewrites the file of race results: `winner` becomes the winner of every race between kernels. The
// results of races between fused chains and single nodes stay.
static void rewrite_winners(const char *winner)
{
    char lines[16][128];
    unsigned count = 0;
    FILE *stream = fopen(file, "r");
    cr_assert_not_null(stream);
    while (count < 16 && fgets(lines[count], sizeof lines[0], stream) != NULL)
        count++;
    fclose(stream);
    stream = fopen(file, "w");
    cr_assert_not_null(stream);
    for (unsigned i = 0; i < count; i++) {
        char key[20], was[32];
        if (i > 0 && sscanf(lines[i], "%17s %31s", key, was) == 2 && strcmp(was, "chains") != 0 &&
            strcmp(was, "nodes") != 0) {
            size_t size = (size_t)snprintf(lines[i], sizeof lines[i], "%s %s", key, winner);
            cr_assert_gt(inf_record_seal(lines[i], size, sizeof lines[i]), 0u);
        }
        fputs(lines[i], stream);
    }
    fclose(stream);
}

Test(winograd_race, rules_never_choose_it)
{
    char kernel[32];
    cr_assert_eq(run_graph(make_graph(0.5f, false), false, false, kernel), 9 * 0.5f * CHANNELS);
    cr_assert_null(strstr(kernel, "winograd"), "%s", kernel);
    run_graph(make_graph(0.5f, false), true, false, kernel);
    rewrite_winners("winograd_f4");
    run_graph(make_graph(0.5f, false), true, true, kernel);
    cr_assert_null(strstr(kernel, "winograd"), "%s", kernel);
}

Test(winograd_race, computes_a_node_whose_comparison_it_won)
{
    char kernel[32];
    run_graph(make_graph(0.5f, false), true, false, kernel);
    rewrite_winners("winograd_f4");
    float y = run_graph(make_graph(0.5f, false), true, false, kernel);
    cr_assert_str_eq(kernel, "winograd f4x4");
    cr_assert_float_eq(y, 9 * 0.5f * CHANNELS, 1e-3);
    rewrite_winners("winograd_f2");
    run_graph(make_graph(0.5f, false), true, false, kernel);
    cr_assert_str_eq(kernel, "winograd f2x2");
}

Test(winograd_race, computes_the_sum_after_a_convolution_that_it_won)
{
    char kernel[32];
    run_graph(make_graph(0.5f, true), true, false, kernel);
    rewrite_winners("winograd_f4");
    float y = run_graph(make_graph(0.5f, true), true, false, kernel);
    if (strstr(kernel, "+add") != NULL)
        cr_assert_str_eq(kernel, "winograd f4x4+add");
    cr_assert_float_eq(y, 9 * 0.5f * CHANNELS + 1, 1e-3);
}

// A race result is recorded for the shape of a node, so it also applies to other weights. If
// Winograd's algorithm won, it must still be declined for weights that make it overflow.
Test(winograd_race, is_declined_for_weights_that_overflow_in_its_transforms)
{
    char kernel[32];
    float large = 0x1p122f;
    run_graph(make_graph(0.5f, false), true, false, kernel);
    rewrite_winners("winograd_f4");
    // Direct sums stay below the largest float: 576 * 2^118 < 2^128.
    float y = run_graph(make_graph(large / 16, false), true, false, kernel);
    cr_assert_str_eq(kernel, "winograd f4x4");
    cr_assert_float_eq(y / large, 9.0f * CHANNELS / 16, 1e-3f);
    run_graph(make_graph(INFINITY, false), true, false, kernel);
    cr_assert_null(strstr(kernel, "winograd"), "%s", kernel);
    run_graph(make_graph(NAN, true), true, false, kernel);
    cr_assert_null(strstr(kernel, "winograd"), "%s", kernel);
    run_graph(make_graph(FLT_MAX / 2, false), true, false, kernel);
    cr_assert_null(strstr(kernel, "winograd"), "%s", kernel);
}

Test(winograd_race, has_times_and_leaves_no_weights)
{
    struct inf_device *device = NULL;
    struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES];
    struct inf_graph *graph = make_graph(1, false);
    uint32_t count;
    unsigned forms = 0;
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, NULL, NULL), INF_OK);
    cr_assert_eq(inf_cpu_kernel_race_node(candidates, &count, device, graph, 0, NULL), INF_OK);
    for (uint32_t i = 0; i < count; i++) {
        cr_assert_gt(candidates[i].least_ns, 0u, "%s", candidates[i].family);
        forms += strncmp(candidates[i].family, "winograd", 8) == 0;
    }
    cr_assert_eq(forms, 2u, "20 x 20 results: F(6) has no fewer products than F(4)");
    cr_assert_eq(inf_device_memory(device).weight_bytes, 0u, "weights of a comparison are left");
    inf_device_unref(&device);
    inf_graph_destroy(&graph);
}

// XNNPACK may use any instructions of the processor, so a device that is limited to a lower level
// does not let its kernels win.
Test(winograd_race, xnnpack_is_no_candidate_below_the_level_of_the_processor)
{
    char kernel[32];
    if (inf_isa_level(1) == NULL)
        cr_skip_test("this processor has one ISA level");
    for (unsigned level = 0; inf_isa_level(level) != NULL; level++) {
        const char *isa_max = inf_isa_level(level)->name;
        bool limited = inf_isa_level(level) != inf_isa_best();
        run_graph_at(make_graph(0.5f, false), true, false, isa_max, kernel);
        rewrite_winners("xnn_conv");
        run_graph_at(make_graph(0.5f, false), true, false, isa_max, kernel);
        cr_expect_eq(strncmp(kernel, "xnn", 3) != 0, limited, "%s: %s", isa_max, kernel);
        unlink(file);
    }
}
