// SPDX-License-Identifier: Apache-2.0
// Implements the Environment method (facts about the host, the devices and the backends), the
// FlagSet method (changes a flag of the daemon) and the FlagPersist method (changes one that also
// holds after a restart).
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "backends/device/counts.h"
#include "daemon/service/device.h"
#include "daemon/service/handlers.h"
#include "daemon/service/limits.h"
#include "daemon/service/load_call.h"
#include "proto/core/utf8.h"

// Adds a fact (a name and a value) to the answer of the Environment method. Leaves out empty
// values, and facts for which the answer has no room.
INF_PRINTF(3, 4)
static void add_fact(struct inf_service_environment *reply, const char *name, const char *format,
                     ...)
{
    if (reply->fact_count == INF_SERVICE_FACTS)
        return;
    char *value = reply->fact_values[reply->fact_count];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(value, INF_FACT_TEXT, format, arguments);
    va_end(arguments);
    if (value[0] == '\0')
        return;
    inf_text_clean(value);
    snprintf(reply->fact_names[reply->fact_count], sizeof reply->fact_names[0], "%s", name);
    reply->facts[reply->fact_count] =
        (struct inf_fact_entry){.name = reply->fact_names[reply->fact_count], .value = value};
    reply->fact_count++;
}

static void add_host(struct inf_service_environment *reply, const struct inf_host_info *facts)
{
    add_fact(reply, "system.architecture", "%s", facts->architecture);
    add_fact(reply, "system.kernel", "%s", facts->kernel);
    add_fact(reply, "system.page_bytes", "%" PRIu32, facts->page_bytes);
    add_fact(reply, "cpu.name", "%s", facts->cpu);
    add_fact(reply, "cpu.isa", "%s", facts->cpu_isa);
    add_fact(reply, "cpu.cores_online", "%" PRIu32, facts->cores_online);
    add_fact(reply, "cpu.cores_usable", "%" PRIu32, facts->cores_usable);
    if (facts->cores_quota > 0)
        add_fact(reply, "cpu.cores_quota", "%" PRIu32, facts->cores_quota);
    add_fact(reply, "memory.bytes", "%" PRIu64, facts->memory_bytes);
    if (facts->memory_limit_bytes > 0)
        add_fact(reply, "memory.limit_bytes", "%" PRIu64, facts->memory_limit_bytes);
}

// Adds the transfer and memory counters of a device that has its own memory, such as a GPU.
static void add_counts(struct inf_service_environment *reply, const struct inf_device *device)
{
    char name[sizeof reply->fact_names[0]];
    for (enum inf_device_count i = 0; i < INF_DEVICE_COUNTS; i++) {
        snprintf(name, sizeof name, "device.%s.%s", inf_device_info(device)->name,
                 inf_device_count_name(i));
        add_fact(reply, name, "%" PRIu64, inf_device_get_count(device, i));
    }
}

static void add_device(struct inf_service_environment *reply, const struct inf_device *device,
                       const struct inf_speed *speed)
{
    char precisions[INF_SERVICE_PRECISIONS_TEXT];
    const struct inf_device_info *info = inf_device_info(device);
    char name[sizeof reply->fact_names[0]];
#define DEVICE_FACT(what, ...)                                                                     \
    (snprintf(name, sizeof name, "device.%s.%s", info->name, what),                                \
     add_fact(reply, name, __VA_ARGS__))
    DEVICE_FACT("description", "%s", info->description);
    DEVICE_FACT("identity", "%s", info->identity);
    DEVICE_FACT("features", "%s", info->features);
    DEVICE_FACT("kind", "%s", inf_service_device_kind(info));
    DEVICE_FACT("threads", "%" PRIu32, info->threads);
    DEVICE_FACT("precisions", "%s", inf_service_list_precisions(info, precisions));
    if (info->memory_bytes > 0)
        DEVICE_FACT("memory_bytes", "%" PRIu64, info->memory_bytes);
    if (!info->host_memory)
        add_counts(reply, device);
    if (speed == NULL || speed->macs_per_s <= 0)
        return;
    DEVICE_FACT("gmacs_per_s", "%.1f", speed->macs_per_s / 1e9);
    DEVICE_FACT("gbytes_per_s", "%.1f", speed->bytes_per_s / 1e9);
    DEVICE_FACT("submit_ns", "%" PRIu64, speed->submit_ns);
    DEVICE_FACT("step_ns", "%" PRIu64, speed->step_ns);
#undef DEVICE_FACT
}

static void add_backend(struct inf_service_environment *reply,
                        const struct inf_backend_state *backend)
{
    char name[sizeof reply->fact_names[0]];
#define BACKEND_FACT(what, ...)                                                                    \
    (snprintf(name, sizeof name, "backend.%s.%s", backend->name, what),                            \
     add_fact(reply, name, __VA_ARGS__))
    BACKEND_FACT("priority", "%d", backend->priority);
    BACKEND_FACT("devices", "%" PRIu32, backend->devices);
    BACKEND_FACT("left_out", "%s", backend->why);
#undef BACKEND_FACT
}

static void add_flag(struct inf_service_environment *reply, const struct inf_config *config,
                     const struct inf_flag *flag)
{
    uint32_t index = reply->flag_count++;
    inf_flag_wanted(flag, reply->flag_wanted[index]);
    reply->flags[index] = (struct inf_flag_entry){
        .name = flag->name,
        .type = inf_flag_type_name(flag->type),
        .value = inf_flag_print(config, flag, reply->flag_values[index]),
        .default_value = flag->fallback,
        .origin = inf_origin_name(inf_flag_origin(config, flag)),
        .stability = flag->internal ? "internal" : "public",
        .live = flag->live,
        .allowed = reply->flag_wanted[index],
        .help = flag->help,
    };
}

static void fill_answer(struct inf_service *service, struct inf_answer *answer)
{
    const struct inf_service_environment *reply = &service->environment_reply;
    service->reply.environment =
        (struct inf_environment_reply){.fact_count = reply->fact_count,
                                       .flag_count = reply->flag_count,
                                       .facts = service->environment_reply.facts,
                                       .flags = service->environment_reply.flags};
    answer->kind = INF_MESSAGE_ENVIRONMENT;
}

enum inf_code inf_service_environment(struct inf_service *service, struct inf_request *request,
                                      struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    (void)fault;
    const struct inf_environment *environment = service->options.environment;
    struct inf_service_environment *reply = &service->environment_reply;
    reply->fact_count = reply->flag_count = 0;
    add_fact(reply, "inferd.version", "%s", service->options.version);
    add_host(reply, &environment->facts);
    for (uint32_t i = 0; i < service->options.devices->backend_count; i++)
        add_backend(reply, &service->options.devices->backends[i]);
    for (uint32_t i = 0; i < service->options.devices->count; i++)
        add_device(reply, service->options.devices->devices[i],
                   inf_model_store_speed(service->options.store, i));
    for (size_t i = 0; i < INF_FLAG_COUNT; i++)
        if (inf_flags[i].type != INF_FLAG_ASK)
            add_flag(reply, environment->config, &inf_flags[i]);
    fill_answer(service, answer);
    return INF_OK;
}

// --- flags that hold after a restart ---

static enum inf_code start_persisting(struct inf_service *service, uint64_t token,
                                      struct inf_error *err) INF_ON_LOOP
{
    const struct inf_flag_set_request *wanted = &service->request.flag_set;
    bool keeps = wanted->persistence == INF_PERSIST_KEEP;
    return inf_model_store_persist_flag(service->options.store, wanted->name,
                                        keeps ? wanted->value : NULL, token, err);
}

// Begins to write or to remove a persistent flag. The flag changes when that has succeeded.
enum inf_code inf_service_flag_persist(struct inf_service *service, struct inf_request *request,
                                       struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    const struct inf_flag_set_request *wanted = &service->request.flag_set;
    const struct inf_environment *environment = service->options.environment;
    const char *nearest;
    char value[INF_CONFIG_TEXT];
    const struct inf_flag *flag = inf_flag_find(wanted->name, &nearest);
    if (wanted->persistence == INF_PERSIST_NOT)
        return inf_fail_reason(&fault->err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "persist is 0, wanted 1 or 2");
    if (wanted->persistence == INF_PERSIST_KEEP)
        snprintf(value, sizeof value, "%s", wanted->value);
    else if (flag != NULL && flag->type != INF_FLAG_ASK)
        inf_flag_print(&environment->sources, flag, value);
    else
        value[0] = '\0';
    INF_TRY(inf_environment_check(environment, wanted->name, value, &fault->err));
    INF_TRY(inf_service_begin_load(service, start_persisting, answer, fault));
    struct inf_load *load = service->loads; // the call that has just begun
    load->persistence = wanted->persistence;
    snprintf(load->flag, sizeof load->flag, "%s", flag->name);
    snprintf(load->value, sizeof load->value, "%s", value);
    return INF_OK;
}

// --- the FlagSet method ---

enum inf_code inf_service_flag_set(struct inf_service *service, struct inf_request *request,
                                   struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    const struct inf_flag *flag = NULL;
    INF_TRY(inf_service_change_flag(service, service->request.flag_set.name,
                                    service->request.flag_set.value, INF_ORIGIN_ADMIN, &flag,
                                    &fault->err));
    service->environment_reply.fact_count = service->environment_reply.flag_count = 0;
    add_flag(&service->environment_reply, service->options.environment->config, flag);
    fill_answer(service, answer);
    return INF_OK;
}
