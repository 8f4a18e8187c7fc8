// SPDX-License-Identifier: Apache-2.0
// Decides how a request of a session runs with its history in place: which session tensors it
// extends or writes over, and how many rows their buffers have. Called by workers.
#ifndef INF_DAEMON_SCHEDULE_HISTORY_PLAN_H
#define INF_DAEMON_SCHEDULE_HISTORY_PLAN_H

#include "backends/exec/model/model.h"
#include "daemon/schedule/job.h"

// The smallest step of a number of rows.
#define INF_HISTORY_STEP_LEAST 64u

// One input that stays in the session.
struct inf_history_state {
    uint8_t input, output, axis;
    struct inf_session_tensor *tensor;
    size_t outer, row_bytes; // number of sequences of rows (batch times heads), and bytes of a row
    uint8_t *memory;         // the buffer that the run reads and extends
};

// The caller sets the first two members, and `step` and `ignores_limit` for
// inf_history_plan_room().
struct inf_history_plan {
    struct inf_job *job;
    const struct inf_history *history;
    bool overwrites;              // rows are written over caches of a fixed size
    const uint8_t *state_outputs; // history->caches if `overwrites` is set, else history->outputs
    uint32_t length, room, rows;  // rows in use, of a buffer, and new ones
    uint32_t step;                // see inf_history_round_room()
    bool ignores_limit; // new buffers have room for this request, not for the longest history
    uint32_t state_count;
    struct inf_history_state states[INF_LIMIT_TENSORS];
    struct inf_shape shapes[INF_LIMIT_TENSORS]; // of the inputs, for an empty history
};

// Fills the sizes of a state, whose axis is set, from the shape of its input. Returns false if the
// input has no elements beside its rows.
bool inf_history_state_init(struct inf_history_state *state, const struct inf_shape *shape,
                            enum inf_dtype dtype);

// Prepares a run that writes rows over caches. Sets the length of the history from inputs such as
// masks, whose size is that of all rows. Returns false if there is no such run.
bool inf_history_plan_overwriting(struct inf_history_plan *plan, int64_t *rows);

// Prepares a run that appends rows to buffers. Returns false if there is no such run.
bool inf_history_plan_appending(struct inf_history_plan *plan, int64_t *rows);

// Returns the number of rows of a buffer that has `rows` at least: a multiple of `step`, or a power
// of two if `step` is 0.
uint32_t inf_history_round_room(uint64_t rows, uint32_t step);

// Sets the number of rows of the buffers: that of the buffers in use, if `rows` new rows fit. New
// buffers have room for the longest history that the session or the model's settings allow, unless
// plan->ignores_limit is set. Returns false if there is no such number.
bool inf_history_plan_room(struct inf_history_plan *plan, int64_t rows);

#endif
