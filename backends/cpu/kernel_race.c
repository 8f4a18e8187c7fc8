// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernel_race.h"

#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/cpu/cpu_program.h"
#include "backends/cpu/cpu_step.h"
#include "backends/cpu/xnn.h"
#include "proto/core/span.h"

// Turns of a race, and the time after which there are no more.
#define TURNS_MAX 9u
#define TURNS_MIN 2u
#define TURNS_NS  (20 * (uint64_t)INF_NS_PER_MS)
// Who takes so many times the best one's time will not win any more.
#define BEATEN 1.5

#define SLACK_SIZE 64 // XNNPACK reads some bytes behind operands

// Operands of the node, which all candidates share.
struct operands {
    const struct inf_graph *graph;
    const struct inf_node *node;
    void *inputs[INF_LIMIT_TENSORS], *outputs[INF_LIMIT_TENSORS]; // NULL: constant or absent
};

struct trial {
    struct inf_cpu_step step;
    struct inf_arena arena;
    struct inf_cpu_team team;
    struct inf_xnn_memory *scratch;
    struct inf_cpu_candidate *candidate;
    enum inf_code code;
};

static void operands_fini(struct operands *operands)
{
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++) {
        free(operands->inputs[i]);
        free(operands->outputs[i]);
    }
}

static enum inf_code make_operand(void **out_data, const struct operands *operands, uint32_t value,
                                  struct inf_error *err)
{
    size_t size;
    if (value == INF_VALUE_NONE || inf_graph_is_const(operands->graph, value))
        return INF_OK;
    const struct inf_value *of = &operands->graph->values[value];
    if (inf_shape_bytes(&of->shape, of->dtype, &size))
        *out_data = aligned_alloc(SLACK_SIZE, inf_size_align(size, SLACK_SIZE) + SLACK_SIZE);
    if (*out_data == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for a race", operands->node->name);
    memset(*out_data, 0, inf_size_align(size, SLACK_SIZE) + SLACK_SIZE);
    return INF_OK;
}

static enum inf_code operands_fill(struct operands *operands, struct inf_error *err)
{
    const struct inf_node *node = operands->node;
    if (node->input_count > INF_LIMIT_TENSORS || node->output_count > INF_LIMIT_TENSORS)
        return inf_fail(err, INF_UNSUPPORTED, "node '%s' has too many operands", node->name);
    for (uint32_t i = 0; i < node->input_count; i++)
        INF_TRY(make_operand(&operands->inputs[i], operands, node->inputs[i], err));
    for (uint32_t i = 0; i < node->output_count; i++)
        INF_TRY(make_operand(&operands->outputs[i], operands, node->outputs[i], err));
    return INF_OK;
}

// --- a trial ---

static void bind(struct inf_cpu_step *step, const struct operands *operands)
{
    const struct inf_node *node = step->node;
    for (uint32_t i = 0; i < step->operand_count; i++)
        for (uint32_t k = 0; k < node->input_count; k++)
            if (step->operands[i] == node->inputs[k] && operands->inputs[k] != NULL)
                step->inputs[i] = operands->inputs[k];
    for (uint32_t i = 0; i < node->output_count; i++)
        step->outputs[i] = operands->outputs[i];
    step->output = operands->outputs[0];
}

static enum inf_code trial_fill(struct trial *trial, const struct inf_cpu_step *like,
                                const struct operands *operands, struct inf_error *err)
{
    struct inf_cpu_step *step = &trial->step;
    *step = *like;
    step->team = &trial->team;
    step->arena = &trial->arena;
    trial->team.pool = like->pool;
    INF_TRY(inf_cpu_step_take_operands(step, err));
    inf_cpu_step_bind_start(step);
    INF_TRY(trial->candidate->kernel->create(step, err));
    bind(step, operands);
    if (step->scratch_count > 0) {
        step->scratch = inf_xnn_alloc(&trial->scratch, step->scratch_count * sizeof(float));
        if (step->scratch == NULL)
            return INF_EXHAUSTED;
    }
    return inf_cpu_step_setup(step, err);
}

static void trial_fini(struct trial *trial)
{
    inf_cpu_step_fini(&trial->step);
    inf_xnn_free(&trial->scratch);
    inf_arena_fini(&trial->arena);
}

// One run to bring all threads and operands near, one that counts.
static void lead(void *context)
{
    struct trial *trial = context;
    trial->code = inf_cpu_step_run(&trial->step, NULL);
    uint64_t start_ns = inf_clock_ns();
    if (trial->code == INF_OK)
        trial->code = inf_cpu_step_run(&trial->step, NULL);
    uint64_t spent_ns = inf_clock_ns() - start_ns;
    uint64_t *least_ns = &trial->candidate->least_ns;
    if (trial->code != INF_OK)
        *least_ns = 0;
    else if (*least_ns == 0 || spent_ns < *least_ns)
        *least_ns = INF_MAX(spent_ns, UINT64_C(1));
}

static void take_turn(struct trial *trial)
{
    if (trial->code != INF_OK)
        return;
    if (inf_cpu_step_is_xnn(&trial->step))
        lead(trial);
    else
        inf_cpu_team_lead(&trial->team, lead, trial);
}

// --- races ---

bool inf_cpu_race_is_over(const struct inf_cpu_candidate *candidates, uint32_t count,
                          uint32_t turns, uint64_t start_ns)
{
    uint64_t best_ns = UINT64_MAX;
    uint32_t near = 0;
    if (turns < TURNS_MIN)
        return false;
    for (uint32_t i = 0; i < count; i++)
        if (candidates[i].least_ns > 0)
            best_ns = INF_MIN(best_ns, candidates[i].least_ns);
    for (uint32_t i = 0; i < count; i++)
        near +=
            candidates[i].least_ns > 0 && (double)candidates[i].least_ns < BEATEN * (double)best_ns;
    return near < 2 || turns >= TURNS_MAX || inf_clock_ns() - start_ns > TURNS_NS;
}

enum inf_code inf_cpu_race(struct inf_cpu_candidate *candidates, uint32_t count,
                           const struct inf_cpu_step *step, struct inf_error *err)
{
    struct trial trials[INF_CPU_CANDIDATES] = {0};
    struct operands operands = {.graph = step->graph, .node = step->node};
    count = INF_MIN(count, INF_CPU_CANDIDATES);
    inf_role_check_may_block();
    enum inf_code code = operands_fill(&operands, err);
    if (code == INF_OK) {
        for (uint32_t i = 0; i < count; i++) {
            trials[i].candidate = &candidates[i];
            candidates[i].least_ns = 0;
            trials[i].code = trial_fill(&trials[i], step, &operands, NULL);
        }
        uint64_t start_ns = inf_clock_ns();
        for (uint32_t turns = 0; !inf_cpu_race_is_over(candidates, count, turns, start_ns); turns++)
            for (uint32_t i = 0; i < count; i++)
                take_turn(&trials[i]);
        for (uint32_t i = 0; i < count; i++)
            trial_fini(&trials[i]);
    }
    operands_fini(&operands);
    return code;
}

enum inf_code inf_cpu_race_node(struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES],
                                uint32_t *out_count, struct inf_device *base,
                                const struct inf_graph *graph, uint32_t node, struct inf_error *err)
{
    struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    const struct inf_cpu_step step = {.graph = graph,
                                      .node = &graph->nodes[node],
                                      .index = node,
                                      .pool = device->pools.pools[0],
                                      .device = base,
                                      .packs = &device->packs,
                                      .isa = device->isa};
    *out_count = inf_cpu_kernel_list(candidates, graph, step.node);
    return inf_cpu_race(candidates, *out_count, &step, err);
}
