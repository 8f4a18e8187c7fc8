// SPDX-License-Identifier: Apache-2.0
// Whether a worker that could begin had better wait a moment for rows that are about to come. Clients
// that were answered a moment ago mostly ask again at once: run without them, those that wait now and
// those that come next take turns for ever, each in half a batch. One that is alone never waits: what
// it was answered it has asked again. Knows no clock and no lock: the caller has both.
#ifndef INF_DAEMON_POLICY_BATCH_WAIT_H
#define INF_DAEMON_POLICY_BATCH_WAIT_H

#include <stdbool.h>
#include <stdint.h>

#include "daemon/policy/batch_ladder.h"

// A wait is over when nothing has come for so long: answers have to get to clients, and wake them.
#define INF_BATCH_WAIT_STALL_NS 200000u
// The longest wait.
#define INF_BATCH_WAIT_MAX_NS 2000000u

// Embedded; all zero is a fresh one.
struct inf_batch_wait {
    uint64_t model;     // whose rows ran last
    uint32_t rows;      // how many
    uint64_t end_ns;    // when that ended
    uint32_t fruitless; // waits one after the other that brought nothing
    uint32_t skip;      // chances to wait that are let go since
};

// What waits now, all of one model.
struct inf_batch_waiting {
    uint64_t model;
    uint64_t rows;
    uint64_t fresh;       // of them, that came since the last run ended
    uint64_t deadline_ns; // the earliest; 0: none
};

// How long waiting may go on from now, and at how many rows it is over; 0: it does not pay.
uint64_t inf_batch_wait_plan(struct inf_batch_wait *wait, const struct inf_batch_ladder *ladder,
                             const struct inf_batch_waiting *waiting, uint64_t now_ns,
                             uint64_t *out_rows);

// Learns whether a wait brought rows.
void inf_batch_wait_learn(struct inf_batch_wait *wait, bool fruitful);

// Rows of a model have run.
void inf_batch_wait_note(struct inf_batch_wait *wait, uint64_t model, uint32_t rows,
                         uint64_t end_ns);

#endif
