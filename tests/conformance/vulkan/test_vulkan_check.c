// SPDX-License-Identifier: Apache-2.0
// Shaders are compared with the reference device before their first use on a driver. Right ones
// pass the check, for every operator. Wrong ones are excluded, so that the answers of a model are
// right all the same, and the next start of the process knows the results.
#include <criterion/criterion.h>
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "backends/device/counts.h"
#include "backends/graph/shape/infer.h"
#include "backends/vulkan/device/gpu.h"
#include "shaders/constants.h"
#include "tests/conformance/cases.h"
#include "tests/support/criterion/case_step.h"
#include "tests/support/device/ref_kit.h"
#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"
#include "tests/unit/graph/graph_kit.h"

static struct vulkan_faults *faults;

static void install_faults(void)
{
    faults = vulkan_faults_install();
    cr_assert_not_null(faults);
}

TestSuite(vulkan_check, .init = install_faults, .timeout = 600);

// Opens a device that checks its shaders.
static struct inf_device *open_checked(const char *cache_directory)
{
    const struct inf_device_options options = {.slots = 1,
                                               .cache_directory = cache_directory,
                                               .shader_oracle = inf_ref_evaluator(),
                                               .check_software = true};
    return vulkan_open_with(&options);
}

static uint64_t read_count(const struct inf_device *device, enum inf_device_count count)
{
    return inf_device_get_count(device, count);
}

// --- shaders that compute correctly ---

// Checks the shaders of random nodes of every operator: `step` is 1 for all cases of each.
static void check_operators(bool lowered, uint32_t step)
{
    struct inf_device *device = open_checked(NULL);
    for (uint32_t op = 0; op < INF_OP_COUNT; op++)
        for (uint32_t i = 0; i < case_families[op].count; i += step) {
            struct random random = {.state = 77 + i, .tame = true};
            struct one_node one;
            struct inf_error err = {0};
            one_node_init(&one, (enum inf_op)op);
            case_families[op].make(&one, &random, i);
            one.lowered = lowered;
            if (lowered)
                one_node_round(&one);
            enum inf_code code = one_node_run(&one, device, &err);
            cr_expect_eq(read_count(device, INF_COUNT_SHADERS_WRONG), 0u, "%s, case %u: %s",
                         inf_op_info((enum inf_op)op)->name, i, err.text);
            if (code == INF_OK)
                one_node_drop_outputs(&one);
            one_node_fini(&one);
        }
    uint64_t checked = read_count(device, INF_COUNT_SHADERS_CHECKED);
    uint64_t unchecked = read_count(device, INF_COUNT_SHADERS_UNCHECKED);
    printf("%s: %llu checked, %llu not, in %llu ms\n", lowered ? "fp16" : "fp32",
           (unsigned long long)checked, (unsigned long long)unchecked,
           (unsigned long long)read_count(device, INF_COUNT_SHADER_CHECK_US) / 1000);
    cr_expect_gt(checked, 10u);
    cr_expect_lt(unchecked * 20, checked, "%d variants are unchecked", (int)unchecked);
    inf_device_unref(&device);
}

// llvmpipe compiles a shader for up to a second, so not all cases are checked: every operator has
// one. INF_OPS_STEP=1 checks all of them, and a larger step fewer than usual.
static uint32_t choose_step(uint32_t usual)
{
    uint32_t step = inf_case_step();
    return step == 1 && getenv("INF_OPS_STEP") != NULL ? 1 : usual * step;
}

Test(vulkan_check, right_shaders_of_all_operators_pass)
{
    check_operators(false, choose_step(37));
}

Test(vulkan_check, right_shaders_with_16_bits_pass)
{
    check_operators(true, choose_step(97));
}

// --- a model whose shaders compute wrongly ---

#define SIDE     40
#define CHANNELS 6
#define ELEMENTS ((size_t)SIDE * SIDE * CHANNELS)

// y = softmax(average pool(-x)), on a picture: three steps, none of which a race compares.
static struct inf_graph *make_graph(void)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, SIDE, SIDE, CHANNELS));
    uint32_t y = node(graph, INF_OP_UNARY, "negation", x);
    y = node(graph, INF_OP_POOL2D, "pool", y);
    last_attrs(graph)->pool2d.kind = INF_POOL_AVERAGE;
    last_attrs(graph)->pool2d.kernel_h = last_attrs(graph)->pool2d.kernel_w = 2;
    last_attrs(graph)->pool2d.stride_h = last_attrs(graph)->pool2d.stride_w = 2;
    add_output(graph, "y", node(graph, INF_OP_SOFTMAX, "softmax", y));
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

// Runs a graph with one result of `count` elements on the device and on `ref`, and compares.
// Returns the outcome of the run on the device.
static struct graph_run expect_agrees(struct inf_device *device, struct inf_graph *(*make)(void),
                                      size_t count)
{
    static float x[ELEMENTS + 64], got[ELEMENTS + 64], wanted[ELEMENTS + 64];
    for (size_t i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i * 7919 % 61) / 30 - 1;
    run_beside_ref(make(), NULL, INF_PRECISION_FP32, (const void *[]){x}, (void *[]){wanted});
    struct graph_run run =
        run_beside_ref(make(), device, INF_PRECISION_FP32, (const void *[]){x}, (void *[]){got});
    expect_near(got, wanted, count, 1e-5f, "y");
    return run;
}

static struct graph_run expect_right(struct inf_device *device)
{
    return expect_agrees(device, make_graph, ELEMENTS / 4);
}

// Returns why the device declines the node called `name`; "" if it does not.
static const char *find_reason(struct inf_device *device, const char *name)
{
    static struct inf_error err;
    struct inf_graph *graph = make_graph();
    err = (struct inf_error){0};
    for (uint32_t n = 0; n < graph->node_count; n++)
        if (strcmp(graph->nodes[n].name, name) == 0 &&
            inf_device_supports(device, graph, n, &err) == INF_OK)
            err.text[0] = '\0';
    inf_graph_destroy(&graph);
    return err.text;
}

// Makes the driver compute another function than -x.
static void break_negation(void)
{
    faults->wrong_word = 1;
    faults->wrong_value = FN_NEG;
    faults->wrong_instead = FN_ABS;
}

static void remove_folder(const char *folder)
{
    char command[128];
    snprintf(command, sizeof command, "rm -r %s", folder);
    cr_assert_eq(system(command), 0);
}

Test(vulkan_check, a_wrong_shader_is_excluded_and_the_answer_is_right)
{
    break_negation();
    struct inf_device *device = open_checked(NULL);
    cr_expect_str_eq(find_reason(device, "negation"), "");
    struct graph_run run = expect_right(device);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_WRONG), 1u);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 2u);
    // The other nodes stay on the device.
    cr_expect_not_null(strstr(run.kernels, "pool"), "%s", run.kernels);
    const char *reason = find_reason(device, "negation");
    cr_expect_not_null(strstr(reason, "vulkan: unary: the driver computes shader '"), "%s", reason);
    cr_expect_not_null(strstr(reason, "unary' wrongly"), "%s", reason);
    cr_expect_str_eq(find_reason(device, "pool"), "");
    inf_device_unref(&device);
}

Test(vulkan_check, a_wrong_shader_is_used_if_nothing_is_checked)
{
    break_negation();
    struct inf_device *device = vulkan_open(NULL);
    float x[ELEMENTS + 64] = {0}, y[ELEMENTS + 64];
    for (size_t i = 0; i < ELEMENTS; i++)
        x[i] = (float)(i % 6);
    struct graph_run run = run_beside_ref(make_graph(), device, INF_PRECISION_FP32,
                                          (const void *[]){x}, (void *[]){y});
    cr_expect_gt(run.steps, 0u);
    cr_expect_gt(y[5], y[0], "the fault does nothing");
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 0u);
    inf_device_unref(&device);
}

Test(vulkan_check, a_software_device_is_trusted_unless_told_otherwise)
{
    const struct inf_device_options options = {.slots = 1, .shader_oracle = inf_ref_evaluator()};
    struct inf_device *device = vulkan_open_with(&options);
    cr_assert_eq(inf_device_info(device)->kind, INF_DEVICE_SOFTWARE);
    expect_right(device);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 0u);
    inf_device_unref(&device);
}

Test(vulkan_check, the_next_start_checks_nothing_again)
{
    char folder[] = "/tmp/inf-vk-check-XXXXXX";
    cr_assert_not_null(mkdtemp(folder));
    break_negation();
    struct inf_device *device = open_checked(folder);
    expect_right(device);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 2u);
    // The same process does not check again either.
    expect_right(device);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 2u);
    inf_device_unref(&device);
    device = open_checked(folder);
    cr_expect_not_null(strstr(find_reason(device, "negation"), "wrongly"));
    expect_right(device);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 0u);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_WRONG), 0u);
    inf_device_unref(&device);
    remove_folder(folder);
}

Test(vulkan_check, results_of_another_driver_are_not_used)
{
    char folder[] = "/tmp/inf-vk-check-XXXXXX", name[64], path[128];
    cr_assert_not_null(mkdtemp(folder));
    struct inf_device *device = open_checked(folder);
    expect_right(device);
    inf_device_unref(&device);
    // One byte of the header is the identity of another driver.
    DIR *list = opendir(folder);
    for (struct dirent *entry; (entry = readdir(list)) != NULL;)
        if (strstr(entry->d_name, ".checked") != NULL)
            snprintf(name, sizeof name, "%.63s", entry->d_name);
    closedir(list);
    snprintf(path, sizeof path, "%s/%s", folder, name);
    FILE *file = fopen(path, "r+b");
    cr_assert_not_null(file, "%s", path);
    fseek(file, 40, SEEK_SET);
    fputc(0x5a, file);
    fclose(file);
    device = open_checked(folder);
    expect_right(device);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 3u);
    inf_device_unref(&device);
    remove_folder(folder);
}

// --- fused steps ---

// y = a + max(-x, 0) * b, which one generated shader computes, and a convolution whose result is
// added to y, which one dispatch computes.
static struct inf_graph *make_fused(void)
{
    static float weights[CHANNELS * CHANNELS + 16];
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    for (size_t i = 0; i < CHANNELS * CHANNELS; i++)
        weights[i] = (float)(i % 5) - 2;
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(1, SIDE, SIDE, CHANNELS));
    uint32_t y = node(graph, INF_OP_UNARY, "negation", x);
    y = node(graph, INF_OP_UNARY, "relu", y);
    last_attrs(graph)->unary.kind = INF_UNARY_RELU;
    y = node(graph, INF_OP_BINARY, "product", y, x);
    last_attrs(graph)->binary.kind = INF_BINARY_MUL;
    uint32_t matrix =
        add_constant(graph, INF_DTYPE_F32, INF_SHAPE(1, 1, CHANNELS, CHANNELS), weights);
    uint32_t conv = node(graph, INF_OP_CONV2D, "conv", x, matrix);
    add_output(graph, "y", node(graph, INF_OP_BINARY, "sum", conv, y));
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

Test(vulkan_check, fused_steps_are_checked_whole)
{
    struct inf_device *device = open_checked(NULL);
    struct graph_run run = expect_agrees(device, make_fused, ELEMENTS);
    cr_expect_eq(run.steps, 2u, "%s", run.kernels);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 2u, "%s", run.kernels);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_UNCHECKED), 0u);
    inf_device_unref(&device);
}

Test(vulkan_check, a_model_loads_even_if_all_shaders_are_wrong)
{
    struct inf_device *device = open_checked(NULL);
    ((struct vk_gpu *)device)->checks.error_max = -1; // no result is near enough
    struct graph_run run = expect_agrees(device, make_fused, ELEMENTS);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 0u);
    cr_expect_gt(read_count(device, INF_COUNT_SHADERS_WRONG), 4u);
    cr_expect_eq(run.steps, 5u, "%s", run.kernels);
    inf_device_unref(&device);
}

// --- limits ---

Test(vulkan_check, what_the_time_does_not_allow_is_checked_later)
{
    struct inf_device *device = open_checked(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    gpu->checks.time_max_ns = 0;
    expect_right(device);
    // The first check always begins.
    cr_expect_leq(read_count(device, INF_COUNT_SHADERS_CHECKED), 1u);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_UNCHECKED), 0u);
    gpu->checks.time_max_ns = VK_CHECK_NS_MAX * 100;
    expect_right(device);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 3u);
    inf_device_unref(&device);
}

// A picture with 64 MB, of which the sample is a small part.
Test(vulkan_check, large_steps_are_checked_in_small)
{
    struct inf_device *device = open_checked(NULL);
    struct one_node one;
    struct inf_error err = {0};
    const struct inf_shape shape = INF_SHAPE(1, 1024, 1024, 16);
    float *x = calloc(inf_shape_elements(&shape), sizeof *x);
    cr_assert_not_null(x);
    one_node_init(&one, INF_OP_POOL2D);
    one.attrs.pool2d.kernel_h = one.attrs.pool2d.kernel_w = 3;
    one.attrs.pool2d.stride_h = one.attrs.pool2d.stride_w = 2;
    one_node_input(&one, INF_DTYPE_F32, shape, x);
    cr_assert_eq(one_node_run(&one, device, &err), INF_OK, "%s", err.text);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 1u);
    cr_expect_lt(inf_device_memory(device).peak_bytes, 256u << 20);
    one_node_drop_outputs(&one);
    one_node_fini(&one);
    free(x);
    inf_device_unref(&device);
}

#define ROWS    40000
#define COLUMNS 64

// y = the last row of x. The index is a constant, and a sample has fewer rows, because x has more
// bytes than a sample may have.
static struct inf_graph *make_last_row(void)
{
    struct inf_graph *graph = new_graph();
    struct inf_error err = {0};
    uint32_t x = add_input(graph, "x", INF_DTYPE_F32, INF_SHAPE(ROWS, COLUMNS));
    add_output(graph, "y", node(graph, INF_OP_GATHER, "gather", x, ints(graph, ROWS - 1)));
    cr_assert_eq(inf_shape_infer(graph, &err), INF_OK, "%s", err.text);
    return graph;
}

Test(vulkan_check, a_shader_is_not_wrong_if_a_sample_has_an_invalid_index)
{
    struct inf_device *device = open_checked(NULL);
    float *x = calloc((size_t)ROWS * COLUMNS + 64, sizeof *x), y[COLUMNS + 64] = {0};
    cr_assert_not_null(x);
    x[(size_t)ROWS * COLUMNS - 1] = 3;
    struct graph_run run = run_beside_ref(make_last_row(), device, INF_PRECISION_FP32,
                                          (const void *[]){x}, (void *[]){y});
    cr_expect_eq(y[COLUMNS - 1], 3.0f);
    cr_expect_not_null(strstr(run.kernels, "gather"), "%s", run.kernels);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_WRONG), 0u);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_UNCHECKED), 1u);
    free(x);
    inf_device_unref(&device);
}

// --- checks that fail for other reasons ---

Test(vulkan_check, a_device_lost_during_a_check_fails_the_compilation)
{
    struct inf_device *device = open_checked(NULL);
    struct negation negation;
    struct inf_error err = {0};
    ((struct vk_gpu *)device)->backoff_ns = 1;
    faults->submit = VK_ERROR_DEVICE_LOST;
    cr_expect_eq(negation_init(&negation, device, 100, &err), INF_UNAVAILABLE);
    cr_expect_eq(err.reason, INF_REASON_DEVICE_LOST, "%s", err.text);
    negation_fini(&negation);
    faults->submit = 0;
    cr_assert_eq(negation_init(&negation, device, 100, &err), INF_OK, "%s", err.text);
    cr_expect_eq(read_count(device, INF_COUNT_SHADERS_CHECKED), 1u);
    negation_fini(&negation);
    inf_device_unref(&device);
}
