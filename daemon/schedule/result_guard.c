// SPDX-License-Identifier: Apache-2.0
// Checks reduced-precision runs, which may overflow. If a run in less than fp32 produces a
// non-finite output, or the device reports an internal overflow, the run is repeated in fp32 into
// the same outputs.
#include "daemon/schedule/result_guard.h"

#include <math.h>

// Returns true if all elements are finite.
static bool are_elements_finite(const float *elements, size_t count)
{
    // x * 0 is 0 for every finite x, and NaN otherwise, so the sum is NaN if any element is not
    // finite. The compiler can vectorise this loop.
    float sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += elements[i] * 0;
    return !isnan(sum);
}

// Returns true if all f32 outputs of the run are finite.
static bool are_outputs_finite(const struct inf_executable *executable,
                               const struct inf_execution *execution)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    for (uint32_t i = 0; i < graph->output_count; i++) {
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        if (execution->outputs[i] != NULL && value->dtype == INF_DTYPE_F32 &&
            !are_elements_finite(execution->outputs[i], inf_shape_elements(&value->shape)))
            return false;
    }
    return true;
}

// What acquire_for_shapes() is called with.
struct same_shapes {
    struct inf_model *model;
    struct inf_device *device;
    const struct inf_graph *graph; // of the run that is repeated
};

static enum inf_code acquire_for_shapes(void *context, struct inf_executable **out_executable,
                                        struct inf_error *err)
{
    const struct same_shapes *same = context;
    const struct inf_graph *graph = same->graph;
    const struct inf_run_options fp32 = {.precision = INF_PRECISION_FP32};
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    if (graph->input_count > INF_LIMIT_TENSORS)
        return inf_fail(err, INF_UNSUPPORTED, "a model of more than %u inputs", INF_LIMIT_TENSORS);
    for (uint32_t i = 0; i < graph->input_count; i++)
        shapes[i] = graph->values[graph->inputs[i].value].shape;
    return inf_model_acquire_with(same->model, same->device, &fp32, shapes, out_executable, err);
}

// Runs the model in fp32 with the same inputs, into the same outputs. Sets *repaired to true if the
// outputs of this run are finite.
static enum inf_code run_in_fp32(struct inf_model *model, const struct inf_fp32_source *fp32,
                                 const struct inf_execution *execution, bool *repaired,
                                 struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_executable *executable = NULL;
    INF_TRY(fp32->acquire(fp32->context, &executable, err));
    enum inf_code code = inf_executable_run(executable, execution, err);
    *repaired = code == INF_OK && are_outputs_finite(executable, execution);
    inf_model_release(model, &executable);
    return code;
}

enum inf_code inf_result_guard_run(struct inf_served *served, struct inf_device *device,
                                   struct inf_executable *executable,
                                   const struct inf_execution *execution,
                                   const struct inf_fp32_source *fp32,
                                   enum inf_precision *out_precision, struct inf_error *err)
{
    *out_precision = inf_executable_precision(executable);
    if (*out_precision == INF_PRECISION_FP32)
        return inf_executable_run(executable, execution, err);
    atomic_bool overflowed = false;
    struct inf_execution watched = *execution;
    watched.overflowed = &overflowed;
    INF_TRY(inf_executable_run(executable, &watched, err));
    if (!atomic_load(&overflowed) && are_outputs_finite(executable, execution))
        return INF_OK;
    struct same_shapes same = {served->model, device, inf_executable_graph(executable)};
    const struct inf_fp32_source by_shapes = {acquire_for_shapes, &same};
    bool repaired = false;
    *out_precision = INF_PRECISION_FP32;
    INF_TRY(
        run_in_fp32(served->model, fp32 != NULL ? fp32 : &by_shapes, execution, &repaired, err));
    // Count the repair only if the run used the device and precision of the model's placement,
    // because otherwise it says nothing about the placement.
    bool as_placed = device == served->device &&
                     inf_executable_precision(executable) == served->placement.options.precision;
    if (repaired && as_placed)
        atomic_fetch_add_explicit(&served->recomputed, 1, memory_order_relaxed);
    return INF_OK;
}
