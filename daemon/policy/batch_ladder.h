// SPDX-License-Identifier: Apache-2.0
// How many rows of a model run at once. A model that can be batched has a ladder: a list of row
// counts (rungs) that are worth batching, each with its run time, measured at load
// (daemon/load/trial/batch_trial.h). Requests that arrive while the device is busy run together in
// the next batch. For a model with a history, a row is a decoding step of a session
// (daemon/load/trial/step_trial.h). A worker waits for more rows only if clients that were just
// answered are likely to send their next request soon (daemon/policy/batch_wait.h).
#ifndef INF_DAEMON_POLICY_BATCH_LADDER_H
#define INF_DAEMON_POLICY_BATCH_LADDER_H

#include <stdbool.h>
#include <stdint.h>

// The most rungs (row counts) of a batch ladder: 1, 2, 4, 8, 16 and 32 rows.
#define INF_BATCH_RUNGS    6
#define INF_BATCH_ROWS_MAX 32u
// The most bytes of inputs and outputs in one batch. A row count that needs more bytes is not added
// to a batch ladder.
#define INF_BATCH_BYTES_MAX ((uint64_t)64 << 20)

struct inf_batch_rung {
    uint32_t rows;
    uint64_t run_ns; // time of one run with `rows` rows, padding included
};

struct inf_batch_ladder {
    uint32_t count;                               // number of rungs; 0: the model is not batched
    struct inf_batch_rung rungs[INF_BATCH_RUNGS]; // row counts in ascending order, from 1
    uint64_t bytes; // bytes of all inputs and outputs in a run of the highest rung
};

struct inf_batch_choice {
    uint32_t rung; // index of the chosen row count in inf_batch_ladder.rungs
    // Number of waiting rows to run; padding rows fill the run up to the row count of the rung.
    uint32_t rows;
};

// Returns the row count (rung) with the highest throughput if `rows` rows (1 or more) wait. The
// ladder must have at least one rung.
struct inf_batch_choice inf_batch_choose(const struct inf_batch_ladder *ladder, uint64_t rows);

// Returns true if a run of `rows` rows that takes `run_ns` is worth a rung on top of the ladder,
// which must have at least one rung: a row costs at least a tenth less time than on the highest
// rung.
bool inf_batch_ladder_pays(const struct inf_batch_ladder *ladder, uint32_t rows, uint64_t run_ns);

// Returns the largest row count of the ladder; 0 if the model is not batched.
uint32_t inf_batch_rows_max(const struct inf_batch_ladder *ladder);

#endif
