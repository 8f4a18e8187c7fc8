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

void inf_job_forget_history(struct inf_job *job)
{
    job->history_room = 0;
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        output->in_place = output->moved = output->overwrites = output->lags = false;
    }
}

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

// Charges the user for the memory of an output that the session keeps, and reserves it.
static enum inf_code reserve_kept(struct inf_job *job, const struct inf_job_output *output)
{
    struct inf_error *err = &job->result.fault.err;
    INF_TRY(inf_session_reserve_bytes(job->session, output->kept, output->size_bytes, err));
    return inf_session_buffer_reserve(&output->kept->next, output->size_bytes, NULL, err);
}

// Records the data type and shape of an output, and assigns memory to it.
static enum inf_code place_output(struct inf_job *job, const char *name,
                                  struct inf_job_output *output, enum inf_dtype dtype,
                                  const struct inf_shape *shape, size_t size_bytes)
{
    struct inf_fault *fault = &job->result.fault;
    output->dtype = dtype;
    output->shape = *shape;
    output->size_bytes = size_bytes;
    if (output->kept != NULL && reserve_kept(job, output) != INF_OK)
        return inf_error_prefix(&fault->err, fault->err.code, "output '%s'", name);
    if (!output->returned) {
        output->memory = output->kept->next.data;
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
    assert(graph->output_count >= job->output_count); // one more if it writes over caches
    job->result.data_bytes = 0;
    *found = (struct outputs_found){false, false};
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        const struct inf_value *value = &graph->values[graph->outputs[i].value];
        struct inf_shape shape = value->shape;
        if (rows != 0)
            shape.dims[0] = rows;
        // The size of strings in a reply is known only when the strings are.
        output->late =
            output->wanted && (!inf_shape_known(&shape) || value->dtype == INF_DTYPE_BYTES);
        found->has_late |= output->late;
        size_t size_bytes;
        if (!output->wanted || output->late || output->in_place)
            continue;
        if (!inf_shape_bytes(&shape, value->dtype, &size_bytes))
            return inf_fail_reason(&job->result.fault.err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                                   "output '%s' is too large", graph->outputs[i].name);
        INF_TRY(
            place_output(job, graph->outputs[i].name, output, value->dtype, &shape, size_bytes));
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
        if (!output->wanted || output->memory != NULL || output->in_place || output->late != late)
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
    return output->wanted && !output->late && !output->in_place ? find_memory(job, output) : NULL;
}

void inf_job_keep_outputs(struct inf_job *job)
{
    for (uint32_t i = 0; i < job->output_count; i++) {
        const struct inf_job_output *output = &job->outputs[i];
        if (output->kept != NULL && output->returned && output->size_bytes > 0)
            memcpy(output->kept->next.data, find_memory(job, output), output->size_bytes);
    }
}

// Sets *result to a late output, and *size_bytes to its size in the reply.
static enum inf_code find_late(struct inf_job *job, const struct inf_late_source *source,
                               uint32_t index, struct inf_result *result, size_t *size_bytes)
{
    const struct inf_graph *graph = inf_executable_graph(source->executable);
    const char *name = graph->outputs[index].name;
    struct inf_error *err = &job->result.fault.err;
    if (!inf_executable_result(source->executable, source->slot, index, result) &&
        !inf_run_strings_result(source->strings, graph, index, result))
        return inf_fail_reason(err, INF_INTERNAL, INF_REASON_BUG,
                               "output '%s': the run did not give it", name);
    *size_bytes = result->size_bytes;
    if (result->dtype != INF_DTYPE_BYTES)
        return INF_OK;
    const struct inf_strings strings = inf_run_strings_view(source->strings, graph);
    enum inf_code code = inf_strings_measure(&strings, result->data,
                                             inf_shape_elements(&result->shape), size_bytes, err);
    return code == INF_OK ? INF_OK : inf_error_prefix(err, code, "output '%s'", name);
}

// Writes a late output to the memory that was assigned to it.
static enum inf_code write_late(struct inf_job *job, const struct inf_late_source *source,
                                uint32_t index)
{
    struct inf_result result;
    size_t size_bytes;
    INF_TRY(find_late(job, source, index, &result, &size_bytes));
    if (size_bytes == 0)
        return INF_OK;
    uint8_t *to = find_memory(job, &job->outputs[index]);
    if (result.dtype == INF_DTYPE_BYTES) {
        const struct inf_strings strings =
            inf_run_strings_view(source->strings, inf_executable_graph(source->executable));
        inf_strings_encode(&strings, result.data, inf_shape_elements(&result.shape), to);
    } else {
        memcpy(to, result.data, size_bytes);
    }
    return INF_OK;
}

enum inf_code inf_job_collect_late(struct inf_job *job, const struct inf_late_source *source,
                                   struct inf_pool *pool)
{
    const struct inf_graph *graph = inf_executable_graph(source->executable);
    size_t used = job->result.data_bytes;
    bool has_inline = false;
    for (uint32_t i = 0; i < job->output_count; i++) {
        struct inf_job_output *output = &job->outputs[i];
        struct inf_result result;
        size_t size_bytes;
        if (!output->late)
            continue;
        INF_TRY(find_late(job, source, i, &result, &size_bytes));
        INF_TRY(place_output(job, graph->outputs[i].name, output, result.dtype, &result.shape,
                             size_bytes));
        has_inline |= output->memory == NULL;
    }
    if (has_inline)
        INF_TRY(acquire_data(pool, job, true, used));
    for (uint32_t i = 0; i < job->output_count; i++)
        if (job->outputs[i].late)
            INF_TRY(write_late(job, source, i));
    return INF_OK;
}
