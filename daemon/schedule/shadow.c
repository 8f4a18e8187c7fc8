// SPDX-License-Identifier: Apache-2.0
// Computes some answers again on the reference device `ref`, in the background, to detect devices
// that compute wrongly. Workers copy inputs and outputs of selected jobs (a sample). A thread with
// idle priority runs the model again, and compares. If an output differs, both devices are
// inspected to find the first node that differs. The queue of samples is short. Samples beyond it
// are dropped and counted, so that checking never delays a request.
#include "daemon/schedule/shadow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/base/thread.h"
#include "backends/exec/model/inspection.h"
#include "backends/exec/trial_run.h"
#include "backends/precision/precision_check.h"
#include "daemon/schedule/debug_trace.h"
#include "daemon/schedule/job_output.h"
#include "proto/core/span.h"

struct inf_shadow_sample {
    struct inf_shadow_sample *next;
    struct inf_served *served; // the model that was run; a reference
    struct inf_device *device; // the device that computed the answer; borrowed
    enum inf_precision precision;
    double tolerance;
    bool check, trace;
    char id[INF_LIMIT_REQUEST_ID + 1];
    uint32_t input_count, output_count;
    struct inf_shape shapes[INF_LIMIT_TENSORS];
    struct inf_blob *inputs[INF_LIMIT_TENSORS];
    // Copied outputs; NULL: the output is not wanted, or its size depends on values.
    struct inf_blob *outputs[INF_LIMIT_TENSORS];
};

struct inf_shadow {
    struct inf_shadow_options options;
    struct inf_thread thread;
    _Atomic uint64_t checked, drifted, dropped; // numbers of answers, over all models
    atomic_bool ending;                         // true: the thread stops its run and ends
    struct inf_mutex mutex;                     // guards the members after it
    struct inf_cond wanted;
    struct inf_shadow_sample *first, **last;
    uint32_t waiting;
};

// --- copying samples (inputs and outputs of jobs to be checked) ---

void inf_shadow_sample_destroy(struct inf_shadow_sample **sample)
{
    struct inf_shadow_sample *self = *sample;
    *sample = NULL;
    if (self == NULL)
        return;
    for (uint32_t i = 0; i < INF_LIMIT_TENSORS; i++) {
        inf_blob_unref(&self->inputs[i]);
        inf_blob_unref(&self->outputs[i]);
    }
    inf_served_unref(&self->served);
    free(self);
}

static void count_dropped(struct inf_shadow *shadow, struct inf_served *served)
{
    atomic_fetch_add_explicit(&served->shadow.dropped, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&shadow->dropped, 1, memory_order_relaxed);
}

static struct inf_blob *copy_memory(const void *from, size_t size)
{
    struct inf_blob *blob = inf_blob_create(size);
    if (blob != NULL && size > 0)
        memcpy(blob->data, from, size);
    return blob;
}

static bool measure_inputs(const struct inf_job *job, size_t sizes[INF_LIMIT_TENSORS])
{
    const struct inf_graph *graph = inf_model_graph(job->served->model);
    uint64_t total = 0;
    for (uint32_t i = 0; i < job->input_count; i++) {
        enum inf_dtype dtype = graph->values[graph->inputs[i].value].dtype;
        // A copy of handles would outlive the strings of the run.
        if (dtype == INF_DTYPE_BYTES || !inf_shape_bytes(&job->shapes[i], dtype, &sizes[i]))
            return false;
        total += sizes[i];
    }
    for (uint32_t i = 0; i < job->output_count; i++)
        if (inf_job_output_memory(job, i) != NULL)
            total += job->outputs[i].size_bytes;
    return total <= INF_SHADOW_BYTES_MAX;
}

static bool fill_sample(struct inf_shadow_sample *sample, const struct inf_job *job)
{
    size_t sizes[INF_LIMIT_TENSORS];
    if (!measure_inputs(job, sizes))
        return false;
    sample->device = job->device;
    sample->precision = job->result.precision;
    sample->check = job->shadowed;
    sample->trace = job->traced;
    snprintf(sample->id, sizeof sample->id, "%s", job->id);
    sample->input_count = job->input_count;
    sample->output_count = job->output_count;
    for (uint32_t i = 0; i < job->input_count; i++) {
        sample->shapes[i] = job->shapes[i];
        sample->inputs[i] = copy_memory(job->inputs[i], sizes[i]);
        if (sample->inputs[i] == NULL)
            return false;
    }
    for (uint32_t i = 0; i < job->output_count; i++) {
        const void *memory = inf_job_output_memory(job, i);
        if (memory == NULL)
            continue;
        sample->outputs[i] = copy_memory(memory, job->outputs[i].size_bytes);
        if (sample->outputs[i] == NULL)
            return false;
    }
    return true;
}

struct inf_shadow_sample *inf_shadow_take(const struct inf_job *job)
{
    struct inf_shadow_sample *sample = calloc(1, sizeof *sample);
    if (sample != NULL)
        sample->served = inf_served_ref(job->served);
    if (sample != NULL && !fill_sample(sample, job))
        inf_shadow_sample_destroy(&sample);
    return sample;
}

// --- comparing answers with those of the reference device ---

struct check {
    struct inf_shadow *shadow;
    const struct inf_shadow_sample *sample;
    struct inf_executable *executable; // executable on the reference device
    struct inf_trial_run trial;
    enum inf_code code;
    struct inf_error err;
    bool differs;
    char what[128]; // name of the output that differs, and its first differing element
    char node[96];  // name of the first node that differs; "": not found in the second run
};

static void compare_outputs(struct check *check)
{
    const struct inf_shadow_sample *sample = check->sample;
    const struct inf_graph *graph = inf_executable_graph(check->executable);
    for (uint32_t i = 0; i < INF_MIN(graph->output_count, sample->output_count); i++) {
        const struct inf_blob *got = sample->outputs[i];
        const struct inf_blob *wanted = check->trial.blobs[graph->input_count + i];
        if (got == NULL)
            continue;
        size_t at = got->size_bytes != wanted->size_bytes
                        ? 0
                        : inf_trial_run_find_difference(
                              got->data, wanted->data, wanted->size_bytes,
                              graph->values[graph->outputs[i].value].dtype, sample->tolerance);
        if (at == SIZE_MAX)
            continue;
        check->differs = true;
        snprintf(check->what, sizeof check->what, "output '%.60s' from element %zu on",
                 graph->outputs[i].name, at);
        return;
    }
}

static enum inf_code start_inspection(struct inf_inspection **inspection, const struct check *check,
                                      struct inf_device *device, enum inf_precision precision,
                                      struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_shadow_sample *sample = check->sample;
    const struct inf_run_options options = {.precision = precision};
    const struct inf_private_request apart = {
        .device = device, .options = &options, .shapes = sample->shapes, .keep = true};
    INF_TRY(inf_inspection_create(inspection, sample->served->model, &apart, err));
    for (uint32_t i = 0; i < sample->input_count; i++) {
        size_t size;
        void *memory = inf_inspection_input(*inspection, i, &size);
        memcpy(memory, sample->inputs[i]->data, INF_MIN(size, sample->inputs[i]->size_bytes));
    }
    return inf_inspection_run(*inspection, 1, err);
}

// Runs the model again on both devices, with every value kept, and finds the first node whose
// values differ.
static void find_first_difference(struct check *check) INF_MAY_BLOCK
{
    struct inf_inspection *subject = NULL, *reference = NULL;
    struct inf_error ignored = {0};
    if (start_inspection(&subject, check, check->sample->device, check->sample->precision,
                         &ignored) == INF_OK &&
        start_inspection(&reference, check, check->shadow->options.reference, INF_PRECISION_FP32,
                         &ignored) == INF_OK) {
        const struct inf_graph *graph = inf_inspection_graph(subject);
        for (uint32_t n = 0; n < graph->node_count && check->node[0] == '\0'; n++) {
            struct inf_node_difference difference;
            if (inf_inspection_compare_node(subject, reference, n, check->sample->tolerance,
                                            &difference) &&
                !difference.within)
                snprintf(check->node, sizeof check->node, "%.95s", graph->nodes[n].name);
        }
    }
    inf_inspection_destroy(&subject);
    inf_inspection_destroy(&reference);
}

// Repeats a run on the reference device and compares the outputs. Called on a thread with idle
// priority, because the reference device is slow.
static void run_check(void *context)
{
    struct check *check = context;
    inf_role_enter_worker();
    for (uint32_t i = 0; i < check->sample->input_count; i++)
        memcpy(check->trial.pointers[i], check->sample->inputs[i]->data,
               check->sample->inputs[i]->size_bytes);
    check->code = inf_trial_run_execute_cancellable(&check->trial, check->executable,
                                                    &check->shadow->ending, NULL, &check->err);
    if (check->code == INF_OK)
        compare_outputs(check);
    inf_role_leave();
}

static void raise_alarm(const struct check *check)
{
    struct inf_served *served = check->sample->served;
    char text[INF_SHADOW_TEXT];
    snprintf(text, sizeof text, "%s in %s: %s differs from %s's; first at node '%s'",
             inf_device_info(check->sample->device)->name,
             inf_precision_name(check->sample->precision), check->what,
             inf_device_info(check->shadow->options.reference)->name,
             check->node[0] != '\0' ? check->node : "none when run again");
    inf_log(check->shadow->options.log, INF_LOG_WARNING, "model errs name=%s device=%s %s",
            served->name, inf_device_info(check->sample->device)->name, text);
    // Keep only the first alarm, because other threads read it without a lock once `drifted` is not
    // 0.
    if (atomic_load(&served->shadow.drifted) == 0)
        memcpy(served->shadow.alarm, text, sizeof text);
    atomic_fetch_add(&served->shadow.drifted, 1);
    atomic_fetch_add_explicit(&check->shadow->drifted, 1, memory_order_relaxed);
}

static enum inf_code check_sample(struct check *check, struct inf_error *err) INF_MAY_BLOCK
{
    const struct inf_shadow_sample *sample = check->sample;
    struct inf_served *served = sample->served;
    const struct inf_private_request apart = {.device = check->shadow->options.reference,
                                              .shapes = sample->shapes};
    INF_TRY(inf_model_compile_private(served->model, &apart, &check->executable, err));
    INF_TRY(inf_trial_run_init(&check->trial, inf_executable_graph(check->executable), err));
    INF_TRY(inf_thread_run_idle("inferd-shadow", run_check, check, err));
    if (check->code != INF_OK) {
        *err = check->err;
        return check->code;
    }
    atomic_fetch_add_explicit(&served->shadow.checked, 1, memory_order_relaxed);
    atomic_fetch_add_explicit(&check->shadow->checked, 1, memory_order_relaxed);
    if (check->differs) {
        find_first_difference(check);
        raise_alarm(check);
    }
    return INF_OK;
}

static void run_sample_check(struct inf_shadow *shadow,
                             const struct inf_shadow_sample *sample) INF_MAY_BLOCK
{
    struct check check = {.shadow = shadow, .sample = sample};
    struct inf_error err = {0};
    if (check_sample(&check, &err) != INF_OK) {
        count_dropped(shadow, sample->served);
        inf_log(shadow->options.log, INF_LOG_INFO, "answer not checked name=%s reason=\"%s\"",
                sample->served->name, err.text);
    }
    inf_trial_run_fini(&check.trial);
    inf_model_discard_private(sample->served->model, &check.executable);
}

static void process_sample(struct inf_shadow *shadow,
                           const struct inf_shadow_sample *sample) INF_MAY_BLOCK
{
    if (sample->trace)
        inf_trace_log(&(struct inf_trace_subject){.served = sample->served,
                                                  .device = sample->device,
                                                  .precision = sample->precision,
                                                  .request_id = sample->id,
                                                  .shapes = sample->shapes,
                                                  .inputs = sample->inputs,
                                                  .input_count = sample->input_count},
                      shadow->options.log);
    if (sample->check)
        run_sample_check(shadow, sample);
}

// --- the shadow thread ---

static struct inf_shadow_sample *take_next(struct inf_shadow *shadow)
{
    struct inf_shadow_sample *sample = NULL;
    inf_mutex_lock(&shadow->mutex);
    while (shadow->first == NULL && !atomic_load(&shadow->ending))
        inf_cond_wait(&shadow->wanted, &shadow->mutex);
    if (!atomic_load(&shadow->ending)) {
        sample = shadow->first;
        shadow->first = sample->next;
        if (shadow->first == NULL)
            shadow->last = &shadow->first;
    }
    inf_mutex_unlock(&shadow->mutex);
    return sample;
}

static void run_shadow(void *context)
{
    struct inf_shadow *shadow = context;
    inf_role_enter_worker();
    struct inf_shadow_sample *sample;
    while ((sample = take_next(shadow)) != NULL) {
        // Run a debug-mode trace at once, because a person waits for it. Delay a shadow check until
        // the daemon is idle.
        if (!sample->trace)
            (void)inf_idle_gate_wait_shared(shadow->options.idle_gate, &shadow->ending);
        process_sample(shadow, sample);
        inf_shadow_sample_destroy(&sample);
        inf_mutex_lock(&shadow->mutex);
        shadow->waiting--; // a sample counts as waiting until it is done
        inf_mutex_unlock(&shadow->mutex);
    }
}

enum inf_code inf_shadow_create(struct inf_shadow **out_shadow,
                                const struct inf_shadow_options *options, struct inf_error *err)
{
    struct inf_shadow *shadow = calloc(1, sizeof *shadow);
    if (shadow == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to check answers");
    shadow->options = *options;
    shadow->last = &shadow->first;
    inf_mutex_init(&shadow->mutex);
    inf_cond_init(&shadow->wanted);
    enum inf_code code =
        inf_thread_start(&shadow->thread, "inferd-shadows", run_shadow, shadow, err);
    if (code == INF_OK)
        *out_shadow = shadow;
    else
        inf_shadow_destroy(&shadow);
    return code;
}

void inf_shadow_destroy(struct inf_shadow **pointer)
{
    struct inf_shadow *shadow = *pointer;
    *pointer = NULL;
    if (shadow == NULL)
        return;
    inf_mutex_lock(&shadow->mutex);
    atomic_store(&shadow->ending, true);
    inf_cond_signal(&shadow->wanted);
    inf_mutex_unlock(&shadow->mutex);
    inf_thread_join(&shadow->thread);
    while (shadow->first != NULL) {
        struct inf_shadow_sample *sample = shadow->first;
        shadow->first = sample->next;
        inf_shadow_sample_destroy(&sample);
    }
    inf_cond_fini(&shadow->wanted);
    inf_mutex_fini(&shadow->mutex);
    free(shadow);
}

// --- functions for the loop ---

bool inf_shadow_should_sample(struct inf_shadow *shadow, struct inf_served *served, uint64_t count,
                              uint32_t interval)
{
    if (interval == 0 || count % interval != 0)
        return false;
    inf_mutex_lock(&shadow->mutex);
    bool room = shadow->waiting < INF_SHADOW_WAITING_MAX;
    inf_mutex_unlock(&shadow->mutex);
    if (!room)
        count_dropped(shadow, served);
    return room;
}

void inf_shadow_submit(struct inf_shadow *shadow, struct inf_job *job, double tolerance)
{
    struct inf_shadow_sample *sample = job->result.sample;
    job->result.sample = NULL;
    if (sample == NULL) {
        count_dropped(shadow, job->served);
        return;
    }
    sample->tolerance = sample->precision > INF_PRECISION_FP32
                            ? inf_precision_error_max(sample->precision)
                            : tolerance;
    inf_mutex_lock(&shadow->mutex);
    bool room = shadow->waiting < INF_SHADOW_WAITING_MAX;
    if (room) {
        shadow->waiting++;
        *shadow->last = sample;
        shadow->last = &sample->next;
        inf_cond_signal(&shadow->wanted);
    }
    inf_mutex_unlock(&shadow->mutex);
    if (!room) {
        count_dropped(shadow, job->served);
        inf_shadow_sample_destroy(&sample);
    }
}

struct inf_shadow_totals inf_shadow_read_totals(const struct inf_shadow *shadow)
{
    return (struct inf_shadow_totals){
        .checked = atomic_load_explicit(&shadow->checked, memory_order_relaxed),
        .drifted = atomic_load_explicit(&shadow->drifted, memory_order_relaxed),
        .dropped = atomic_load_explicit(&shadow->dropped, memory_order_relaxed),
    };
}
