// SPDX-License-Identifier: Apache-2.0
// Compiles a served model for the shapes of a precompile job. The executables stay in the cache of
// the model, so that the first request with these shapes does not wait for the compiler.
#include "daemon/load/precompile.h"

#include <assert.h>

#include "daemon/load/warm_plan.h"

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
        struct inf_executable *executable;
        inf_load_report(progress, job->base->version, "compile", i * 100 / plan.count);
        struct inf_run_options options = inf_model_default_options(model, job->precompile.device);
        options.cancelled = &job->cancelled;
        INF_TRY(inf_model_acquire_with(model, job->precompile.device, &options,
                                       inf_warm_plan_set(&plan, i), &executable, err));
        inf_model_release(model, &executable);
    }
    return INF_OK;
}
