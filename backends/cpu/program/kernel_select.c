// SPDX-License-Identifier: Apache-2.0
// Selects the kernel for a node: the recorded winner of a timing comparison, or the winner of a
// comparison that is run now, or the first kernel of the table that can compute the node.
#include "backends/cpu/program/kernel_select.h"

#include <string.h>

#include "backends/base/clock.h"
#include "backends/cpu/program/kernel_race.h"
#include "backends/storage/record.h"

// Returns the key under which the result for the node is recorded. It covers everything that the
// result depends on: the threads, the precision, and the node's operator, attributes and operands.
static uint64_t make_key(const struct inf_race_results *results, const struct inf_cpu_step *step)
{
    const struct inf_node *node = step->node;
    bool bf16 = step->bf16 && !(step->pinned != NULL && step->pinned[step->index]);
    uint64_t key = inf_cpu_race_key(results, step->team->threads);
    key = inf_record_hash(key, &bf16, sizeof bf16);
    key = inf_cpu_race_hash_node(key, step->graph, step->index);
    for (uint32_t i = 0; i < node->input_count; i++)
        key = inf_cpu_race_hash_value(key, step->graph, node->inputs[i]);
    return key;
}

// Returns the index of the candidate that won the timing comparison. Runs the comparison if no
// winner is recorded. Returns 0, the first candidate, if no comparison can be run.
static uint32_t choose_candidate(const struct inf_cpu_races *races, const struct inf_cpu_step *step,
                                 struct inf_cpu_candidate *candidates, uint32_t count) INF_MAY_BLOCK
{
    struct inf_race_results *results = races->results;
    char winner[INF_RACE_WINNER_TEXT] = "";
    uint64_t key = make_key(results, step);
    enum inf_race_choice choice = INF_RACE_CHOICE_RULE;
    if (inf_race_results_find(results, key, races->how.known_until_ns, winner)) {
        choice = INF_RACE_CHOICE_KNOWN;
    } else if (inf_race_results_may_race(results)) {
        uint64_t start_ns = inf_clock_thread_ns();
        choice = INF_RACE_CHOICE_LATER;
        if (races->how.known_until_ns == 0 &&
            inf_cpu_kernel_race_run(candidates, count, step, races->how.gate, NULL) == INF_OK &&
            candidates[0].least_ns != 0) {
            inf_cpu_race_record(results, key, inf_clock_thread_ns() - start_ns, step->node,
                                candidates, count);
            (void)inf_race_results_find(results, key, 0, winner);
            choice = INF_RACE_CHOICE_MEASURED;
        }
    }
    inf_race_results_count(results, choice);
    for (uint32_t i = 0; i < count; i++)
        if (strcmp(candidates[i].family, winner) == 0)
            return i;
    return 0;
}

// If the device is limited to a lower ISA level than the processor's, removes the kernels of
// XNNPACK, whose instructions the limit does not reach, unless no other kernel is left. Returns the
// number of candidates that remain.
static uint32_t keep_limited(const struct inf_cpu_step *step, struct inf_cpu_candidate *candidates,
                             uint32_t count)
{
    uint32_t kept = 0;
    if (step->isa == inf_isa_best())
        return count;
    for (uint32_t i = 0; i < count; i++)
        if (strncmp(candidates[i].family, "xnn_", 4) != 0)
            candidates[kept++] = candidates[i];
    return kept > 0 ? kept : count;
}

enum inf_code inf_cpu_kernel_select(const struct inf_cpu_kernel **out_kernel,
                                    const struct inf_cpu_races *races,
                                    const struct inf_cpu_step *step, struct inf_error *err)
{
    struct inf_cpu_candidate candidates[INF_CPU_CANDIDATES];
    INF_TRY(inf_cpu_kernel_find(out_kernel, step->graph, step->node, err));
    if (races->results == NULL)
        return INF_OK;
    uint32_t count = inf_cpu_kernel_list(candidates, step->graph, step->node);
    count = keep_limited(step, candidates, count);
    if (count > 1)
        *out_kernel = candidates[choose_candidate(races, step, candidates, count)].kernel;
    return INF_OK;
}
