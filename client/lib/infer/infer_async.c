// SPDX-License-Identifier: Apache-2.0
// Asynchronous inferences (public functions).
#include <stddef.h>

#include "client/inferd.h"
#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/infer/infer.h"
#include "client/lib/infer/retry.h"

int inferd_infer_async(inferd_client *client, const inferd_request *request,
                       inferd_callback callback, void *context, uint64_t *stream,
                       struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    struct inf_client_call *call = NULL;
    if (request == NULL || callback == NULL) {
        inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER,
                        "a request and a callback are wanted");
        return inf_client_report_error(err, &error);
    }
    inf_client_enter(client);
    const struct inf_client_infer_target target = {.callback = callback, .context = context};
    enum inf_code code = inf_client_infer_start(client, request, &target, &call, &error);
    if (code == INF_OK && stream != NULL)
        *stream = call->handle;
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report_error(err, &error);
}

static enum inf_code cancel_call(inferd_client *client, uint64_t stream, struct inf_error *err)
{
    for (uint32_t i = 0; i < INF_CLIENT_BUCKETS; i++) {
        for (struct inf_client_call *call = client->calls.buckets[i]; call != NULL;
             call = call->next) {
            if (call->handle != stream || call->phase == INF_CLIENT_CALL_CONTROL || call->ended)
                continue;
            call->cancelled = true;
            inf_client_call_send_cancel(client, call);
            return INF_OK;
        }
    }
    if (inf_client_retry_cancel(client, stream))
        return INF_OK;
    return inf_fail(err, INF_NOT_FOUND, "no request %llu is in flight", (unsigned long long)stream);
}

int inferd_cancel(inferd_client *client, uint64_t stream, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    inf_client_enter(client);
    enum inf_code code = cancel_call(client, stream, &error);
    inf_client_leave(client);
    return code == INF_OK ? INFERD_OK : inf_client_report_error(err, &error);
}
