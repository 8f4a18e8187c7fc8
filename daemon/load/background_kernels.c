// SPDX-License-Identifier: Apache-2.0
// Races the kernels of a served model in the background.
//
// The problem: the first load of a model raced the kernels of each kind of node, up to 4 s for all,
// while requests waited for the model.
//
// The idea: a load takes the winners that are known and the choices of the rules. Afterwards the
// racer, a thread of low priority, compiles a copy of the model with races. Each timed run waits
// until no request is served. The copy is then freed; what remains are the recorded winners. If a
// winner is not the choice of the rule, the store places the model again, which compiles it with the
// winners and swaps it in, like any other load.
#include "daemon/load/background_kernels.h"

#include <stdlib.h>
#include <string.h>

// One executable of the served model that the copy compiles.
struct compilation {
    const struct inf_device *device; // only compared
    struct inf_run_options options;
    struct inf_shape *shapes; // owned; one for each input
};

struct compilations {
    struct compilation *items;
    uint32_t count;
    bool out_of_memory;
};

static void free_compilations(struct compilations *list)
{
    for (uint32_t i = 0; i < list->count; i++)
        free(list->items[i].shapes);
    free(list->items);
    *list = (struct compilations){0};
}

// Copies what a served model was compiled for.
static void list_compilations(void *context, const struct inf_model_kept *kept)
{
    struct compilations *list = context;
    list->items = calloc((size_t)kept->class_count + 1, sizeof *list->items);
    list->out_of_memory = list->items == NULL;
    for (uint32_t i = 0; i < kept->class_count && !list->out_of_memory; i++) {
        const struct inf_model_kept_class *class = &kept->classes[i];
        const struct inf_graph *graph = class->graph;
        struct compilation *item = &list->items[list->count];
        item->shapes = calloc((size_t)graph->input_count + 1, sizeof *item->shapes);
        list->out_of_memory = item->shapes == NULL;
        if (list->out_of_memory)
            return;
        for (uint32_t k = 0; k < graph->input_count; k++)
            item->shapes[k] = graph->values[graph->inputs[k].value].shape;
        item->device = class->device;
        item->options = (struct inf_run_options){.precision = class->options.precision,
                                                 .threads = class->options.threads};
        list->count++;
    }
}

static struct inf_device *find_device(const struct inf_device_list *devices,
                                      const struct inf_device *device)
{
    for (uint32_t i = 0; i < devices->count; i++)
        if (devices->devices[i] == device)
            return devices->devices[i];
    return NULL;
}

// Compiles the copy for one item of the list, and frees the executable.
static enum inf_code race_compilation(struct inf_model *copy, const struct compilation *item,
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
    return inf_model_create(out_copy, &graph, hosts, host_count, &passes, err);
}

static enum inf_code race_model(const struct inf_served *served,
                                const struct inf_load_options *options, struct inf_race_gate *gate,
                                struct inf_error *err) INF_MAY_BLOCK
{
    struct compilations list = {0};
    struct inf_model *copy = NULL;
    enum inf_code code = inf_model_lend(served->model, list_compilations, &list, err);
    if (code == INF_OK && list.out_of_memory)
        code = inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for a race");
    if (code == INF_OK)
        code = copy_model(&copy, served, options, gate->stop, err);
    if (code == INF_OK)
        inf_model_set_race_gate(copy, gate);
    for (uint32_t i = 0; i < list.count && code == INF_OK; i++)
        code = race_compilation(copy, &list.items[i], gate, options->devices);
    inf_model_unref(&copy);
    free_compilations(&list);
    return code;
}

static uint64_t count_overturned(const struct inf_device_list *devices)
{
    uint64_t count = 0;
    struct inf_kernel_choices choices;
    for (uint32_t i = 0; i < devices->count; i++)
        if (inf_device_kernel_choices(devices->devices[i], &choices))
            count += choices.overturned;
    return count;
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

enum inf_code inf_background_kernels_run(struct inf_load_job *job,
                                         const struct inf_load_options *options,
                                         struct inf_error *err)
{
    const struct inf_served *base = job->base;
    struct inf_race_gate gate = {.idle_gate = options->idle_gate, .stop = &job->cancelled};
    uint64_t before = count_overturned(options->devices);
    enum inf_code code = race_model(base, options, &gate, err);
    for (uint32_t i = 0; i < base->signature_count && code == INF_OK; i++)
        if (base->signatures[i].served != NULL)
            code = race_model(base->signatures[i].served, options, &gate, err);
    job->race.kernels_changed = count_overturned(options->devices) != before;
    job->race.disturbed = atomic_load(&gate.gave_up);
    INF_TRY(inf_load_job_check(job, err));
    return job->race.disturbed ? INF_OK : code;
}
