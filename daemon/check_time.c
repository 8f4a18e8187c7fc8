// SPDX-License-Identifier: Apache-2.0
#include "daemon/check_time.h"

#include <string.h>

#include "backends/base/blob.h"
#include "backends/base/clock.h"
#include "daemon/model_shapes.h"
#include "proto/core/utf8.h"

#define WARMUP_RUNS 5u

struct timed {
    struct inf_executable *executable;
    struct inf_blob *inputs[INF_LIMIT_TENSORS], *outputs[INF_LIMIT_TENSORS];
    const void *input_data[INF_LIMIT_TENSORS];
    void *output_data[INF_LIMIT_TENSORS];
};

static enum inf_code find_device(struct inf_device **device, const struct inf_device_list *devices,
                                 const char *name, struct inf_error *err)
{
    for (uint32_t i = 0; i < devices->count; i++) {
        *device = devices->devices[i];
        if (name == NULL || strcmp(inf_device_info(*device)->name, name) == 0)
            return INF_OK;
    }
    return inf_fail(err, INF_NOT_FOUND, "there is no device '%s' here",
                    name == NULL ? "" : inf_quote(name).text);
}

static enum inf_code make_tensor(struct inf_blob **blob, const struct inf_value *value,
                                 struct inf_error *err)
{
    size_t size;
    if (!inf_shape_bytes(&value->shape, value->dtype, &size))
        return inf_fail(err, INF_UNSUPPORTED, "the size of '%s' hangs on values", value->name);
    *blob = inf_blob_create(size);
    return *blob != NULL ? INF_OK : inf_fail(err, INF_EXHAUSTED, "no memory for %zu bytes", size);
}

static enum inf_code make_tensors(struct timed *timed, struct inf_error *err)
{
    const struct inf_graph *graph = inf_executable_graph(timed->executable);
    for (uint32_t i = 0; i < graph->input_count; i++) {
        INF_TRY(make_tensor(&timed->inputs[i], &graph->values[graph->inputs[i].value], err));
        timed->input_data[i] = timed->inputs[i]->data;
    }
    for (uint32_t i = 0; i < graph->output_count; i++) {
        INF_TRY(make_tensor(&timed->outputs[i], &graph->values[graph->outputs[i].value], err));
        timed->output_data[i] = timed->outputs[i]->data;
    }
    return INF_OK;
}

static enum inf_code time_runs(json_t *times, struct timed *timed, uint32_t runs,
                               struct inf_error *err)
{
    const struct inf_execution execution = {.inputs = timed->input_data,
                                            .outputs = timed->output_data};
    INF_TRY(make_tensors(timed, err));
    for (uint32_t run = 0; run < WARMUP_RUNS + runs; run++) {
        uint64_t start_ns = inf_clock_ns();
        INF_TRY(inf_executable_run(timed->executable, &execution, err));
        double ms = (double)(inf_clock_ns() - start_ns) / INF_NS_PER_MS;
        if (run >= WARMUP_RUNS)
            json_array_append_new(times, json_real(ms));
    }
    return INF_OK;
}

enum inf_code inf_check_time(json_t *report, struct inf_model *model,
                             const struct inf_device_list *devices,
                             const struct inf_time_wanted *wanted, struct inf_error *err)
{
    struct inf_device *device = NULL;
    struct inf_shape_set set;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct timed timed = {0};
    const char *text = wanted->shapes != NULL ? wanted->shapes : "";
    INF_TRY(find_device(&device, devices, wanted->device, err));
    INF_TRY(inf_shape_set_next(&set, &text, err));
    INF_TRY(inf_shape_set_bind(&set, inf_model_graph(model), shapes, err));
    INF_TRY(inf_model_acquire_in(model, device, &wanted->mode, shapes, &timed.executable, err));
    json_t *times = json_array();
    json_object_set_new(report, "times_ms", times);
    json_object_set_new(report, "device", json_string(inf_device_info(device)->name));
    json_object_set_new(report, "threads",
                        json_integer(wanted->mode.threads > 0 ? wanted->mode.threads
                                                              : inf_device_info(device)->threads));
    enum inf_code code = time_runs(times, &timed, wanted->runs, err);
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++) {
        inf_blob_unref(&timed.inputs[i]);
        inf_blob_unref(&timed.outputs[i]);
    }
    inf_model_release(model, &timed.executable);
    return code;
}
