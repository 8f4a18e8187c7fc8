// SPDX-License-Identifier: Apache-2.0
// A row pipeline computed at every level of fusion. Tests which level is chosen, that the results
// of timing races are recorded and used, and that all levels give the same result.
#include <criterion/criterion.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/cpu/cpu.h"
#include "backends/cpu/kernels/isa.h"
#include "backends/cpu/program/device.h"
#include "backends/cpu/program/fusion_race.h"
#include "backends/graph/shape/infer.h"
#include "backends/storage/build_id.h"
#include "backends/storage/record.h"

#define SIDE 64

static char folder[] = "/tmp/inf-forms-XXXXXX";
static char file[64];
static struct inf_graph *graph;
static unsigned races; // number of logged timing races

static uint32_t add_conv(enum inf_op op, const char *name, uint32_t x, struct inf_shape shape)
{
    uint32_t w, node;
    size_t count = inf_shape_elements(&shape);
    struct inf_blob *blob = inf_blob_create(count * sizeof(float));
    for (size_t i = 0; i < count; i++)
        ((float *)blob->data)[i] = (float)(i * 5 % 7) - 3;
    cr_assert_eq(inf_graph_add_const(graph, name, INF_DTYPE_F32, &shape, blob, &w, NULL), INF_OK);
    const uint32_t inputs[] = {x, w};
    cr_assert_eq(inf_graph_add_node(graph, op, name, "", inputs, 2, 1, &node, NULL), INF_OK);
    if (op == INF_OP_CONV2D)
        graph->nodes[node].attrs.conv2d.padding = INF_PADDING_SAME;
    else
        graph->nodes[node].attrs.depthwise_conv2d.padding = INF_PADDING_SAME;
    return graph->nodes[node].outputs[0];
}

// Makes a folder for the file of race results, and a graph of a 1x1 convolution, a depthwise
// convolution and another 1x1 convolution. The tensors between them are large, so that a row
// pipeline is worthwhile.
static void create_device(void)
{
    uint32_t x;
    cr_assert_not_null(mkdtemp(folder));
    snprintf(file, sizeof file, "%s/kernels.db", folder);
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(
        inf_graph_add_value(graph, "x", INF_DTYPE_F32, &INF_SHAPE(1, SIDE, SIDE, 8), &x, NULL),
        INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    x = add_conv(INF_OP_CONV2D, "wide", x, INF_SHAPE(1, 1, 8, 32));
    x = add_conv(INF_OP_DEPTHWISE_CONV2D, "window", x, INF_SHAPE(3, 3, 32, 1));
    x = add_conv(INF_OP_CONV2D, "narrow", x, INF_SHAPE(1, 1, 32, 8));
    cr_assert_eq(inf_graph_add_output(graph, "y", x, NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
}

static void destroy_device(void)
{
    unlink(file);
    rmdir(folder);
    inf_graph_destroy(&graph);
}

TestSuite(fusion, .init = create_device, .fini = destroy_device, .timeout = 60);

static void count_races(void *context, enum inf_log_level level, const char *line)
{
    (void)context;
    (void)level;
    races += strstr(line, "pipelines=") != NULL || strstr(line, "chains=") != NULL;
}

static const struct inf_log counter = {.level = INF_LOG_DEBUG, .write = count_races};

struct outcome {
    uint32_t steps;
    float sum; // a sum of integers, which is exact in any order
};

// Compiles the graph at the chosen fusion level and runs it on ones, with one thread or two.
static struct outcome run_graph(bool kernel_races, uint32_t threads, enum inf_precision precision)
{
    struct outcome outcome = {0};
    struct inf_device *device = NULL;
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    const struct inf_device_options options = {.slots = 2,
                                               .threads = threads,
                                               .log = &counter,
                                               .cache_directory = folder,
                                               .kernel_races = kernel_races};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, NULL), INF_OK);
    const uint32_t nodes[] = {0, 1, 2};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 3, .slots = 2, .precision = precision};
    inf_device_choose_kernels(device, &segment);
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_OK, "%s", err.text);
    static float x[SIDE * SIDE * 8 + 16], between[2][SIDE * SIDE * 32 + 16];
    static float y[SIDE * SIDE * 8 + 16];
    for (size_t i = 0; i < SIDE * SIDE * 8; i++)
        x[i] = 1;
    struct inf_binding bindings[16] = {0};
    bindings[graph->inputs[0].value].host = x;
    bindings[graph->nodes[0].outputs[0]].host = between[0];
    bindings[graph->nodes[1].outputs[0]].host = between[1];
    bindings[graph->outputs[0].value].host = y;
    const struct inf_run one = {.bindings = bindings, .slot = 1};
    struct inf_ticket ticket;
    cr_assert_eq(inf_program_run(program, &one, &ticket, &err), INF_OK, "%s", err.text);
    struct inf_step_profile steps[3];
    outcome.steps = inf_program_profile(program, 1, steps, 3);
    for (size_t i = 0; i < SIDE * SIDE * 8; i++)
        outcome.sum += y[i] * (float)(1 + i % 3);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    return outcome;
}

// Rewrites the file of race results: replaces the winner `was` by the winner `is` in every result.
static unsigned rewrite_results(const char *was, const char *is)
{
    char lines[64][128];
    unsigned count = 0, replaced = 0;
    FILE *stream = fopen(file, "r");
    cr_assert_not_null(stream);
    while (count < 64 && fgets(lines[count], sizeof lines[0], stream) != NULL)
        count++;
    fclose(stream);
    stream = fopen(file, "w");
    for (unsigned i = 0; i < count; i++) {
        char key[20], winner[32];
        if (i > 0 && sscanf(lines[i], "%17s %31s", key, winner) == 2 && strcmp(winner, was) == 0) {
            size_t size = (size_t)snprintf(lines[i], sizeof lines[i], "%s %s", key, is);
            cr_assert_gt(inf_record_seal(lines[i], size, sizeof lines[i]), 0u);
            replaced++;
        }
        fputs(lines[i], stream);
    }
    fclose(stream);
    return replaced;
}

static void need_fusion(void)
{
    if (!inf_isa_best()->nn->fast)
        cr_skip_test("nothing is fused with this instruction set");
}

Test(fusion, are_made_by_rule_unless_races_are_enabled)
{
    need_fusion();
    cr_assert_eq(run_graph(false, 1, INF_PRECISION_FP32).steps, 1u);
    cr_assert_eq(races, 0u);
}

Test(fusion, are_raced_once_and_kept_on_disk)
{
    need_fusion();
    float wanted = run_graph(false, 1, INF_PRECISION_FP32).sum;
    struct outcome first = run_graph(true, 1, INF_PRECISION_FP32);
    cr_assert_geq(races, 1u);
    cr_assert_eq(first.sum, wanted);
    races = 0;
    struct outcome second = run_graph(true, 1, INF_PRECISION_FP32);
    cr_assert_eq(races, 0u, "the file knew");
    cr_assert_eq(second.steps, first.steps);
    cr_assert_eq(second.sum, wanted);
}

Test(fusion, races_again_for_another_number_of_threads)
{
    need_fusion();
    float wanted = run_graph(true, 1, INF_PRECISION_FP32).sum;
    races = 0;
    cr_assert_eq(run_graph(true, 2, INF_PRECISION_FP32).sum, wanted);
    cr_assert_geq(races, 1u);
}

Test(fusion, follows_recorded_results)
{
    need_fusion();
    float wanted = run_graph(true, 1, INF_PRECISION_FP32).sum;
    rewrite_results("chains", "pipelines");
    struct outcome outcome = run_graph(true, 1, INF_PRECISION_FP32);
    cr_assert_eq(outcome.steps, 1u);
    cr_assert_eq(outcome.sum, wanted);
    // If the pipeline lost its timing race in an earlier run, the result of the second chain's own
    // race is already in the file. Therefore at least one result is changed.
    cr_assert_geq(rewrite_results("pipelines", "chains"), 1u);
    // In this run the second chain is not part of a pipeline, so a timing race for the chain runs.
    (void)run_graph(true, 1, INF_PRECISION_FP32);
    rewrite_results("nodes", "chains");
    outcome = run_graph(true, 1, INF_PRECISION_FP32);
    cr_assert_eq(outcome.steps, 2u);
    cr_assert_eq(outcome.sum, wanted);
    cr_assert_eq(rewrite_results("chains", "nodes"), 2u);
    // The recorded winner "nodes" of a pipeline has the same effect as "chains": the pipeline is
    // not used.
    outcome = run_graph(true, 1, INF_PRECISION_FP32);
    cr_assert_eq(outcome.steps, 3u);
    cr_assert_eq(outcome.sum, wanted);
}

Test(fusion, races_in_bf16_as_well)
{
    need_fusion();
    if (inf_isa_best()->nn->gemm_bf16 == NULL)
        cr_skip_test("this processor has no bf16");
    float wanted = run_graph(false, 1, INF_PRECISION_BF16).sum;
    (void)run_graph(true, 1, INF_PRECISION_FP32);
    races = 0;
    cr_assert_eq(run_graph(true, 1, INF_PRECISION_BF16).sum, wanted,
                 "these numbers are exact in bf16");
    cr_assert_geq(races, 1u);
}

Test(fusion, ignores_results_of_another_build)
{
    need_fusion();
    char line[128] = "", id[INF_BUILD_ID_TEXT];
    (void)run_graph(true, 1, INF_PRECISION_FP32);
    FILE *stream = fopen(file, "r+");
    cr_assert_not_null(stream);
    cr_assert_not_null(fgets(line, sizeof line, stream));
    inf_build_id(id);
    cr_assert_not_null(strstr(line, id), "'%s' in '%s'", id, line);
    cr_assert_str_neq(id, "none");
    fseek(stream, (long)(strstr(line, id) - line), SEEK_SET);
    fputc(id[0] == '0' ? '1' : '0', stream);
    fclose(stream);
    races = 0;
    (void)run_graph(true, 1, INF_PRECISION_FP32);
    cr_assert_geq(races, 1u);
}

Test(fusion, has_a_time_for_both_candidates)
{
    need_fusion();
    struct inf_device *device = NULL;
    struct inf_cpu_group group;
    struct inf_cpu_candidate forms[INF_CPU_FUSION_CANDIDATES];
    const uint32_t nodes[] = {0, 1, 2};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 3, .slots = 1};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, NULL, NULL), INF_OK);
    cr_assert(inf_cpu_group_find(&group, graph, 0, &segment, INF_CPU_FUSE_PIPELINES));
    cr_assert_eq(group.count, 3u);
    cr_assert_eq(inf_cpu_fusion_race_levels(forms, (struct inf_cpu_device *)device, &segment,
                                            &group, INF_CPU_FUSE_PIPELINES, NULL),
                 INF_OK);
    cr_assert_str_eq(forms[0].family, "pipelines");
    cr_assert_str_eq(forms[1].family, "chains");
    cr_assert_gt(forms[0].least_ns, 0u);
    cr_assert_gt(forms[1].least_ns, 0u);
    cr_assert_not(inf_cpu_group_find(&group, graph, 0, &segment, INF_CPU_FUSE_CHAINS), "one node");
    inf_device_unref(&device);
}
