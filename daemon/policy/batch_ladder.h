// SPDX-License-Identifier: Apache-2.0
// How many rows a model runs at once. A model whose runs may be shared has a ladder: the numbers of
// rows that pay, and what a run of each takes, measured when it was loaded (daemon/load/batch_trial.h).
// What has come while the device was busy runs together; for more a worker waits only where those who
// were just answered are about to ask again (daemon/policy/batch_wait.h).
#ifndef INF_DAEMON_POLICY_BATCH_LADDER_H
#define INF_DAEMON_POLICY_BATCH_LADDER_H

#include <stdint.h>

// Rungs of a ladder: 1, 2, 4, 8, 16 and 32 rows.
#define INF_BATCH_RUNGS    6
#define INF_BATCH_ROWS_MAX 32u
// Bytes of inputs and outputs that one run gathers; a rung that needs more does not exist.
#define INF_BATCH_BYTES_MAX ((uint64_t)64 << 20)

struct inf_batch_rung {
    uint32_t rows;
    uint64_t run_ns; // of one run, however many of its rows are padding
};

struct inf_batch_ladder {
    uint32_t count;                               // 0: runs of this model are not shared
    struct inf_batch_rung rungs[INF_BATCH_RUNGS]; // by rows, from 1
    uint64_t bytes;                               // that a run of the last one gathers
};

struct inf_batch_choice {
    uint32_t rung; // index
    uint32_t rows; // of those that wait; the rest of the rung is padding
};

// The rung that gets most done in its time, where so many rows (1 or more) wait. The ladder has one.
struct inf_batch_choice inf_batch_choose(const struct inf_batch_ladder *ladder, uint64_t rows);

// Rows of the last rung; 0 where there is none.
uint32_t inf_batch_rows_max(const struct inf_batch_ladder *ladder);

#endif
