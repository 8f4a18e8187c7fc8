// SPDX-License-Identifier: Apache-2.0
// Decides by a timing comparison whether a fused group is computed as one step. program.c compiles
// and runs the candidates.
#include "backends/cpu/program/fusion_race.h"

#include <string.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "backends/cpu/program/device.h"
#include "backends/cpu/program/fusion_select.h"
#include "backends/cpu/program/program.h"
#include "backends/cpu/program/race.h"

struct trial {
    struct inf_program *program; // NULL: the program could not be compiled
    struct inf_cpu_candidate *form;
    const struct inf_run *run;
};

static enum inf_code run_candidate(void *context)
{
    struct trial *trial = context;
    struct inf_ticket ticket;
    return inf_cpu_program_run(trial->program, trial->run, &ticket, NULL);
}

static void take_turn(void *context, uint32_t index)
{
    struct trial *trial = (struct trial *)context + index;
    if (trial->program != NULL &&
        inf_cpu_race_time_candidate(trial->form, run_candidate, trial) != INF_OK) {
        inf_cpu_program_destroy(trial->program);
        trial->program = NULL;
    }
}

enum inf_code inf_cpu_fusion_race_levels(struct inf_cpu_candidate forms[INF_CPU_FUSION_CANDIDATES],
                                         struct inf_cpu_device *device,
                                         const struct inf_segment *segment,
                                         const struct inf_cpu_group *group,
                                         enum inf_cpu_fusion_level level, struct inf_error *err)
{
    struct trial trials[INF_CPU_FUSION_CANDIDATES] = {0};
    struct inf_cpu_race_operands operands = {0};
    struct inf_segment of_group = *segment;
    of_group.nodes = group->nodes;
    of_group.node_count = group->count;
    of_group.slots = 1;
    inf_role_check_may_block();
    for (uint32_t i = 0; i < INF_CPU_FUSION_CANDIDATES; i++) {
        enum inf_cpu_fusion_level candidate = (enum inf_cpu_fusion_level)(level - i);
        forms[i] = (struct inf_cpu_candidate){.family = inf_cpu_fusion_level_name(candidate)};
        trials[i].form = &forms[i];
        if (inf_cpu_program_compile_at_level(&trials[i].program, device, &of_group, candidate,
                                             NULL) != INF_OK)
            trials[i].program = NULL;
    }
    enum inf_code code =
        inf_cpu_race_operands_init(&operands, segment->graph, group->nodes, group->count, err);
    const struct inf_run run_of_all = {.bindings = operands.bindings};
    for (uint32_t i = 0; i < INF_CPU_FUSION_CANDIDATES; i++)
        trials[i].run = &run_of_all;
    if (code == INF_OK && !inf_cpu_race_run_turns(forms, INF_CPU_FUSION_CANDIDATES,
                                                  segment->races.gate, take_turn, trials))
        code = inf_fail(err, INF_CANCELLED, "requests were served all the time");
    for (uint32_t i = 0; i < INF_CPU_FUSION_CANDIDATES; i++)
        if (trials[i].program != NULL)
            inf_cpu_program_destroy(trials[i].program);
    inf_cpu_race_operands_fini(&operands);
    return code;
}

// --- comparing the fusion levels of every fused group of a segment ---

static void race_group(struct inf_cpu_device *device, const struct inf_segment *segment,
                       const struct inf_cpu_group *group, enum inf_cpu_fusion_level level,
                       uint64_t key) INF_MAY_BLOCK
{
    struct inf_cpu_candidate forms[INF_CPU_FUSION_CANDIDATES];
    const struct inf_node *last = &segment->graph->nodes[group->nodes[group->count - 1]];
    uint64_t start_ns = inf_clock_thread_ns();
    bool may_race = inf_race_results_may_race(device->race_results);
    enum inf_code code =
        may_race ? inf_cpu_fusion_race_levels(forms, device, segment, group, level, NULL) : INF_OK;
    if (code == INF_CANCELLED)
        return; // the compilation ends, and the next one races again
    bool raced = may_race && code == INF_OK && forms[0].least_ns > 0;
    inf_race_results_count(device->race_results,
                           raced ? INF_RACE_CHOICE_MEASURED : INF_RACE_CHOICE_RULE);
    if (raced)
        inf_cpu_race_record(device->race_results, key, inf_clock_thread_ns() - start_ns, last,
                            forms, INF_CPU_FUSION_CANDIDATES);
    // Record the fusion level that the fixed rule chose. The plan was made for this level, so it
    // must not change when the plan is compiled.
    inf_race_results_fix(device->race_results, key, inf_cpu_fusion_level_name(level));
}

// Runs the timing comparison for the fused group that ends with `node`, unless there is no such
// group or its winner is already recorded.
static void race_group_ending_at(struct inf_cpu_device *device, const struct inf_segment *segment,
                                 uint32_t node, enum inf_cpu_fusion_level level) INF_MAY_BLOCK
{
    struct inf_cpu_group group;
    char winner[INF_RACE_WINNER_TEXT];
    if (!inf_cpu_group_find(&group, segment->graph, node, segment, level) ||
        group.nodes[group.count - 1] != node)
        return;
    uint64_t key = inf_cpu_fusion_key(device, segment, &group, level);
    uint64_t until_ns = segment->races.known_until_ns;
    if (inf_race_results_find(device->race_results, key, until_ns, winner))
        inf_race_results_count(device->race_results, INF_RACE_CHOICE_KNOWN);
    else if (until_ns != 0)
        inf_race_results_count(device->race_results, inf_race_results_may_race(device->race_results)
                                                         ? INF_RACE_CHOICE_LATER
                                                         : INF_RACE_CHOICE_RULE);
    else
        race_group(device, segment, &group, level, key);
}

void inf_cpu_fusion_race_segment(struct inf_device *base, const struct inf_segment *segment)
{
    struct inf_cpu_device *device = (struct inf_cpu_device *)base;
    if (device->race_results == NULL)
        return;
    const atomic_bool *cancelled = segment->cancelled;
    for (uint32_t i = 0; i < segment->node_count && !inf_is_cancelled(cancelled); i++)
        race_group_ending_at(device, segment, segment->nodes[i], INF_CPU_FUSE_PIPELINES);
    for (uint32_t i = 0; i < segment->node_count && !inf_is_cancelled(cancelled); i++)
        if (!inf_cpu_fusion_applies(device, segment, segment->nodes[i], INF_CPU_FUSE_PIPELINES))
            race_group_ending_at(device, segment, segment->nodes[i], INF_CPU_FUSE_CHAINS);
}
