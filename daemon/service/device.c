// SPDX-License-Identifier: Apache-2.0
// Implements the DeviceList method, which lists the devices and how busy they are.
#include <stdio.h>

#include "daemon/service/device.h"
#include "daemon/service/handlers.h"

static const char *const kind_names[] = {
    [INF_DEVICE_HOST] = "host",
    [INF_DEVICE_CPU] = "cpu",
    [INF_DEVICE_GPU] = "gpu",
    [INF_DEVICE_SOFTWARE] = "software",
};

static const char *const health_names[] = {
    [INF_DEVICE_OK] = "ok",
    [INF_DEVICE_LOST] = "lost",
    [INF_DEVICE_QUARANTINED] = "quarantined",
};

const char *inf_service_device_kind(const struct inf_device_info *info)
{
    return kind_names[info->kind];
}

const char *inf_service_list_precisions(const struct inf_device_info *info,
                                        char text[INF_SERVICE_PRECISIONS_TEXT])
{
    size_t used = (size_t)snprintf(text, INF_SERVICE_PRECISIONS_TEXT, "%s",
                                   inf_precision_name(INF_PRECISION_FP32));
    for (enum inf_precision p = INF_PRECISION_FP32 + 1; p < INF_PRECISIONS; p++)
        if ((info->precisions & INF_PRECISION_BIT(p)) != 0)
            used += (size_t)snprintf(text + used, INF_SERVICE_PRECISIONS_TEXT - used, ",%s",
                                     inf_precision_name(p));
    return text;
}

static void describe_device(struct inf_service *service, uint32_t index) INF_ON_LOOP
{
    struct inf_device *device = service->options.devices->devices[index];
    const struct inf_device_info *info = inf_device_info(device);
    struct inf_device_load load = inf_scheduler_device_load(service->scheduler, index);
    struct inf_device_memory memory = inf_device_memory(device);
    service->device_entries[index] = (struct inf_device_entry){
        .name = info->name,
        .backend = info->backend,
        .kind = inf_service_device_kind(info),
        .description = info->description,
        .health = health_names[inf_device_health(device)],
        .precisions = inf_service_list_precisions(info, service->device_precisions[index]),
        .priority = info->priority,
        .slots = info->slots,
        .threads = info->threads,
        .queue_depth = load.queue_depth,
        .queue_limit = load.queue_limit,
        .requests = load.requests,
        .busy_ns = load.busy_ns,
        .memory_bytes = memory.weight_bytes + memory.buffer_bytes,
    };
}

enum inf_code inf_service_device_list(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    (void)fault;
    for (uint32_t i = 0; i < service->options.devices->count; i++)
        describe_device(service, i);
    service->reply.device_index = (struct inf_device_index){
        .count = service->options.devices->count, .entries = service->device_entries};
    answer->kind = INF_MESSAGE_DEVICE_INDEX;
    return INF_OK;
}
