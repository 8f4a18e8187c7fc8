// SPDX-License-Identifier: Apache-2.0
// Implements the Metrics method: collects the numbers of all parts of the daemon, and writes them
// as a text for monitoring systems. The numbers of requests come from daemon/observe/metrics.h;
// all others are read from their owners when a client asks.
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

#include "backends/base/clock.h"
#include "daemon/service/handlers.h"
#include "daemon/service/server.h"
#include "daemon/service/state.h"
#include "daemon/system/fd_store.h"

// The most bytes of a text. 64 models with the longest names need about half of it.
#define TEXT_BYTES_MAX ((size_t)4 << 20)

// Writes a metric that has one sample without labels.
static void print_one(struct inf_exposition *out, enum inf_metric_id id, uint64_t value)
{
    inf_exposition_metric(out, id);
    inf_exposition_sample(out, NULL, value);
}

// Writes one sample of the current metric, with one label.
static void print_labelled(struct inf_exposition *out, const char *label, uint64_t value)
{
    inf_exposition_sample(out, (const char *const[]){label}, value);
}

// Returns the processor time of the calling thread, which is the loop, in nanoseconds.
static uint64_t read_loop_cpu_ns(void)
{
    struct timespec time = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return (uint64_t)time.tv_sec * INF_NS_PER_S + (uint64_t)time.tv_nsec;
}

static void print_process(const struct inf_service *service, struct inf_exposition *out) INF_ON_LOOP
{
    const struct inf_service_options *options = &service->options;
    const struct inf_counters *counters = options->counters;
    inf_exposition_metric(out, INF_METRIC_BUILD);
    print_labelled(out, options->version, 1);
    print_one(out, INF_METRIC_UPTIME, inf_clock_ns() - service->started_ns);
    print_one(out, INF_METRIC_READY, !service->draining);
    print_one(out, INF_METRIC_LOOP_CPU, read_loop_cpu_ns());
    print_one(out, INF_METRIC_LOG_DROPPED,
              options->log_lines_dropped != NULL ? options->log_lines_dropped(options->context)
                                                 : 0);
    struct inf_trace_writer_totals traces = {0};
    if (service->trace_writer != NULL)
        traces = inf_trace_writer_read_totals(service->trace_writer);
    print_one(out, INF_METRIC_TRACES, traces.written);
    print_one(out, INF_METRIC_TRACES_DROPPED, traces.dropped);
    print_one(out, INF_METRIC_CONNECTIONS_OPEN, counters->connections);
    print_one(out, INF_METRIC_CONNECTIONS, counters->connections_total);
    print_one(out, INF_METRIC_STORED_LOST,
              options->fd_store != NULL ? inf_fd_store_lost(options->fd_store) : 0);
    inf_exposition_metric(out, INF_METRIC_CALLS);
    print_labelled(out, "ok", counters->requests_ok);
    print_labelled(out, "failed", counters->requests_failed);
    print_one(out, INF_METRIC_CALLS_IN_FLIGHT, counters->requests_in_flight);
}

static void print_models(struct inf_service *service, struct inf_exposition *out) INF_ON_LOOP
{
    static const char *const names[] = {
        [INF_MODEL_LOADING] = "loading", [INF_MODEL_WARMING] = "warming",
        [INF_MODEL_READY] = "ready",     [INF_MODEL_UNLOADING] = "unloading",
        [INF_MODEL_IDLE] = "idle",       [INF_MODEL_FAILED] = "failed"};
    uint64_t numbers[INF_ARRAY_LENGTH(names)] = {0};
    uint32_t count = inf_model_store_list(service->options.store, NULL, service->model_rows,
                                          INF_SERVICE_MODELS_MAX);
    for (uint32_t i = 0; i < INF_MIN(count, INF_SERVICE_MODELS_MAX); i++)
        numbers[service->model_rows[i].state]++;
    inf_exposition_metric(out, INF_METRIC_MODELS);
    for (size_t i = 0; i < INF_ARRAY_LENGTH(names); i++)
        print_labelled(out, names[i], numbers[i]);
    const struct inf_model_store_counts counts = inf_model_store_counts(service->options.store);
    print_one(out, INF_METRIC_LOADS_PENDING, inf_model_store_pending(service->options.store));
    inf_exposition_metric(out, INF_METRIC_UNLOADS);
    print_labelled(out, "idle", counts.unloaded_idle);
    print_labelled(out, "memory", counts.unloaded_memory);
    print_labelled(out, "pressure", counts.unloaded_pressure);
    print_labelled(out, "admin", counts.unloaded_admin);
    print_one(out, INF_METRIC_LOADS_DEFERRED, counts.loads_deferred);
    print_one(out, INF_METRIC_LOADS_REFUSED, counts.loads_refused);
    inf_exposition_metric(out, INF_METRIC_RACES);
    print_labelled(out, "kept", counts.races_kept);
    print_labelled(out, "moved", counts.races_moved);
    print_labelled(out, "failed", counts.races_failed);
    const struct inf_shadow_totals shadow = inf_shadow_read_totals(service->shadow);
    print_one(out, INF_METRIC_DEMOTED, service->models_demoted);
    print_one(out, INF_METRIC_CHECKED, shadow.checked);
    print_one(out, INF_METRIC_DRIFTED, shadow.drifted);
    print_one(out, INF_METRIC_UNCHECKED, shadow.dropped);
}

// Writes one metric of the quotas of all models that the reader may use and whose settings limit
// the quota.
static void print_quota_metric(const struct inf_service *service, uint32_t count,
                               enum inf_metric_id id, size_t offset, struct inf_exposition *out)
{
    inf_exposition_metric(out, id);
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_model_row *row = &service->model_rows[i];
        if (row->quota == NULL)
            continue;
        const uint64_t *numbers = (const void *)((const char *)row->quota + offset);
        for (enum inf_model_quota_kind kind = 0; kind < INF_MODEL_QUOTA_KINDS; kind++)
            if (row->quota->most[kind] > 0)
                inf_exposition_sample(out,
                                      (const char *const[]){row->name, inf_model_quota_name(kind)},
                                      numbers[kind]);
    }
}

static void print_quotas(struct inf_service *service, struct inf_caller *caller,
                         struct inf_exposition *out) INF_ON_LOOP
{
    uint32_t count = inf_model_store_list(service->options.store, caller, service->model_rows,
                                          INF_SERVICE_MODELS_MAX);
    count = INF_MIN(count, INF_SERVICE_MODELS_MAX);
    print_quota_metric(service, count, INF_METRIC_QUOTA_LIMIT,
                       offsetof(struct inf_model_quota, most), out);
    print_quota_metric(service, count, INF_METRIC_QUOTA_HELD,
                       offsetof(struct inf_model_quota, held), out);
    print_quota_metric(service, count, INF_METRIC_QUOTA_REFUSED,
                       offsetof(struct inf_model_quota, refused), out);
}

// What the metrics say about one device.
struct device_numbers {
    const char *name;
    bool up;
    struct inf_device_load load;
    struct inf_device_memory memory;
    uint32_t slots;
    bool races; // the device counts how it chose its kernels
    struct inf_kernel_choices choices;
};

static void print_kernel_choices(const struct device_numbers *devices, uint32_t count,
                                 struct inf_exposition *out)
{
    inf_exposition_metric(out, INF_METRIC_KERNEL_CHOICES);
    for (uint32_t i = 0; i < count; i++) {
        const struct {
            const char *how;
            uint64_t number;
        } choices[] = {{"measured", devices[i].choices.measured},
                       {"known", devices[i].choices.known},
                       {"rule", devices[i].choices.rule},
                       {"later", devices[i].choices.later}};
        for (size_t k = 0; k < INF_ARRAY_LENGTH(choices) && devices[i].races; k++)
            inf_exposition_sample(out, (const char *const[]){devices[i].name, choices[k].how},
                                  choices[k].number);
    }
}

static void print_device_memory(const struct device_numbers *devices, uint32_t count,
                                struct inf_exposition *out)
{
    inf_exposition_metric(out, INF_METRIC_DEVICE_MEMORY);
    for (uint32_t i = 0; i < count; i++) {
        const struct inf_device_memory *memory = &devices[i].memory;
        const struct {
            const char *kind;
            uint64_t bytes;
        } kinds[] = {{"constant", memory->held.bytes},
                     {"weight", memory->weight_bytes},
                     {"buffer", memory->buffer_bytes}};
        for (size_t k = 0; k < INF_ARRAY_LENGTH(kinds); k++)
            inf_exposition_sample(out, (const char *const[]){devices[i].name, kinds[k].kind},
                                  kinds[k].bytes);
    }
    inf_exposition_metric(out, INF_METRIC_DEVICE_PEAK);
    for (uint32_t i = 0; i < count; i++)
        print_labelled(out, devices[i].name, devices[i].memory.peak_bytes);
}

static void print_devices(struct inf_service *service, struct inf_exposition *out) INF_ON_LOOP
{
    struct device_numbers devices[INF_REGISTRY_DEVICES];
    uint32_t count = service->options.devices->count;
    for (uint32_t i = 0; i < count; i++) {
        struct inf_device *device = service->options.devices->devices[i];
        devices[i] = (struct device_numbers){
            .name = inf_device_info(device)->name,
            .up = inf_device_health(device) == INF_DEVICE_OK,
            .load = inf_scheduler_device_load(service->scheduler, i),
            .memory = inf_device_memory(device),
            .slots = inf_device_info(device)->slots,
        };
        devices[i].races = inf_device_kernel_choices(device, &devices[i].choices);
    }
    inf_exposition_metric(out, INF_METRIC_DEVICE_UP);
    for (uint32_t i = 0; i < count; i++)
        print_labelled(out, devices[i].name, devices[i].up);
    inf_exposition_metric(out, INF_METRIC_DEVICE_BUSY);
    for (uint32_t i = 0; i < count; i++)
        print_labelled(out, devices[i].name, devices[i].load.busy_ns);
    inf_exposition_metric(out, INF_METRIC_DEVICE_SLOTS);
    for (uint32_t i = 0; i < count; i++)
        print_labelled(out, devices[i].name, devices[i].slots);
    inf_exposition_metric(out, INF_METRIC_DEVICE_REQUESTS);
    for (uint32_t i = 0; i < count; i++)
        print_labelled(out, devices[i].name, devices[i].load.requests);
    inf_exposition_metric(out, INF_METRIC_DEVICE_QUEUE);
    for (uint32_t i = 0; i < count; i++)
        print_labelled(out, devices[i].name, devices[i].load.queue_depth);
    inf_exposition_metric(out, INF_METRIC_DEVICE_QUEUE_LIMIT);
    for (uint32_t i = 0; i < count; i++)
        print_labelled(out, devices[i].name, devices[i].load.queue_limit);
    print_kernel_choices(devices, count, out);
    print_device_memory(devices, count, out);
}

static void print_memory(const struct inf_service *service, struct inf_exposition *out) INF_ON_LOOP
{
    const struct inf_counters *counters = service->options.counters;
    print_one(out, INF_METRIC_RESIDENT, inf_service_resident_bytes(service));
    print_one(out, INF_METRIC_REGIONS, counters->regions);
    print_one(out, INF_METRIC_REGION_BYTES, counters->region_bytes);
    print_one(out, INF_METRIC_SESSIONS, counters->sessions);
    print_one(out, INF_METRIC_SESSION_BYTES, counters->session_bytes);
}

static void print_budget(struct inf_service *service, struct inf_exposition *out) INF_ON_LOOP
{
    const struct inf_memory_budget *budget = service->options.memory_budget;
    inf_service_update_memory(service);
    inf_exposition_metric(out, INF_METRIC_MEMORY_LIMIT);
    if (budget != NULL)
        inf_exposition_sample(out, NULL, budget->limit_bytes);
    inf_exposition_metric(out, INF_METRIC_MEMORY_USED);
    for (enum inf_memory_use use = 0; budget != NULL && use < INF_MEMORY_USES; use++)
        print_labelled(out, inf_memory_use_name(use), budget->used[use]);
}

static void print_machine(const struct inf_service *service, struct inf_exposition *out) INF_ON_LOOP
{
    struct rlimit limit = {0};
    uint64_t count;
    inf_exposition_metric(out, INF_METRIC_DESCRIPTORS);
    if (inf_pressure_count_fds(&service->pressure, &count))
        inf_exposition_sample(out, NULL, count);
    (void)getrlimit(RLIMIT_NOFILE, &limit);
    print_one(out, INF_METRIC_DESCRIPTOR_LIMIT, limit.rlim_cur);
    inf_exposition_metric(out, INF_METRIC_PRESSURE);
    for (enum inf_pressure_resource of = 0; of < INF_PRESSURE_COUNT; of++) {
        struct inf_pressure_times times;
        if (!inf_pressure_read(&service->pressure, of, &times))
            continue;
        const char *name = inf_pressure_name(of);
        inf_exposition_sample(out, (const char *const[]){name, "some"}, times.some_ns);
        inf_exposition_sample(out, (const char *const[]){name, "full"}, times.full_ns);
    }
}

// Writes all metrics into `memory` of TEXT_BYTES_MAX bytes.
static enum inf_code print_metrics(struct inf_service *service, const struct inf_request *request,
                                   enum inf_exposition_format format, char *memory,
                                   size_t *out_size, struct inf_error *err) INF_ON_LOOP
{
    const struct inf_metrics_reader reader = {.admin = request->caller->admin,
                                              .uid = request->caller->uid};
    struct inf_exposition out;
    inf_exposition_begin(&out, format, memory, TEXT_BYTES_MAX);
    print_process(service, &out);
    inf_metrics_print(service->metrics, &reader, &out);
    print_models(service, &out);
    print_quotas(service, request->caller, &out);
    print_devices(service, &out);
    print_memory(service, &out);
    print_budget(service, &out);
    print_machine(service, &out);
    INF_TRY(inf_exposition_end(&out, err));
    *out_size = out.size;
    if (out.size <= request->reply_bytes_max)
        return INF_OK;
    return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_FRAME_TOO_LARGE,
                           "the metrics have %zu bytes, the client accepts %u", out.size,
                           request->reply_bytes_max);
}

enum inf_code inf_service_metrics(struct inf_service *service, struct inf_request *request,
                                  struct inf_answer *answer, struct inf_fault *fault)
{
    enum inf_exposition_format format;
    INF_TRY(
        inf_exposition_parse_format(service->request.metrics_request.format, &format, &fault->err));
    // Not a buffer of the pool, which would be zeroed: only the pages that the text needs are
    // touched.
    char *memory = malloc(TEXT_BYTES_MAX);
    if (memory == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the metrics");
    size_t size = 0;
    enum inf_code code = print_metrics(service, request, format, memory, &size, &fault->err);
    // A client that does not read its replies must not hold more memory than the text needs.
    uint8_t *text = code == INF_OK ? inf_pool_acquire(service->options.pool, size) : NULL;
    if (text != NULL)
        memcpy(text, memory, size);
    free(memory);
    if (code != INF_OK)
        return code;
    if (text == NULL)
        return inf_fail_reason(&fault->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for the metrics");
    service->reply.metrics_reply =
        (struct inf_metrics_reply){.media_type = inf_exposition_media_type(format)};
    answer->kind = INF_MESSAGE_METRICS_REPLY;
    answer->data = text;
    answer->data_bytes = answer->data_capacity = size;
    return INF_OK;
}
