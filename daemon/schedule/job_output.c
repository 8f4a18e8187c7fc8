// SPDX-License-Identifier: Apache-2.0
// Finds memory for the outputs of a job: in a region, in a session buffer, or in the data segment
// of the reply, where the inline outputs follow each other at aligned offsets. Outputs whose size
// depends on values ("late" outputs) get memory after the run.
#include "daemon/schedule/job_output.h"

#include <assert.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "proto/core/span.h"
#include "proto/wire/frame.h"

static enum inf_code refuse_size(struct inf_fault *fault, const char *name,
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

// Assigns the next free offset in the data segment of the reply to an output that is not in a
// region.
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

// Records the data type and shape of an output, and assigns memory to it.
static enum inf_code place_output(struct inf_job *job, const char *name,
                                  struct inf_job_output *output, enum inf_dtype dtype,
                                  const struct inf_shape *shape)
{
    struct inf_fault *fault = &job->result.fault;
    output->dtype = dtype;
    output->shape = *shape;
    if (!inf_shape_bytes(shape, dtype, &output->size_bytes))
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "output '%s' is too large", name);
    if (output->kept != NULL &&
        inf_session_buffer_reserve(output->kept, output->size_bytes, &fault->err) != INF_OK)
        return inf_error_prefix(&fault->err, fault->err.code, "output '%s'", name);
    if (!output->returned) {
        output->memory = output->kept->data;
        return INF_OK;
    }
    if (output->memory == NULL)
        return place_inline(job, name, output);
    return output->size_bytes <= output->room_bytes ? INF_OK : refuse_size(fault, name, output);
}

struct outputs_found {
    bool has_inline; // some outputs are sent in the data segment of the reply
    bool has_late;   // some outputs have a size that is known only after the run
};

// Assigns memory to the outputs whose shapes are known before the run.
static enum inf_code measure_outputs(struct inf_job *job, const struct inf_graph *graph,
                                     uint32_t rows, struct outputs_found *found)
{
    assert(graph->output_count == job->output_count);
    job->result.data_bytes = 0;
    *found = (struct outputs_found){false, false};
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct inf_shape shape = value->shape;
        if (rows != 0)
            shape.dims[0] = rows;
        output->late = output->wanted && !inf_shape_known(&shape);
        found->has_late |= output->late;
        if (!output->wanted || output->late)
            continue;
        INF_TRY(place_output(job, graph->outputs[i].name, output, value->dtype, &shape));
        found->has_inline |= output->memory == NULL;
    }
    return INF_OK;
}

// Acquires a data segment for the reply with room for all outputs placed so far, and keeps the
// first `used` bytes of an earlier one. The gaps between the tensors are zeroed, because the buffer
// may contain data of another client. `late` selects the outputs that this call places.
static enum inf_code acquire_data(struct inf_pool *pool, struct inf_job *job, bool late,
                                  size_t used)
{
    size_t capacity = INF_MAX(job->result.data_bytes, 1);
    uint8_t *data = inf_pool_acquire(pool, capacity);
    if (data == NULL)
        return inf_fail_reason(&job->result.fault.err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for a reply of %zu bytes", capacity);
    if (used > 0)
        memcpy(data, job->result.data, used);
    inf_pool_release(pool, job->result.data, job->result.data_capacity);
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

enum inf_code inf_job_place_outputs(struct inf_job *job, const struct inf_graph *graph,
                                    uint32_t rows, struct inf_pool *pool, bool *out_late)
{
    struct outputs_found found;
    inf_pool_release(pool, job->result.data, job->result.data_capacity);
    job->result.data = NULL;
    INF_TRY(measure_outputs(job, graph, rows, &found));
    *out_late = found.has_late;
    return found.has_inline ? acquire_data(pool, job, false, 0) : INF_OK;
}

// Returns the memory of an output to which place_output() has assigned a place.
static void *find_memory(const struct inf_job *job, const struct inf_job_output *output)
{
    return output->memory != NULL ? output->memory : job->result.data + output->offset;
}

void *inf_job_output_memory(const struct inf_job *job, uint32_t index)
{
    const struct inf_job_output *output = &job->outputs[index];
    return output->wanted && !output->late ? find_memory(job, output) : NULL;
}

void inf_job_keep_outputs(struct inf_job *job)
{
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        if (output->kept != NULL && output->returned && output->size_bytes > 0)
            memcpy(output->kept->data, find_memory(job, output), output->size_bytes);
    }
}

enum inf_code inf_job_collect_late(struct inf_job *job, const struct inf_executable *executable,
                                   uint32_t slot, struct inf_pool *pool)
{
    const struct inf_graph *graph = inf_executable_graph(executable);
    size_t used = job->result.data_bytes;
    bool has_inline = false;
    struct inf_result result;
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        if (!output->late)
            continue;
        if (!inf_executable_result(executable, slot, i, &result))
            return inf_fail_reason(&job->result.fault.err, INF_INTERNAL, INF_REASON_BUG,
                                   "output '%s': the run did not give it", graph->outputs[i].name);
        INF_TRY(place_output(job, graph->outputs[i].name, output, result.dtype, &result.shape));
        has_inline |= output->memory == NULL;
    }
    if (has_inline)
        INF_TRY(acquire_data(pool, job, true, used));
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        if (output->late && output->size_bytes > 0 &&
            inf_executable_result(executable, slot, i, &result))
            memcpy(find_memory(job, output), result.data, output->size_bytes);
    }
    return INF_OK;
}
