// SPDX-License-Identifier: Apache-2.0
// The memory of one decoding step: that of its session, and that which the worker provides. Called
// by workers.
#ifndef INF_DAEMON_SCHEDULE_HISTORY_STEP_H
#define INF_DAEMON_SCHEDULE_HISTORY_STEP_H

#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/batch.h"
#include "daemon/schedule/history_plan.h"

// What a worker provides for a step.
struct inf_history_resources {
    struct inf_pool *pool;
    struct inf_batch_memory *memory;       // for inputs that are copied
    const struct inf_run_options *options; // precision and user of the run
    uint32_t slot;
    struct inf_run_step *step; // receives the name of each node before it is computed
};

// The caller makes the plan, and sets `resources`.
struct inf_history_step {
    struct inf_history_plan plan;
    const struct inf_history_resources *resources;
    const void *inputs[INF_LIMIT_TENSORS + 1];
    void *outputs[INF_LIMIT_TENSORS + 1];
    int64_t *positions; // where the run wrote rows over caches; in the worker's memory
    int32_t used;       // `length` as the run reads it
    bool is_refused;    // the results must not be used; the job must be run in the usual way
};

// Fills the inputs and outputs of the step. `graph` is the graph of the run. Its first inputs and
// outputs have the shapes of those of this step; in a graph for several sessions, those of the
// other sessions follow. Errors are reported in the fault of the job.
//
// INF_EXHAUSTED  (HOST_OOM, QUOTA_BYTES)
enum inf_code inf_history_step_bind(struct inf_history_step *step,
                                    const struct inf_graph *graph) INF_NODISCARD;

// Notes in the job what a successful run wrote into the memory of the session.
void inf_history_step_note(struct inf_history_step *step, const struct inf_graph *graph);

// Zeroes the rows that a failed run may have written.
void inf_history_step_undo(const struct inf_history_step *step);

// Makes copies without unused rows of the inputs that have them, for a run in the usual way.
//
// INF_EXHAUSTED  (HOST_OOM) no memory for the copies.
enum inf_code inf_history_pack_inputs(struct inf_job *job,
                                      struct inf_batch_memory *memory) INF_NODISCARD;

#endif
