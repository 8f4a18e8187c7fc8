// SPDX-License-Identifier: Apache-2.0
// Access to results (public functions).
#include <stddef.h>
#include <string.h>

#include "client/inferd.h"
#include "client/lib/client.h"
#include "client/lib/infer/result_pool.h"
#include "proto/core/tensor_name.h"

void inferd_result_free(inferd_result *result)
{
    if (result == NULL)
        return;
    inferd_client *client = result->client;
    inf_client_enter(client);
    inf_client_result_release(result);
    inf_client_leave(client);
}

size_t inferd_result_output_count(const inferd_result *result)
{
    return result->output_count;
}

const inferd_tensor *inferd_result_output(const inferd_result *result, size_t index)
{
    return index < result->output_count ? &result->outputs[index] : NULL;
}

const inferd_tensor *inferd_result_find(const inferd_result *result, const char *name)
{
    return inferd_result_output(
        result, inf_tensor_names_find(INF_TENSOR_NAMES(result->outputs, result->output_count), name,
                                      strlen(name)));
}

const char *inferd_result_model_version(const inferd_result *result)
{
    return result->model_version;
}

const char *inferd_result_device(const inferd_result *result)
{
    return result->device;
}

const char *inferd_result_precision(const inferd_result *result)
{
    return result->precision;
}

const char *inferd_result_id(const inferd_result *result)
{
    return result->id;
}

inferd_timing inferd_result_timing(const inferd_result *result)
{
    return result->timing;
}

unsigned inferd_result_threads(const inferd_result *result)
{
    return result->threads;
}

uint64_t inferd_result_core_ns(const inferd_result *result)
{
    return result->core_ns;
}

unsigned inferd_result_batch_size(const inferd_result *result)
{
    return result->batch_size;
}

unsigned inferd_result_padded_size(const inferd_result *result)
{
    return result->padded_size;
}

unsigned inferd_result_flags(const inferd_result *result)
{
    return result->flags;
}
