// SPDX-License-Identifier: Apache-2.0
// Checks whether a request is well-formed, as far as this is possible without knowledge of its
// model.
#include "client/lib/infer/request_check.h"

#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "client/lib/client.h"
#include "proto/core/shape.h"
#include "proto/core/span.h"

static enum inf_code fail_parameter(struct inf_error *err, const char *what, const char *wanted)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "%s, wanted %s", what,
                           wanted);
}

// Returns whether all bytes of the tensor are in the tensor's `memory`.
static bool is_in_memory(const inferd_tensor *tensor)
{
    const uint8_t *data = tensor->data;
    const inferd_memory *memory = tensor->memory;
    return data >= memory->data &&
           inf_range_ok((uint64_t)(data - memory->data), tensor->size, memory->size);
}

static enum inf_code check_name(const inferd_tensor *tensor, const char *role, size_t index,
                                struct inf_error *err)
{
    if (tensor->name == NULL || tensor->name[0] == '\0')
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "%s %zu has no name",
                               role, index);
    if (strnlen(tensor->name, INF_LIMIT_TENSOR_NAME + 1) > INF_LIMIT_TENSOR_NAME)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "the name of %s %zu has more than %u bytes", role, index,
                               INF_LIMIT_TENSOR_NAME);
    return INF_OK;
}

static enum inf_code check_memory(const inferd_client *client, const inferd_tensor *tensor,
                                  const char *role, struct inf_error *err)
{
    if (tensor->memory->client != client)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s' is in memory of another client", role, tensor->name);
    if (!is_in_memory(tensor))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_REGION_BOUNDS,
                               "%s '%s': its %zu bytes are not all in the memory given with it",
                               role, tensor->name, tensor->size);
    if ((uint64_t)((const uint8_t *)tensor->data - tensor->memory->data) %
            INF_FRAME_DATA_ALIGNMENT !=
        0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%s': its place in the memory is no multiple of %d bytes", role,
                               tensor->name, INF_FRAME_DATA_ALIGNMENT);
    return INF_OK;
}

static enum inf_code check_input(const inferd_client *client, const inferd_tensor *tensor,
                                 size_t index, struct inf_error *err)
{
    INF_TRY(check_name(tensor, "input", index, err));
    if (tensor->session_tensor != NULL)
        return INF_OK;
    struct inf_shape shape = {.rank = tensor->rank};
    if (tensor->rank < 0 || tensor->rank > INF_LIMIT_RANK)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "input '%s': rank %d, wanted 0 to %d", tensor->name, tensor->rank,
                               INF_LIMIT_RANK);
    memcpy(shape.dims, tensor->shape, (size_t)tensor->rank * sizeof shape.dims[0]);
    char text[INF_SHAPE_TEXT_SIZE];
    size_t size = 0;
    if (!inf_shape_bytes(&shape, (enum inf_dtype)tensor->dtype, &size))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "input '%s': no tensor can be %s %s", tensor->name,
                               inferd_dtype_name(tensor->dtype), inf_shape_print(&shape, text));
    // The size of strings follows from their lengths, which the daemon reads.
    if (size != tensor->size && tensor->dtype != INFERD_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "input '%s': %zu bytes were given; %s %s has %zu", tensor->name,
                               tensor->size, inferd_dtype_name(tensor->dtype),
                               inf_shape_print(&shape, text), size);
    if (tensor->data == NULL && size != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "input '%s' has no data",
                               tensor->name);
    return tensor->memory == NULL ? INF_OK : check_memory(client, tensor, "input", err);
}

static enum inf_code check_output(const inferd_client *client, const inferd_tensor *tensor,
                                  size_t index, struct inf_error *err)
{
    INF_TRY(check_name(tensor, "output", index, err));
    if (tensor->memory != NULL && tensor->data != NULL)
        return check_memory(client, tensor, "output", err);
    if (tensor->memory != NULL || tensor->data != NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "output '%s' has %s; wanted both (to have it written there) or none",
                               tensor->name,
                               tensor->data != NULL ? "data but no memory" : "memory but no data");
    return INF_OK;
}

static enum inf_code check_session_tensor(const inferd_request *request,
                                          const inferd_tensor *tensor, const char *role,
                                          struct inf_error *err)
{
    if (tensor->session_tensor == NULL)
        return INF_OK;
    if (request->session == NULL)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%.80s': session_tensor, but the request has no session", role,
                               tensor->name == NULL ? "" : tensor->name);
    size_t size = strnlen(tensor->session_tensor, INF_LIMIT_TENSOR_NAME + 1);
    if (size == 0 || size > INF_LIMIT_TENSOR_NAME)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "%s '%.80s': session_tensor has %zu bytes or more, wanted 1 to %u",
                               role, tensor->name == NULL ? "" : tensor->name, size,
                               INF_LIMIT_TENSOR_NAME);
    return INF_OK;
}

enum inf_code inf_client_request_check(const inferd_client *client, const inferd_request *request,
                                       struct inf_error *err)
{
    if (request->model == NULL || !inf_model_reference_valid(request->model))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER,
                               "'%.80s' is no model's name, wanted 1 to %u of A-Z a-z 0-9 . _ - "
                               "without a leading dot",
                               request->model == NULL ? "" : request->model, INF_LIMIT_MODEL_NAME);
    if (request->version != NULL && strlen(request->version) >= INF_CLIENT_VERSION_BYTES)
        return fail_parameter(err, "the version is too long", "at most 23 bytes");
    if (request->id != NULL && strlen(request->id) > INF_LIMIT_REQUEST_ID)
        return fail_parameter(err, "the id is too long", "at most 256 bytes");
    if (request->device != NULL && strlen(request->device) > INF_LIMIT_MODEL_NAME)
        return fail_parameter(err, "the device's name is too long", "at most 64 bytes");
    if ((unsigned)request->priority >= INF_WIRE_PRIORITY_COUNT)
        return fail_parameter(err, "there is no such priority", "one of enum inferd_priority");
    if (request->input_count > INF_LIMIT_TENSORS || request->output_count > INF_LIMIT_TENSORS)
        return fail_parameter(err, "too many tensors", "at most 64 inputs and 64 outputs");
    if (request->inputs == NULL && request->input_count != 0)
        return fail_parameter(err, "there are no inputs", "as many as input_count says");
    if (request->outputs == NULL && request->output_count != 0)
        return fail_parameter(err, "there are no outputs", "as many as output_count says");
    if (request->session != NULL && request->session->client != client)
        return fail_parameter(err, "the session is another client's", "one of this client");
    for (size_t i = 0; i < request->input_count; i++) {
        INF_TRY(check_session_tensor(request, &request->inputs[i], "input", err));
        INF_TRY(check_input(client, &request->inputs[i], i, err));
    }
    for (size_t i = 0; i < request->output_count; i++) {
        INF_TRY(check_session_tensor(request, &request->outputs[i], "output", err));
        INF_TRY(check_output(client, &request->outputs[i], i, err));
    }
    return INF_OK;
}
