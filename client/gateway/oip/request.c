// SPDX-License-Identifier: Apache-2.0
// The functions on an inference request that the decoders of JSON and of protobuf share.
#include "client/gateway/oip/request.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "proto/core/bytes_tensor.h"
#include "proto/core/shape.h"
#include "proto/core/utf8.h"

const char *const inf_oip_extensions[] = {
    "binary_tensor_data", "model_repository", "schedule_policy", "sequence", "statistics", NULL,
};

void inf_oip_request_fini(struct inf_oip_request *request)
{
    for (size_t i = 0; i < request->input_count; i++) {
        free(request->buffers[i]);
        inferd_memory_free(request->memories[i]);
    }
    free(request->names);
    json_decref(request->json);
    request->input_count = 0;
    request->names = NULL;
    request->json = NULL;
}

void inf_oip_request_build(const struct inf_oip_request *request, const char *other_id,
                           inferd_request *to)
{
    *to = (inferd_request){
        .model = request->model,
        .version = request->version[0] != '\0' ? request->version : NULL,
        .id = request->id[0] != '\0' ? request->id : other_id,
        .inputs = request->inputs,
        .input_count = request->input_count,
        .outputs = request->output_count > 0 ? request->outputs : NULL,
        .output_count = request->output_count,
        .timeout_ms = request->timeout_ms,
        .priority = request->priority,
    };
}

enum inf_code inf_oip_tensor_set_shape(inferd_tensor *tensor, const int64_t *dims, size_t rank,
                                       struct inf_error *err)
{
    if (rank > INF_LIMIT_RANK)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                               "tensor '%s': %zu dimensions, at most %d are allowed", tensor->name,
                               rank, INF_LIMIT_RANK);
    struct inf_shape shape = {.rank = (int32_t)rank};
    for (size_t i = 0; i < rank; i++) {
        if (dims[i] < 0 || dims[i] >= INF_LIMIT_DIM)
            return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                                   "tensor '%s': dimension %zu is %lld, wanted 0 to %lld",
                                   tensor->name, i, (long long)dims[i],
                                   (long long)INF_LIMIT_DIM - 1);
        shape.dims[i] = tensor->shape[i] = dims[i];
    }
    tensor->rank = (int)rank;
    size_t count;
    bool is_text = tensor->dtype == INFERD_BYTES;
    size_t element_bytes = is_text ? INF_BYTES_LENGTH_SIZE : inferd_dtype_size(tensor->dtype);
    if (!inf_shape_count(&shape, &count) || (is_text && count > INF_LIMIT_STRING_ELEMENTS) ||
        !inf_size_mul(count, element_bytes, &tensor->size) || tensor->size > INF_LIMIT_TENSOR_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                               "tensor '%s' is too large", tensor->name);
    return INF_OK;
}

void inf_oip_request_set_priority(struct inf_oip_request *request, uint64_t priority)
{
    request->priority = priority == 0 || priority == 2 ? INFERD_PRIORITY_NORMAL
                        : priority == 1                ? INFERD_PRIORITY_HIGH
                                                       : INFERD_PRIORITY_LOW;
}

void inf_oip_request_set_timeout(struct inf_oip_request *request, uint64_t timeout_us)
{
    // Rounded up, so that a timeout below 1 ms does not become 0, which means no timeout.
    request->timeout_ms = timeout_us / 1000 + (timeout_us % 1000 != 0);
}

void inf_oip_request_set_sequence_number(struct inf_oip_request *request, uint64_t number)
{
    request->sequence[0] = '\0';
    if (number != 0)
        snprintf(request->sequence, sizeof request->sequence, "#%llu", (unsigned long long)number);
}

enum inf_code inf_oip_request_set_sequence_name(struct inf_oip_request *request,
                                                struct inf_span name, struct inf_error *err)
{
    request->sequence[0] = '\0';
    if (name.size == 0)
        return INF_OK;
    if (name.size > sizeof request->sequence - 2 || memchr(name.data, 0, name.size) != NULL ||
        !inf_utf8_valid(name))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "sequence_id is no text of at most %zu bytes",
                               sizeof request->sequence - 2);
    request->sequence[0] = '=';
    memcpy(request->sequence + 1, name.data, name.size);
    request->sequence[1 + name.size] = '\0';
    return INF_OK;
}

enum inf_code inf_oip_parameter_check(const char *name, struct inf_error *err)
{
    static const char *const missing[] = {
        "classification",
        "shared_memory_region",
        "shared_memory_offset",
        "shared_memory_byte_size",
    };
    for (size_t i = 0; i < INF_ARRAY_LENGTH(missing); i++)
        if (strcmp(name, missing[i]) == 0)
            return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                                   "the parameter '%s' is not supported", name);
    return INF_OK;
}

enum inf_code inf_oip_repository_parameter_check(const char *name, bool is_load,
                                                 struct inf_error *err)
{
    if (!is_load && strcmp(name, "unload_dependents") == 0)
        return INF_OK;
    if (is_load && (strcmp(name, "config") == 0 || strncmp(name, "file:", 5) == 0))
        return inf_fail_reason(err, INF_UNSUPPORTED, INF_REASON_FEATURE,
                               "a load with a configuration or files is not supported: the daemon "
                               "reads both from its repository");
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                           "'%.64s' is no parameter of %s", name, is_load ? "a load" : "an unload");
}
