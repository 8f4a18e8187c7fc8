// SPDX-License-Identifier: Apache-2.0
// ServerLimits: reads and changes several limits at once. A limit is a live integer flag whose name
// ends in _max. FlagSet changes single flags.
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "daemon/service/handlers.h"
#include "daemon/service/limits.h"
#include "daemon/service/state.h"

// --- finding the flags that are limits ---

static bool is_limit(const struct inf_flag *flag)
{
    static const char ending[] = "_max";
    size_t length = strlen(flag->name);
    bool whole = flag->type == INF_FLAG_U32 || flag->type == INF_FLAG_U64;
    return whole && flag->live && length > strlen(ending) &&
           strcmp(flag->name + length - strlen(ending), ending) == 0;
}

static const struct inf_flag *find_limit(const char *name)
{
    for (size_t i = 0; i < INF_FLAG_COUNT; i++)
        if (is_limit(&inf_flags[i]) && strcmp(inf_flags[i].name, name) == 0)
            return &inf_flags[i];
    return NULL;
}

static uint64_t read_limit(const struct inf_config *config, const struct inf_flag *flag)
{
    const void *field = (const char *)config + flag->offset;
    return flag->type == INF_FLAG_U32 ? *(const uint32_t *)field : *(const uint64_t *)field;
}

// --- updating modules that keep copies of limits ---

void inf_service_quota_limits(const struct inf_config *config, uint64_t most[INF_QUOTA_KIND_COUNT])
{
    most[INF_QUOTA_CONNECTIONS] = config->connections_per_uid_max;
    most[INF_QUOTA_REQUESTS] = config->requests_per_uid_max;
    most[INF_QUOTA_REQUEST_BYTES] = config->request_bytes_per_uid_max;
    most[INF_QUOTA_REGIONS] = config->regions_per_uid_max;
    most[INF_QUOTA_REGION_BYTES] = config->region_bytes_per_uid_max;
    most[INF_QUOTA_FILLED_BYTES] = config->region_alloc_bytes_per_uid_max;
    most[INF_QUOTA_SESSION_BYTES] = config->session_bytes_per_uid_max;
    most[INF_QUOTA_FDS] = config->fds_per_uid_max;
    most[INF_QUOTA_DEVICE_MS] = config->device_ms_per_uid_max;
}

struct inf_run_limits inf_service_run_limits(const struct inf_config *config)
{
    return (struct inf_run_limits){.limit_ms = config->run_limit_ms,
                                   .grace_ms = config->run_grace_ms};
}

static void apply_limits(struct inf_service *service) INF_ON_LOOP
{
    const struct inf_config *config = service->options.environment->config;
    uint64_t most[INF_QUOTA_KIND_COUNT];
    inf_service_quota_limits(config, most);
    for (int kind = 0; kind < INF_QUOTA_KIND_COUNT; kind++)
        inf_quota_set_most(service->options.quota, (enum inf_quota_kind)kind, most[kind]);
    inf_scheduler_set_limits(service->scheduler, config->queue_requests_max,
                             config->queue_bytes_max);
    const struct inf_run_limits run_limits = inf_service_run_limits(config);
    inf_scheduler_set_run_limits(service->scheduler, &run_limits);
}

enum inf_code inf_service_change_flag(struct inf_service *service, const char *name,
                                      const char *value, enum inf_origin origin,
                                      const struct inf_flag **out_flag, struct inf_error *err)
{
    INF_TRY(inf_environment_set(service->options.environment, name, value, origin, out_flag, err));
    apply_limits(service);
    return INF_OK;
}

// --- the ServerLimits method ---

#define NUMBER_SIZE 24
static const char *print_number(uint64_t value, char text[NUMBER_SIZE])
{
    snprintf(text, NUMBER_SIZE, "%" PRIu64, value);
    return text;
}

static enum inf_code check_entry(struct inf_service *service, const struct inf_limit_entry *entry,
                                 struct inf_error *err) INF_ON_LOOP
{
    char text[NUMBER_SIZE];
    if (find_limit(entry->name) == NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "'%.64s' is no limit that can be changed while the daemon runs",
                               entry->name);
    return inf_environment_check(service->options.environment, entry->name,
                                 print_number(entry->value, text), err);
}

static void fill_reply(const struct inf_environment *environment,
                       struct inf_limit_list *reply) INF_ON_LOOP
{
    reply->count = 0;
    for (size_t i = 0; i < INF_FLAG_COUNT && reply->count < INF_LIVE_LIMITS; i++) {
        const struct inf_flag *flag = &inf_flags[i];
        if (!is_limit(flag))
            continue;
        reply->entries[reply->count++] =
            (struct inf_limit_entry){.name = flag->name,
                                     .value = read_limit(environment->config, flag),
                                     .min = (uint64_t)flag->min,
                                     .max = inf_environment_most(environment, flag)};
    }
}

enum inf_code inf_service_server_limits(struct inf_service *service, struct inf_request *request,
                                        struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    const struct inf_limit_list *wanted = &service->request.limit_list;
    for (uint32_t i = 0; i < wanted->count; i++)
        INF_TRY(check_entry(service, &wanted->entries[i], &fault->err));
    for (uint32_t i = 0; i < wanted->count; i++) {
        char text[NUMBER_SIZE];
        const struct inf_flag *flag;
        INF_TRY(inf_service_change_flag(service, wanted->entries[i].name,
                                        print_number(wanted->entries[i].value, text),
                                        INF_ORIGIN_ADMIN, &flag, &fault->err));
    }
    fill_reply(service->options.environment, &service->reply.limit_list);
    answer->kind = INF_MESSAGE_LIMITS_REPLY;
    return INF_OK;
}
