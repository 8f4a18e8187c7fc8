// SPDX-License-Identifier: Apache-2.0
// Finds the fastest kernels for a model that is already served, by races on the racer's thread.
//
// The problem: the first load of a model raced the kernels of each kind of node, up to 4 s for all,
// while requests waited for the model.
//
// The idea: a load takes the winners that are known and the choices of the rules. Afterwards the
// racer, a thread of low priority, compiles a copy of the model with races. Each timed run waits
// until no request is served. The copy is then freed; what remains are the recorded winners. If a
// winner is not the choice of the rule, the store places the model again, which compiles it with
// the winners and swaps it in, like any other load.
#include "daemon/load/race/background_kernels.h"

static struct inf_device *find_device(const struct inf_device_list *devices,
                                      const struct inf_device *device)
{
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->devices[i] == device)
            return devices->devices[i];
    return NULL;
}

// Compiles the copy for one item of the list, and frees the executable.
static enum inf_code race_compilation(struct inf_model *copy, const struct inf_compilation *item,
                                      struct inf_race_gate *gate,
                                      const struct inf_device_list *devices) INF_MAY_BLOCK
{
    struct inf_executable *executable = NULL;
    struct inf_device *device = find_device(devices, item->device);
    struct inf_run_options options = item->options;
    options.cancelled = &gate->gave_up;
    if (device == NULL)
        return INF_OK;
    if (!inf_race_gate_wait(gate))
        return INF_CANCELLED;
    // Whatever else fails here costs only the races: the served model is as it was.
    enum inf_code code =
        inf_model_acquire_with(copy, device, &options, item->shapes, &executable, NULL);
    if (code == INF_OK)
        inf_model_release(copy, &executable);
    inf_model_drop_with(copy, device, &item->options, item->shapes);
    return atomic_load(&gate->gave_up) ? INF_CANCELLED : INF_OK;
}

static enum inf_code copy_model(struct inf_model **out_copy, const struct inf_served *served,
                                const struct inf_load_options *options,
                                const atomic_bool *cancelled, struct inf_error *err) INF_MAY_BLOCK
{
    struct inf_graph *graph = NULL;
    // The passes have run when the model was loaded.
    const struct inf_pass_options passes = {
        .evaluator = options->evaluator, .already_run = true, .cancelled = cancelled};
    struct inf_device *hosts[INF_MODEL_HOSTS];
    uint32_t host_count = inf_device_list_hosts(options->devices, hosts, INF_MODEL_HOSTS);
    INF_TRY(inf_model_copy_graph(served->model, &graph, err));
    INF_TRY(inf_model_create(out_copy, &graph, hosts, host_count, &passes, err));
    return inf_model_copy_pins(*out_copy, served->model, err);
}

static enum inf_code race_model(const struct inf_served *served,
                                const struct inf_load_options *options, struct inf_race_gate *gate,
                                struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_compilations *list = served->compilations;
    struct inf_model *copy = NULL;
    enum inf_code code = INF_OK;
    if (list == NULL || list->count == 0)
        return INF_OK;
    code = copy_model(&copy, served, options, gate->stop, err);
    if (code == INF_OK)
        inf_model_set_race_gate(copy, gate);
    for (uint32_t i = 0; i < list->count && code == INF_OK; i++)
        code = race_compilation(copy, &list->items[i], gate, options->devices);
    inf_model_unref(&copy);
    return code;
}

uint64_t inf_background_kernels_count_due(const struct inf_device_list *devices)
{
    uint64_t count = 0;
    struct inf_kernel_choices choices;
    for (uint32_t i = 0; i < devices->count; i++)
        if (inf_device_kernel_choices(devices->devices[i], &choices))
            count += choices.later;
    return count;
}

uint64_t inf_background_kernels_count_overturned(const struct inf_device_list *devices)
{
    uint64_t count = 0;
    struct inf_kernel_choices choices;
    for (uint32_t i = 0; i < devices->count; i++)
        if (inf_device_kernel_choices(devices->devices[i], &choices))
            count += choices.overturned;
    return count;
}

enum inf_code inf_background_kernels_run(struct inf_load_job *job,
                                         const struct inf_load_options *options,
                                         struct inf_error *err)
{
    const struct inf_served *base = job->base;
    struct inf_race_gate gate = {.idle_gate = options->idle_gate, .stop = &job->cancelled};
    enum inf_code code = race_model(base, options, &gate, err);
    for (uint32_t i = 0; i < base->signature_count && code == INF_OK; i++)
        if (base->signatures[i].served != NULL)
            code = race_model(base->signatures[i].served, options, &gate, err);
    // Other races may have found the winners that the model lacks: one of this model that gave up
    // half-way, or one of another model with the same kinds of nodes.
    job->race.kernels_changed =
        inf_background_kernels_count_overturned(options->devices) != base->kernels_overturned;
    job->race.disturbed = atomic_load(&gate.gave_up);
    INF_TRY(inf_load_job_check(job, err));
    return job->race.disturbed ? INF_OK : code;
}
