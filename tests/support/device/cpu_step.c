// SPDX-License-Identifier: Apache-2.0
// Creates a step in the way a program does, binds the operands of the step, and runs the step on a
// team.
#include "tests/support/device/cpu_step.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/cpu/core/counted_memory.h"
#include "backends/cpu/cpu.h"
#include "backends/cpu/native/fusion.h"
#include "backends/cpu/program/device.h"
#include "backends/cpu/program/step.h"

static void check_holds(bool holds, const char *what)
{
    if (!holds) {
        fprintf(stderr, "cpu_step: %s\n", what);
        abort();
    }
}

static enum inf_code create_step(struct inf_cpu_step *step, const struct inf_cpu_kernel *kernel)
{
    struct inf_cpu_chain chain;
    check_holds(inf_cpu_step_init_operands(step, NULL) == INF_OK, "no memory for operands");
    inf_cpu_step_bind_placeholders(step);
    if (step->graph->node_count == 1)
        return kernel->create(step, NULL);
    check_holds(inf_cpu_chain_find(&chain, step->graph, step->index, NULL),
                "the nodes form no chain");
    enum inf_code code = kernel->create_chain(step, &chain, NULL);
    if (code == INF_OK)
        inf_cpu_step_bind_placeholders(step);
    return code;
}

static void run_in_region(void *context)
{
    check_holds(inf_cpu_step_run(context, NULL) == INF_OK, "the step failed");
}

static void bind_and_run(struct inf_cpu_step *step, const float *const *inputs, float *y)
{
    struct inf_cpu_memory *scratch = NULL;
    size_t size = (step->scratch_count + 1) * sizeof(float);
    step->scratch = inf_cpu_memory_alloc(&scratch, size);
    check_holds(step->scratch != NULL, "no scratch memory");
    memset(step->scratch, 0xff, size);
    for (uint32_t i = 0; i < step->operand_count; i++)
        if (step->operands[i] != INF_VALUE_NONE &&
            !inf_graph_is_const(step->graph, step->operands[i]))
            step->inputs[i] = *inputs++;
    step->output = step->outputs[0] = y;
    check_holds(inf_cpu_step_setup(step, NULL) == INF_OK, "the operator cannot be set up");
    inf_cpu_team_run_region(step->team, run_in_region, step);
    inf_cpu_memory_free(&scratch);
}

enum inf_code cpu_step_run(const struct inf_graph *graph, const struct inf_cpu_kernel *kernel,
                           const struct cpu_step_options *options, const float *const *inputs,
                           float *y)
{
    struct inf_device *base = NULL;
    struct inf_arena arena = {0};
    struct inf_cpu_team team = {0};
    const struct inf_device_options device_options = {
        .slots = 1, .threads = options->threads, .isa_max = options->isa_max};
    check_holds(inf_device_open(&base, &inf_cpu_backend, 0, &device_options, NULL) == INF_OK,
                "no cpu device");
    struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    check_holds(inf_cpu_team_init(&team, &device->cores, options->threads, NULL) == INF_OK,
                "no team");
    uint32_t last = graph->node_count - 1;
    struct inf_cpu_step step = {.graph = graph,
                                .node = &graph->nodes[last],
                                .index = last,
                                .team = &team,
                                .arena = &arena,
                                .device = base,
                                .packs = &device->packs,
                                .isa = device->isa};
    enum inf_code code = create_step(&step, kernel);
    if (code == INF_OK)
        bind_and_run(&step, inputs, y);
    inf_cpu_step_fini(&step);
    inf_cpu_team_fini(&team);
    inf_arena_fini(&arena);
    check_holds(inf_device_memory(base).weight_bytes == 0, "a pack is left");
    inf_device_unref(&base);
    return code;
}
