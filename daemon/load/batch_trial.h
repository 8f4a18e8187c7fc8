// SPDX-License-Identifier: Apache-2.0
// Finds out by running it whether a model's runs may be shared, and how many rows pay. For the
// loader thread.
#ifndef INF_DAEMON_LOAD_BATCH_TRIAL_H
#define INF_DAEMON_LOAD_BATCH_TRIAL_H

#include "daemon/load/served.h"

// Fills served->ladder. A model whose every input and output leaves its first dimension open, and
// nothing else, is run with 1, 2, 4 ... rows (at most `rows_max`) of different values. As long as
// every row comes out as it does alone, and each step makes a row cheaper by a tenth or more, the
// number of rows is a rung. Else the ladder ends there, and there is none if that is at one row:
// that such a model treats its rows alike cannot be read off its graph, and is not taken on trust.
// Takes little more than INF_BATCH_TRIAL_MS at most.
void inf_batch_trial_run(struct inf_served *served, uint32_t rows_max,
                         const struct inf_log *log) INF_MAY_BLOCK;

// After this much time no higher rung is tried.
#define INF_BATCH_TRIAL_MS 1000u

#endif
