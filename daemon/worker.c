// SPDX-License-Identifier: Apache-2.0
#include "daemon/worker.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "backends/base/clock.h"
#include "backends/exec/model.h"
#include "proto/core/span.h"
#include "proto/wire/frame.h"

static enum inf_code too_small(struct inf_fault *fault, const char *name,
                               const struct inf_job_output *output)
{
    char wanted[24];
    char room[24];
    snprintf(wanted, sizeof wanted, "%zu", output->size_bytes);
    snprintf(room, sizeof room, "%" PRIu64, output->room_bytes);
    inf_fault_tensor(fault, name, wanted, room);
    return inf_fail_reason(&fault->err, INF_RANGE, INF_REASON_OUTPUT_TOO_SMALL,
                           "output '%s': %s bytes, but the room given is %s", name, wanted, room);
}

// Learns the outputs' types, shapes and sizes, and gives those without a region an offset in the
// reply's data segment. *out_inline tells whether there are any such.
static enum inf_code measure_outputs(struct inf_job *job, const struct inf_graph *graph,
                                     bool *out_inline)
{
    struct inf_fault *fault = &job->result.fault;
    size_t end = 0;
    *out_inline = false;
    assert(graph->output_count == job->output_count);
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        if (!output->wanted)
            continue;
        output->dtype = value->dtype;
        output->shape = value->shape;
        if (!inf_shape_bytes(&value->shape, value->dtype, &output->size_bytes))
            return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "output '%s' is too large", graph->outputs[i].name);
        if (output->memory != NULL && output->size_bytes > output->room_bytes)
            return too_small(fault, graph->outputs[i].name, output);
        if (output->memory != NULL)
            continue;
        *out_inline = true;
        output->offset = inf_size_align(end, INF_FRAME_DATA_ALIGNMENT);
        if (!inf_range_ok(output->offset, output->size_bytes, job->reply_bytes_max))
            return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                                   "output '%s': %zu bytes at %zu do not fit the %" PRIu32
                                   " of a reply; give it a region to be written to",
                                   graph->outputs[i].name, output->size_bytes, output->offset,
                                   job->reply_bytes_max);
        end = output->offset + output->size_bytes;
    }
    job->result.data_bytes = end;
    return INF_OK;
}

// Gets the reply's data segment. The gaps between tensors are zeroed: the buffer may have been
// another client's.
static enum inf_code make_reply(struct inf_worker *worker, struct inf_job *job)
{
    size_t capacity = INF_MAX(job->result.data_bytes, 1);
    job->result.data = inf_pool_acquire(worker->pool, capacity);
    if (job->result.data == NULL)
        return inf_fail_reason(&job->result.fault.err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a reply of %zu bytes", capacity);
    job->result.data_capacity = capacity;
    size_t end = 0;
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        if (!output->wanted || output->memory != NULL)
            continue;
        memset(job->result.data + end, 0, output->offset - end);
        end = output->offset + output->size_bytes;
    }
    return INF_OK;
}

static enum inf_code execute(struct inf_worker *worker, struct inf_job *job,
                             struct inf_executable *executable)
    INF_ATTR(requires_capability(inf_role_worker))
{
    bool has_inline;
    void *outputs[INF_LIMIT_TENSORS];
    INF_TRY(measure_outputs(job, inf_executable_graph(executable), &has_inline));
    if (has_inline)
        INF_TRY(make_reply(worker, job));
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        outputs[i] = NULL;
        if (output->wanted)
            outputs[i] =
                output->memory != NULL ? output->memory : job->result.data + output->offset;
    }
    struct inf_execution execution = {.inputs = job->inputs,
                                      .outputs = outputs,
                                      .slot = worker->slot,
                                      .cancelled = &job->cancelled};
    job->result.begin_ns = inf_clock_ns();
    enum inf_code code = inf_executable_run(executable, &execution, &job->result.fault.err);
    job->result.end_ns = inf_clock_ns();
    return code;
}

static enum inf_code acquire_and_execute(struct inf_worker *worker, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_worker))
{
    struct inf_model *model = job->served->model;
    struct inf_executable *executable = NULL;
    if (atomic_load_explicit(&job->cancelled, memory_order_relaxed))
        return inf_fail(&job->result.fault.err, INF_CANCELLED, "cancelled before it began");
    INF_TRY(
        inf_model_acquire(model, job->device, job->shapes, &executable, &job->result.fault.err));
    enum inf_code code = execute(worker, job, executable);
    inf_model_release(model, &executable);
    return code;
}

static void run_job(struct inf_worker *worker, struct inf_job *job)
    INF_ATTR(requires_capability(inf_role_worker))
{
    job->result.start_ns = inf_clock_ns();
    job->result.begin_ns = job->result.end_ns = 0;
    atomic_store_explicit(&worker->busy_since_ns, job->result.start_ns, memory_order_relaxed);
    inf_fault_init(&job->result.fault);
    enum inf_code code = acquire_and_execute(worker, job);
    // Whatever was forgotten on the way, the loop must not take a failure for an answer.
    if (code != INF_OK && job->result.fault.err.code == INF_OK)
        inf_fail_reason(&job->result.fault.err, INF_INTERNAL, INF_REASON_BUG,
                        "the run failed without saying why");
    job->result.fault.phase = "exec";
    job->result.done_ns = inf_clock_ns();
    atomic_store_explicit(&worker->busy_since_ns, 0, memory_order_relaxed);
}

static void work(void *context) INF_ATTR(no_thread_safety_analysis)
{
    struct inf_worker *worker = context;
    inf_role_enter_worker();
    struct inf_job *job;
    while ((job = inf_lane_pop(worker->lane)) != NULL) {
        run_job(worker, job);
        bool posted = inf_queue_push(worker->done, job);
        assert(posted && "the queue has room for every job there can be");
        (void)posted;
    }
}

enum inf_code inf_worker_start(struct inf_worker *worker, struct inf_error *err)
{
    return inf_thread_start(&worker->thread, "inferd-worker", work, worker, err);
}

void inf_worker_join(struct inf_worker *worker)
{
    inf_thread_join(&worker->thread);
}
