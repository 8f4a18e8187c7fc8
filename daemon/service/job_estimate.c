// SPDX-License-Identifier: Apache-2.0
// Derives from the shapes of a job the key under which its run time is estimated, and the number of
// rows that may be batched. Jobs are batched only on the main device of their model and in the
// model's own precision, because the batch ladder (the useful row counts and their run times) was
// measured there.
#include "daemon/service/job_estimate.h"

#include <assert.h>

#include "backends/base/clock.h"
#include "daemon/schedule/history_joined.h"

// A request with more rows than the largest batch is split into several runs only if one run of the
// largest batch takes at least this many nanoseconds. Otherwise splitting costs too much.
#define SPLIT_RUN_NS INF_NS_PER_MS

// Returns the number of rows of a job that may share runs with other jobs; 0 if it must run alone.
static uint32_t count_batch_rows(const struct inf_job *job)
{
    const struct inf_batch_ladder *ladder = &job->served->ladder;
    if (ladder->count == 0 || inf_served_joins_steps(job->served) ||
        job->device != job->served->device || job->precision != INF_PRECISION_AUTO)
        return 0;
    int64_t rows = job->shapes[0].dims[0];
    for (uint32_t i = 1; i < job->input_count; i++)
        if (job->shapes[i].dims[0] != rows)
            return 0;
    if (rows > inf_batch_rows_max(ladder) && ladder->rungs[ladder->count - 1].run_ns < SPLIT_RUN_NS)
        return 0;
    return (uint32_t)rows;
}

void inf_service_estimate_job(struct inf_job *job)
{
    assert(job->served != NULL && job->device != NULL);
    // Add the precision to the key, because run times in different precisions are estimated
    // separately.
    const struct inf_history *history =
        job->session != NULL ? inf_model_history(job->served->model) : NULL;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    // A history has another length in each request, which changes the run time little.
    for (uint32_t i = 0; history != NULL && i < job->input_count; i++) {
        shapes[i] = job->shapes[i];
        if (history->axes[i] != INF_HISTORY_NONE)
            shapes[i].dims[history->axes[i]] = 0;
    }
    job->estimate_key =
        inf_estimate_key(job->served, history != NULL ? shapes : job->shapes, job->input_count) ^
        (uint64_t)job->precision;
    job->join_key = history != NULL ? inf_history_find_join_key(job) : 0;
    job->rows = job->join_key != 0 ? 1 : history != NULL ? 0 : count_batch_rows(job);
}
