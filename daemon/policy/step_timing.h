// SPDX-License-Identifier: Apache-2.0
// Decides from timed runs whether joining more decoding steps pays. Runs of two numbers of steps
// take turns, so that a disturbance of the machine affects both. The functions read no clock.
#ifndef INF_DAEMON_POLICY_STEP_TIMING_H
#define INF_DAEMON_POLICY_STEP_TIMING_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/policy/batch_ladder.h"

// The factor is the time of a step in a run of more steps, divided by the time of a step in a run
// of fewer steps. More steps pay if the factor is at most this limit.
#define INF_STEP_LIMIT 0.9
// A factor between these two is near the limit.
#define INF_STEP_NEAR_LEAST 0.75
#define INF_STEP_NEAR_MOST  1.05
// How many undisturbed runs of each number of steps a decision needs; the second number is for a
// factor near the limit.
#define INF_STEP_RUNS_MIN  3u
#define INF_STEP_RUNS_NEAR 12u
// The most turns, each of one run of both numbers of steps. If too few runs were undisturbed by
// then, the verdict is INF_STEP_DISTURBED.
#define INF_STEP_TURNS_MAX 40u

// The timed runs of `fewer` and of `more` steps. The caller sets these two numbers at first, and
// zeroes the rest.
struct inf_step_timing {
    uint32_t fewer, more;
    uint64_t fewer_ns, more_ns;       // the shortest undisturbed run; 0: there was none
    uint32_t fewer_quiet, more_quiet; // numbers of undisturbed runs
    uint32_t turns;
};

// The time of a run.
struct inf_step_time {
    uint64_t run_ns;
    bool disturbed; // other programs interrupted its threads
};

// Notes one run of each number of steps.
void inf_step_timing_note(struct inf_step_timing *timing, struct inf_step_time fewer,
                          struct inf_step_time more);

// Returns the time of a step in a run of more steps, divided by the time of a step in a run of
// fewer steps; 0: all runs of one of the two numbers were disturbed.
double inf_step_timing_factor(const struct inf_step_timing *timing);

// What the runs so far say about a number of steps.
enum inf_step_verdict {
    INF_STEP_UNDECIDED, // more runs are needed
    INF_STEP_PAYS,      // a step takes at least a tenth less time
    INF_STEP_COSTS,     // a step takes more time than that
    INF_STEP_DISTURBED, // too many runs were disturbed for a decision
};

// Decides by the shortest undisturbed run of each number of steps.
enum inf_step_verdict inf_step_timing_decide(const struct inf_step_timing *timing);

// Buffer size for the reason why steps are not joined.
#define INF_STEP_WHY 160

// What a trial found out about the joined decoding steps of a model.
struct inf_step_findings {
    struct inf_batch_ladder ladder; // the numbers of steps that pay, from 1 on; empty: none pays
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
