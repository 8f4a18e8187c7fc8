// SPDX-License-Identifier: Apache-2.0
// The queue of requests that wait to be sent again. Which failures may be retried is decided here;
// retry.c sends.
#include "client/lib/infer/retry_queue.h"

#include <stddef.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "proto/core/span.h"

bool inf_client_retry_is_safe(enum inf_code code, enum inf_reason reason)
{
    if (code != INF_UNAVAILABLE && code != INF_EXHAUSTED)
        return false;
    return reason == INF_REASON_DRAINING || reason == INF_REASON_QUEUE_FULL ||
           reason == INF_REASON_QUOTA_REQUESTS || reason == INF_REASON_QUOTA_TIME ||
           reason == INF_REASON_LOADING || reason == INF_REASON_NOT_BEGUN;
}

bool inf_client_retry_queue_push(inferd_client *client, struct inf_client_call *call,
                                 const struct inf_error *error, uint32_t retry_after_ms)
{
    uint64_t now_ns = inf_client_now_ns();
    uint64_t wake_ns = now_ns + (uint64_t)INF_MAX(retry_after_ms, 1u) * 1000000;
    uint64_t until_ns = call->retry_until_ns;
    // An asynchronous request waits for its model to load until its deadline. Blocking functions
    // (with an internal callback) do that in retry_wait.c.
    if (error->reason == INF_REASON_LOADING && !call->internal_callback)
        until_ns = call->deadline_ns != 0 ? call->deadline_ns : UINT64_MAX;
    if (call->ended || call->cancelled || call->no_resend || call->phase != INF_CLIENT_CALL_INFER ||
        wake_ns >= until_ns || client->closing)
        return false;
    call->queued_until_ns = until_ns;
    inf_client_report_error(&call->failure, error);
    call->failure.retry_after_ms = retry_after_ms;
    call->retry_at_ns = wake_ns;
    struct inf_client_call **place = &client->retry.head;
    while (*place != NULL)
        place = &(*place)->next;
    call->next = NULL;
    *place = call;
    return true;
}
