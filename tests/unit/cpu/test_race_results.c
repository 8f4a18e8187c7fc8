// SPDX-License-Identifier: Apache-2.0
// Several kernels for the same node: which kernel is chosen, that the results of timing races are
// stored, and what happens if the file of results is damaged.
#include <criterion/criterion.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/program/kernel_race.h"
#include "backends/graph/shape/infer.h"
#include "backends/storage/race_results.h"

static char folder[] = "/tmp/inf-choices-XXXXXX";
static struct inf_graph *graph;
static unsigned races;
// kernel choices of the device that run_convolution() used last
static struct inf_kernel_choices choices;
static unsigned warnings; // number of logged warnings

static void create_device(void)
{
    uint32_t x, w, node;
    uint32_t inputs[2];
    cr_assert_not_null(mkdtemp(folder));
    cr_assert_eq(inf_graph_create(&graph, NULL), INF_OK);
    cr_assert_eq(inf_graph_add_value(graph, "x", INF_DTYPE_F32, &INF_SHAPE(1, 9, 9, 20), &x, NULL),
                 INF_OK);
    cr_assert_eq(inf_graph_add_input(graph, "x", x, NULL), INF_OK);
    struct inf_blob *blob = inf_blob_create(20 * 33 * sizeof(float));
    for (size_t i = 0; i < 20 * 33; i++)
        ((float *)blob->data)[i] = (float)(i % 7) - 3;
    cr_assert_eq(
        inf_graph_add_const(graph, "w", INF_DTYPE_F32, &INF_SHAPE(1, 1, 20, 33), blob, &w, NULL),
        INF_OK);
    inputs[0] = x, inputs[1] = w;
    cr_assert_eq(inf_graph_add_node(graph, INF_OP_CONV2D, "c", "", inputs, 2, 1, &node, NULL),
                 INF_OK);
    graph->nodes[0].attrs.conv2d.padding = INF_PADDING_SAME;
    cr_assert_eq(inf_graph_add_output(graph, "y", graph->nodes[0].outputs[0], NULL), INF_OK);
    cr_assert_eq(inf_shape_infer(graph, NULL), INF_OK);
}

static void destroy_device(void)
{
    char path[64];
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    unlink(path);
    rmdir(folder);
    inf_graph_destroy(&graph);
}

TestSuite(race_results, .init = create_device, .fini = destroy_device, .timeout = 60);

static void count_races(void *context, enum inf_log_level level, const char *line)
{
    (void)context;
    warnings += level == INF_LOG_WARNING;
    races += strncmp(line, "kernels raced", 13) == 0;
}

static const struct inf_log counter = {.level = INF_LOG_DEBUG, .write = count_races};

// Compiles the convolution and runs it on ones. Returns one element of the result. Sets `kernel` to
// the kernel that computed it. `how`: whether kernels race.
static float run_with(bool kernel_races, const char *directory, struct inf_kernel_races how,
                      char kernel[32])
{
    struct inf_device *device = NULL;
    struct inf_program *program = NULL;
    struct inf_error err = {0};
    const struct inf_device_options options = {.slots = 1,
                                               .threads = 1,
                                               .log = &counter,
                                               .cache_directory = directory,
                                               .kernel_races = kernel_races};
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, &options, NULL), INF_OK);
    const uint32_t nodes[] = {0};
    const struct inf_segment segment = {
        .graph = graph, .nodes = nodes, .node_count = 1, .slots = 1, .races = how};
    cr_assert_eq(inf_program_compile(&program, device, &segment, 0, &err), INF_OK, "%s", err.text);
    static float x[9 * 9 * 20 + 16], y[9 * 9 * 33 + 16];
    for (size_t i = 0; i < 9 * 9 * 20; i++)
        x[i] = 1;
    struct inf_binding bindings[8] = {0};
    bindings[graph->inputs[0].value].host = x;
    bindings[graph->outputs[0].value].host = y;
    const struct inf_run one = {.bindings = bindings, .profile = true};
    struct inf_ticket ticket;
    cr_assert_eq(inf_program_run(program, &one, &ticket, &err), INF_OK, "%s", err.text);
    struct inf_step_profile step;
    cr_assert_eq(inf_program_profile(program, 0, &step, 1), 1u);
    snprintf(kernel, 32, "%s", step.kernel);
    choices = (struct inf_kernel_choices){0};
    cr_expect_eq(inf_device_kernel_choices(device, &choices), kernel_races);
    inf_program_destroy(&program);
    inf_device_unref(&device);
    return y[5];
}

static float run_convolution(bool kernel_races, const char *directory, char kernel[32])
{
    return run_with(kernel_races, directory, (struct inf_kernel_races){0}, kernel);
}

Test(race_results, are_made_by_rule_unless_races_are_enabled)
{
    char kernel[32];
    run_convolution(false, folder, kernel);
    cr_assert_eq(races, 0u);
    char path[64];
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    cr_assert_neq(access(path, F_OK), 0);
}

Test(race_results, are_raced_once_and_kept_on_disk)
{
    char first[32], second[32], third[32];
    float wanted = run_convolution(false, NULL, first);
    cr_assert_eq(run_convolution(true, folder, first), wanted);
    const uint64_t raced = inf_isa_best()->nn->fast ? 1 : 0;
    cr_assert_eq(races, raced);
    cr_expect_eq(choices.measured, raced);
    cr_expect_eq(choices.known + choices.rule, 0);
    races = 0;
    cr_assert_eq(run_convolution(true, folder, second), wanted);
    cr_assert_eq(races, 0u, "the file knew");
    cr_expect_eq(choices.known, raced);
    cr_expect_eq(choices.measured + choices.rule, 0);
    cr_assert_str_eq(second, first);
    cr_assert_eq(run_convolution(true, NULL, third), wanted);
    cr_assert_eq(races, inf_isa_best()->nn->fast ? 1u : 0u, "nothing was remembered");
}

// A load chooses by rules what is not known, and takes the winners of a later race.
Test(race_results, can_come_after_the_compilation)
{
    char kernel[32], rule[32];
    const uint64_t raced = inf_isa_best()->nn->fast ? 1 : 0;
    const struct inf_kernel_races later = {.known_until_ns = inf_clock_ns()};
    float wanted = run_convolution(false, NULL, rule);
    cr_expect_eq(run_with(true, folder, later, kernel), wanted);
    cr_expect_str_eq(kernel, rule);
    cr_expect_eq(races, 0u);
    cr_expect_eq(choices.later, raced);
    cr_expect_eq(choices.known + choices.measured + choices.rule + choices.overturned, 0u);
    run_convolution(true, folder, kernel);
    cr_expect_eq(choices.measured, raced);
    // Winners in the file are known at all times.
    run_with(true, folder, later, kernel);
    cr_expect_eq(choices.known, raced);
    cr_expect_eq(choices.later, 0u);
}

// A race in the background begins no timed run while requests are served.
Test(race_results, wait_until_no_request_is_served)
{
    char kernel[32], rule[32];
    struct inf_idle_gate idle_gate = {0};
    atomic_bool stop = true;
    struct inf_race_gate gate = {.idle_gate = &idle_gate, .stop = &stop};
    const struct inf_kernel_races gated = {.gate = &gate};
    float wanted = run_convolution(false, NULL, rule);
    inf_idle_gate_begin_request(&idle_gate);
    cr_expect_eq(run_with(true, folder, gated, kernel), wanted);
    cr_expect_str_eq(kernel, rule);
    cr_expect_eq(races, 0u);
    bool fast = inf_isa_best()->nn->fast;
    cr_expect_eq(atomic_load(&gate.gave_up), fast);
    // It does not wait once more: `stop` is false, and the request goes on.
    atomic_store(&stop, false);
    cr_expect_eq(inf_race_gate_wait(&gate), !fast);
    inf_idle_gate_end_request(&idle_gate);
    atomic_store(&gate.gave_up, false);
    run_with(true, folder, gated, kernel);
    cr_expect_eq(races, fast ? 1u : 0u);
    cr_expect_not(atomic_load(&gate.gave_up));
}

// What one compilation finds does not change while it runs.
Test(race_results, are_found_as_they_were_at_a_time)
{
    static const struct inf_race_file file = {
        .name = "some.db", .format = "some 1", .what = "some results"};
    static const struct inf_race_time slower[] = {{"rule", 1000}, {"other", 950}},
                                      faster[] = {{"rule", 1000}, {"other", 500}};
    struct inf_race_results *results = NULL;
    char winner[INF_RACE_WINNER_TEXT];
    cr_assert_eq(inf_race_results_open(&results, NULL, &file, "seed", &counter, NULL), INF_OK);
    uint64_t before_ns = inf_clock_ns();
    inf_race_results_record(results, 1, 10, "what", slower, 2);
    cr_expect_eq(inf_race_results_overturned(results), 0u);
    inf_race_results_record(results, 2, 10, "what", faster, 2);
    cr_expect_eq(inf_race_results_overturned(results), 1u);
    cr_expect_not(inf_race_results_find(results, 2, before_ns, winner));
    cr_expect_str_eq(winner, "");
    cr_expect(inf_race_results_find(results, 2, inf_clock_ns(), winner));
    cr_expect_str_eq(winner, "other");
    cr_expect(inf_race_results_find(results, 1, 0, winner));
    cr_expect_str_eq(winner, "rule");
    // The time of all races is limited to 4 s.
    cr_expect(inf_race_results_may_race(results));
    inf_race_results_record(results, 3, 4 * INF_NS_PER_S, "what", slower, 2);
    cr_expect_not(inf_race_results_may_race(results));
    inf_race_results_close(&results);
}

Test(race_results, ignores_a_damaged_file)
{
    char kernel[32], path[64];
    snprintf(path, sizeof path, "%s/kernels.db", folder);
    run_convolution(true, folder, kernel);
    FILE *file = fopen(path, "a");
    cr_assert_not_null(file);
    fputs("0123456789abcdef native_conv 0000000000000000\nrubbish", file);
    fclose(file);
    races = 0;
    run_convolution(true, folder, kernel);
    cr_assert_eq(races, 0u, "intact results are kept");
    file = fopen(path, "w");
    cr_assert_not_null(file);
    fputs("inferd-kernels 2 of another build\n", file);
    fclose(file);
    warnings = 0;
    run_convolution(true, folder, kernel);
    races = 0;
    run_convolution(true, folder, kernel);
    cr_assert_eq(races, 0u, "the file was started again");
    cr_assert_eq(warnings, 0u, "after an update that is as it should be");
}

Test(race_results, has_a_time_for_every_candidate)
{
    struct inf_device *device = NULL;
    struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES];
    uint32_t count;
    cr_assert_eq(inf_device_open(&device, &inf_cpu_backend, 0, NULL, NULL), INF_OK);
    cr_assert_eq(inf_cpu_kernel_race_node(candidates, &count, device, graph, 0, NULL), INF_OK);
    cr_assert_eq(count, inf_isa_best()->nn->fast ? 2u : 1u);
    for (uint32_t i = 0; i < count; i++)
        cr_assert_gt(candidates[i].least_ns, 0u, "%s", candidates[i].family);
    inf_device_unref(&device);
}
