// SPDX-License-Identifier: Apache-2.0
// Decides whether a worker that could start a batch waits a moment for rows that are about to
// arrive. batch_wait.c explains the idea. The functions read no clock and take no lock; the caller
// passes the time and holds a lock.
#ifndef INF_DAEMON_POLICY_BATCH_WAIT_H
#define INF_DAEMON_POLICY_BATCH_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/policy/batch_ladder.h"

// A wait ends if no row arrives for this many nanoseconds. This is long enough for an answer to
// reach the client and the next request to come back.
#define INF_BATCH_WAIT_STALL_NS 200000u
// The longest time that a worker waits for more rows of a batch, in nanoseconds.
#define INF_BATCH_WAIT_MAX_NS 2000000u

// What is remembered of a device's last runs to decide whether a worker waits for more rows. One
// per device queue. All zero is the initial state.
struct inf_batch_wait {
    uint64_t model;     // identifies the model of the last run
    uint32_t rows;      // number of rows of the last run
    uint64_t end_ns;    // time at which the last run ended
    uint32_t fruitless; // number of consecutive waits in which no row arrived
    uint32_t skip;      // the worker does not wait the next `skip` times that it could
};

// The queued jobs of one model.
struct inf_batch_waiting {
    uint64_t model;
    uint64_t rows;
    uint64_t fresh;       // number of rows that arrived since the last run ended
    uint64_t deadline_ns; // the earliest deadline of the jobs; 0: none
};

// Returns how many nanoseconds a worker should wait at most for more rows; 0: waiting does not pay.
// The wait ends early when *out_rows rows are queued.
uint64_t inf_batch_wait_plan(struct inf_batch_wait *wait, const struct inf_batch_ladder *ladder,
                             const struct inf_batch_waiting *waiting, uint64_t now_ns,
                             uint64_t *out_rows);

// Records whether a wait brought new rows; after several waits without new rows, later waits are
// skipped.
void inf_batch_wait_learn(struct inf_batch_wait *wait, bool fruitful);

// Records that the device has run `rows` rows of a model.
void inf_batch_wait_note(struct inf_batch_wait *wait, uint64_t model, uint32_t rows,
                         uint64_t end_ns);

#endif
