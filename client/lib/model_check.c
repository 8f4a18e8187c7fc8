// SPDX-License-Identifier: Apache-2.0
// Whether a request fits its model, by what the daemon has said of that: told before anything is sent.
// A description is forgotten when an answer comes from another version, or with a restart of the daemon.
#include <stdlib.h>
#include <string.h>

#include "client/lib/client.h"

// A description that refuses a request and is older than this is not believed: the model may have been
// loaded anew.
#define FRESH_NS ((uint64_t)1000 * 1000 * 1000)

static const inferd_tensor *find(const inferd_tensor *tensors, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(tensors[i].name, name) == 0)
            return &tensors[i];
    return NULL;
}

static struct inf_shape shape_of(const inferd_tensor *tensor)
{
    struct inf_shape shape = {.rank = tensor->rank};
    memcpy(shape.dims, tensor->shape, sizeof tensor->shape);
    return shape;
}

static enum inf_code fail_unknown(const char *role, const char *name, const inferd_model_info *info,
                                  struct inf_error *err)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_UNKNOWN,
                           "%s '%.80s': model '%s' has no such %s", role, name, info->name, role);
}

static enum inf_code check_input(const inferd_tensor *input, const inferd_model_info *info,
                                 struct inf_error *err)
{
    const inferd_tensor *wanted = find(info->inputs, info->input_count, input->name);
    char actual[INF_SHAPE_TEXT_SIZE];
    char expected[INF_SHAPE_TEXT_SIZE];
    if (wanted == NULL)
        return fail_unknown("input", input->name, info, err);
    if (input->session_tensor != NULL)
        return INF_OK;
    if (input->dtype != wanted->dtype)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                               "input '%s': datatype is %s, wanted %s", input->name,
                               inferd_dtype_name(input->dtype), inferd_dtype_name(wanted->dtype));
    const struct inf_shape shape = shape_of(input);
    const struct inf_shape pattern = shape_of(wanted);
    if (inf_shape_matches(&shape, &pattern))
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                           "input '%s': shape is %s, wanted %s", input->name,
                           inf_shape_print(&shape, actual), inf_shape_print(&pattern, expected));
}

static enum inf_code check_all(const inferd_request *request, const inferd_model_info *info,
                               struct inf_error *err)
{
    for (size_t i = 0; i < request->input_count; i++)
        INF_TRY(check_input(&request->inputs[i], info, err));
    for (size_t i = 0; i < request->output_count; i++)
        if (find(info->outputs, info->output_count, request->outputs[i].name) == NULL)
            return fail_unknown("output", request->outputs[i].name, info, err);
    for (size_t i = 0; i < info->input_count && request->session == NULL; i++) {
        const inferd_tensor *wanted = &info->inputs[i];
        const struct inf_shape shape = shape_of(wanted);
        char text[INF_SHAPE_TEXT_SIZE];
        if (find(request->inputs, request->input_count, wanted->name) == NULL)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                                   "input '%s' is missing: wanted %s %s", wanted->name,
                                   inferd_dtype_name(wanted->dtype), inf_shape_print(&shape, text));
    }
    return INF_OK;
}

static struct inf_metadata_cache *find_learned(inferd_client *client, const inferd_request *request)
{
    return inf_metadata_cache_find(client, request->model,
                                   request->version != NULL ? request->version : "");
}

enum inf_code inf_model_check(inferd_client *client, const inferd_request *request,
                              struct inf_error *err)
{
    struct inf_metadata_cache *metadata = find_learned(client, request);
    if (metadata == NULL || metadata->info == NULL ||
        check_all(request, metadata->info, err) == INF_OK)
        return INF_OK;
    if (inf_client_now_ns() - metadata->info_ns < FRESH_NS)
        return err->code;
    inf_metadata_cache_forget_info(metadata);
    return INF_OK;
}

static int check(inferd_client *client, const inferd_request *request, struct inferd_error *err)
{
    struct inf_error error = {.code = INF_OK};
    if (request == NULL)
        inf_fail_reason(&error, INF_INVALID, INF_REASON_BAD_PARAMETER, "a request is wanted");
    else
        (void)!inf_request_check(client, request, &error);
    if (error.code != INF_OK || inf_model_check(client, request, &error) != INF_OK)
        return inf_client_report(err, &error);
    struct inf_metadata_cache *metadata = find_learned(client, request);
    if (metadata != NULL && metadata->info != NULL)
        return INFERD_OK;
    inferd_model_info *info;
    int code = inferd_model_describe(client, request->model, request->version, &info, err);
    if (code != INFERD_OK)
        return code;
    code = check_all(request, info, &error) == INF_OK ? INFERD_OK : inf_client_report(err, &error);
    inferd_model_info_free(info);
    return code;
}

int inferd_check(inferd_client *client, const inferd_request *request, struct inferd_error *err)
{
    inf_client_enter(client);
    int code = check(client, request, err);
    inf_client_leave(client);
    return code;
}
