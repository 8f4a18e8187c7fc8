// SPDX-License-Identifier: Apache-2.0
// A model and its executables. graph_compiler.h compiles the graph for each set of input shapes.
// shape_class.h keeps the executables. weight_residency.h decides which constants stay in memory
// between compilations. kept_graphs.h has the graphs that pass from one load to the next.
#include "backends/exec/model/model.h"

#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>

#include "backends/base/reference.h"
#include "backends/base/thread.h"
#include "backends/exec/dynamic/dynamic_executable.h"
#include "backends/exec/executable_ops.h"
#include "backends/exec/model/model_state.h"

// --- deciding which constants are in memory ---

static enum inf_code list_constants(struct inf_model *model, struct inf_constants *constants,
                                    struct inf_error *err)
{
    INF_TRY(inf_constants_add_graph(constants, model->compiler.graph, err));
    const struct inf_shape_class *class = NULL;
    while ((class = inf_shape_classes_next_pinned(&model->classes, class)) != NULL)
        INF_TRY(inf_executable_list_constants(class->executable, constants, err));
    return INF_OK;
}

// Decides which constants must have their bytes. Called after executables were added or freed.
static void review_constants(struct inf_model *model) INF_MAY_BLOCK
{
    struct inf_constants constants = {0};
    if (!inf_weight_residency_begin_review(&model->residency))
        return;
    inf_shape_classes_pin(&model->classes, true);
    // If there is no memory for the list of constants, leave all constants in memory.
    if (list_constants(model, &constants, NULL) == INF_OK)
        inf_weight_residency_review(&model->residency, &constants, model->constants);
    inf_constants_fini(&constants);
    inf_shape_classes_pin(&model->classes, false);
    inf_weight_residency_end_review(&model->residency);
}

// Ends the use of constants by a compilation, which began with inf_weight_residency_acquire().
// Constants may be evicted again.
static void release_constants(struct inf_model *model) INF_MAY_BLOCK
{
    inf_weight_residency_release(&model->residency);
    review_constants(model);
}

void inf_model_allow_eviction(struct inf_model *model)
{
    inf_role_check_may_block();
    inf_graph_offers_fini(&model->offers);
    inf_weight_residency_allow_eviction(&model->residency);
    review_constants(model);
}

void inf_model_charge(struct inf_model *model, struct inf_device *device)
{
    inf_weight_residency_charge(&model->residency, device);
}

void inf_model_set_cancelled(struct inf_model *model, const atomic_bool *cancelled)
{
    inf_mutex_lock(&model->mutex);
    model->cancelled = cancelled;
    inf_mutex_unlock(&model->mutex);
}

void inf_model_set_arena_budget(struct inf_model *model, struct inf_arena_budget *budget)
{
    model->classes.budget = budget;
}

void inf_model_defer_races(struct inf_model *model)
{
    model->compiler.defers_races = true;
}

void inf_model_set_race_gate(struct inf_model *model, struct inf_race_gate *gate)
{
    model->compiler.race_gate = gate;
}

// Returns the flag that cancels a compilation: `own`, or that of the model if `own` is NULL.
static const atomic_bool *find_cancel_flag(struct inf_model *model, const atomic_bool *own)
{
    inf_mutex_lock(&model->mutex);
    const atomic_bool *cancelled = own != NULL ? own : model->cancelled;
    inf_mutex_unlock(&model->mutex);
    return cancelled;
}

// --- creating, sharing and destroying a model ---

static uint32_t count_constants(const struct inf_graph *graph)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < graph->value_count; i++)
        count += graph->values[i].data != NULL;
    return count;
}

enum inf_code inf_model_create(struct inf_model **out_model, struct inf_graph **graph,
                               struct inf_device *const *hosts, uint32_t host_count,
                               const struct inf_pass_options *options, struct inf_error *err)
{
    inf_role_check_may_block();
    struct inf_model *model = calloc(1, sizeof *model);
    if (model == NULL) {
        inf_graph_destroy(graph);
        return inf_fail(err, INF_EXHAUSTED, "no memory for a model");
    }
    inf_mutex_init(&model->mutex);
    inf_shape_classes_init(&model->classes, (*graph)->input_count);
    inf_weight_residency_init(&model->residency);
    inf_history_refusals_init(&model->refusals);
    atomic_init(&model->references, 1);
    enum inf_code code =
        inf_graph_compiler_init(&model->compiler, graph, hosts, host_count, options, err);
    if (code == INF_OK)
        code = inf_weight_residency_add_evicted(&model->residency, model->compiler.graph, err);
    if (code == INF_OK) {
        model->constants = count_constants(model->compiler.graph);
        review_constants(model);
        *out_model = model;
    } else {
        inf_model_unref(&model);
    }
    return code;
}

struct inf_model *inf_model_ref(struct inf_model *model)
{
    inf_reference_take(&model->references);
    return model;
}

void inf_model_unref(struct inf_model **pointer)
{
    struct inf_model *model = *pointer;
    *pointer = NULL;
    if (model == NULL || !inf_reference_drop(&model->references))
        return;
    inf_role_check_may_block();
    inf_graph_offers_fini(&model->offers);
    inf_shape_classes_fini(&model->classes);
    inf_weight_residency_fini(&model->residency);
    inf_history_refusals_fini(&model->refusals);
    inf_graph_compiler_fini(&model->compiler);
    inf_mutex_fini(&model->mutex);
    free(model);
}

const struct inf_graph *inf_model_graph(const struct inf_model *model)
{
    return model->compiler.graph;
}

enum inf_code inf_model_copy_graph(struct inf_model *model, struct inf_graph **out_graph,
                                   struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *copy = NULL;
    inf_role_check_may_block();
    INF_TRY(inf_graph_clone(&copy, model->compiler.graph, err));
    INF_TRY(inf_weight_residency_acquire(&model->residency, err));
    enum inf_code code = inf_constants_copy(copy, err);
    release_constants(model);
    INF_TRY(code);
    *out_graph = copy;
    copy = NULL;
    return INF_OK;
}

// --- keeping what was compiled for the next load ---

// Lists the uses of constants twice: one by one, and merged.
static enum inf_code list_uses(struct inf_model *model, struct inf_constants *uses,
                               struct inf_constants *merged, struct inf_error *err)
{
    INF_TRY(list_constants(model, uses, err));
    INF_TRY(list_constants(model, merged, err));
    inf_constants_merge(merged);
    return INF_OK;
}

enum inf_code inf_model_lend(struct inf_model *model,
                             void (*use)(void *context, const struct inf_model_kept *kept),
                             void *context, struct inf_error *err)
{
    struct inf_constants uses = {0}, constants = {0};
    struct inf_model_kept_class *classes = NULL;
    struct inf_model_kept kept = {
        .graph = model->compiler.graph, .uses = &uses, .constants = &constants};
    inf_role_check_may_block();
    inf_weight_residency_hold(&model->residency);
    inf_shape_classes_pin(&model->classes, true);
    enum inf_code code = list_uses(model, &uses, &constants, err);
    if (code == INF_OK)
        code = inf_kept_classes_list(&model->classes, &classes, &kept.class_count, err);
    kept.classes = classes;
    if (code == INF_OK)
        use(context, &kept);
    free(classes);
    inf_constants_fini(&uses);
    inf_constants_fini(&constants);
    inf_shape_classes_pin(&model->classes, false);
    release_constants(model);
    return code;
}

enum inf_code inf_model_offer(struct inf_model *model, const struct inf_device *device,
                              const struct inf_run_options *options, struct inf_graph **graph,
                              struct inf_error *err)
{
    enum inf_code code = inf_weight_residency_add_evicted(&model->residency, *graph, err);
    inf_graph_compiler_share(&model->compiler, graph);
    if (code == INF_OK)
        code = inf_graph_offers_add(&model->offers, device, options, graph, err);
    inf_graph_destroy(graph);
    return code;
}

bool inf_model_outgrew_offers(const struct inf_model *model)
{
    return model->outgrew_offers;
}

// --- compiling ---

enum inf_code inf_model_specialize_graph(struct inf_model *model, const struct inf_shape *shapes,
                                         struct inf_graph **out_graph, struct inf_error *err)
{
    uint32_t new_rows;
    return inf_graph_compiler_specialize(&model->compiler, shapes, NULL,
                                         find_cancel_flag(model, NULL), out_graph, &new_rows, err);
}

// Returns the bytes of intermediate results that a request may need; 0: no bound, or the executable
// is not for a request.
static uint64_t find_run_bytes_max(const struct inf_model *model,
                                   const struct inf_run_options *options)
{
    return options->user != 0 && model->classes.budget != NULL
               ? atomic_load(&model->classes.budget->request_bytes_max)
               : 0;
}

// Compiles the executable of a class from `graph`, of which it takes ownership. `new_rows` is what
// inf_graph_compiler_specialize() set.
static enum inf_code compile_class(struct inf_model *model, const struct inf_shape_class *class,
                                   const atomic_bool *cancelled, struct inf_graph **graph,
                                   uint32_t new_rows, struct inf_executable **out_executable,
                                   struct inf_error *err)
{
    struct inf_run_options options = class->options;
    options.cancelled = cancelled;
    if (options.user != 0 && model->classes.budget != NULL) {
        options.buffer_bytes_max = atomic_load(&model->classes.budget->bytes_max);
        options.room_bytes = atomic_load(&model->classes.budget->room_bytes);
    }
    options.run_bytes_max = find_run_bytes_max(model, &options);
    INF_TRY(inf_graph_compiler_compile(&model->compiler, class->device, &options, graph,
                                       out_executable, err));
    (*out_executable)->new_rows = new_rows;
    return INF_OK;
}

// Compiles the executable of a class. On success the caller ends the use of the constants with
// inf_weight_residency_release().
static enum inf_code compile_promise(struct inf_model *model, const struct inf_shape_class *class,
                                     const atomic_bool *cancelled,
                                     struct inf_executable **out_executable, struct inf_error *err)
{
    const bool is_history = class->buffers.room != 0;
    uint32_t new_rows = 0;
    INF_CLEANUP(inf_graph_destroy)
    struct inf_graph *graph = inf_graph_offers_take(&model->offers, class);
    if (graph != NULL) {
        inf_weight_residency_hold(&model->residency);
        if (inf_graph_offers_restore(graph, NULL) == INF_OK &&
            compile_class(model, class, cancelled, &graph, 0, out_executable, NULL) == INF_OK)
            return INF_OK;
        // Whatever was wrong, the passes may make a graph that can be compiled.
        inf_weight_residency_release(&model->residency);
    }
    if (!inf_weight_residency_evicts(&model->residency))
        model->outgrew_offers = true;
    INF_TRY(inf_weight_residency_acquire(&model->residency, err));
    enum inf_code code = inf_graph_compiler_specialize(&model->compiler, class->shapes,
                                                       is_history ? &class->buffers : NULL,
                                                       cancelled, &graph, &new_rows, err);
    if (code == INF_OK && is_history && inf_graph_needs_values(graph))
        code = inf_fail(err, INF_UNSUPPORTED, "sizes of the model depend on values");
    if (code == INF_OK) {
        inf_graph_compiler_share(&model->compiler, &graph);
        code = compile_class(model, class, cancelled, &graph, new_rows, out_executable, err);
    }
    if (code != INF_OK)
        inf_weight_residency_release(&model->residency);
    return code;
}

// Makes each value that a node computes an output, unless it already is one.
static enum inf_code keep_values(struct inf_graph *graph, struct inf_error *err)
{
    uint32_t output_count = graph->output_count;
    for (uint32_t v = 0; v < graph->value_count; v++) {
        char name[16];
        bool is_output = graph->values[v].producer == INF_NODE_NONE;
        for (uint32_t i = 0; i < output_count && !is_output; i++)
            is_output = graph->outputs[i].value == v;
        snprintf(name, sizeof name, "#%u", v); // "#" avoids names that a model gives its outputs
        if (!is_output)
            INF_TRY(inf_graph_add_output(graph, name, v, err));
    }
    return INF_OK;
}

static enum inf_code compile_private(struct inf_model *model,
                                     const struct inf_private_request *request,
                                     struct inf_executable **out_executable, struct inf_error *err)
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    struct inf_run_options options = request->options != NULL
                                         ? *request->options
                                         : inf_model_default_options(model, request->device);
    options.cancelled = find_cancel_flag(model, options.cancelled);
    uint32_t new_rows;
    INF_TRY(inf_graph_compiler_specialize(&model->compiler, request->shapes, request->buffers,
                                          options.cancelled, &graph, &new_rows, err));
    if (request->keep && inf_graph_needs_values(graph))
        return inf_fail_reason(
            err, INF_UNSUPPORTED, INF_REASON_FEATURE,
            "sizes or branches of this model depend on values: what lies between "
            "its steps cannot be kept");
    if (request->keep)
        INF_TRY(keep_values(graph, err));
    return inf_graph_compiler_compile(&model->compiler, request->device, &options, &graph,
                                      out_executable, err);
}

enum inf_code inf_model_compile_private(struct inf_model *model,
                                        const struct inf_private_request *request,
                                        struct inf_executable **out_executable,
                                        struct inf_error *err)
{
    inf_role_check_may_block();
    // Keep all constants in memory as long as the private executable exists. Eviction does not know
    // which constants this executable reads.
    INF_TRY(inf_weight_residency_acquire(&model->residency, err));
    enum inf_code code = compile_private(model, request, out_executable, err);
    if (code != INF_OK)
        release_constants(model);
    return code;
}

void inf_model_discard_private(struct inf_model *model, struct inf_executable **executable)
{
    inf_role_check_may_block();
    if (*executable == NULL)
        return;
    inf_executable_destroy(executable);
    release_constants(model);
}

// Compiles the executable for an empty shape class that the caller inserted, for which other
// threads may wait. Stores the executable in the class, or removes the class after a failure.
static enum inf_code fulfil_promise(struct inf_model *model, struct inf_shape_class *promise,
                                    const atomic_bool *cancelled,
                                    struct inf_executable **out_executable, struct inf_error *err)
{
    bool is_history = promise->buffers.room != 0; // the promise may be freed
    enum inf_code code = compile_promise(model, promise, cancelled, out_executable, err);
    if (code == INF_OK)
        inf_shape_classes_keep(&model->classes, promise, *out_executable);
    else
        inf_shape_classes_withdraw(&model->classes, promise);
    // Release the constants only when the executable is in its class, so that eviction sees which
    // constants the executable reads.
    if (code == INF_OK)
        inf_weight_residency_release(&model->residency);
    review_constants(model);
    // A graph for a history is built from samples, whose freed memory the allocator would keep.
    if (is_history)
        malloc_trim(0);
    return code;
}

void inf_model_set_default_options(struct inf_model *model, const struct inf_device *device,
                                   const struct inf_run_options *options)
{
    inf_mutex_lock(&model->mutex);
    model->preferred_device = device;
    model->preferred = inf_run_options_resolve(*options);
    inf_mutex_unlock(&model->mutex);
}

struct inf_run_options inf_model_default_options(struct inf_model *model,
                                                 const struct inf_device *device)
{
    struct inf_run_options options = {.precision = INF_PRECISION_FP32};
    inf_mutex_lock(&model->mutex);
    if (model->preferred_device == device)
        options = model->preferred;
    inf_mutex_unlock(&model->mutex);
    return inf_run_options_resolve(options);
}

enum inf_code inf_model_copy_pins(struct inf_model *model, const struct inf_model *from,
                                  struct inf_error *err)
{
    return inf_graph_compiler_copy_pins(&model->compiler, &from->compiler, err);
}

enum inf_code inf_model_pin(struct inf_model *model, enum inf_precision precision,
                            const uint64_t *pinned, uint32_t count, struct inf_error *err)
{
    return inf_graph_compiler_pin(&model->compiler, precision, pinned, count, err);
}

enum inf_code inf_model_acquire(struct inf_model *model, struct inf_device *device,
                                const struct inf_shape *shapes,
                                struct inf_executable **out_executable, struct inf_error *err)
{
    const struct inf_run_options options = inf_model_default_options(model, device);
    return inf_model_acquire_with(model, device, &options, shapes, out_executable, err);
}

// Returns the key of a shape class. The cancel flag of `options` is valid during a call only, but
// the class is kept longer.
static struct inf_shape_key make_key(struct inf_device *device,
                                     const struct inf_run_options *options,
                                     const struct inf_shape *shapes,
                                     struct inf_history_buffers buffers)
{
    struct inf_shape_key key = {device, inf_run_options_resolve(*options), shapes, buffers};
    key.options.cancelled = NULL;
    return key;
}

// Returns an executable that was compiled earlier to the caller, or releases it if its intermediate
// results exceed the bound of a request: a load compiles without the bound, and the bound may be
// set after a compilation.
static enum inf_code check_compiled(struct inf_model *model, const struct inf_run_options *options,
                                    struct inf_executable *executable,
                                    struct inf_executable **out_executable, struct inf_error *err)
{
    enum inf_code code = inf_plan_check_bytes(inf_executable_plan(executable),
                                              find_run_bytes_max(model, options), err);
    if (code == INF_OK)
        *out_executable = executable;
    else
        inf_shape_classes_release(&model->classes, executable);
    return code;
}

enum inf_code inf_model_acquire_class(struct inf_model *model, struct inf_device *device,
                                      const struct inf_run_options *options,
                                      const struct inf_shape *shapes,
                                      struct inf_history_buffers buffers,
                                      struct inf_executable **out_executable, struct inf_error *err)
{
    inf_role_check_may_block();
    struct inf_shape_class *promise;
    const struct inf_shape_key key = make_key(device, options, shapes, buffers);
    struct inf_executable *executable = inf_shape_classes_acquire(&model->classes, &key, &promise);
    if (executable != NULL)
        return check_compiled(model, options, executable, out_executable, err);
    if (promise == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for an executable");
    return fulfil_promise(model, promise, find_cancel_flag(model, options->cancelled),
                          out_executable, err);
}

enum inf_code inf_model_find_class(struct inf_model *model, struct inf_device *device,
                                   const struct inf_run_options *options,
                                   const struct inf_shape *shapes,
                                   struct inf_history_buffers buffers,
                                   struct inf_executable **out_executable)
{
    const struct inf_shape_key key = make_key(device, options, shapes, buffers);
    struct inf_executable *executable = inf_shape_classes_find(&model->classes, &key);
    if (executable == NULL)
        return INF_NOT_FOUND;
    return check_compiled(model, options, executable, out_executable, NULL);
}

enum inf_code inf_model_acquire_with(struct inf_model *model, struct inf_device *device,
                                     const struct inf_run_options *options,
                                     const struct inf_shape *shapes,
                                     struct inf_executable **out_executable, struct inf_error *err)
{
    return inf_model_acquire_class(model, device, options, shapes, (struct inf_history_buffers){0},
                                   out_executable, err);
}

void inf_model_release(struct inf_model *model, struct inf_executable **executable)
{
    if (*executable == NULL)
        return;
    inf_shape_classes_release(&model->classes, *executable);
    *executable = NULL;
}

void inf_model_discard(struct inf_model *model, struct inf_executable **executable)
{
    if (inf_shape_classes_discard(&model->classes, *executable))
        review_constants(model);
    *executable = NULL;
}

void inf_model_drop(struct inf_model *model, struct inf_device *device,
                    const struct inf_shape *shapes)
{
    const struct inf_run_options options = inf_model_default_options(model, device);
    inf_model_drop_with(model, device, &options, shapes);
}

void inf_model_drop_with(struct inf_model *model, struct inf_device *device,
                         const struct inf_run_options *options, const struct inf_shape *shapes)
{
    inf_model_drop_history(model, device, options, shapes, (struct inf_history_buffers){0});
}

void inf_model_drop_history(struct inf_model *model, struct inf_device *device,
                            const struct inf_run_options *options, const struct inf_shape *shapes,
                            struct inf_history_buffers buffers)
{
    inf_role_check_may_block();
    const struct inf_shape_key key = make_key(device, options, shapes, buffers);
    if (inf_shape_classes_drop(&model->classes, &key))
        review_constants(model);
}

uint64_t inf_model_device_bytes(struct inf_model *model, const struct inf_device *device)
{
    struct inf_shape_memory memory = inf_shape_classes_memory(&model->classes, device);
    return memory.weight_bytes + memory.arena_bytes;
}

struct inf_model_memory inf_model_memory(struct inf_model *model)
{
    struct inf_model_memory memory = {.constants = model->constants};
    struct inf_form_cost forms;
    struct inf_device_held held = inf_weight_residency_memory(&model->residency, &forms);
    memory.weight_bytes = forms.bytes;
    memory.packing_ns = forms.made_ns;
    memory.const_bytes = held.bytes;
    memory.const_blobs = held.buffers;
    struct inf_shape_memory own = inf_shape_classes_memory(&model->classes, NULL);
    memory.weight_bytes += own.weight_bytes;
    memory.arena_bytes = own.arena_bytes;
    memory.executables = own.executables;
    return memory;
}
