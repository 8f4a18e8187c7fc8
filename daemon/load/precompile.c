// SPDX-License-Identifier: Apache-2.0
// Compiles a served model for the shapes and the device of a job. The executables stay in the cache
// of the model, so that the first request that needs them does not wait for the compiler.
#include "daemon/load/precompile.h"

#include <assert.h>
#include <inttypes.h>

#include "backends/base/clock.h"
#include "daemon/load/warm_plan.h"

// Compiles the model of a job for one set of shapes.
static enum inf_code compile_set(const struct inf_load_job *job, const struct inf_shape *shapes,
                                 struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_model *model = job->base->model;
    struct inf_executable *executable;
    struct inf_run_options options = inf_model_default_options(model, job->precompile.device);
    options.cancelled = &job->cancelled;
    INF_TRY(
        inf_model_acquire_with(model, job->precompile.device, &options, shapes, &executable, err));
    inf_model_release(model, &executable);
    return INF_OK;
}

enum inf_code inf_precompile_run(const struct inf_load_job *job,
                                 const struct inf_load_progress_sink *progress,
                                 struct inf_error *err)
{
    assert(job->kind == INF_LOAD_JOB_PRECOMPILE && job->base != NULL);
    struct inf_model *model = job->base->model;
    INF_CLEANUP(inf_warm_plan_fini) struct inf_warm_plan plan = {0};
    INF_TRY(inf_warm_plan_make(&plan, inf_model_graph(model), job->precompile.shapes, "", err));
    if (plan.count == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                               "the model leaves even ranks open: wanted shapes");
    for (uint32_t i = 0; i < plan.count; i++) {
        inf_load_report(progress, job->base->version, "compile", i * 100 / plan.count);
        INF_TRY(compile_set(job, inf_warm_plan_set(&plan, i), err));
    }
    return INF_OK;
}

static enum inf_code compile_standby(const struct inf_load_job *job,
                                     struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_warm_plan_fini) struct inf_warm_plan plan = {0};
    INF_TRY(inf_warm_plan_make(&plan, inf_model_graph(job->base->model),
                               job->base->config.warmup_shapes, job->precompile.shapes, err));
    for (uint32_t i = 0; i < plan.count; i++)
        INF_TRY(compile_set(job, inf_warm_plan_set(&plan, i), err));
    return INF_OK;
}

void inf_precompile_standby(const struct inf_load_job *job, const struct inf_log *log)
{
    assert(job->kind == INF_LOAD_JOB_STANDBY && job->base != NULL);
    const char *device = inf_device_info(job->precompile.device)->name;
    uint64_t begin_ns = inf_clock_ns();
    struct inf_error err = {0};
    if (compile_standby(job, &err) == INF_OK)
        inf_log(log, INF_LOG_INFO, "model stands by name=%s device=%s ms=%" PRIu64, job->base->name,
                device, (inf_clock_ns() - begin_ns) / INF_NS_PER_MS);
    else
        inf_log(log, INF_LOG_INFO, "model does not stand by name=%s device=%s reason=\"%s\"",
                job->base->name, device, err.text);
}
