// SPDX-License-Identifier: Apache-2.0
// Measures how many decoding steps of different sessions are worth running together. Used on the
// loader thread.
#ifndef INF_DAEMON_LOAD_TRIAL_STEP_TRIAL_H
#define INF_DAEMON_LOAD_TRIAL_STEP_TRIAL_H

#include "daemon/load/served.h"

// Fills served->ladder for a model for which inf_served_joins_steps() is true. The function runs 1,
// 2, 4 ... steps together (at most `steps_max`), each of one row and with an empty history. A
// number of steps becomes a rung if a step costs at least a tenth less time than on the previous
// rung. The ladder ends at the first number that fails. If that is 2, there is no ladder. The trial
// takes little more than INF_STEP_TRIAL_MS, unless compiling for one or two steps takes longer.
// *cancelled ends the trial early.
void inf_step_trial_run(struct inf_served *served, uint32_t steps_max, const atomic_bool *cancelled,
                        const struct inf_log *log) INF_MAY_BLOCK;

// The time of the trial in milliseconds, without compiling for one step. Each number of steps is
// expected to take twice as long as the number before. A number that is expected to end after this
// time is not tried.
#define INF_STEP_TRIAL_MS 1000u

#endif
