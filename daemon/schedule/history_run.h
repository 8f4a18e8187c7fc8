// SPDX-License-Identifier: Apache-2.0
// Runs of a decoding session: keys and values of earlier tokens stay in the memory of the session,
// and a run writes those of its new tokens behind them, or over the rows of a cache. Called by
// workers.
#ifndef INF_DAEMON_SCHEDULE_HISTORY_RUN_H
#define INF_DAEMON_SCHEDULE_HISTORY_RUN_H

#include "daemon/schedule/history_step.h"

// Runs the job with the history in place, if its model and its session allow that, and fills its
// result as a usual run does. Sets *out_done to false, and changes nothing, if the job must be run
// in the usual way. Errors are reported in job->result.fault.
enum inf_code inf_history_run(struct inf_job *job, const struct inf_history_resources *resources,
                              bool *out_done) INF_NODISCARD INF_MAY_BLOCK;

#endif
