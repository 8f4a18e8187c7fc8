// SPDX-License-Identifier: Apache-2.0
// Writes responses in JSON. jansson writes and escapes names and messages. Elements of tensors are
// printed directly, without a jansson object for each element, and a bounded number at a time, so
// that the event loop serves other clients meanwhile.
#include "client/gateway/oip/response_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/gateway/oip/elements_json.h"
#include "client/gateway/oip/strings.h"

// Makes room for `size` bytes behind the text. Returns NULL if there is no memory.
static char *reserve_text(struct inf_oip_response_encoder *encoder, size_t size)
{
    if (encoder->capacity - encoder->size < size) {
        size_t capacity = INF_MAX(encoder->capacity * 2, encoder->size + size);
        char *grown = realloc(encoder->text, capacity);
        if (grown == NULL)
            return NULL;
        encoder->text = grown;
        encoder->capacity = capacity;
    }
    return encoder->text + encoder->size;
}

static enum inf_code fail_memory(struct inf_error *err)
{
    return inf_fail(err, INF_EXHAUSTED, "no memory for the answer");
}

// Appends the string `text` with quotes if `quoted` is set, as it is otherwise.
static enum inf_code write_text(struct inf_oip_response_encoder *encoder, const char *text,
                                bool quoted, struct inf_error *err)
{
    char *escaped = NULL;
    if (quoted) {
        json_t *string = json_string(text);
        text = escaped = json_dumps(string, JSON_ENCODE_ANY);
        json_decref(string);
    }
    size_t size = text != NULL ? strlen(text) : 0;
    char *to = reserve_text(encoder, size);
    if (to != NULL && text != NULL)
        memcpy(to, text, size);
    encoder->size += to != NULL ? size : 0;
    bool ok = to != NULL && text != NULL;
    free(escaped);
    return ok ? INF_OK : fail_memory(err);
}

// Appends the member `name`, whose value is the string `value`. `before` is what separates it from
// the text before.
static enum inf_code write_member(struct inf_oip_response_encoder *encoder, const char *before,
                                  const char *name, const char *value, struct inf_error *err)
{
    INF_TRY(write_text(encoder, before, false, err));
    INF_TRY(write_text(encoder, name, true, err));
    INF_TRY(write_text(encoder, ":", false, err));
    return write_text(encoder, value, true, err);
}

static enum inf_code write_head(struct inf_oip_response_encoder *encoder, struct inf_error *err)
{
    const struct inf_oip_request *request = encoder->request;
    INF_TRY(write_member(encoder, "{", "model_name", request->model, err));
    INF_TRY(write_member(encoder, ",", "model_version",
                         inferd_result_model_version(encoder->result), err));
    if (request->id[0] != '\0')
        INF_TRY(write_member(encoder, ",", "id", request->id, err));
    return write_text(encoder, ",\"outputs\":[", false, err);
}

static size_t count_elements(const inferd_tensor *tensor)
{
    if (tensor->dtype != INFERD_BYTES)
        return tensor->size / inferd_dtype_size(tensor->dtype);
    size_t count = 1;
    for (int i = 0; i < tensor->rank; i++)
        count *= (size_t)tensor->shape[i];
    return count;
}

// Writes the name, type and shape of the current output, up to the bracket of its data, or all of
// it if the data is binary.
static enum inf_code begin_output(struct inf_oip_response_encoder *encoder, struct inf_error *err)
{
    const struct inf_oip_request *request = encoder->request;
    const inferd_tensor *tensor = inferd_result_output(encoder->result, encoder->output);
    bool binary = encoder->output < request->output_count
                      ? request->output_is_binary[encoder->output]
                      : request->all_binary;
    size_t count = count_elements(tensor);
    if (!binary && (tensor->dtype == INFERD_FP16 || tensor->dtype == INFERD_BF16 ||
                    count > INF_OIP_JSON_VALUES))
        return inf_fail(err, INF_INVALID,
                        "output '%s': %zu elements of %s are returned as binary data only",
                        tensor->name, count, inferd_dtype_name(tensor->dtype));
    char number[64];
    INF_TRY(write_member(encoder, encoder->output == 0 ? "{" : ",{", "name", tensor->name, err));
    INF_TRY(write_member(encoder, ",", "datatype", inferd_dtype_name(tensor->dtype), err));
    INF_TRY(write_text(encoder, ",\"shape\":[", false, err));
    for (int i = 0; i < tensor->rank; i++) {
        snprintf(number, sizeof number, i == 0 ? "%lld" : ",%lld", (long long)tensor->shape[i]);
        INF_TRY(write_text(encoder, number, false, err));
    }
    encoder->is_binary[encoder->output] = binary;
    encoder->element = encoder->offset = 0;
    encoder->in_data = !binary;
    if (!binary)
        return write_text(encoder, "],\"data\":[", false, err);
    snprintf(number, sizeof number, "],\"parameters\":{\"binary_data_size\":%zu}}", tensor->size);
    encoder->output++;
    return write_text(encoder, number, false, err);
}

static enum inf_code end_output(struct inf_oip_response_encoder *encoder, struct inf_error *err)
{
    encoder->in_data = false;
    encoder->output++;
    return write_text(encoder, "]}", false, err);
}

// Writes strings of the current output. A string costs an element, and one more for each 8 bytes.
static enum inf_code write_strings(struct inf_oip_response_encoder *encoder,
                                   const inferd_tensor *tensor, size_t count, size_t *elements_max,
                                   struct inf_error *err)
{
    inferd_string string;
    while (encoder->element<count && * elements_max> 0) {
        if (!inferd_string_next(tensor, &encoder->offset, &string))
            return inf_fail(err, INF_INTERNAL, "output '%s' has too few strings", tensor->name);
        char *to = reserve_text(encoder, INF_JSON_STRING_BYTES(string.size) + 1);
        if (to == NULL)
            return fail_memory(err);
        if (encoder->element > 0)
            *to++ = ',';
        size_t size = inf_json_string_print(to, string);
        if (size == 0)
            return inf_fail(err, INF_RANGE,
                            "output '%s': element %zu is not UTF-8; ask for binary data",
                            tensor->name, encoder->element);
        encoder->size = (size_t)(to + size - encoder->text);
        encoder->element++;
        *elements_max -= INF_MIN(1 + string.size / 8, *elements_max);
    }
    return INF_OK;
}

// Writes at most *elements_max elements of the current output, and subtracts their number.
static enum inf_code write_elements(struct inf_oip_response_encoder *encoder, size_t *elements_max,
                                    struct inf_error *err)
{
    const inferd_tensor *tensor = inferd_result_output(encoder->result, encoder->output);
    size_t count = count_elements(tensor);
    if (tensor->dtype == INFERD_BYTES) {
        INF_TRY(write_strings(encoder, tensor, count, elements_max, err));
        return encoder->element < count ? INF_OK : end_output(encoder, err);
    }
    size_t begin = encoder->element, end = begin + INF_MIN(count - begin, *elements_max);
    char *to = reserve_text(encoder, (end - begin) * (INF_JSON_ELEMENT_BYTES + 1));
    if (to == NULL)
        return fail_memory(err);
    for (size_t i = begin; i < end; i++) {
        if (i > 0)
            *to++ = ',';
        to += inf_json_element_print(to, tensor, i);
    }
    encoder->size = (size_t)(to - encoder->text);
    encoder->element = end;
    *elements_max -= end - begin;
    return end < count ? INF_OK : end_output(encoder, err);
}

enum inf_code inf_oip_response_encode(struct inf_oip_response_encoder *encoder, size_t elements_max,
                                      bool *done, struct inf_error *err)
{
    size_t count = inferd_result_output_count(encoder->result);
    *done = false;
    if (count > INF_LIMIT_TENSORS)
        return inf_fail(err, INF_INTERNAL, "the answer has %zu outputs", count);
    if (encoder->size == 0)
        INF_TRY(write_head(encoder, err));
    while (encoder->output < count) {
        if (!encoder->in_data)
            INF_TRY(begin_output(encoder, err));
        else if (elements_max > 0)
            INF_TRY(write_elements(encoder, &elements_max, err));
        else
            return INF_OK;
    }
    *done = true;
    return write_text(encoder, "]}", false, err);
}

void inf_oip_response_encoder_fini(struct inf_oip_response_encoder *encoder)
{
    free(encoder->text);
    encoder->text = NULL;
}

char *inf_oip_error_encode(const char *message)
{
    json_t *object = json_pack("{s:s}", "error", message);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

char *inf_oip_server_encode(const char *version)
{
    json_t *extensions = json_array();
    for (size_t i = 0; inf_oip_extensions[i] != NULL; i++)
        json_array_append_new(extensions, json_string(inf_oip_extensions[i]));
    json_t *object = json_pack("{s:s, s:s, s:o}", "name", "inferd", "version", version,
                               "extensions", extensions);
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

static json_t *encode_tensors(const inferd_tensor *tensors, size_t count)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++) {
        json_t *shape = json_array();
        for (int k = 0; k < tensors[i].rank; k++)
            json_array_append_new(shape, json_integer(tensors[i].shape[k]));
        json_array_append_new(list,
                              json_pack("{s:s, s:s, s:o}", "name", tensors[i].name, "datatype",
                                        inferd_dtype_name(tensors[i].dtype), "shape", shape));
    }
    return list;
}

char *inf_oip_model_encode(const inferd_model_info *info)
{
    json_t *object = json_pack("{s:s, s:[s], s:s, s:o, s:o}", "name", info->name, "versions",
                               info->version, "platform", info->platform, "inputs",
                               encode_tensors(info->inputs, info->input_count), "outputs",
                               encode_tensors(info->outputs, info->output_count));
    char *text = object == NULL ? NULL : json_dumps(object, JSON_COMPACT);
    json_decref(object);
    return text;
}

char *inf_oip_index_encode(const inferd_model_row *rows, size_t count, bool only_ready)
{
    json_t *list = json_array();
    for (size_t i = 0; i < count; i++)
        if (!only_ready || strcmp(rows[i].state, "READY") == 0)
            json_array_append_new(list, json_pack("{s:s, s:s, s:s, s:s}", "name", rows[i].name,
                                                  "version", rows[i].version, "state",
                                                  rows[i].state, "reason", rows[i].reason));
    char *text = json_dumps(list, JSON_COMPACT);
    json_decref(list);
    return text;
}

int inf_oip_http_status(const struct inferd_error *err)
{
    static const int statuses[] = {
        [INFERD_CANCELLED] = 499,
        [INFERD_INVALID_ARGUMENT] = 400,
        [INFERD_DEADLINE_EXCEEDED] = 504,
        [INFERD_NOT_FOUND] = 404,
        [INFERD_ALREADY_EXISTS] = 409,
        [INFERD_PERMISSION_DENIED] = 403,
        [INFERD_RESOURCE_EXHAUSTED] = 429,
        [INFERD_FAILED_PRECONDITION] = 409,
        [INFERD_ABORTED] = 409,
        [INFERD_OUT_OF_RANGE] = 400,
        [INFERD_UNIMPLEMENTED] = 501,
        [INFERD_INTERNAL] = 500,
        [INFERD_UNAVAILABLE] = 503,
    };
    if (strcmp(err->reason, "FRAME_TOO_LARGE") == 0)
        return 413;
    bool known = err->code > 0 && (size_t)err->code < INF_ARRAY_LENGTH(statuses);
    return known && statuses[err->code] != 0 ? statuses[err->code] : 500;
}

void inf_oip_error_convert(struct inferd_error *to, const struct inf_error *from)
{
    *to = (struct inferd_error){.code = (int)from->code};
    snprintf(to->reason, sizeof to->reason, "%s", inf_reason_name(from->reason));
    snprintf(to->text, sizeof to->text, "%s", from->text);
}
