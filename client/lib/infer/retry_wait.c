// SPDX-License-Identifier: Apache-2.0
// Waits until a blocking request or question can be sent again. Which failures may be retried is
// decided by retry_queue.c.
#include "client/lib/infer/retry_wait.h"

#include <string.h>

#include "client/lib/client.h"
#include "client/lib/connect.h"
#include "client/lib/error.h"
#include "client/lib/event_loop.h"
#include "client/lib/infer/retry_queue.h"
#include "proto/core/span.h"

// Returns true if the error has the given reason and a request that failed so may be sent again.
static bool has_reason(const struct inferd_error *err, enum inf_reason reason)
{
    return inf_client_retry_is_safe((enum inf_code)err->code, reason) &&
           strcmp(err->reason, inf_reason_name(reason)) == 0;
}

// Returns true if the error says that the daemon did not start the request.
static bool is_unbegun(const struct inferd_error *err)
{
    for (int reason = INF_REASON_NONE + 1; reason < INF_REASON_COUNT; reason++) {
        if (has_reason(err, (enum inf_reason)reason))
            return true;
    }
    return false;
}

bool inf_client_retry_wait(inferd_client *client, const struct inf_client_retry_wait *wait,
                           struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    uint64_t limit_ns = client->retry.limit_ns;
    uint64_t until_ns = wait->deadline_ns;
    if (client->closing || (!wait->unsent && !is_unbegun(err)))
        return false;
    bool failed = client->connection.failure.code != INF_OK || client->connection.draining;
    if (failed || !has_reason(err, INF_REASON_LOADING)) {
        if (limit_ns == 0)
            return false;
        until_ns = INF_MIN(until_ns, wait->start_ns + limit_ns);
    }
    if (failed) {
        if (inf_client_reconnect(client, until_ns, &error) == INF_OK)
            return true;
        inf_client_report_error(err, &error);
        return false;
    }
    uint64_t wait_ns = INF_MAX(err->retry_after_ms, 1u) * (uint64_t)1000000;
    uint64_t wake_ns = inf_client_now_ns() + wait_ns;
    if (wake_ns >= until_ns)
        return false;
    while (inf_client_now_ns() < wake_ns && client->connection.failure.code == INF_OK &&
           !client->closing)
        (void)inf_client_event_loop_wait(client, wake_ns);
    return !client->closing;
}
