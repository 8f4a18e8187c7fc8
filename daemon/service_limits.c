// SPDX-License-Identifier: Apache-2.0
// ServerLimits: tells the limits that can be changed, and changes them.
#include <inttypes.h>
#include <string.h>

#include "daemon/service_impl.h"

_Static_assert(INF_LIVE_COUNT <= INF_LIVE_LIMITS, "one message holds all limits");
_Static_assert(INF_LIVE_UID_SESSION_BYTES - INF_LIVE_UID_CONNECTIONS + 1 == INF_QUOTA_KIND_COUNT,
               "each quota has a limit, in the same order");

static struct inf_live_limit *find(struct inf_live_limits *live, const char *name)
{
    for (uint32_t i = 0; i < INF_LIVE_COUNT; i++)
        if (strcmp(live->limits[i].name, name) == 0)
            return &live->limits[i];
    return NULL;
}

static enum inf_code check(struct inf_live_limits *live, const struct inf_limit_entry *entry,
                           struct inf_error *err)
{
    const struct inf_live_limit *limit = find(live, entry->name);
    if (limit == NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "'%.64s' is no limit that can be changed while the daemon runs",
                               entry->name);
    if (entry->value < limit->least || entry->value > limit->most)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s = %" PRIu64 ": wanted %" PRIu64 " to %" PRIu64, entry->name,
                               entry->value, limit->least, limit->most);
    return INF_OK;
}

// Hands the values to those who keep copies.
static void apply(struct inf_service *service) INF_ON_LOOP
{
    const struct inf_live_limit *limits = service->options.limits->limits;
    for (int kind = 0; kind < INF_QUOTA_KIND_COUNT; kind++)
        inf_quota_set_most(service->options.quota, (enum inf_quota_kind)kind,
                           limits[INF_LIVE_UID_CONNECTIONS + kind].value);
    inf_scheduler_set_limits(service->scheduler, (uint32_t)limits[INF_LIVE_QUEUE_REQUESTS].value,
                             limits[INF_LIVE_QUEUE_BYTES].value);
}

enum inf_code inf_service_server_limits(struct inf_service *service, struct inf_request *request,
                                        struct inf_answer *answer, struct inf_fault *fault)
{
    (void)request;
    struct inf_live_limits *live = service->options.limits;
    const struct inf_limit_list *wanted = &service->request.limit_list;
    for (uint32_t i = 0; i < wanted->count; i++)
        INF_TRY(check(live, &wanted->entries[i], &fault->err));
    for (uint32_t i = 0; i < wanted->count; i++)
        find(live, wanted->entries[i].name)->value = wanted->entries[i].value;
    if (wanted->count > 0)
        apply(service);
    struct inf_limit_list *reply = &service->reply.limit_list;
    reply->count = INF_LIVE_COUNT;
    for (uint32_t i = 0; i < INF_LIVE_COUNT; i++)
        reply->entries[i] = (struct inf_limit_entry){.name = live->limits[i].name,
                                                     .value = live->limits[i].value,
                                                     .least = live->limits[i].least,
                                                     .most = live->limits[i].most};
    answer->kind = INF_MESSAGE_LIMITS_REPLY;
    return INF_OK;
}
