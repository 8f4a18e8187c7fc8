// SPDX-License-Identifier: Apache-2.0
// Decodes an inference request in JSON, with or without binary tensors behind it.
//
// Binary tensors follow the JSON text in the order of the inputs, without gaps. Each input with a
// binary_data_size takes that number of bytes. A request is refused if bytes are missing or left
// over.
//
// The text is read in three steps, the first and the last of which can be interrupted: the outline
// is separated from the data of the inputs; jansson parses the outline, which is small; the
// elements of each input are read from the text into memory that has the final size.
#include "client/gateway/oip/request_json.h"

#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/json_guard.h"

// Minimum size of a tensor for shared memory, in bytes. libinferd sends smaller tensors through the
// socket.
#define SHARED_MIN_BYTES ((size_t)16 << 10)
// Time to parse a byte of the outline, compared with that of a byte of data.
#define OUTLINE_COST 4u

static enum inf_code fail_json(struct inf_error *err, const char *what)
{
    return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON, "the request is invalid: %s",
                           what);
}

// Fails if `parameters` of a request, an input or an output is no object or has a parameter that
// inferd does not support. NULL is allowed.
static enum inf_code check_parameters(const json_t *parameters, struct inf_error *err)
{
    if (parameters != NULL && !json_is_object(parameters))
        return fail_json(err, "'parameters' is no object");
    const char *name;
    const json_t *value;
    json_object_foreach((json_t *)parameters, name, value)
        INF_TRY(inf_oip_parameter_check(name, err));
    return INF_OK;
}

// Reads a parameter, which must be an integer of 0 or more. If the parameter is absent, *number is
// not changed.
static enum inf_code read_number(const json_t *parameters, const char *name, uint64_t *number,
                                 struct inf_error *err)
{
    const json_t *value = json_object_get(parameters, name);
    if (value == NULL)
        return INF_OK;
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "the parameter '%s' is no integer of 0 or more", name);
    *number = (uint64_t)json_integer_value(value);
    return INF_OK;
}

static enum inf_code read_boolean(const json_t *parameters, const char *name, bool *flag,
                                  struct inf_error *err)
{
    const json_t *value = json_object_get(parameters, name);
    if (value != NULL && !json_is_boolean(value))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "the parameter '%s' is neither true nor false", name);
    if (value != NULL)
        *flag = json_is_true(value);
    return INF_OK;
}

// Reads the parameters of a sequence.
static enum inf_code read_sequence(struct inf_oip_request *request, const json_t *parameters,
                                   struct inf_error *err)
{
    const json_t *id = json_object_get(parameters, "sequence_id");
    uint64_t number = 0;
    INF_TRY(read_boolean(parameters, "sequence_start", &request->sequence_start, err));
    INF_TRY(read_boolean(parameters, "sequence_end", &request->sequence_end, err));
    if (json_is_string(id)) {
        struct inf_span name = {(const uint8_t *)json_string_value(id), json_string_length(id)};
        return inf_oip_request_set_sequence_name(request, name, err);
    }
    INF_TRY(read_number(parameters, "sequence_id", &number, err));
    inf_oip_request_set_sequence_number(request, number);
    return INF_OK;
}

static enum inf_code decode_request_fields(struct inf_oip_request *request, struct inf_error *err)
{
    const json_t *id = json_object_get(request->json, "id");
    const json_t *parameters = json_object_get(request->json, "parameters");
    if (id != NULL && (!json_is_string(id) || json_string_length(id) > INF_LIMIT_REQUEST_ID))
        return fail_json(err, "'id' is no string of at most 256 bytes");
    if (id != NULL)
        memcpy(request->id, json_string_value(id), json_string_length(id) + 1);
    INF_TRY(check_parameters(parameters, err));
    uint64_t timeout_us = 0, priority = 0;
    INF_TRY(read_number(parameters, "timeout", &timeout_us, err));
    INF_TRY(read_number(parameters, "priority", &priority, err));
    INF_TRY(read_boolean(parameters, "binary_data_output", &request->all_binary, err));
    inf_oip_request_set_timeout(request, timeout_us);
    inf_oip_request_set_priority(request, priority);
    return read_sequence(request, parameters, err);
}

static enum inf_code decode_name(inferd_tensor *tensor, const json_t *object, struct inf_error *err)
{
    const json_t *name = json_object_get(object, "name");
    if (!json_is_string(name) || json_string_length(name) > INF_LIMIT_TENSOR_NAME)
        return fail_json(err, "a tensor has no valid 'name'");
    tensor->name = json_string_value(name);
    return INF_OK;
}

static enum inf_code decode_type(inferd_tensor *tensor, const json_t *object, struct inf_error *err)
{
    const char *type = json_string_value(json_object_get(object, "datatype"));
    tensor->dtype = inferd_dtype_parse(type);
    if (tensor->dtype == 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_DTYPE_MISMATCH,
                               "input '%s' has no valid 'datatype'", tensor->name);
    const json_t *shape = json_object_get(object, "shape");
    int64_t dims[INF_LIMIT_RANK] = {0};
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape) || rank > INF_LIMIT_RANK)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                               "input '%s' has no 'shape' of at most %d dimensions", tensor->name,
                               INF_LIMIT_RANK);
    for (size_t i = 0; i < rank; i++) {
        const json_t *dim = json_array_get(shape, i);
        if (!json_is_integer(dim))
            return inf_fail_reason(err, INF_INVALID, INF_REASON_SHAPE_MISMATCH,
                                   "input '%s': dimension %zu is no integer", tensor->name, i);
        dims[i] = json_integer_value(dim);
    }
    return inf_oip_tensor_set_shape(tensor, dims, rank, err);
}

// Allocates the memory of an input whose elements are in JSON, and begins to read them.
static enum inf_code begin_elements(struct inf_oip_json_decoder *decoder, struct inf_error *err)
{
    struct inf_oip_request *request = decoder->request;
    size_t index = decoder->inputs[decoder->next];
    inferd_tensor *tensor = &request->inputs[index];
    INF_TRY(inf_json_elements_begin(&decoder->elements, tensor,
                                    decoder->outline.data[decoder->next], err));
    size_t size = inf_json_elements_room(&decoder->elements);
    if (decoder->charge != NULL && !decoder->charge(decoder->context, size))
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "the bodies of other requests need all memory");
    inferd_memory **memory = &request->memories[index];
    if (decoder->client != NULL && size >= SHARED_MIN_BYTES &&
        inferd_memory_alloc(decoder->client, size, memory, NULL) == INFERD_OK) {
        tensor->data = inferd_memory_data(*memory);
        tensor->memory = *memory;
    } else {
        tensor->data = request->buffers[index] = malloc(INF_MAX(size, 1));
    }
    if (tensor->data == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory for input '%s'",
                               tensor->name);
    decoder->elements.tensor = tensor;
    return INF_OK;
}

// Finds the data of an input, whose place in the outline has its index. The indexes must occur in
// their order, so that no two inputs have the same data.
static enum inf_code find_elements(struct inf_oip_json_decoder *decoder, size_t index,
                                   const json_t *data, struct inf_error *err)
{
    if (!json_is_integer(data) || json_integer_value(data) != (json_int_t)decoder->found ||
        decoder->found == decoder->outline.data_count)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s': 'data' is no array",
                               decoder->request->inputs[index].name);
    decoder->inputs[decoder->found++] = index;
    return INF_OK;
}

static enum inf_code decode_input(struct inf_oip_json_decoder *decoder, size_t index,
                                  const json_t *object, struct inf_error *err)
{
    struct inf_oip_request *request = decoder->request;
    struct inf_span *binary = &decoder->binary;
    inferd_tensor *tensor = &request->inputs[index];
    INF_TRY(decode_name(tensor, object, err));
    INF_TRY(decode_type(tensor, object, err));
    const json_t *parameters = json_object_get(object, "parameters");
    const json_t *data = json_object_get(object, "data");
    INF_TRY(check_parameters(parameters, err));
    uint64_t size = UINT64_MAX;
    INF_TRY(read_number(parameters, "binary_data_size", &size, err));
    if ((size == UINT64_MAX) == (data == NULL))
        return inf_fail_reason(err, INF_INVALID, INF_REASON_BAD_JSON,
                               "input '%s' has not either 'data' or 'binary_data_size'",
                               tensor->name);
    if (data != NULL)
        return find_elements(decoder, index, data, err);
    bool fits = tensor->dtype == INFERD_BYTES ? size >= tensor->size : size == tensor->size;
    if (!fits || size > binary->size)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "input '%s': binary_data_size is %llu, the shape has %zu bytes, and "
                               "%zu bytes follow",
                               tensor->name, (unsigned long long)size, tensor->size, binary->size);
    tensor->data = (void *)binary->data;
    tensor->size = (size_t)size;
    binary->data += size;
    binary->size -= (size_t)size;
    return INF_OK;
}

static enum inf_code decode_inputs(struct inf_oip_json_decoder *decoder, struct inf_error *err)
{
    struct inf_oip_request *request = decoder->request;
    const json_t *inputs = json_object_get(request->json, "inputs");
    size_t count = json_array_size(inputs);
    if (!json_is_array(inputs) || count == 0 || count > INF_LIMIT_TENSORS)
        return fail_json(err, "'inputs' is no array of 1 to 64 tensors");
    for (size_t i = 0; i < count; i++) {
        request->input_count = i + 1;
        INF_TRY(decode_input(decoder, i, json_array_get(inputs, i), err));
    }
    if (decoder->binary.size != 0)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_SIZE_MISMATCH,
                               "%zu bytes follow the last binary tensor", decoder->binary.size);
    return INF_OK;
}

static enum inf_code decode_outputs(struct inf_oip_request *request, struct inf_error *err)
{
    const json_t *outputs = json_object_get(request->json, "outputs");
    size_t count = json_array_size(outputs);
    if (outputs != NULL && (!json_is_array(outputs) || count > INF_LIMIT_TENSORS))
        return fail_json(err, "'outputs' is no array of at most 64 tensors");
    for (size_t i = 0; i < count; i++) {
        const json_t *object = json_array_get(outputs, i);
        const json_t *parameters = json_object_get(object, "parameters");
        INF_TRY(decode_name(&request->outputs[i], object, err));
        INF_TRY(check_parameters(parameters, err));
        request->output_is_binary[i] = request->all_binary;
        INF_TRY(read_boolean(parameters, "binary_data", &request->output_is_binary[i], err));
    }
    request->output_count = count;
    return INF_OK;
}

// Decodes all but the elements of the inputs.
static enum inf_code decode_outline(struct inf_oip_json_decoder *decoder, struct inf_error *err)
{
    struct inf_oip_request *request = decoder->request;
    struct inf_span outline = {(const uint8_t *)decoder->outline.bytes, decoder->outline.size};
    INF_TRY(inf_oip_json_parse(outline, &request->json, err));
    if (!json_is_object(request->json))
        return fail_json(err, "it is no JSON object");
    INF_TRY(decode_request_fields(request, err));
    INF_TRY(decode_inputs(decoder, err));
    return decode_outputs(request, err);
}

// Sets the size of an input whose elements are read.
static void end_elements(struct inf_oip_json_decoder *decoder)
{
    inferd_tensor *tensor = &decoder->request->inputs[decoder->inputs[decoder->next]];
    const uint8_t *end = decoder->elements.strings.to;
    if (tensor->dtype == INFERD_BYTES)
        tensor->size = end != NULL ? (size_t)(end - (const uint8_t *)tensor->data) : 0;
    decoder->elements.tensor = NULL;
}

// Reads elements of the inputs. Sets *done to true if all are read.
static enum inf_code decode_elements(struct inf_oip_json_decoder *decoder, size_t bytes_max,
                                     bool *done, struct inf_error *err)
{
    *done = decoder->next == decoder->found;
    while (!*done && bytes_max > 0) {
        if (decoder->elements.tensor == NULL)
            INF_TRY(begin_elements(decoder, err));
        const char *begin = decoder->elements.at;
        bool input_done;
        INF_TRY(inf_json_elements_read(&decoder->elements, bytes_max, &input_done, err));
        bytes_max -= INF_MIN((size_t)(decoder->elements.at - begin), bytes_max);
        if (input_done) {
            end_elements(decoder);
            *done = ++decoder->next == decoder->found;
        }
    }
    return INF_OK;
}

enum inf_code inf_oip_json_decode(struct inf_oip_json_decoder *decoder, size_t bytes_max,
                                  bool *done, struct inf_error *err)
{
    *done = false;
    if (decoder->outline.text.size > INF_OIP_JSON_BYTES)
        return inf_fail_reason(err, INF_INVALID, INF_REASON_FRAME_TOO_LARGE,
                               "the JSON text has %zu bytes, the maximum is %zu; send the tensors "
                               "as binary data",
                               decoder->outline.text.size, INF_OIP_JSON_BYTES);
    if (decoder->request->json == NULL) {
        size_t begin = decoder->outline.at;
        bool read;
        INF_TRY(inf_json_outline_read(&decoder->outline, bytes_max, &read, err));
        if (!read)
            return INF_OK;
        INF_TRY(decode_outline(decoder, err));
        size_t cost = decoder->outline.at - begin + decoder->outline.size * OUTLINE_COST;
        bytes_max -= INF_MIN(cost, bytes_max);
    }
    return decode_elements(decoder, bytes_max, done, err);
}

void inf_oip_json_decoder_fini(struct inf_oip_json_decoder *decoder)
{
    inf_json_outline_fini(&decoder->outline);
}

enum inf_code inf_oip_request_decode(struct inf_oip_request *request, struct inf_span json,
                                     struct inf_span binary, struct inf_error *err)
{
    struct inf_oip_json_decoder decoder = {
        .request = request, .outline.text = json, .binary = binary};
    bool done = false;
    enum inf_code code = INF_OK;
    while (code == INF_OK && !done)
        code = inf_oip_json_decode(&decoder, SIZE_MAX, &done, err);
    inf_oip_json_decoder_fini(&decoder);
    return code;
}
