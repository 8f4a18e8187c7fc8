// SPDX-License-Identifier: Apache-2.0
// Clients, models of a known cost, and percentiles for bench_serving.
#include "tests/tools/bench/serving_parts.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tests/support/models/tfjs_writer.h"

struct serving_caller *serving_open(const struct serving_target *target)
{
    struct inferd_error err;
    struct serving_caller *caller = calloc(1, sizeof *caller);
    if (caller == NULL || inferd_connect(&caller->client, target->socket, &err) != INFERD_OK)
        rpc_die("cannot connect: %s", caller == NULL ? "no memory" : err.text);
    caller->input =
        (inferd_tensor){.name = target->input, .dtype = INFERD_FP32, .rank = target->rank};
    memcpy(caller->input.shape, target->shape, sizeof target->shape);
    size_t size = sizeof(float);
    for (int i = 0; i < target->rank; i++)
        size *= (size_t)target->shape[i];
    caller->input.size = size;
    if (target->in_place) {
        if (inferd_memory_alloc(caller->client, size, &caller->input.memory, &err) != INFERD_OK)
            rpc_die("cannot get shared memory: %s", err.text);
        caller->input.data = inferd_memory_data(caller->input.memory);
    } else {
        caller->input.data = malloc(size);
    }
    memset(caller->input.data, 0, size);
    caller->request =
        (inferd_request){.model = target->model, .inputs = &caller->input, .input_count = 1};
    return caller;
}

void serving_trip(struct serving_caller *caller)
{
    struct inferd_error err;
    inferd_result *result = NULL;
    if (inferd_infer(caller->client, &caller->request, &result, &err) != INFERD_OK)
        rpc_die("inference failed: %s: %s", err.reason, err.text);
    inferd_timing timing = inferd_result_timing(result);
    caller->compute_us = (double)timing.compute_ns / 1e3;
    caller->inside_us = (double)(timing.queue_ns + timing.input_ns + timing.output_ns) / 1e3;
    inferd_result_free(result);
}

void serving_close(struct serving_caller *caller)
{
    if (caller->input.memory != NULL)
        inferd_memory_free(caller->input.memory);
    else
        free(caller->input.data);
    inferd_close(caller->client);
    free(caller);
}

static void *open_way(void *context, unsigned index)
{
    (void)index;
    return serving_open(context);
}

static void trip_way(void *caller)
{
    serving_trip(caller);
}

static void close_way(void *caller)
{
    serving_close(caller);
}

struct rpc_way serving_way(struct serving_target *target)
{
    return (struct rpc_way){open_way, trip_way, close_way, target};
}

void serving_write_chain(const char *directory, int64_t width, unsigned layers, bool own)
{
    struct inf_tfjs_writer *writer = inf_tfjs_writer_begin(directory);
    size_t count = (size_t)(width * width);
    float *elements = malloc(count * sizeof *elements);
    char name[16];
    char inputs[48];
    char before[16] = "x";
    if (elements == NULL)
        rpc_die("no memory for a model");
    for (size_t i = 0; i < count; i++)
        elements[i] = (float)(i % 7) * 0.01f;
    inf_tfjs_writer_placeholder(writer, "x", "DT_FLOAT", (int64_t[]){-1, width}, 2);
    for (unsigned i = 0; i < layers; i++) {
        if (own || i == 0)
            snprintf(name, sizeof name, "w%u", i);
        if (own || i == 0)
            inf_tfjs_writer_floats(writer, name, elements, (int64_t[]){width, width}, 2);
        snprintf(inputs, sizeof inputs, "%s,%s", before, own ? name : "w0");
        snprintf(before, sizeof before, "m%u", i);
        inf_tfjs_writer_node(writer, before, "MatMul", inputs);
        inf_tfjs_writer_attr_type(writer, "T", "DT_FLOAT");
    }
    snprintf(inputs, sizeof inputs, "%s:0", before);
    inf_tfjs_writer_output(writer, "y", inputs);
    inf_tfjs_writer_end(writer);
    free(elements);
}

static int compare_ascending(const void *a, const void *b)
{
    double x = *(const double *)a;
    double y = *(const double *)b;
    return (x > y) - (x < y);
}

double serving_quantile(double *values, size_t count, double part)
{
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare_ascending);
    size_t rank = (size_t)((double)count * part);
    return values[rank < count ? rank : count - 1];
}
