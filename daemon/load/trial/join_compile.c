// SPDX-License-Identifier: Apache-2.0
// Joined runs need one executable for each size of the buffers. If the worker compiled it, all
// steps of the first run would wait for a few tenths of a second, so the loader compiles it. At
// most one such job of a model is queued or running at a time, because each job keeps the model in
// memory.
#include "daemon/load/trial/join_compile.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Fills the job. job->name is the name of the model without a signature, so that unloading the
// model cancels the job. Returns false if there is no memory.
static bool fill_job(struct inf_load_job *job, struct inf_served *served,
                     const struct inf_join_order *order)
{
    size_t count = inf_model_graph(served->model)->input_count;
    struct inf_load_join_job *join = &job->join;
    join->shapes = calloc(count + 1, sizeof *join->shapes);
    if (join->shapes == NULL)
        return false;
    memcpy(join->shapes, order->shapes, count * sizeof *join->shapes);
    join->device = order->device;
    join->options = (struct inf_run_options){.precision = order->options->precision,
                                             .threads = order->options->threads,
                                             .user = order->options->user};
    join->buffers = order->buffers;
    snprintf(job->name, sizeof job->name, "%.*s", (int)strcspn(served->name, ":"), served->name);
    return true;
}

struct inf_load_job *inf_join_compile_create(struct inf_served *served,
                                             const struct inf_join_order *order)
{
    if (atomic_exchange(&served->is_joining, true))
        return NULL;
    struct inf_load_job *job = inf_load_job_create(INF_LOAD_JOB_JOIN);
    if (job == NULL) {
        atomic_store(&served->is_joining, false);
        return NULL;
    }
    job->base = inf_served_ref(served);
    if (!fill_job(job, served, order))
        inf_load_job_destroy(&job);
    return job;
}

enum inf_code inf_join_compile_run(const struct inf_load_job *job, const struct inf_log *log,
                                   struct inf_error *err)
{
    const struct inf_load_join_job *join = &job->join;
    struct inf_executable *executable = NULL;
    struct inf_run_options options = join->options;
    options.cancelled = &job->cancelled;
    enum inf_code code = inf_model_acquire_history(job->base->model, join->device, &options,
                                                   join->shapes, join->buffers, &executable, err);
    inf_model_release(job->base->model, &executable);
    if (code != INF_OK && code != INF_CANCELLED)
        inf_log(log, INF_LOG_WARNING,
                "decoding steps run one by one name=%s steps=%u room=%u retry=%s reason=\"%s\"",
                job->base->name, join->buffers.sessions, join->buffers.room,
                code == INF_EXHAUSTED ? "yes" : "no", err->text);
    return code;
}
