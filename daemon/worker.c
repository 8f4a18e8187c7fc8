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

// Gives an output without a region its place in the reply's data segment, behind what is there.
static enum inf_code place_inline(struct inf_job *job, const char *name,
                                  struct inf_job_output *output)
{
    size_t offset = inf_size_align(job->result.data_bytes, INF_FRAME_DATA_ALIGNMENT);
    if (!inf_range_ok(offset, output->size_bytes, job->reply_bytes_max))
        return inf_fail_reason(&job->result.fault.err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                               "output '%s': %zu bytes at %zu do not fit the %" PRIu32
                               " of a reply; give it a region to be written to",
                               name, output->size_bytes, offset, job->reply_bytes_max);
    output->offset = offset;
    job->result.data_bytes = offset + output->size_bytes;
    return INF_OK;
}

// Notes what an output is, and finds room for it.
static enum inf_code measure(struct inf_job *job, const char *name, struct inf_job_output *output,
                             enum inf_dtype dtype, const struct inf_shape *shape)
{
    struct inf_fault *fault = &job->result.fault;
    output->dtype = dtype;
    output->shape = *shape;
    if (!inf_shape_bytes(shape, dtype, &output->size_bytes))
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "output '%s' is too large", name);
    if (output->memory == NULL)
        return place_inline(job, name, output);
    return output->size_bytes <= output->room_bytes ? INF_OK : too_small(fault, name, output);
}

struct outputs_found {
    bool has_inline; // some go into the reply's data segment
    bool has_late;   // the sizes of some are known after the run only
};

// Measures the outputs whose shapes are known before the run.
static enum inf_code measure_outputs(struct inf_job *job, const struct inf_graph *graph,
                                     struct outputs_found *found)
{
    assert(graph->output_count == job->output_count);
    job->result.data_bytes = 0;
    *found = (struct outputs_found){false, false};
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        output->late = output->wanted && !inf_shape_known(&value->shape);
        found->has_late |= output->late;
        if (!output->wanted || output->late)
            continue;
        found->has_inline |= output->memory == NULL;
        INF_TRY(measure(job, graph->outputs[i].name, output, value->dtype, &value->shape));
    }
    return INF_OK;
}

// Gets a data segment of the size that is needed so far; what the first `used` bytes of an earlier one
// hold is kept. The gaps between the tensors (those that are late, or those that are not) are
// zeroed: the buffer may have been another client's.
static enum inf_code make_reply(struct inf_worker *worker, struct inf_job *job, bool late,
                                size_t used)
{
    size_t capacity = INF_MAX(job->result.data_bytes, 1);
    uint8_t *data = inf_pool_acquire(worker->pool, capacity);
    if (data == NULL)
        return inf_fail_reason(&job->result.fault.err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a reply of %zu bytes", capacity);
    if (used > 0)
        memcpy(data, job->result.data, used);
    inf_pool_release(worker->pool, job->result.data, job->result.data_capacity);
    job->result.data = data;
    job->result.data_capacity = capacity;
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        if (!output->wanted || output->memory != NULL || output->late != late)
            continue;
        memset(data + used, 0, output->offset - used);
        used = output->offset + output->size_bytes;
    }
    return INF_OK;
}

// Where a measured output goes.
static void *output_memory(const struct inf_job *job, const struct inf_job_output *output)
{
    if (output->memory != NULL)
        return output->memory;
    return job->result.data + output->offset;
}

// Fetches the outputs whose sizes only the run could tell.
static enum inf_code collect_late(struct inf_worker *worker, struct inf_job *job,
                                  struct inf_executable *executable)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    size_t used = job->result.data_bytes;
    bool has_inline = false;
    struct inf_result result;
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        if (!output->late)
            continue;
        if (!inf_executable_result(executable, worker->slot, i, &result))
            return inf_fail_reason(&job->result.fault.err, INF_INTERNAL, INF_REASON_BUG,
                                   "output '%s': the run did not give it", graph->outputs[i].name);
        INF_TRY(measure(job, graph->outputs[i].name, output, result.dtype, &result.shape));
        has_inline |= output->memory == NULL;
    }
    if (has_inline)
        INF_TRY(make_reply(worker, job, true, used));
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        if (output->late && output->size_bytes > 0 &&
            inf_executable_result(executable, worker->slot, i, &result))
            memcpy(output_memory(job, output), result.data, output->size_bytes);
    }
    return INF_OK;
}

static enum inf_code execute(struct inf_worker *worker, struct inf_job *job,
                             struct inf_executable *executable)
    INF_ATTR(requires_capability(inf_role_worker))
{
    void *outputs[INF_LIMIT_TENSORS];
    struct outputs_found found;
    INF_TRY(measure_outputs(job, inf_executable_graph(executable), &found));
    if (found.has_inline)
        INF_TRY(make_reply(worker, job, false, 0));
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        outputs[i] = output->wanted && !output->late ? output_memory(job, output) : NULL;
    }
    struct inf_execution execution = {.inputs = job->inputs,
                                      .outputs = outputs,
                                      .slot = worker->slot,
                                      .cancelled = &job->cancelled};
    job->result.begin_ns = inf_clock_ns();
    enum inf_code code = inf_executable_run(executable, &execution, &job->result.fault.err);
    job->result.end_ns = inf_clock_ns();
    if (code == INF_OK && found.has_late)
        code = collect_late(worker, job, executable);
    inf_executable_drop_results(executable, worker->slot);
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
        inf_lane_settle(worker->lane, job);
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
