// SPDX-License-Identifier: Apache-2.0
// Executables of a model for a history in place (backends/graph/history): asks for them unless
// history_refusals.h has a refusal, and notes there how each compilation ended. Compiling and
// keeping executables is outside of it (model.c).
#include "backends/base/clock.h"
#include "backends/exec/model/model_state.h"

const struct inf_history *inf_model_history(const struct inf_model *model)
{
    return model->compiler.has_history ? &model->compiler.history : NULL;
}

// Returns the hash by which the model's refusals identify the shapes.
static uint64_t hash_shapes(const struct inf_model *model, const struct inf_shape *shapes,
                            struct inf_history_buffers buffers)
{
    return inf_history_refusals_hash(shapes, model->compiler.graph->input_count, buffers.sessions);
}

// Returns true if the model has no history, if the device does not compute in the memory of the
// host, or if the shapes with this hash are refused.
static bool is_refused(struct inf_model *model, const struct inf_device *device, uint64_t hash,
                       struct inf_history_buffers buffers)
{
    return !model->compiler.has_history || !inf_device_info(device)->host_memory ||
           inf_history_refusals_have(&model->refusals, hash, buffers.room, inf_clock_ns());
}

enum inf_code inf_model_acquire_history(struct inf_model *model, struct inf_device *device,
                                        const struct inf_run_options *options,
                                        const struct inf_shape *shapes,
                                        struct inf_history_buffers buffers,
                                        struct inf_executable **out_executable,
                                        struct inf_error *err)
{
    uint64_t hash = hash_shapes(model, shapes, buffers);
    if (is_refused(model, device, hash, buffers))
        return inf_fail(err, INF_UNSUPPORTED, "no history of %u rows", buffers.room);
    enum inf_code code =
        inf_model_acquire_class(model, device, options, shapes, buffers, out_executable, err);
    inf_history_refusals_note(&model->refusals, hash, buffers, code, inf_clock_ns());
    return code;
}

enum inf_code inf_model_find_joined(struct inf_model *model, struct inf_device *device,
                                    const struct inf_run_options *options,
                                    const struct inf_shape *shapes,
                                    struct inf_history_buffers buffers,
                                    struct inf_executable **out_executable)
{
    *out_executable = NULL;
    enum inf_code code =
        inf_model_find_class(model, device, options, shapes, buffers, out_executable);
    if (code == INF_NOT_FOUND)
        return is_refused(model, device, hash_shapes(model, shapes, buffers), buffers)
                   ? INF_UNSUPPORTED
                   : INF_NOT_FOUND;
    return code == INF_OK ? INF_OK : INF_UNSUPPORTED;
}
