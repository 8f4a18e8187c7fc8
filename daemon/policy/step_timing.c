// SPDX-License-Identifier: Apache-2.0
// The decision compares the shortest runs, because every disturbance makes a run longer. A run
// whose threads were interrupted does not count at all: if all runs of one number of steps were
// interrupted, and some runs of the other number were not, the comparison would be meaningless.
//
// A factor far from the limit is decided after a few runs. A factor near the limit needs more runs,
// because a small error decides on which side it is. Each further run can only make the shortest
// times more exact.
#include "daemon/policy/step_timing.h"

#include <assert.h>

#include "proto/core/attributes.h"

static void note_run(uint64_t *least_ns, uint32_t *quiet, struct inf_step_time time)
{
    if (time.disturbed)
        return;
    if (*least_ns == 0 || time.run_ns < *least_ns)
        *least_ns = INF_MAX(time.run_ns, 1u);
    ++*quiet;
}

void inf_step_timing_note(struct inf_step_timing *timing, struct inf_step_time fewer,
                          struct inf_step_time more)
{
    note_run(&timing->fewer_ns, &timing->fewer_quiet, fewer);
    note_run(&timing->more_ns, &timing->more_quiet, more);
    timing->turns++;
}

double inf_step_timing_factor(const struct inf_step_timing *timing)
{
    if (timing->fewer_ns == 0 || timing->more_ns == 0)
        return 0;
    return (double)timing->more_ns * timing->fewer / ((double)timing->fewer_ns * timing->more);
}

enum inf_step_verdict inf_step_timing_decide(const struct inf_step_timing *timing)
{
    double factor = inf_step_timing_factor(timing);
    bool near = factor > INF_STEP_NEAR_LEAST && factor < INF_STEP_NEAR_MOST;
    uint32_t wanted = near ? INF_STEP_RUNS_NEAR : INF_STEP_RUNS_MIN;
    if (INF_MIN(timing->fewer_quiet, timing->more_quiet) >= wanted)
        return factor <= INF_STEP_LIMIT ? INF_STEP_PAYS : INF_STEP_COSTS;
    return timing->turns < INF_STEP_TURNS_MAX ? INF_STEP_UNDECIDED : INF_STEP_DISTURBED;
}

// The machine may have become slower or faster since the previous rung was measured. So the time of
// the new rung is the time of the previous rung, times the ratio that was measured by turns.
void inf_step_findings_add(struct inf_step_findings *findings, const struct inf_step_timing *timing)
{
    struct inf_batch_ladder *ladder = &findings->ladder;
    if (ladder->count == 0)
        ladder->rungs[ladder->count++] = (struct inf_batch_rung){timing->fewer, timing->fewer_ns};
    const struct inf_batch_rung *below = &ladder->rungs[ladder->count - 1];
    assert(below->rows == timing->fewer && ladder->count < INF_BATCH_RUNGS);
    double ratio = (double)timing->more_ns / (double)timing->fewer_ns;
    ladder->rungs[ladder->count++] = (struct inf_batch_rung){
        .rows = timing->more, .run_ns = (uint64_t)((double)below->run_ns * ratio)};
}

void inf_step_findings_refuse(struct inf_step_findings *findings,
                              const struct inf_step_timing *timing)
{
    findings->refused = timing->more;
    findings->refused_permille = (uint32_t)(inf_step_timing_factor(timing) * 1000 + 0.5);
}
