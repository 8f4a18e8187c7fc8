// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/form_race.h"

#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/cpu/kernel_race.h"
#include "proto/core/span.h"

#define SLACK_SIZE 64 // XNNPACK reads some bytes behind operands

struct trial {
    struct inf_program *program; // NULL: it could not be compiled
    struct inf_cpu_candidate *form;
};

// What all forms read and write, by value of the graph.
struct operands {
    struct inf_binding *bindings;
    uint32_t count;
};

const char *inf_cpu_form_name(enum inf_cpu_fusing fusing)
{
    static const char *const names[] = {"nodes", "chains", "streams"};
    return names[fusing];
}

// --- operands ---

static void operands_fini(struct operands *operands)
{
    for (uint32_t i = 0; operands->bindings != NULL && i < operands->count; i++)
        free(operands->bindings[i].host);
    free(operands->bindings);
}

static enum inf_code make_operand(struct operands *operands, const struct inf_graph *graph,
                                  uint32_t value, struct inf_error *err)
{
    size_t size;
    if (value == INF_VALUE_NONE || inf_graph_is_const(graph, value) ||
        operands->bindings[value].host != NULL)
        return INF_OK;
    const struct inf_value *of = &graph->values[value];
    void *host = NULL;
    if (inf_shape_bytes(&of->shape, of->dtype, &size)) {
        size = inf_size_align(size, SLACK_SIZE) + SLACK_SIZE;
        host = aligned_alloc(SLACK_SIZE, size);
    }
    if (host == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "value '%s': no memory for a race", of->name);
    memset(host, 0, size);
    operands->bindings[value].host = host;
    return INF_OK;
}

static enum inf_code operands_fill(struct operands *operands, const struct inf_graph *graph,
                                   const struct inf_cpu_group *group, struct inf_error *err)
{
    operands->count = graph->value_count;
    operands->bindings = calloc((size_t)operands->count + 1, sizeof *operands->bindings);
    if (operands->bindings == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
    for (uint32_t i = 0; i < group->count; i++) {
        const struct inf_node *node = &graph->nodes[group->nodes[i]];
        for (uint32_t k = 0; k < node->input_count; k++)
            INF_TRY(make_operand(operands, graph, node->inputs[k], err));
        for (uint32_t k = 0; k < node->output_count; k++)
            INF_TRY(make_operand(operands, graph, node->outputs[k], err));
    }
    return INF_OK;
}

// --- races ---

// One run to bring all threads and operands near, one that counts.
static void take_turn(struct trial *trial, const struct inf_run *run)
{
    struct inf_ticket ticket;
    uint64_t *least_ns = &trial->form->least_ns;
    if (trial->program == NULL)
        return;
    enum inf_code code = inf_cpu_run(trial->program, run, &ticket, NULL);
    uint64_t start_ns = inf_clock_ns();
    if (code == INF_OK)
        code = inf_cpu_run(trial->program, run, &ticket, NULL);
    uint64_t spent_ns = inf_clock_ns() - start_ns;
    if (code != INF_OK) {
        inf_cpu_program_destroy(trial->program);
        trial->program = NULL;
        *least_ns = 0;
    } else if (*least_ns == 0 || spent_ns < *least_ns) {
        *least_ns = INF_MAX(spent_ns, UINT64_C(1));
    }
}

static void take_turns(struct trial *trials, const struct inf_cpu_candidate *forms,
                       const struct operands *operands)
{
    const struct inf_run run = {.bindings = operands->bindings};
    uint64_t start_ns = inf_clock_ns();
    for (uint32_t turns = 0; !inf_cpu_race_is_over(forms, INF_CPU_FORMS, turns, start_ns); turns++)
        for (uint32_t i = 0; i < INF_CPU_FORMS; i++)
            take_turn(&trials[i], &run);
}

enum inf_code inf_cpu_race_forms(struct inf_cpu_candidate forms[INF_CPU_FORMS],
                                 struct inf_cpu_device *device, const struct inf_segment *segment,
                                 const struct inf_cpu_group *group, enum inf_cpu_fusing most,
                                 struct inf_error *err)
{
    struct trial trials[INF_CPU_FORMS] = {0};
    struct operands operands = {0};
    struct inf_segment of_group = *segment;
    of_group.nodes = group->nodes;
    of_group.node_count = group->count;
    of_group.slots = 1;
    inf_role_check_may_block();
    for (uint32_t i = 0; i < INF_CPU_FORMS; i++) {
        enum inf_cpu_fusing fusing = (enum inf_cpu_fusing)(most - i);
        forms[i] = (struct inf_cpu_candidate){.family = inf_cpu_form_name(fusing)};
        trials[i].form = &forms[i];
        if (inf_cpu_compile_form(&trials[i].program, device, &of_group, fusing, NULL) != INF_OK)
            trials[i].program = NULL;
    }
    enum inf_code code = operands_fill(&operands, segment->graph, group, err);
    if (code == INF_OK)
        take_turns(trials, forms, &operands);
    for (uint32_t i = 0; i < INF_CPU_FORMS; i++)
        if (trials[i].program != NULL)
            inf_cpu_program_destroy(trials[i].program);
    operands_fini(&operands);
    return code;
}
