// SPDX-License-Identifier: Apache-2.0
// Creating and freeing the jobs of the loader. Each kind of job owns other members of the union.
#include "daemon/load/load_job.h"

#include <assert.h>
#include <stdlib.h>
#include <unistd.h>

#include "backends/base/cancel.h"
#include "daemon/load/source/read_files.h"

const char *inf_scan_outcome_name(enum inf_scan_outcome outcome)
{
    static const char *const names[INF_SCAN_OUTCOMES] = {[INF_SCAN_REFUSED] = "refused",
                                                         [INF_SCAN_LOADING] = "loading",
                                                         [INF_SCAN_REMOVED] = "removed",
                                                         [INF_SCAN_UNCHANGED] = "unchanged"};
    return names[outcome];
}

void inf_scan_known_models_destroy(struct inf_scan_known_models **known)
{
    for (uint32_t i = 0; *known != NULL && i < (*known)->count; i++)
        inf_read_files_unref(&(*known)->models[i].files);
    free(*known);
    *known = NULL;
}

struct inf_load_job *inf_load_job_create(enum inf_load_job_kind kind)
{
    assert(kind < INF_LOAD_JOB_KINDS);
    struct inf_load_job *job = calloc(1, sizeof *job);
    if (job == NULL)
        return NULL;
    job->kind = kind;
    if (kind == INF_LOAD_JOB_MODEL)
        job->model.directory_fd = -1;
    return job;
}

void inf_load_job_cancel(struct inf_load_job *job, enum inf_load_stop why)
{
    enum inf_load_stop none = INF_LOAD_STOP_NONE;
    atomic_compare_exchange_strong(&job->stop, &none, why);
    atomic_store(&job->cancelled, true);
}

enum inf_code inf_load_job_check(const struct inf_load_job *job, struct inf_error *err)
{
    if (!inf_is_cancelled(&job->cancelled))
        return INF_OK;
    if (atomic_load(&job->stop) == INF_LOAD_STOP_LIMIT)
        return inf_fail_reason(err, INF_DEADLINE, INF_REASON_IN_EXEC,
                               "model '%s': the load took longer than load_limit_ms allows",
                               job->name);
    if (atomic_load(&job->stop) == INF_LOAD_STOP_SHUTDOWN)
        return inf_fail_reason(err, INF_CANCELLED, INF_REASON_SHUTDOWN,
                               "model '%s': the daemon shuts down", job->name);
    return inf_fail_reason(err, INF_CANCELLED, INF_REASON_BY_ADMIN,
                           "model '%s' was unloaded while it was loading", job->name);
}

void inf_load_job_destroy(struct inf_load_job **job)
{
    struct inf_load_job *self = *job;
    if (self == NULL)
        return;
    if (self->kind == INF_LOAD_JOB_JOIN)
        atomic_store(&self->base->is_joining, false);
    inf_served_unref(&self->base);
    switch (self->kind) {
    case INF_LOAD_JOB_MODEL:
        inf_served_unref(&self->model.served);
        inf_served_unref(&self->model.known);
        inf_read_files_unref(&self->model.known_files);
        free(self->model.decision);
        if (self->model.directory_fd >= 0)
            close(self->model.directory_fd);
        break;
    case INF_LOAD_JOB_SCAN:
        inf_scan_known_models_destroy(&self->scan.known);
        free(self->scan.names);
        free(self->scan.ranks);
        free(self->scan.report);
        break;
    case INF_LOAD_JOB_RACE:
        free(self->race.decision);
        break;
    case INF_LOAD_JOB_JOIN:
        free(self->join.shapes);
        break;
    case INF_LOAD_JOB_SAVE_DECISION:
        free(self->save_decision.decision);
        break;
    case INF_LOAD_JOB_SAVE_USES:
        free(self->save_uses.counts);
        break;
    case INF_LOAD_JOB_INSPECT:
        inf_inspect_request_destroy(&self->inspect.request);
        break;
    case INF_LOAD_JOB_STEPS:
    case INF_LOAD_JOB_SAVE_SHAPES:
    case INF_LOAD_JOB_SAVE_PLAN:
    case INF_LOAD_JOB_SAVE_HANG:
    case INF_LOAD_JOB_PRECOMPILE:
    case INF_LOAD_JOB_STANDBY:
    case INF_LOAD_JOB_PERSIST:
    case INF_LOAD_JOB_DELETE:
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
    free((*message)->event.report);
    if (job != NULL)
        // This call also frees the final message, because the message is embedded in the job.
        inf_load_job_destroy(&job);
    else
        free(*message);
    *message = NULL;
}
