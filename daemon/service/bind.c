// SPDX-License-Identifier: Apache-2.0
// Assigns memory to each input and output of a job: the data of the request, or a range of a region
// that the client registered. Tensors of sessions are bound later (session.c), when the job may
// run.
#include "daemon/service/bind.h"

#include <assert.h>
#include <inttypes.h>

#include "daemon/service/tensor_check.h"

static enum inf_code bind_input(struct inf_job *job, uint32_t index,
                                const struct inf_tensor_entry *entry,
                                const struct inf_request *request,
                                struct inf_fault *fault) INF_ON_LOOP
{
    job->shapes[index] = entry->shape;
    job->string_bytes[index] = (size_t)entry->location.length;
    if (entry->location.region_id == 0) {
        // An empty tensor may come without data, but it must still have a valid address.
        job->inputs[index] = request->data != NULL ? request->data + entry->location.offset
                                                   : (const uint8_t *)job->id;
        return INF_OK;
    }
    const struct inf_region_range range = {.id = entry->location.region_id,
                                           .offset = entry->location.offset,
                                           .length = entry->location.length};
    uint8_t *memory;
    enum inf_code code = inf_region_acquire(request->regions, &range, &job->input_regions[index],
                                            &memory, &fault->err);
    if (code != INF_OK) {
        inf_fault_tensor(fault, entry->name, NULL, NULL);
        return inf_error_prefix(&fault->err, code, "input '%s'", entry->name);
    }
    job->inputs[index] = memory;
    // A device cannot read strings in place: a worker makes handles of them.
    if (entry->dtype != INF_DTYPE_BYTES)
        job->mappings[index] = job->input_regions[index]->mapping;
    return INF_OK;
}

enum inf_code inf_service_bind_inputs(struct inf_job *job, const struct inf_graph *graph,
                                      const struct inf_infer_request *infer,
                                      const struct inf_request *request, uint64_t *out_given,
                                      struct inf_fault *fault)
{
    uint64_t named = 0; // bit i is set if the request names input i
    uint64_t given = 0;
    for (uint32_t i = 0; i < infer->input_count; i++) {
        const struct inf_tensor_entry *entry = &infer->inputs[i];
        uint32_t index = inf_service_find_port(graph->inputs, graph->input_count, entry->name, i);
        if (index == graph->input_count)
            return inf_service_refuse_tensor("input", entry->name, graph->inputs,
                                             graph->input_count, fault);
        // Decoding refuses equal names, but not two names of one input.
        if ((named >> index & 1) != 0)
            return inf_service_refuse_twice("input", entry->name, fault);
        named |= (uint64_t)1 << index;
        if (entry->session_tensor != NULL)
            continue;
        given |= (uint64_t)1 << index;
        INF_TRY(inf_service_check_input(entry, &graph->values[graph->inputs[index].value], fault));
        INF_TRY(bind_input(job, index, entry, request, fault));
    }
    *out_given = given;
    return INF_OK;
}

enum inf_code inf_service_check_complete(const struct inf_job *job, const struct inf_graph *graph,
                                         uint64_t given, struct inf_fault *fault)
{
    for (uint32_t i = 0; i < job->kept_input_count; i++)
        given |= (uint64_t)1 << job->kept_inputs[i].port;
    for (uint32_t i = 0; i < graph->input_count; i++) {
        char wanted[INF_SERVICE_VALUE_TEXT];
        if ((given >> i & 1) != 0)
            continue;
        inf_service_describe_value(&graph->values[graph->inputs[i].value], wanted);
        inf_fault_tensor(fault, graph->inputs[i].name, wanted, NULL);
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                               "input '%s' is missing: wanted %s", graph->inputs[i].name, wanted);
    }
    return INF_OK;
}

static bool locations_overlap(const struct inf_location *a, const struct inf_location *b)
{
    // `offset + length` cannot overflow, because each range lies inside its region.
    return a->region_id == b->region_id && a->offset < b->offset + b->length &&
           b->offset < a->offset + a->length;
}

// Refuses an output that overlaps an input or another output in a region, because a kernel would
// overwrite data that it still has to read.
static enum inf_code check_overlap(const struct inf_infer_request *infer, uint32_t output,
                                   struct inf_fault *fault)
{
    const struct inf_tensor_entry *entry = &infer->outputs[output];
    const char *other = NULL;
    for (uint32_t i = 0; i < infer->input_count && other == NULL; i++)
        if (locations_overlap(&entry->location, &infer->inputs[i].location))
            other = infer->inputs[i].name;
    for (uint32_t i = 0; i < output && other == NULL; i++)
        if (locations_overlap(&entry->location, &infer->outputs[i].location))
            other = infer->outputs[i].name;
    if (other == NULL)
        return INF_OK;
    inf_fault_tensor(fault, entry->name, NULL, NULL);
    return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "output '%s': its room overlaps that of '%s' in region %" PRIu64,
                           entry->name, other, entry->location.region_id);
}

static enum inf_code bind_output(struct inf_job *job, uint32_t index,
                                 const struct inf_infer_request *infer, uint32_t position,
                                 const struct inf_request *request,
                                 struct inf_fault *fault) INF_ON_LOOP
{
    const struct inf_tensor_entry *entry = &infer->outputs[position];
    struct inf_job_output *output = &job->outputs[index];
    output->wanted = true;
    output->returned = entry->session_tensor == NULL;
    if (entry->location.region_id == 0)
        return INF_OK;
    const struct inf_region_range range = {.id = entry->location.region_id,
                                           .offset = entry->location.offset,
                                           .length = entry->location.length,
                                           .write = true};
    enum inf_code code =
        inf_region_acquire(request->regions, &range, &output->region, &output->memory, &fault->err);
    if (code != INF_OK) {
        inf_fault_tensor(fault, entry->name, NULL, NULL);
        return inf_error_prefix(&fault->err, code, "output '%s'", entry->name);
    }
    output->room_bytes = range.length;
    output->region_id = range.id;
    output->region_offset = range.offset;
    return check_overlap(infer, position, fault);
}

enum inf_code inf_service_bind_outputs(struct inf_job *job, const struct inf_graph *graph,
                                       const struct inf_infer_request *infer,
                                       const struct inf_request *request, struct inf_fault *fault)
{
    bool all = infer->output_count == 0;
    for (uint32_t i = 0; i < graph->output_count; i++) {
        job->outputs[i].wanted = job->outputs[i].returned = all;
        job->outputs[i].memory = NULL;
        job->outputs[i].region = NULL;
        job->outputs[i].kept = NULL;
        job->order[i] = (uint8_t)i;
    }
    job->order_count = all ? graph->output_count : infer->output_count;
    for (uint32_t i = 0; i < infer->output_count; i++) {
        const char *name = infer->outputs[i].name;
        uint32_t index = inf_service_find_port(graph->outputs, graph->output_count, name, i);
        if (index == graph->output_count)
            return inf_service_refuse_tensor("output", name, graph->outputs, graph->output_count,
                                             fault);
        if (job->outputs[index].wanted)
            return inf_service_refuse_twice("output", name, fault);
        job->order[i] = (uint8_t)index;
        INF_TRY(bind_output(job, index, infer, i, request, fault));
    }
    return INF_OK;
}
