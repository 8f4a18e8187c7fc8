// SPDX-License-Identifier: Apache-2.0
// Measures how many decoding steps of different sessions are worth running together. Used on the
// loader thread.
#ifndef INF_DAEMON_LOAD_TRIAL_STEP_TRIAL_H
#define INF_DAEMON_LOAD_TRIAL_STEP_TRIAL_H

#include "daemon/load/served.h"

// Fills served->ladder for a model for which inf_served_joins_steps() is true: with the numbers of
// steps, 1, 2, 4 ... (at most `steps_max`), that are worth running together. A number is a rung if
// a step costs at least a tenth less time than on the previous rung. Steps of one row are run at
// the beginning of an empty history. If the first failure is at 2 steps, there is no ladder. Takes
// little more than INF_STEP_TRIAL_MS at most, unless compiling for two steps takes that long.
// *cancelled ends the trial early.
void inf_step_trial_run(struct inf_served *served, uint32_t steps_max, const atomic_bool *cancelled,
                        const struct inf_log *log) INF_MAY_BLOCK;

// No number of steps is tried that would probably be measured later than this many milliseconds
// after the first one.
#define INF_STEP_TRIAL_MS 1000u

#endif
