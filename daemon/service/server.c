// SPDX-License-Identifier: Apache-2.0
// Implements the methods ServerLive, ServerReady, ServerMetadata and ServerStatus, which report the
// state of the daemon itself.
#include <stdio.h>
#include <unistd.h>

#include "backends/base/clock.h"
#include "daemon/service/handlers.h"
#include "daemon/service/server.h"

enum inf_code inf_service_server_live(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    (void)fault;
    service->reply.flag.value = true;
    answer->kind = INF_MESSAGE_LIVE_REPLY;
    return INF_OK;
}

enum inf_code inf_service_server_ready(struct inf_service *service, struct inf_request *request,
                                       struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    (void)fault;
    service->reply.flag.value = !service->draining;
    answer->kind = INF_MESSAGE_READY_REPLY;
    return INF_OK;
}

enum inf_code inf_service_server_metadata(struct inf_service *service, struct inf_request *request,
                                          struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    (void)fault;
    service->reply.server_metadata = (struct inf_server_metadata){
        .name = "inferd",
        .version = service->options.version,
        .extension_count = 4,
        .extensions = {"model_repository", "inferd.memfd", "inferd.deadline", "inferd.cancel"},
    };
    answer->kind = INF_MESSAGE_SERVER_METADATA;
    return INF_OK;
}

// Reads /proc/self/statm, whose second number is the number of resident pages. Reading this file
// does not block, because the kernel generates it in memory.
uint64_t inf_service_resident_bytes(const struct inf_service *service)
{
    char text[128];
    unsigned long long pages = 0;
    ssize_t size = pread(service->statm_fd, text, sizeof text - 1, 0);
    if (size <= 0)
        return 0;
    text[size] = '\0';
    if (sscanf(text, "%*u %llu", &pages) != 1) // NOLINT(cert-err34-c): the kernel's own number
        return 0;
    return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static uint32_t count_ready_models(struct inf_service *service) INF_ON_LOOP
{
    uint32_t count = inf_model_store_list(service->options.store, NULL, service->model_rows,
                                          INF_SERVICE_MODELS_MAX);
    uint32_t ready = 0;
    for (uint32_t i = 0; i < INF_MIN(count, INF_SERVICE_MODELS_MAX); i++)
        ready += service->model_rows[i].state == INF_MODEL_READY;
    return ready;
}

enum inf_code inf_service_server_status(struct inf_service *service, struct inf_request *request,
                                        struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    (void)fault;
    const struct inf_service_options *options = &service->options;
    const struct inf_counters *counters = options->counters;
    const struct inf_shadow_totals shadow = inf_shadow_read_totals(service->shadow);
    service->reply.server_status = (struct inf_server_status){
        .version = options->version,
        .state = service->draining ? "draining" : "ready",
        .uptime_ns = inf_clock_ns() - service->started_ns,
        .connections = counters->connections,
        .requests_in_flight = counters->requests_in_flight,
        .regions = counters->regions,
        .models_ready = count_ready_models(service),
        .connections_total = counters->connections_total,
        .requests_accepted = counters->requests_accepted,
        .requests_ok = counters->requests_ok,
        .requests_failed = counters->requests_failed,
        .region_bytes = counters->region_bytes,
        .resident_bytes = inf_service_resident_bytes(service),
        .log_lines_dropped =
            options->log_lines_dropped != NULL ? options->log_lines_dropped(options->context) : 0,
        .answers_checked = shadow.checked,
        .answers_drifted = shadow.drifted,
        .answers_unchecked = shadow.dropped,
        .models_demoted = service->models_demoted,
    };
    answer->kind = INF_MESSAGE_SERVER_STATUS;
    return INF_OK;
}
