// SPDX-License-Identifier: Apache-2.0
// Compiles a model for its replica devices and measures one run on each device, so that the
// scheduler has an estimate for the first request that it sends there.
#include "daemon/load/replicas.h"

#include <inttypes.h>

#include "backends/exec/trial_run.h"
#include "backends/place/allow.h"
#include "daemon/model/devices.h"
#include "daemon/policy/run_estimate.h"

// Measures the time of one run. An unmeasured run before it fills the caches.
static enum inf_code time_run(struct inf_executable *executable, uint64_t *out_run_ns,
                              struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_trial_run trial = {0};
    enum inf_code code = inf_trial_run_init(&trial, inf_executable_graph(executable), err);
    for (int i = 0; i < 2 && code == INF_OK; i++)
        code = inf_trial_run_execute(&trial, executable, out_run_ns, err);
    inf_trial_run_fini(&trial);
    return code;
}

static enum inf_code warm_set(struct inf_replicas *replicas,
                              const struct inf_replicas_subject *subject, uint32_t device_index,
                              uint32_t set, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_shape *shapes = inf_warm_plan_set(subject->plan, set);
    struct inf_executable *executable;
    uint64_t run_ns = 0;
    INF_TRY(inf_model_acquire(subject->model, subject->devices->devices[device_index], shapes,
                              &executable, err));
    enum inf_code code = time_run(executable, &run_ns, err);
    inf_model_release(subject->model, &executable);
    if (code != INF_OK)
        return code;
    replicas->entries[replicas->count++] = (struct inf_replica){
        .device_index = device_index,
        .key = inf_estimate_key(subject->key, shapes, subject->plan->input_count),
        .run_ns = INF_MAX(run_ns, 1u)};
    return INF_OK;
}

static void warm_device(struct inf_replicas *replicas, const struct inf_replicas_subject *subject,
                        uint32_t device_index) INF_MAY_BLOCK
{
    const char *device = inf_device_info(subject->devices->devices[device_index])->name;
    for (uint32_t set = 0; set < subject->plan->count && replicas->count < INF_REPLICAS_MAX;
         set++) {
        struct inf_error why = {0};
        if (warm_set(replicas, subject, device_index, set, &why) != INF_OK)
            inf_log(subject->log, INF_LOG_WARNING,
                    "model not replicated name=%s to=%s reason=\"%s\"", subject->name, device,
                    why.text);
        else
            inf_log(subject->log, INF_LOG_INFO, "model replicated name=%s to=%s run_us=%" PRIu64,
                    subject->name, device, replicas->entries[replicas->count - 1].run_ns / 1000);
    }
}

enum inf_code inf_replicas_warm_up(struct inf_replicas *replicas,
                                   const struct inf_replicas_subject *subject,
                                   struct inf_error *err)
{
    const char *names = subject->names;
    char name[sizeof((struct inf_device_info *)0)->name];
    *replicas = (struct inf_replicas){0};
    while (inf_allow_next(&names, name, sizeof name)) {
        struct inf_device *device;
        INF_TRY(inf_model_device_find(subject->devices, name, &device, err));
        for (uint32_t i = 0; i < subject->devices->count; i++)
            if (subject->devices->devices[i] == device && device != subject->main_device)
                warm_device(replicas, subject, i);
    }
    return INF_OK;
}
