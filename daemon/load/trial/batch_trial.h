// SPDX-License-Identifier: Apache-2.0
// Measures whether a model may be batched, and which row counts are worth batching. Used on the
// loader thread.
#ifndef INF_DAEMON_LOAD_TRIAL_BATCH_TRIAL_H
#define INF_DAEMON_LOAD_TRIAL_BATCH_TRIAL_H

#include "daemon/load/served.h"

// Fills served->ladder, the list of row counts that are worth batching (rungs). The ladder stays
// empty unless the first dimension of all inputs and outputs is open, and all others are fixed. It
// also stays empty for a large model that is bound by arithmetic. The function runs the model with
// 1, 2, 4 ... rows (at most `rows_max`) of different values. A row count becomes a rung if every
// row has the same result as in a run alone, and a row costs at least a tenth less time than on the
// previous rung. The ladder ends at the first row count that fails. If that is 2, there is no
// ladder. Running is necessary because the graph does not show whether a model treats its rows
// independently. The trial takes little more than INF_BATCH_TRIAL_MS. *cancelled ends it early.
void inf_batch_trial_run(struct inf_served *served, uint32_t rows_max, const atomic_bool *cancelled,
                         const struct inf_log *log) INF_MAY_BLOCK;

// Compiles the model for the rungs of served->ladder, which an earlier load measured. Returns
// false, and empties the ladder, if a rung cannot be compiled.
bool inf_batch_trial_compile(struct inf_served *served) INF_NODISCARD INF_MAY_BLOCK;

// After this many milliseconds no further row count is tried.
#define INF_BATCH_TRIAL_MS 1000u

#endif
