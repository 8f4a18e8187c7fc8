// SPDX-License-Identifier: Apache-2.0
// Implements the ModelInspect method: starts an inspection of a model, with the input tensors of
// the request if it has some.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/handlers.h"
#include "daemon/service/load_call.h"
#include "daemon/service/run_options.h"
#include "daemon/service/tensor_check.h"

// Default tolerance of a diff: the tolerance that TensorFlow.js uses to test its own backends.
#define TOLERANCE_DEFAULT 1e-3

// Copies an input out of the request's data segment.
static enum inf_code copy_input(struct inf_inspect_request *inspection, uint32_t index,
                                const struct inf_tensor_entry *entry,
                                const struct inf_request *request, struct inf_fault *fault)
{
    if (entry->location.region_id != 0)
        return inf_fail_reason(&fault->err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "input '%s': wanted in the frame's data, not in a region",
                               entry->name);
    if (entry->dtype == INF_DTYPE_BYTES)
        return inf_fail_reason(&fault->err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "input '%s' is BYTES: strings cannot be given to be inspected",
                               entry->name);
    inspection->shapes[index] = entry->shape;
    inspection->inputs[index] = inf_blob_create(entry->location.length);
    if (inspection->inputs[index] == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "input '%s': no memory for it", entry->name);
    if (entry->location.length > 0)
        memcpy(inspection->inputs[index]->data, request->data + entry->location.offset,
               entry->location.length);
    return INF_OK;
}

static enum inf_code copy_inputs(struct inf_service *service,
                                 struct inf_inspect_request *inspection,
                                 const struct inf_graph *graph, const struct inf_request *request,
                                 struct inf_fault *fault)
{
    struct inf_infer_request *infer = &service->request.infer_request;
    INF_TRY(inf_infer_request_resolve_inline(infer, request->data_bytes, &fault->err));
    inspection->given = infer->input_count > 0;
    for (uint32_t i = 0; i < infer->input_count; i++) {
        const struct inf_tensor_entry *entry = &infer->inputs[i];
        uint32_t index = inf_service_find_port(graph->inputs, graph->input_count, entry->name, i);
        if (index == graph->input_count)
            return inf_service_refuse_tensor("input", entry->name, graph->inputs,
                                             graph->input_count, fault);
        if (inspection->inputs[index] != NULL)
            return inf_service_refuse_twice("input", entry->name, fault);
        INF_TRY(inf_service_check_input(entry, &graph->values[graph->inputs[index].value], fault));
        INF_TRY(copy_input(inspection, index, entry, request, fault));
    }
    for (uint32_t i = 0; inspection->given && i < graph->input_count; i++)
        if (inspection->inputs[i] == NULL)
            return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                                   "input '%s' is missing: give all of them, or none",
                                   graph->inputs[i].name);
    return INF_OK;
}

static enum inf_code fill_inspection(struct inf_service *service,
                                     struct inf_inspect_request *inspection,
                                     const struct inf_served *served,
                                     const struct inf_request *request,
                                     struct inf_fault *fault) INF_ON_LOOP
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    const struct inf_device_list *devices = service->options.devices;
    if (!inf_inspect_mode_parse(infer->mode, &inspection->mode))
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "mode '%.32s': wanted profile, debug or diff", infer->mode);
    if (!isfinite(infer->tolerance) || infer->tolerance < 0)
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "tolerance %g: wanted 0 or more", infer->tolerance);
    inspection->tolerance = infer->tolerance > 0 ? infer->tolerance : TOLERANCE_DEFAULT;
    inspection->device = served->device;
    inspection->against = devices->devices[devices->count - 1];
    if (infer->device[0] != '\0')
        INF_TRY(inf_model_store_find_device(service->options.store, infer->device,
                                            &inspection->device, &fault->err));
    if (infer->against[0] != '\0')
        INF_TRY(inf_model_store_find_device(service->options.store, infer->against,
                                            &inspection->against, &fault->err));
    INF_TRY(inf_service_choose_precision(inspection->device, infer->precision,
                                         &inspection->precision, &fault->err));
    return copy_inputs(service, inspection, inf_model_graph(served->model), request, fault);
}

static enum inf_code start_inspection(struct inf_service *service, uint64_t token,
                                      struct inf_error *err) INF_ON_LOOP
{
    enum inf_code code =
        inf_model_store_inspect(service->options.store, service->request.infer_request.model_name,
                                token, service->inspection, err);
    if (code == INF_OK)
        service->inspection = NULL; // inf_model_store took ownership of the inspection
    return code;
}

enum inf_code inf_service_model_inspect(struct inf_service *service, struct inf_request *request,
                                        struct inf_answer *answer, struct inf_fault *fault)
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    struct inf_served *served = NULL;
    inf_fault_model(fault, infer->model_name, infer->model_version);
    INF_TRY(inf_model_store_find(service->options.store, NULL, infer->model_name,
                                 infer->model_version, &served, &fault->err));
    service->inspection = calloc(1, sizeof *service->inspection);
    enum inf_code code =
        service->inspection == NULL
            ? inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to begin")
            : fill_inspection(service, service->inspection, served, request, fault);
    if (code == INF_OK)
        code = inf_service_begin_load(service, start_inspection, answer, fault);
    inf_inspect_request_destroy(&service->inspection);
    inf_served_unref(&served);
    return code;
}
