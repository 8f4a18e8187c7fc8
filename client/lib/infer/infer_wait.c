// SPDX-License-Identifier: Apache-2.0
// Blocking inferences. They are sent as soon as there is credit, and sent again if retry_wait.h
// allows it.
#include <stddef.h>

#include "client/inferd.h"
#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/event_loop.h"
#include "client/lib/infer/infer.h"
#include "client/lib/infer/retry_wait.h"
#include "client/lib/io/credit.h"
#include "proto/core/span.h"

// The result of a blocking inference, stored by its callback.
struct waiter {
    bool done;
    inferd_result *result;
    struct inferd_error *err; // error struct of the caller, or NULL
    int code;
};

static void store_result(void *context, inferd_result *result, const struct inferd_error *err)
{
    struct waiter *waiter = context;
    waiter->done = true;
    waiter->result = result;
    waiter->code = err->code;
    if (result == NULL && waiter->err != NULL)
        *waiter->err = *err;
}

// Sends a request as soon as there is credit for it.
static enum inf_code start_waiting(inferd_client *client, const inferd_request *request,
                                   struct waiter *waiter, struct inf_error *err)
{
    struct inf_client_call *call = NULL;
    inferd_request remaining = *request;
    uint64_t start_ns = inf_client_now_ns();
    uint64_t timeout_ms = INF_MIN(request->timeout_ms, UINT32_MAX);
    uint64_t until_ns = timeout_ms == 0 ? 0 : start_ns + timeout_ms * 1000000;
    const struct inf_client_infer_target target = {
        .callback = store_result, .context = waiter, .blocking = true};
    for (;;) {
        enum inf_code code = inf_client_credit_check_request(client, err);
        if (code != INF_EXHAUSTED || client->calls.open_count == 0)
            code = inf_client_infer_start(client, &remaining, &target, &call, err);
        if (code != INF_EXHAUSTED || client->calls.open_count == 0 ||
            (err->reason != INF_REASON_QUOTA_REQUESTS && err->reason != INF_REASON_QUOTA_BYTES))
            return code;
        (void)inf_client_event_loop_wait(client, until_ns);
        uint64_t waited_ms = (inf_client_now_ns() - start_ns) / 1000000;
        if (timeout_ms != 0 && waited_ms >= timeout_ms)
            return inf_fail_reason(err, INF_DEADLINE, INF_REASON_IN_QUEUE,
                                   "the time ran out before the daemon allowed another request");
        remaining.timeout_ms = timeout_ms == 0 ? 0 : request->timeout_ms - waited_ms;
    }
}

// Sends a request and waits for the answer.
static int infer_once(inferd_client *client, const inferd_request *request, inferd_result **result,
                      struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    struct waiter waiter = {.err = err, .code = INFERD_CANCELLED};
    if (start_waiting(client, request, &waiter, &error) != INF_OK)
        return inf_client_report_error(err, &error);
    while (!waiter.done && inf_client_event_loop_wait(client, 0))
        ;
    if (!waiter.done) // no answer has arrived, because a callback has closed the client
        inf_client_report_error(err,
                                &(struct inf_error){.code = INF_CANCELLED,
                                                    .reason = INF_REASON_BY_CLIENT,
                                                    .text = "the client was closed meanwhile"});
    *result = waiter.result;
    return waiter.code;
}

// Sends a request and waits for the answer, as infer_once() does. If the request fails and the
// daemon has certainly not started it, sends it again.
static int infer_with_retry(inferd_client *client, const inferd_request *request,
                            inferd_result **result, struct inferd_error *err)
{
    uint64_t start_ns = inf_client_now_ns();
    struct inf_client_retry_wait wait = {.start_ns = start_ns, .deadline_ns = UINT64_MAX};
    inferd_request remaining = *request;
    struct inferd_error last = {.code = INFERD_OK};
    int code;
    if (request->timeout_ms != 0 && request->timeout_ms < UINT32_MAX)
        wait.deadline_ns = start_ns + request->timeout_ms * 1000000;
    for (;;) {
        // If the connection has failed already, the next attempt cannot send the request, so it is
        // safe to retry.
        wait.unsent = client->connection.failure.code != INF_OK;
        code = infer_once(client, &remaining, result, &last);
        if (code == INFERD_OK || !inf_client_retry_wait(client, &wait, &last))
            break;
        client->statistics.resent++;
        uint64_t spent_ms = (inf_client_now_ns() - start_ns) / 1000000;
        if (request->timeout_ms != 0)
            remaining.timeout_ms =
                request->timeout_ms > spent_ms ? request->timeout_ms - spent_ms : 1;
    }
    if (code != INFERD_OK && err != NULL)
        *err = last;
    return code == INFERD_OK ? INFERD_OK : last.code;
}

int inferd_infer(inferd_client *client, const inferd_request *request, inferd_result **result,
                 struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    if (request == NULL || result == NULL) {
        inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER,
                        "a request and a place for the result are wanted");
        return inf_client_report_error(err, &error);
    }
    *result = NULL;
    inf_client_enter(client);
    int code = infer_with_retry(client, request, result, err);
    inf_client_leave(client);
    return code;
}
