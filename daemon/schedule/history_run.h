// SPDX-License-Identifier: Apache-2.0
// Runs of a decoding session: keys and values of earlier tokens stay in the memory of the session,
// and a run writes those of its new tokens behind them, or over the rows of a cache. Called by
// workers.
#ifndef INF_DAEMON_SCHEDULE_HISTORY_RUN_H
#define INF_DAEMON_SCHEDULE_HISTORY_RUN_H

#include "daemon/output/buffer_pool.h"
#include "daemon/schedule/batch.h"
#include "daemon/schedule/job.h"

// What a worker provides for a run.
struct inf_history_resources {
    struct inf_pool *pool;
    struct inf_batch_memory *memory;       // for inputs that are copied
    const struct inf_run_options *options; // precision and user of the run
    uint32_t slot;
    struct inf_run_step *step; // receives the name of each node before it is computed
};

// Runs the job with the history in place, if its model and its session allow that, and fills its
// result as a usual run does. Sets *out_done to false, and changes nothing, if the job must be run
// in the usual way. Errors are reported in job->result.fault.
enum inf_code inf_history_run(struct inf_job *job, const struct inf_history_resources *resources,
                              bool *out_done) INF_NODISCARD INF_MAY_BLOCK;

// Makes copies without unused rows of the inputs that have them, for a run in the usual way.
//
// INF_EXHAUSTED  (HOST_OOM) no memory for the copies.
enum inf_code inf_history_pack_inputs(struct inf_job *job,
                                      struct inf_batch_memory *memory) INF_NODISCARD;

#endif
