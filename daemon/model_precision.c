// SPDX-License-Identifier: Apache-2.0
#include "daemon/model_precision.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "backends/precision/half_judge.h"
#include "proto/core/span.h"

// Numbers of 0 to 1 for floats, as races have them; 0 for others.
static struct inf_blob *make_input(const struct inf_value *value)
{
    size_t bytes;
    uint64_t state = 1;
    if (!inf_shape_bytes(&value->shape, value->dtype, &bytes))
        return NULL;
    struct inf_blob *blob = inf_blob_create(bytes);
    if (blob == NULL || value->dtype != INF_DTYPE_F32)
        return blob;
    float *elements = blob->data;
    for (size_t i = 0; i < bytes / sizeof *elements; i++) {
        // A linear congruential generator (Knuth, TAOCP 2, 3.3.4, line 26) is random enough.
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        elements[i] = (float)(state >> 40) / 16777216.f;
    }
    return blob;
}

static enum inf_code judge(struct inf_half_report *report, struct inf_model *model,
                           const struct inf_shape *shapes, struct inf_error *err) INF_MAY_BLOCK
{
    INF_CLEANUP(inf_graph_destroy) struct inf_graph *graph = NULL;
    INF_TRY(inf_model_settle_graph(model, shapes, &graph, err));
    struct inf_blob **inputs = calloc((size_t)graph->input_count + 1, sizeof(struct inf_blob *));
    bool made = inputs != NULL;
    for (uint32_t i = 0; made && i < graph->input_count; i++) {
        inputs[i] = make_input(&graph->values[graph->inputs[i].value]);
        made = inputs[i] != NULL;
    }
    enum inf_code code =
        made ? inf_half_judge(report, graph, inf_registry_evaluator(), inputs, err)
             : inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for inputs");
    for (uint32_t i = 0; inputs != NULL && i < graph->input_count; i++)
        inf_blob_unref(&inputs[i]);
    free(inputs);
    return code;
}

// What the model would do in fp16, in a line.
static void describe_model(struct inf_model *model, const struct inf_shape *shapes, char *text,
                           size_t size) INF_MAY_BLOCK
{
    struct inf_half_report report;
    struct inf_error why = {0};
    if (shapes == NULL)
        snprintf(text, size, "its shapes are not known");
    else if (judge(&report, model, shapes, &why) != INF_OK)
        snprintf(text, size, "%.180s", why.text);
    else
        inf_half_print(&report, text, size);
}

static void list_devices(const struct inf_device_list *devices, char *text, size_t size)
{
    size_t used = 0;
    for (uint32_t i = 0; i < devices->count && used < size; i++)
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "",
                                 inf_device_info(devices->devices[i])->name);
}

enum inf_code inf_precision_settle(enum inf_precision wanted, struct inf_model *model,
                                   const struct inf_shape *shapes,
                                   const struct inf_device_list *devices, char reason[256],
                                   struct inf_error *err)
{
    char known[96] = "", would[256];
    list_devices(devices, known, sizeof known);
    if (wanted == INF_PRECISION_FP32) {
        snprintf(reason, 256, "it was named");
        return INF_OK;
    }
    describe_model(model, shapes, would, sizeof would);
    if (wanted == INF_PRECISION_FP16)
        return inf_fail_reason(err, INF_PRECONDITION, INF_REASON_FEATURE,
                               "precision fp16: no device computes in it (%s: fp32 only); in it: "
                               "%s",
                               known, would);
    snprintf(reason, 256, "%.64s: fp32 only; in fp16: %.160s", known, would);
    return INF_OK;
}
