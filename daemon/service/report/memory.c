// SPDX-License-Identifier: Apache-2.0
// Implements the MemoryInfo method: the memory that devices hold, counted in the same way as by
// tf.memory() in TensorFlow.js.
#include "daemon/service/handlers.h"
#include "daemon/service/server.h"

static void describe_device(struct inf_service *service, uint32_t index) INF_ON_LOOP
{
    struct inf_device *device = service->options.devices->devices[index];
    const struct inf_device_info *info = inf_device_info(device);
    struct inf_device_memory memory = inf_device_memory(device);
    service->memory_entries[index] = (struct inf_memory_entry){
        .name = info->name,
        .num_tensors = memory.held.tensors,
        .num_data_buffers = memory.held.buffers + memory.allocations,
        .num_bytes = memory.held.bytes + memory.weight_bytes + memory.buffer_bytes,
        .constant_bytes = memory.held.bytes,
        .weight_bytes = memory.weight_bytes,
        .buffer_bytes = memory.buffer_bytes,
        .budget_bytes = info->memory_bytes,
        .peak_bytes = memory.peak_bytes,
    };
}

void inf_service_update_memory(struct inf_service *service)
{
    const struct inf_service_options *options = &service->options;
    struct inf_memory_budget *budget = options->memory_budget;
    if (budget == NULL)
        return;
    budget->used[INF_MEMORY_SESSIONS] = options->counters->session_bytes;
    budget->used[INF_MEMORY_REGIONS] = inf_quota_total(options->quota, INF_QUOTA_FILLED_BYTES);
    budget->used[INF_MEMORY_REQUESTS] = inf_quota_total(options->quota, INF_QUOTA_REQUEST_BYTES);
}

enum inf_code inf_service_claim_memory(struct inf_service *service, uint64_t bytes,
                                       const char *what, struct inf_error *err)
{
    inf_service_update_memory(service);
    return inf_model_store_claim_memory(service->options.store, bytes, what, err);
}

enum inf_code inf_service_memory_info(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    (void)fault;
    for (uint32_t i = 0; i < service->options.devices->count; i++)
        describe_device(service, i);
    service->reply.memory_info = (struct inf_memory_info){
        .count = service->options.devices->count,
        .entries = service->memory_entries,
        .region_bytes = service->options.counters->region_bytes,
        .resident_bytes = inf_service_resident_bytes(service),
        .session_bytes = service->options.counters->session_bytes,
        .sessions = service->options.counters->sessions,
    };
    answer->kind = INF_MESSAGE_MEMORY_INFO;
    return INF_OK;
}
