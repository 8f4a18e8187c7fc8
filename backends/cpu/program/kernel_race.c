// SPDX-License-Identifier: Apache-2.0
// Times the kernels that can compute a node. race_results.c decides which kernel wins.
#include "backends/cpu/program/kernel_race.h"

#include "backends/cpu/core/counted_memory.h"
#include "backends/cpu/program/device.h"
#include "backends/cpu/program/program.h"
#include "backends/cpu/program/race.h"
#include "backends/cpu/program/step.h"
#include "proto/core/span.h"

struct trial {
    struct inf_cpu_step step;
    struct inf_arena arena;
    struct inf_cpu_team team;
    struct inf_cpu_memory *scratch;
    struct inf_cpu_candidate *candidate;
    enum inf_code code;
};

// --- creating and timing the step of one candidate kernel ---

static void bind_operands(struct inf_cpu_step *step, const struct inf_cpu_race_operands *operands)
{
    for (uint32_t i = 0; i < step->operand_count; i++) {
        uint32_t value = step->operands[i];
        if (value != INF_VALUE_NONE && operands->bindings[value].host != NULL)
            step->inputs[i] = operands->bindings[value].host;
    }
    for (uint32_t i = 0; i < step->node->output_count; i++) {
        uint32_t value = step->node->outputs[i];
        step->outputs[i] = value != INF_VALUE_NONE ? operands->bindings[value].host : NULL;
    }
    step->output = step->outputs[0];
}

static enum inf_code trial_fill(struct trial *trial, const struct inf_cpu_step *like,
                                const struct inf_cpu_race_operands *operands, struct inf_error *err)
{
    struct inf_cpu_step *step = &trial->step;
    *step = *like;
    step->team = &trial->team;
    step->arena = &trial->arena;
    INF_TRY(inf_cpu_team_init(&trial->team, like->team->cores, like->team->threads, err));
    INF_TRY(inf_cpu_step_init_operands(step, err));
    INF_TRY(inf_cpu_step_create(step, trial->candidate->kernel, err));
    bind_operands(step, operands);
    if (step->scratch_count > 0) {
        step->scratch = inf_cpu_memory_alloc(&trial->scratch, step->scratch_count * sizeof(float));
        if (step->scratch == NULL)
            return INF_EXHAUSTED;
    }
    return inf_cpu_step_setup(step, err);
}

static void trial_fini(struct trial *trial)
{
    inf_cpu_step_fini(&trial->step);
    inf_cpu_team_fini(&trial->team);
    inf_cpu_memory_free(&trial->scratch);
    inf_arena_fini(&trial->arena);
}

static enum inf_code run_candidate(void *context)
{
    struct trial *trial = context;
    return inf_cpu_step_run(&trial->step, NULL);
}

static void time_candidate(void *context)
{
    struct trial *trial = context;
    trial->code = inf_cpu_race_time_candidate(trial->candidate, run_candidate, trial);
}

static void take_turn(void *context, uint32_t index)
{
    struct trial *trial = (struct trial *)context + index;
    if (trial->code != INF_OK)
        return;
    if (inf_cpu_step_is_xnn(&trial->step))
        time_candidate(trial);
    else
        inf_cpu_team_run_region(&trial->team, time_candidate, trial);
}

// --- timing all candidates for a node ---

enum inf_code inf_cpu_kernel_race_run(struct inf_cpu_candidate *candidates, uint32_t count,
                                      const struct inf_cpu_step *step, struct inf_race_gate *gate,
                                      struct inf_error *err)
{
    struct trial trials[INF_CPU_CANDIDATES] = {0};
    struct inf_cpu_race_operands operands = {0};
    count = INF_MIN(count, INF_CPU_CANDIDATES);
    inf_role_check_may_block();
    enum inf_code code = inf_cpu_race_operands_init(&operands, step->graph, &step->index, 1, err);
    if (code == INF_OK) {
        for (uint32_t i = 0; i < count; i++) {
            trials[i].candidate = &candidates[i];
            candidates[i].least_ns = 0;
            trials[i].code = trial_fill(&trials[i], step, &operands, NULL);
        }
        if (!inf_cpu_race_run_turns(candidates, count, gate, take_turn, trials))
            code = inf_fail(err, INF_CANCELLED, "requests were served all the time");
        for (uint32_t i = 0; i < count; i++)
            trial_fini(&trials[i]);
    }
    inf_cpu_race_operands_fini(&operands);
    return code;
}

enum inf_code inf_cpu_kernel_race_node(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                                       uint32_t *out_count, struct inf_device *base,
                                       const struct inf_graph *graph, uint32_t node,
                                       struct inf_error *err)
{
    struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    struct inf_cpu_team team = {.cores = &device->cores, .threads = device->cores.threads};
    const struct inf_cpu_step step = {.graph = graph,
                                      .node = &graph->nodes[node],
                                      .index = node,
                                      .pool = device->cores.pool,
                                      .team = &team,
                                      .device = base,
                                      .packs = &device->packs,
                                      .isa = device->isa};
    *out_count = inf_cpu_kernel_list(candidates, graph, step.node);
    return inf_cpu_kernel_race_run(candidates, *out_count, &step, NULL, err);
}
