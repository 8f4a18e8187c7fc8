// SPDX-License-Identifier: Apache-2.0
// inferd_check(): whether a request fits its model.
#include <stddef.h>

#include "client/inferd.h"
#include "client/lib/client.h"
#include "client/lib/error.h"
#include "client/lib/infer/model_check.h"
#include "client/lib/infer/request_check.h"

static int check_request(inferd_client *client, const inferd_request *request,
                         struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    if (request == NULL)
        inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER, "a request is wanted");
    else
        (void)!inf_client_request_check(client, request, &error);
    if (error.code != INF_OK || inf_client_model_check_cached(client, request, &error) != INF_OK)
        return inf_client_report_error(err, &error);
    const struct inf_client_metadata *metadata = inf_client_metadata_cache_find(
        &client->metadata, request->model, request->version != NULL ? request->version : "");
    if (metadata != NULL && metadata->info != NULL)
        return INFERD_OK;
    inferd_model_info *info;
    int code = inferd_model_describe(client, request->model, request->version, &info, err);
    if (code != INFERD_OK)
        return code;
    code = inf_client_model_check_info(request, info, &error) == INF_OK
               ? INFERD_OK
               : inf_client_report_error(err, &error);
    inferd_model_info_free(info);
    return code;
}

int inferd_check(inferd_client *client, const inferd_request *request, struct inferd_error *err)
{
    inf_client_enter(client);
    int code = check_request(client, request, err);
    inf_client_leave(client);
    return code;
}
