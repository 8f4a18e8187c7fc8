// SPDX-License-Identifier: Apache-2.0
// ModelInspect: a model looked into, node by node.
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/service/handlers.h"

// Of diff, where the request says none: what TensorFlow.js allows its own backends.
#define TOLERANCE_DEFAULT 1e-3

// Copies an input out of the request's data segment.
static enum inf_code copy_input(struct inf_inspect_order *order, uint32_t index,
                                const struct inf_tensor_entry *entry,
                                const struct inf_request *request, struct inf_fault *fault)
{
    if (entry->location.region_id != 0)
        return inf_fail_reason(&fault->err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "input '%s': wanted in the frame's data, not in a region",
                               entry->name);
    order->shapes[index] = entry->shape;
    order->inputs[index] = inf_blob_create(entry->location.length);
    if (order->inputs[index] == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "input '%s': no memory for it", entry->name);
    if (entry->location.length > 0)
        memcpy(order->inputs[index]->data, request->data + entry->location.offset,
               entry->location.length);
    return INF_OK;
}

static enum inf_code copy_inputs(struct inf_service *service, struct inf_inspect_order *order,
                                 const struct inf_graph *graph, const struct inf_request *request,
                                 struct inf_fault *fault)
{
    struct inf_infer_request *infer = &service->request.infer_request;
    INF_TRY(inf_infer_request_resolve_inline(infer, request->data_bytes, &fault->err));
    order->given = infer->input_count > 0;
    for (uint32_t i = 0; order->given && i < graph->input_count; i++) {
        const struct inf_tensor_entry *found = NULL;
        for (uint32_t k = 0; k < infer->input_count; k++)
            if (strcmp(infer->inputs[k].name, graph->inputs[i].name) == 0)
                found = &infer->inputs[k];
        if (found == NULL)
            return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                                   "input '%s' is missing: give all of them, or none",
                                   graph->inputs[i].name);
        INF_TRY(inf_service_check_input(found, &graph->values[graph->inputs[i].value], fault));
        INF_TRY(copy_input(order, i, found, request, fault));
    }
    return INF_OK;
}

static enum inf_code fill_order(struct inf_service *service, struct inf_inspect_order *order,
                                const struct inf_served *served, const struct inf_request *request,
                                struct inf_fault *fault) INF_ON_LOOP
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    const struct inf_device_list *devices = service->options.devices;
    if (!inf_inspect_mode_parse(infer->mode, &order->mode))
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "mode '%.32s': wanted profile, debug or diff", infer->mode);
    if (!isfinite(infer->tolerance) || infer->tolerance < 0)
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "tolerance %g: wanted 0 or more", infer->tolerance);
    order->tolerance = infer->tolerance > 0 ? infer->tolerance : TOLERANCE_DEFAULT;
    order->device = served->device;
    order->against = devices->devices[devices->count - 1];
    if (infer->device[0] != '\0')
        INF_TRY(inf_model_store_find_device(service->options.store, infer->device, &order->device,
                                            &fault->err));
    if (infer->against[0] != '\0')
        INF_TRY(inf_model_store_find_device(service->options.store, infer->against, &order->against,
                                            &fault->err));
    INF_TRY(inf_service_choose_precision(order->device, infer->precision, &order->precision,
                                         &fault->err));
    return copy_inputs(service, order, inf_model_graph(served->model), request, fault);
}

static enum inf_code start_dissecting(struct inf_service *service, uint64_t token,
                                      struct inf_error *err) INF_ON_LOOP
{
    enum inf_code code =
        inf_model_store_inspect(service->options.store, service->request.infer_request.model_name,
                                token, service->inspect_order, err);
    if (code == INF_OK)
        service->inspect_order = NULL; // the store's
    return code;
}

enum inf_code inf_service_model_inspect(struct inf_service *service, struct inf_request *request,
                                        struct inf_answer *answer, struct inf_fault *fault)
{
    const struct inf_infer_request *infer = &service->request.infer_request;
    struct inf_served *served = NULL;
    inf_fault_model(fault, infer->model_name, infer->model_version);
    INF_TRY(inf_model_store_find(service->options.store, infer->model_name, infer->model_version,
                                 &served, &fault->err));
    service->inspect_order = calloc(1, sizeof *service->inspect_order);
    enum inf_code code =
        service->inspect_order == NULL
            ? inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory to begin")
            : fill_order(service, service->inspect_order, served, request, fault);
    if (code == INF_OK)
        code = inf_service_begin_load(service, start_dissecting, answer, fault);
    inf_inspect_order_destroy(&service->inspect_order);
    inf_served_unref(&served);
    return code;
}
