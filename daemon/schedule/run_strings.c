// SPDX-License-Identifier: Apache-2.0
// Strings of requests. A message has the strings of a tensor one after another; the engine wants a
// handle of 8 bytes for each (backends/base/string_pool.h). A worker converts them, because this
// takes time in proportion to their number, and the loop must not.
//
// The strings are copied, and the handles are in memory of the daemon: a client may still write to
// the region that its inputs and outputs are in, and must not be able to change a string or a
// handle during the run.
#include "daemon/schedule/run_strings.h"

#include <stdlib.h>
#include <string.h>

static bool is_strings(const struct inf_graph *graph, const struct inf_port *port)
{
    return graph->values[port->value].dtype == INF_DTYPE_BYTES;
}

// Adds the number of strings in a tensor to *total. Returns false if these are too many.
static bool add_count(const struct inf_shape *shape, size_t *total)
{
    size_t count;
    return inf_shape_count(shape, &count) && inf_size_add(*total, count, total) &&
           *total <= INF_LIMIT_STRING_ELEMENTS;
}

// Counts the handles that the run needs, and assigns their offsets to the outputs.
static enum inf_code count_handles(struct inf_run_strings *strings, struct inf_job *job,
                                   const struct inf_graph *graph, size_t *total, bool *found)
{
    bool fits = true;
    *total = 0;
    *found = false;
    for (uint32_t i = 0; fits && i < job->input_count; i++)
        if (is_strings(graph, &graph->inputs[i])) {
            fits = add_count(&job->shapes[i], total);
            *found = true;
        }
    for (uint32_t i = 0; fits && i < job->output_count; i++) {
        const struct inf_shape *shape = &graph->values[graph->outputs[i].value].shape;
        strings->output_offsets[i] = *total;
        if (is_strings(graph, &graph->outputs[i]) && inf_shape_known(shape)) {
            fits = add_count(shape, total);
            *found = true;
        }
    }
    if (!fits)
        return inf_fail(&job->result.fault.err, INF_EXHAUSTED,
                        "more than %u strings in one request", INF_LIMIT_STRING_ELEMENTS);
    return INF_OK;
}

static enum inf_code decode_inputs(struct inf_run_strings *strings, struct inf_job *job,
                                   const struct inf_graph *graph,
                                   const void *inputs[INF_LIMIT_TENSORS])
{
    uint64_t *handles = strings->handles;
    for (uint32_t i = 0; i < job->input_count; i++) {
        if (!is_strings(graph, &graph->inputs[i]))
            continue;
        const char *name = graph->inputs[i].name;
        size_t count = inf_shape_elements(&job->shapes[i]);
        const struct inf_span bytes = {job->inputs[i], job->string_bytes[i]};
        struct inf_fault *fault = &job->result.fault;
        enum inf_code code =
            inf_string_pool_decode(&strings->pool, bytes, count, handles, &fault->err);
        if (code != INF_OK) {
            inf_fault_tensor(fault, name, NULL, NULL);
            return inf_error_prefix(&fault->err, code, "input '%s'", name);
        }
        inputs[i] = handles;
        handles += count;
    }
    return INF_OK;
}

enum inf_code inf_run_strings_begin(struct inf_run_strings *strings, struct inf_job *job,
                                    const struct inf_graph *graph,
                                    const void *inputs[INF_LIMIT_TENSORS],
                                    void *outputs[INF_LIMIT_TENSORS])
{
    size_t total;
    bool found;
    memcpy(inputs, job->inputs, job->input_count * sizeof *inputs);
    INF_TRY(count_handles(strings, job, graph, &total, &found));
    if (!found)
        return INF_OK;
    // Inputs of a run have readable bytes behind them.
    strings->handles =
        calloc(total + INF_BLOB_SLACK_BYTES / sizeof *strings->handles, sizeof *strings->handles);
    if (strings->handles == NULL)
        return inf_fail_reason(&job->result.fault.err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for %zu strings", total);
    for (uint32_t i = 0; i < job->output_count; i++)
        if (job->outputs[i].wanted && is_strings(graph, &graph->outputs[i]) &&
            inf_shape_known(&graph->values[graph->outputs[i].value].shape))
            outputs[i] = strings->handles + strings->output_offsets[i];
    return decode_inputs(strings, job, graph, inputs);
}

bool inf_run_strings_result(const struct inf_run_strings *strings, const struct inf_graph *graph,
                            uint32_t output, struct inf_result *result)
{
    const struct inf_value *value = &graph->values[graph->outputs[output].value];
    if (strings->handles == NULL || value->dtype != INF_DTYPE_BYTES ||
        !inf_shape_known(&value->shape))
        return false;
    *result = (struct inf_result){.dtype = INF_DTYPE_BYTES,
                                  .shape = value->shape,
                                  .data = strings->handles + strings->output_offsets[output]};
    return inf_shape_bytes(&value->shape, INF_DTYPE_BYTES, &result->size_bytes);
}

struct inf_strings inf_run_strings_view(struct inf_run_strings *strings,
                                        const struct inf_graph *graph)
{
    return (struct inf_strings){.constants = inf_shared_strings_pool(graph->strings),
                                .run = &strings->pool};
}

void inf_run_strings_end(struct inf_run_strings *strings)
{
    free(strings->handles);
    strings->handles = NULL;
    inf_string_pool_clear(&strings->pool);
}
