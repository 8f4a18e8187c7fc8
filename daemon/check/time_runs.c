// SPDX-License-Identifier: Apache-2.0
// Runs a model several times without a daemon and reports the time of each run, for
// `inferctl bench --direct`.
#include "daemon/check/time_runs.h"

#include "backends/base/clock.h"
#include "backends/exec/trial_run.h"
#include "daemon/model/devices.h"
#include "daemon/model/shapes.h"

#define WARMUP_RUNS 5u

static enum inf_code time_runs(json_t *times, struct inf_trial_run *trial,
                               struct inf_executable *executable, uint32_t runs,
                               struct inf_error *err)
{
    INF_TRY(inf_trial_run_init(trial, inf_executable_graph(executable), err));
    for (uint32_t run = 0; run < WARMUP_RUNS + runs; run++) {
        uint64_t took_ns;
        INF_TRY(inf_trial_run_execute(trial, executable, &took_ns, err));
        if (run >= WARMUP_RUNS)
            json_array_append_new(times, json_real((double)took_ns / INF_NS_PER_MS));
    }
    return INF_OK;
}

enum inf_code inf_check_time(json_t *report, struct inf_model *model,
                             const struct inf_device_list *devices,
                             const struct inf_time_wanted *wanted, struct inf_error *err)
{
    struct inf_device *device = devices->devices[0];
    struct inf_shape_set set;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_executable *executable;
    struct inf_trial_run trial = {0};
    const char *text = wanted->shapes != NULL ? wanted->shapes : "";
    if (wanted->device != NULL)
        INF_TRY(inf_model_device_find(devices, wanted->device, &device, err));
    INF_TRY(inf_shape_set_next(&set, &text, err));
    INF_TRY(inf_shape_set_bind(&set, inf_model_graph(model), shapes, err));
    INF_TRY(inf_model_acquire_with(model, device, &wanted->options, shapes, &executable, err));
    json_t *times = json_array();
    json_object_set_new(report, "times_ms", times);
    json_object_set_new(report, "device", json_string(inf_device_info(device)->name));
    json_object_set_new(report, "threads",
                        json_integer(wanted->options.threads > 0
                                         ? wanted->options.threads
                                         : inf_device_info(device)->threads));
    enum inf_code code = time_runs(times, &trial, executable, wanted->runs, err);
    inf_trial_run_fini(&trial);
    inf_model_release(model, &executable);
    return code;
}
