// SPDX-License-Identifier: Apache-2.0
// Creating and freeing the jobs of the loader. Each kind of job owns other members of the union.
#include "daemon/load/load_job.h"

#include <assert.h>
#include <stdlib.h>

struct inf_load_job *inf_load_job_create(enum inf_load_job_kind kind)
{
    assert(kind < INF_LOAD_JOB_KINDS);
    struct inf_load_job *job = calloc(1, sizeof *job);
    if (job != NULL)
        job->kind = kind;
    return job;
}

void inf_load_job_destroy(struct inf_load_job **job)
{
    struct inf_load_job *self = *job;
    if (self == NULL)
        return;
    inf_served_unref(&self->base);
    switch (self->kind) {
    case INF_LOAD_JOB_MODEL:
        inf_served_unref(&self->model.served);
        inf_served_unref(&self->model.known);
        free(self->model.decision);
        break;
    case INF_LOAD_JOB_SCAN:
        free(self->scan.names);
        break;
    case INF_LOAD_JOB_RACE:
        free(self->race.decision);
        break;
    case INF_LOAD_JOB_SAVE_DECISION:
        free(self->save_decision.decision);
        break;
    case INF_LOAD_JOB_INSPECT:
        inf_inspect_request_destroy(&self->inspect.request);
        break;
    case INF_LOAD_JOB_SAVE_SHAPES:
    case INF_LOAD_JOB_PRECOMPILE:
    case INF_LOAD_JOB_KINDS:
        break;
    }
    free(self);
    *job = NULL;
}

void inf_load_message_destroy(struct inf_load_message **message)
{
    if (*message == NULL)
        return;
    struct inf_load_job *job = (*message)->job;
    free((*message)->event.rows);
    if (job != NULL)
        // The call also frees the message, because it is embedded in the job.
        inf_load_job_destroy(&job);
    else
        free(*message);
    *message = NULL;
}
