// SPDX-License-Identifier: Apache-2.0
// Decides from timed runs whether joining more decoding steps pays. Runs of two numbers of steps
// take turns, so that a disturbance of the machine affects both. The functions read no clock.
#ifndef INF_DAEMON_POLICY_STEP_TIMING_H
#define INF_DAEMON_POLICY_STEP_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/policy/batch_ladder.h"

// Undisturbed runs of each number before a decision, and before one about a time near the limit,
// that is, between INF_STEP_NEAR_LEAST and INF_STEP_NEAR_MOST of the time of a step in a run of
// fewer steps. The limit is INF_STEP_LIMIT.
#define INF_STEP_RUNS_MIN   3u
#define INF_STEP_RUNS_NEAR  12u
#define INF_STEP_LIMIT      0.9
#define INF_STEP_NEAR_LEAST 0.75
#define INF_STEP_NEAR_MOST  1.05
// After this many turns there is no decision if too many runs were disturbed.
#define INF_STEP_TURNS_MAX 40u

// The timed runs of `fewer` and of `more` steps. Zeroed except for these two numbers at first.
struct inf_step_timing {
    uint32_t fewer, more;
    uint64_t fewer_ns, more_ns;       // the least time of an undisturbed run; 0: there was none
    uint32_t fewer_quiet, more_quiet; // numbers of undisturbed runs
    uint32_t turns;
};

// What a run took. Disturbed: its threads did not have their processors all the time.
struct inf_step_time {
    uint64_t run_ns;
    bool disturbed;
};

// Notes one run of each number of steps.
void inf_step_timing_note(struct inf_step_timing *timing, struct inf_step_time fewer,
                          struct inf_step_time more);

// Returns the time of a step in a run of more steps, as a fraction of that in a run of fewer; 0: no
// run of one of them was undisturbed.
double inf_step_timing_factor(const struct inf_step_timing *timing);

// What the runs so far say about a number of steps.
enum inf_step_verdict {
    INF_STEP_UNDECIDED, // more runs are needed
    INF_STEP_PAYS,      // a step costs at least a tenth less
    INF_STEP_COSTS,     // it does not
    INF_STEP_DISTURBED, // the machine was too busy to say
};

// Decides by the least times of both numbers of steps.
enum inf_step_verdict inf_step_timing_decide(const struct inf_step_timing *timing);

// Buffer size for the reason why steps are not joined.
#define INF_STEP_WHY 160

// What a trial found out about the joined decoding steps of a model.
struct inf_step_findings {
    struct inf_batch_ladder ladder; // the numbers that pay, from 1; empty: none does
    uint32_t refused;               // a number that does not pay; 0: none was found
    uint32_t refused_permille;      // its inf_step_timing_factor(), in thousandths
    char why[INF_STEP_WHY];         // why more steps cannot be joined; "": nothing prevents it
};

// Adds the number timing->more to the ladder, which ends with timing->fewer or is empty.
void inf_step_findings_add(struct inf_step_findings *findings,
                           const struct inf_step_timing *timing);

// Notes that the number timing->more does not pay.
void inf_step_findings_refuse(struct inf_step_findings *findings,
                              const struct inf_step_timing *timing);

#endif
