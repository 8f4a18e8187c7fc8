// SPDX-License-Identifier: Apache-2.0
// Checks a request against the description of its model that the daemon sent earlier, so that a
// request that does not fit fails before anything is sent. A description is dropped if an answer
// comes from another version, or if the daemon has restarted.
#include "client/lib/infer/model_check.h"

#include <stddef.h>
#include <string.h>

#include "client/lib/client.h"
#include "client/lib/error.h"
#include "proto/core/shape.h"
#include "proto/core/tensor_name.h"

// If a description older than this refuses a request, the library drops the description, because
// the model may have been reloaded.
#define FRESH_NS ((uint64_t)1000 * 1000 * 1000)

static const inferd_tensor *find_tensor(const inferd_tensor *tensors, size_t count,
                                        const char *name)
{
    uint32_t index = inf_tensor_names_find(INF_TENSOR_NAMES(tensors, count), name, strlen(name));
    return index < count ? &tensors[index] : NULL;
}

static struct inf_shape copy_shape(const inferd_tensor *tensor)
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
    const inferd_tensor *wanted = find_tensor(info->inputs, info->input_count, input->name);
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
    const struct inf_shape shape = copy_shape(input);
    const struct inf_shape pattern = copy_shape(wanted);
    if (inf_shape_matches(&shape, &pattern))
        return INF_OK;
    return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                           "input '%s': shape is %s, wanted %s", input->name,
                           inf_shape_print(&shape, actual), inf_shape_print(&pattern, expected));
}

enum inf_code inf_client_model_check_info(const inferd_request *request,
                                          const inferd_model_info *info, struct inf_error *err)
{
    for (size_t i = 0; i < request->input_count; i++)
        INF_TRY(check_input(&request->inputs[i], info, err));
    for (size_t i = 0; i < request->output_count; i++)
        if (find_tensor(info->outputs, info->output_count, request->outputs[i].name) == NULL)
            return fail_unknown("output", request->outputs[i].name, info, err);
    for (size_t i = 0; i < info->input_count && request->session == NULL; i++) {
        const inferd_tensor *wanted = &info->inputs[i];
        const struct inf_shape shape = copy_shape(wanted);
        char text[INF_SHAPE_TEXT_SIZE];
        if (find_tensor(request->inputs, request->input_count, wanted->name) == NULL)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_TENSOR_MISSING,
                                   "input '%s' is missing: wanted %s %s", wanted->name,
                                   inferd_dtype_name(wanted->dtype), inf_shape_print(&shape, text));
    }
    return INF_OK;
}

static struct inf_client_metadata *find_metadata(inferd_client *client,
                                                 const inferd_request *request)
{
    return inf_client_metadata_cache_find(&client->metadata, request->model,
                                          request->version != NULL ? request->version : "");
}

enum inf_code inf_client_model_check_cached(inferd_client *client, const inferd_request *request,
                                            struct inf_error *err)
{
    struct inf_client_metadata *metadata = find_metadata(client, request);
    if (metadata == NULL || metadata->info == NULL ||
        inf_client_model_check_info(request, metadata->info, err) == INF_OK)
        return INF_OK;
    if (inf_client_now_ns() - metadata->info_ns < FRESH_NS)
        return err->code;
    inf_client_metadata_drop_info(metadata);
    return INF_OK;
}
