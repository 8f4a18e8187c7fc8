// SPDX-License-Identifier: Apache-2.0
// Implements the methods ModelReady (can the model answer requests?) and ModelMetadata (its inputs
// and outputs).
#include "daemon/service/handlers.h"
#include "daemon/service/state.h"

enum inf_code inf_service_model_ready(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    const struct inf_model_request *model = &service->request.model;
    inf_fault_model(fault, model->name, model->version);
    INF_TRY(inf_model_store_is_ready(service->options.store, request->caller, model->name,
                                     model->version, &service->reply.flag.value, &fault->err));
    answer->kind = INF_MESSAGE_MODEL_READY_REPLY;
    return INF_OK;
}

static uint32_t describe_ports(const struct inf_graph *graph, const struct inf_port *ports,
                               uint32_t count, struct inf_tensor_entry *entries)
{
    uint32_t shown = INF_MIN(count, INF_LIMIT_TENSORS);
    for (uint32_t i = 0; i < shown; i++) {
        const struct inf_value *value = &graph->values[ports[i].value];
        entries[i] = (struct inf_tensor_entry){
            .name = ports[i].name, .dtype = value->dtype, .shape = value->shape};
    }
    return shown;
}

enum inf_code inf_service_model_metadata(struct inf_service *service, struct inf_request *request,
                                         struct inf_answer *answer, struct inf_fault *fault)
{
    const struct inf_model_request *model = &service->request.model;
    struct inf_served *served = NULL;
    inf_fault_model(fault, model->name, model->version);
    INF_TRY(inf_model_store_find(service->options.store, request->caller, model->name,
                                 model->version, &served, &fault->err));
    // The names in the graph stay valid after the reference to the model is dropped, because the
    // store keeps the model until it handles its next event.
    const struct inf_graph *graph = inf_model_graph(served->model);
    struct inf_model_metadata *reply = &service->reply.model_metadata;
    reply->name = served->name;
    reply->version = served->version;
    reply->platform = served->platform;
    reply->input_count = describe_ports(graph, graph->inputs, graph->input_count, reply->inputs);
    reply->output_count =
        describe_ports(graph, graph->outputs, graph->output_count, reply->outputs);
    inf_served_unref(&served);
    answer->kind = INF_MESSAGE_MODEL_METADATA;
    return INF_OK;
}
