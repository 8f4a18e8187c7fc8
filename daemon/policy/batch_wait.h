// SPDX-License-Identifier: Apache-2.0
// Decides whether a worker that could start a batch waits a moment for rows that are about to
// arrive. batch_wait.c explains the idea. The functions read no clock and take no lock; the caller
// passes the time and holds a lock.
#ifndef INF_DAEMON_POLICY_BATCH_WAIT_H
#define INF_DAEMON_POLICY_BATCH_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/policy/batch_ladder.h"

// A wait ends if no row arrives for this time. It is long enough for an answer to reach the client
// and the next request to come back.
#define INF_BATCH_WAIT_STALL_NS 200000u
// The longest wait in nanoseconds.
#define INF_BATCH_WAIT_MAX_NS 2000000u

// What is remembered of one device's last runs to decide whether a worker waits for more rows.
// Embedded in the device queue. All zero is the initial state.
struct inf_batch_wait {
    uint64_t model;     // identifies the model of the last run
    uint32_t rows;      // rows of the last run
    uint64_t end_ns;    // end of the last run
    uint32_t fruitless; // consecutive waits that brought no rows
    uint32_t skip;      // number of opportunities to wait that are still to be skipped
};

// The queued jobs of one model.
struct inf_batch_waiting {
    uint64_t model;
    uint64_t rows;
    uint64_t fresh;       // rows that arrived since the last run ended
    uint64_t deadline_ns; // the earliest deadline of the jobs; 0: none
};

// Returns how long to wait at most from now, in nanoseconds; 0: waiting does not pay. The wait ends
// early when *out_rows rows are queued.
uint64_t inf_batch_wait_plan(struct inf_batch_wait *wait, const struct inf_batch_ladder *ladder,
                             const struct inf_batch_waiting *waiting, uint64_t now_ns,
                             uint64_t *out_rows);

// Records whether a wait brought new rows; after several waits without new rows, later waits are
// skipped.
void inf_batch_wait_learn(struct inf_batch_wait *wait, bool fruitful);

// Records a run of `rows` rows of a model.
void inf_batch_wait_note(struct inf_batch_wait *wait, uint64_t model, uint32_t rows,
                         uint64_t end_ns);

#endif
