// SPDX-License-Identifier: Apache-2.0
// Long runs are split into several submissions. A run can be cancelled between two submissions.
#include <stdio.h>

#include <criterion/criterion.h>

#include "tests/support/device/vulkan_faults.h"
#include "tests/support/device/vulkan_kit.h"

#define LENGTH   40
#define ELEMENTS 1000

static struct vulkan_faults *faults;

static void install_hooks(void)
{
    faults = vulkan_faults_install();
    cr_assert_not_null(faults);
}

TestSuite(vulkan_slices, .init = install_hooks, .timeout = 60);

// A chain of LENGTH negations, so that the last result equals the first operand. All values are
// outputs, so that each node remains a separate dispatch.
struct chain {
    struct inf_graph *graph;
    struct inf_program *program;
    struct inf_buffer *values[LENGTH + 1];
    struct inf_binding bindings[LENGTH + 1];
};

static void chain_init(struct chain *chain, struct inf_device *device)
{
    struct inf_shape shape = INF_SHAPE(ELEMENTS);
    struct inf_error err = {0};
    uint32_t nodes[LENGTH], value;
    *chain = (struct chain){0};
    cr_assert_eq(inf_graph_create(&chain->graph, &err), INF_OK);
    cr_assert_eq(inf_graph_add_value(chain->graph, "x", INF_DTYPE_F32, &shape, &value, &err),
                 INF_OK);
    for (uint32_t i = 0; i <= LENGTH; i++) {
        cr_assert_eq(inf_buffer_alloc(&chain->values[i], device, ELEMENTS * sizeof(float),
                                      INF_BUFFER_STAGING, &err),
                     INF_OK, "%s", err.text);
        chain->bindings[value].buffer = chain->values[i];
        if (i == LENGTH)
            break;
        cr_assert_eq(inf_graph_add_node(chain->graph, INF_OP_UNARY, "negation", "", &value, 1, 1,
                                        &nodes[i], &err),
                     INF_OK);
        value = chain->graph->nodes[nodes[i]].outputs[0];
        chain->graph->values[value].dtype = INF_DTYPE_F32;
        chain->graph->values[value].shape = shape;
        char name[16];
        snprintf(name, sizeof name, "y%u", i);
        cr_assert_eq(inf_graph_add_output(chain->graph, name, value, &err), INF_OK);
    }
    struct inf_segment segment = {
        .graph = chain->graph, .nodes = nodes, .node_count = LENGTH, .slots = 1};
    cr_assert_eq(inf_program_compile(&chain->program, device, &segment, 0, &err), INF_OK, "%s",
                 err.text);
}

static void chain_fini(struct chain *chain)
{
    inf_program_destroy(&chain->program);
    for (uint32_t i = 0; i <= LENGTH; i++)
        inf_buffer_free(&chain->values[i]);
    inf_graph_destroy(&chain->graph);
}

static enum inf_code chain_run(struct chain *chain, struct inf_device *device, float first,
                               struct inf_error *err)
{
    float *x = inf_buffer_host(chain->values[0]);
    for (int i = 0; i < ELEMENTS; i++)
        x[i] = first + (float)i;
    struct inf_run run = {.bindings = chain->bindings, .cancelled = &faults->raised};
    struct inf_ticket ticket;
    INF_TRY(inf_program_run(chain->program, &run, &ticket, err));
    return inf_device_wait(device, ticket, UINT64_MAX, err);
}

static void expect_holds(const struct chain *chain, float first)
{
    const float *y = inf_buffer_host(chain->values[LENGTH]);
    for (int i = 0; i < ELEMENTS; i++)
        cr_assert_eq(y[i], first + (float)i, "element %d", i);
}

// Runs the chain with `slice_cost` as the limit for the cost of one submission, instead of the
// limit that the device measured. Returns the number of submissions.
static uint32_t count_submits(struct chain *chain, struct inf_device *device, uint64_t slice_cost)
{
    struct inf_error err = {0};
    ((struct vk_gpu *)device)->slice_cost = slice_cost;
    uint32_t before = faults->submits;
    cr_assert_eq(chain_run(chain, device, (float)slice_cost, &err), INF_OK, "%s", err.text);
    expect_holds(chain, (float)slice_cost);
    return faults->submits - before;
}

Test(vulkan_slices, a_run_is_split_by_its_cost)
{
    struct inf_device *device = vulkan_open(NULL);
    struct chain chain;
    chain_init(&chain, device);
    // The cost of a dispatch grows with the elements that it reads and writes, ELEMENTS each. A
    // high limit puts all dispatches into one submission.
    cr_assert_eq(count_submits(&chain, device, 1 << 30), 1u);
    cr_assert_eq(count_submits(&chain, device, 1), (uint32_t)LENGTH);
    uint32_t some = count_submits(&chain, device, 10 * (2 * ELEMENTS + 2));
    cr_assert_eq(some, 4u);
    cr_assert_eq(count_submits(&chain, device, 1 << 30), 1u);
    cr_assert_eq(count_submits(&chain, device, 1 << 30), 1u);
    chain_fini(&chain);
    inf_device_unref(&device);
}

Test(vulkan_slices, the_cost_of_a_submission_is_learned)
{
    struct inf_device *device = vulkan_open(NULL);
    struct vk_gpu *gpu = (struct vk_gpu *)device;
    struct chain chain;
    struct inf_error err = {0};
    chain_init(&chain, device);
    gpu->slice_cost = 1;
    cr_assert_eq(chain_run(&chain, device, 5, &err), INF_OK, "%s", err.text);
    // Even the slowest machine negates more than one element in 20 ms, so the limit must grow.
    cr_assert_gt(gpu->slice_cost, 1u);
    uint32_t before = faults->submits;
    cr_assert_eq(chain_run(&chain, device, 6, &err), INF_OK, "%s", err.text);
    cr_assert_leq(faults->submits - before, (uint32_t)LENGTH);
    expect_holds(&chain, 6);
    chain_fini(&chain);
    inf_device_unref(&device);
}

Test(vulkan_slices, a_run_is_cancelled_between_submits)
{
    struct inf_device *device = vulkan_open(NULL);
    struct chain chain;
    struct inf_error err = {0};
    chain_init(&chain, device);
    ((struct vk_gpu *)device)->slice_cost = 1;
    faults->raise_at = 5;
    cr_assert_eq(chain_run(&chain, device, 5, &err), INF_CANCELLED);
    cr_assert_eq(faults->submits, 5u, "%s", err.text);
    // After the cancelled run, the slot (one concurrent run) can be used again.
    faults->raised = false;
    ((struct vk_gpu *)device)->slice_cost = 1;
    cr_assert_eq(chain_run(&chain, device, 9, &err), INF_OK, "%s", err.text);
    expect_holds(&chain, 9);
    cr_assert_eq(faults->submits, 5u + LENGTH);
    chain_fini(&chain);
    inf_device_unref(&device);
}
