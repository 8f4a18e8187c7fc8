// SPDX-License-Identifier: Apache-2.0
// Decodes requests of GRPCInferenceService. The numbers of the fields are those of the protocol's
// grpc_service.proto. A tensor with two names or two contents is refused, although protobuf would
// use the last name and merge the contents. Of other strings that occur twice, the last one is
// used.
#include "client/gateway/oip/request_proto.h"

#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/proto_reader.h"
#include "client/gateway/oip/strings.h"
#include "proto/core/utf8.h"

// Room for the name of one tensor and its NUL, in bytes.
#define NAME_BYTES (INF_LIMIT_TENSOR_NAME + 1)

struct decoder {
    struct inf_oip_request *request;
    struct inf_error *err;
    size_t names;                                // number of names in request->names
    struct inf_span contents[INF_LIMIT_TENSORS]; // typed contents, by input; data NULL: none
    struct inf_span raw[INF_LIMIT_TENSORS];      // raw contents, by input
    size_t raw_count;
};

static enum inf_code fail_message(struct inf_error *err, const char *what)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_PARAMETER, "the request is invalid: %s",
                           what);
}

// Copies a field to `to` and appends NUL. Fails if the field is no valid UTF-8 string or has more
// than room - 1 bytes.
static enum inf_code copy_string(char *to, size_t room, const struct inf_proto_field *field,
                                 const char *what, struct inf_error *err)
{
    if (field->wire != INF_PROTO_BYTES || field->bytes.size >= room ||
        !inf_utf8_valid(field->bytes))
        return fail_message(err, what);
    if (field->bytes.size > 0)
        memcpy(to, field->bytes.data, field->bytes.size);
    to[field->bytes.size] = '\0';
    return INF_OK;
}

// Copies the name of a tensor into request->names. Fails if the tensor has a name already.
static enum inf_code copy_name(struct decoder *decoder, const char **name,
                               const struct inf_proto_field *field)
{
    char *to = decoder->request->names + decoder->names * NAME_BYTES;
    if (*name != NULL)
        return fail_message(decoder->err, "a tensor has two names");
    INF_TRY(copy_string(to, NAME_BYTES, field, "the name of a tensor", decoder->err));
    decoder->names++;
    *name = to;
    return INF_OK;
}

// An InferParameter: the number of the field of its value (0: it has none), and the value.
struct parameter {
    char key[64];
    uint32_t choice;
    uint64_t number;       // of a bool, an int64 or a uint64
    struct inf_span bytes; // of a string
};

// Numbers of the fields of InferParameter.
enum {
    CHOICE_BOOL = 1,
    CHOICE_INT64 = 2,
    CHOICE_STRING = 3,
    CHOICE_UINT64 = 5,
};

// Reads a map entry: a key and an InferParameter. A value with a wrong wire type counts as absent.
static enum inf_code read_parameter(struct inf_span entry, struct parameter *parameter,
                                    struct inf_error *err)
{
    struct inf_proto_field field, choice;
    int more;
    *parameter = (struct parameter){0};
    while ((more = inf_proto_read_field(&entry, &field)) > 0) {
        if (field.number == 1)
            INF_TRY(copy_string(parameter->key, sizeof parameter->key, &field,
                                "the name of a parameter", err));
        if (field.number != 2 || field.wire != INF_PROTO_BYTES)
            continue;
        while ((more = inf_proto_read_field(&field.bytes, &choice)) > 0) {
            bool text = choice.number == CHOICE_STRING;
            parameter->choice =
                choice.wire == (text ? INF_PROTO_BYTES : INF_PROTO_VARINT) ? choice.number : 0;
            parameter->number = choice.value;
            parameter->bytes = choice.bytes;
        }
        if (more < 0)
            break;
    }
    return more < 0 ? fail_message(err, "a parameter") : INF_OK;
}

static enum inf_code decode_number(const struct parameter *parameter, uint64_t *number,
                                   struct inf_error *err)
{
    if ((parameter->choice != CHOICE_INT64 && parameter->choice != CHOICE_UINT64) ||
        (parameter->choice == CHOICE_INT64 && parameter->number > INT64_MAX))
        return fail_message(err, "a parameter is no integer of 0 or more");
    *number = parameter->number;
    return INF_OK;
}

static enum inf_code decode_boolean(const struct parameter *parameter, bool *value,
                                    struct inf_error *err)
{
    if (parameter->choice != CHOICE_BOOL)
        return fail_message(err, "a parameter is neither true nor false");
    *value = parameter->number != 0;
    return INF_OK;
}

static enum inf_code set_parameter(struct inf_oip_request *request,
                                   const struct parameter *parameter, struct inf_error *err)
{
    uint64_t number;
    if (strcmp(parameter->key, "sequence_start") == 0)
        return decode_boolean(parameter, &request->sequence_start, err);
    if (strcmp(parameter->key, "sequence_end") == 0)
        return decode_boolean(parameter, &request->sequence_end, err);
    bool sequence = strcmp(parameter->key, "sequence_id") == 0;
    if (sequence && parameter->choice == CHOICE_STRING)
        return inf_oip_request_set_sequence_name(request, parameter->bytes, err);
    bool timeout = strcmp(parameter->key, "timeout") == 0;
    if (!timeout && !sequence && strcmp(parameter->key, "priority") != 0)
        return INF_OK;
    INF_TRY(decode_number(parameter, &number, err));
    if (timeout)
        inf_oip_request_set_timeout(request, number);
    else if (sequence)
        inf_oip_request_set_sequence_number(request, number);
    else
        inf_oip_request_set_priority(request, number);
    return INF_OK;
}

static enum inf_code decode_parameter(struct decoder *decoder, const struct inf_proto_field *field,
                                      bool of_request)
{
    struct parameter parameter;
    if (field->wire != INF_PROTO_BYTES)
        return fail_message(decoder->err, "a parameter");
    INF_TRY(read_parameter(field->bytes, &parameter, decoder->err));
    INF_TRY(inf_oip_parameter_check(parameter.key, decoder->err));
    return of_request ? set_parameter(decoder->request, &parameter, decoder->err) : INF_OK;
}

// Appends the dimensions in a field to `dims`: one dimension, or a packed list of dimensions.
static enum inf_code read_dims(const struct inf_proto_field *field, int64_t dims[INF_LIMIT_RANK],
                               size_t *rank, struct inf_error *err)
{
    struct inf_span list = field->bytes;
    uint64_t value = field->value;
    bool single = field->wire == INF_PROTO_VARINT;
    if (!single && field->wire != INF_PROTO_BYTES)
        return fail_message(err, "a shape is no list of integers");
    while (single || list.size > 0) {
        if (!single && !inf_proto_read_varint(&list, &value))
            return fail_message(err, "a shape is no list of integers");
        if (*rank == INF_LIMIT_RANK)
            return fail_message(err, "a shape has more than 8 dimensions");
        dims[(*rank)++] = (int64_t)value;
        if (single)
            break;
    }
    return INF_OK;
}

static enum inf_code decode_type(struct decoder *decoder, inferd_tensor *tensor,
                                 const struct inf_proto_field *field)
{
    char type[16];
    INF_TRY(copy_string(type, sizeof type, field, "a datatype", decoder->err));
    tensor->dtype = inferd_dtype_parse(type);
    return tensor->dtype != 0 ? INF_OK : fail_message(decoder->err, "a datatype");
}

static enum inf_code decode_input(struct decoder *decoder, struct inf_span message)
{
    struct inf_oip_request *request = decoder->request;
    size_t index = request->input_count;
    if (index == INF_LIMIT_TENSORS)
        return fail_message(decoder->err, "more than 64 inputs");
    inferd_tensor *tensor = &request->inputs[request->input_count++];
    int64_t dims[INF_LIMIT_RANK];
    size_t rank = 0;
    struct inf_proto_field field;
    int more;
    while ((more = inf_proto_read_field(&message, &field)) > 0) {
        if (field.number == 1)
            INF_TRY(copy_name(decoder, &tensor->name, &field));
        else if (field.number == 2)
            INF_TRY(decode_type(decoder, tensor, &field));
        else if (field.number == 3)
            INF_TRY(read_dims(&field, dims, &rank, decoder->err));
        else if (field.number == 4)
            INF_TRY(decode_parameter(decoder, &field, false));
        else if (field.number == 5 &&
                 (field.wire != INF_PROTO_BYTES || decoder->contents[index].data != NULL))
            return fail_message(decoder->err, "the contents of a tensor");
        else if (field.number == 5)
            decoder->contents[index] = field.bytes;
    }
    if (more < 0 || tensor->name == NULL || tensor->dtype == 0)
        return fail_message(decoder->err, "an input without name or datatype");
    return inf_oip_tensor_set_shape(tensor, dims, rank, decoder->err);
}

static enum inf_code decode_output(struct decoder *decoder, struct inf_span message)
{
    struct inf_oip_request *request = decoder->request;
    if (request->output_count == INF_LIMIT_TENSORS)
        return fail_message(decoder->err, "more than 64 outputs");
    inferd_tensor *tensor = &request->outputs[request->output_count++];
    struct inf_proto_field field;
    int more;
    while ((more = inf_proto_read_field(&message, &field)) > 0) {
        if (field.number == 1)
            INF_TRY(copy_name(decoder, &tensor->name, &field));
        else if (field.number == 2)
            INF_TRY(decode_parameter(decoder, &field, false));
    }
    if (more < 0 || tensor->name == NULL)
        return fail_message(decoder->err, "an output without a name");
    return INF_OK;
}

// For each element type: the number of the field of InferTensorContents that holds its elements (0:
// none), and the size of one element on the wire in bytes (0: a varint).
static const struct {
    uint32_t number;
    size_t wire_bytes;
} contents_fields[] = {
    [INFERD_BOOL] = {1, 0},   [INFERD_INT8] = {2, 0},   [INFERD_INT16] = {2, 0},
    [INFERD_INT32] = {2, 0},  [INFERD_INT64] = {3, 0},  [INFERD_UINT8] = {4, 0},
    [INFERD_UINT16] = {4, 0}, [INFERD_UINT32] = {4, 0}, [INFERD_UINT64] = {5, 0},
    [INFERD_FP16] = {0, 0},   [INFERD_BF16] = {0, 0},   [INFERD_FP32] = {6, 4},
    [INFERD_FP64] = {7, 8},
};

// Stores `value` as one element of a tensor. Returns false if the element type cannot represent it.
static bool store_element(const inferd_tensor *tensor, size_t index, uint64_t value)
{
    size_t size = inferd_dtype_size(tensor->dtype);
    if (tensor->dtype == INFERD_BOOL && value > 1)
        return false;
    bool is_signed = tensor->dtype >= INFERD_INT8 && tensor->dtype <= INFERD_INT32;
    if (is_signed) {
        int64_t limit = (int64_t)1 << (8 * size - 1), number = (int64_t)value;
        if (number < -limit || number >= limit)
            return false;
    } else if (size < 8 && tensor->dtype != INFERD_FP32 && value >> (8 * size) != 0) {
        return false;
    }
    memcpy((uint8_t *)tensor->data + index * size, &value, size); // little-endian: low bytes first
    return true;
}

// Returns the wire type of a single element that has `wire_bytes` bytes (0: a varint).
static enum inf_proto_wire element_wire(size_t wire_bytes)
{
    return wire_bytes == 0   ? INF_PROTO_VARINT
           : wire_bytes == 4 ? INF_PROTO_FIXED32
                             : INF_PROTO_FIXED64;
}

// Stores the elements of one field (a packed list or a single element) from the element *next on,
// and moves *next behind them. If tensor->data is NULL, only counts the elements. Returns false if
// the field is invalid or there are more than `count` elements.
static bool store_elements(const inferd_tensor *tensor, const struct inf_proto_field *field,
                           size_t count, size_t *next)
{
    size_t wire_bytes = contents_fields[tensor->dtype].wire_bytes;
    struct inf_span list = field->bytes;
    bool single = field->wire != INF_PROTO_BYTES;
    uint64_t value = field->value;
    if (single && field->wire != element_wire(wire_bytes))
        return false;
    while (single || list.size > 0) {
        if (!single && wire_bytes == 0 && !inf_proto_read_varint(&list, &value))
            return false;
        if (!single && wire_bytes != 0) {
            if (list.size < wire_bytes)
                return false;
            value = 0;
            memcpy(&value, list.data, wire_bytes);
            list.data += wire_bytes;
            list.size -= wire_bytes;
        }
        if (*next >= count || (tensor->data != NULL && !store_element(tensor, *next, value)))
            return false;
        (*next)++;
        if (single)
            break;
    }
    return true;
}

// Reads the typed contents of an input: stores the elements, or only counts them if tensor->data is
// NULL. Sets *next to their number. Returns false if the contents do not match the tensor.
static bool walk_contents(const inferd_tensor *tensor, struct inf_span contents, size_t *next)
{
    size_t count = tensor->size / inferd_dtype_size(tensor->dtype);
    struct inf_proto_field field;
    int more;
    *next = 0;
    while ((more = inf_proto_read_field(&contents, &field)) > 0)
        if (field.number != contents_fields[tensor->dtype].number ||
            !store_elements(tensor, &field, count, next))
            return false;
    return more == 0 && *next == count;
}

static enum inf_code decode_contents(struct decoder *decoder, size_t index)
{
    inferd_tensor *tensor = &decoder->request->inputs[index];
    struct inf_span contents = decoder->contents[index];
    size_t count;
    if (tensor->dtype == INFERD_BYTES) {
        enum inf_code code = inf_oip_strings_from_contents(tensor, contents, decoder->err);
        decoder->request->buffers[index] = tensor->data;
        return code;
    }
    // The elements are counted before memory is allocated, so that a request with a large shape and
    // few elements needs no memory.
    bool ok = walk_contents(tensor, contents, &count);
    if (ok)
        tensor->data = decoder->request->buffers[index] = calloc(1, INF_MAX(tensor->size, 1));
    if (ok && tensor->data == NULL)
        return inf_fail_reason(decoder->err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for input '%s'", tensor->name);
    if (!ok || !walk_contents(tensor, contents, &count))
        return inf_fail_reason(decoder->err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "input '%s': the contents are not %zu bytes of %s", tensor->name,
                               tensor->size, inferd_dtype_name(tensor->dtype));
    return INF_OK;
}

// Sets the data of each input, from its raw contents or its typed contents. Fails if only some of
// the inputs have raw contents.
static enum inf_code attach_data(struct decoder *decoder)
{
    struct inf_oip_request *request = decoder->request;
    if (decoder->raw_count != 0 && decoder->raw_count != request->input_count)
        return inf_fail_reason(decoder->err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%zu raw contents for %zu inputs", decoder->raw_count,
                               request->input_count);
    for (size_t i = 0; i < request->input_count; i++) {
        inferd_tensor *tensor = &request->inputs[i];
        if (decoder->raw_count == 0) {
            INF_TRY(decode_contents(decoder, i));
            continue;
        }
        bool fits = tensor->dtype == INFERD_BYTES ? decoder->raw[i].size >= tensor->size
                                                  : decoder->raw[i].size == tensor->size;
        if (decoder->contents[i].data != NULL || !fits)
            return inf_fail_reason(decoder->err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                                   "input '%s': %zu bytes of raw contents, the shape has %zu",
                                   tensor->name, decoder->raw[i].size, tensor->size);
        tensor->data = (void *)decoder->raw[i].data;
        tensor->size = decoder->raw[i].size;
    }
    return INF_OK;
}

static enum inf_code decode_field(struct decoder *decoder, const struct inf_proto_field *field)
{
    struct inf_oip_request *request = decoder->request;
    struct inf_error *err = decoder->err;
    if (field->number >= 1 && field->number <= 7 && field->wire != INF_PROTO_BYTES)
        return fail_message(err, "a field has the wrong type");
    switch (field->number) {
    case 1:
        return copy_string(request->model, sizeof request->model, field, "model_name", err);
    case 2:
        return copy_string(request->version, sizeof request->version, field, "model_version", err);
    case 3:
        return copy_string(request->id, sizeof request->id, field, "id", err);
    case 4:
        return decode_parameter(decoder, field, true);
    case 5:
        return decode_input(decoder, field->bytes);
    case 6:
        return decode_output(decoder, field->bytes);
    case 7:
        if (decoder->raw_count == INF_LIMIT_TENSORS)
            return fail_message(err, "more than 64 raw contents");
        decoder->raw[decoder->raw_count++] = field->bytes;
        return INF_OK;
    default:
        return INF_OK;
    }
}

enum inf_code inf_oip_request_decode_proto(struct inf_oip_request *request, struct inf_span message,
                                           struct inf_error *err)
{
    struct decoder decoder = {.request = request, .err = err};
    struct inf_proto_field field;
    int more;
    // Room for the maximum number of names. Only the pages of the names that occur are written, so
    // the others need no physical memory.
    request->names = malloc(2 * INF_LIMIT_TENSORS * NAME_BYTES);
    if (request->names == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for names");
    while ((more = inf_proto_read_field(&message, &field)) > 0)
        INF_TRY(decode_field(&decoder, &field));
    if (more < 0)
        return fail_message(err, "it is no ModelInferRequest");
    if (request->input_count == 0)
        return fail_message(err, "it has no inputs");
    return attach_data(&decoder);
}

enum inf_code inf_oip_name_decode_proto(struct inf_span message,
                                        char model[INF_LIMIT_MODEL_NAME + 1], char version[24],
                                        struct inf_error *err)
{
    struct inf_proto_field field;
    int more;
    model[0] = version[0] = '\0';
    while ((more = inf_proto_read_field(&message, &field)) > 0) {
        if (field.number == 1)
            INF_TRY(copy_string(model, INF_LIMIT_MODEL_NAME + 1, &field, "the name", err));
        else if (field.number == 2)
            INF_TRY(copy_string(version, 24, &field, "the version", err));
    }
    return more < 0 ? fail_message(err, "it is no valid message") : INF_OK;
}

enum inf_code inf_oip_index_decode_proto(struct inf_span message, bool *only_ready,
                                         struct inf_error *err)
{
    struct inf_proto_field field;
    int more;
    *only_ready = false;
    while ((more = inf_proto_read_field(&message, &field)) > 0)
        if (field.number == 2 && field.wire == INF_PROTO_VARINT)
            *only_ready = field.value != 0;
    return more < 0 ? fail_message(err, "it is no valid message") : INF_OK;
}

enum inf_code inf_oip_repository_decode_proto(struct inf_span message, bool is_load,
                                              char model[INF_LIMIT_MODEL_NAME + 1],
                                              struct inf_error *err)
{
    struct inf_proto_field field, entry;
    char key[64];
    int more;
    model[0] = '\0';
    while ((more = inf_proto_read_field(&message, &field)) > 0) {
        if (field.number == 2)
            INF_TRY(copy_string(model, INF_LIMIT_MODEL_NAME + 1, &field, "the name", err));
        if (field.number != 3)
            continue;
        if (field.wire != INF_PROTO_BYTES)
            return fail_message(err, "a parameter");
        while ((more = inf_proto_read_field(&field.bytes, &entry)) > 0) {
            if (entry.number != 1)
                continue;
            INF_TRY(copy_string(key, sizeof key, &entry, "the name of a parameter", err));
            INF_TRY(inf_oip_repository_parameter_check(key, is_load, err));
        }
        if (more < 0)
            break;
    }
    return more < 0 ? fail_message(err, "it is no valid message") : INF_OK;
}
