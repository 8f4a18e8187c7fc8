// SPDX-License-Identifier: Apache-2.0
// Writes responses in JSON. jansson writes and escapes names and messages. Elements of tensors are
// printed directly, without a jansson object for each element.
#include "client/gateway/oip/response_json.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jansson.h>

#include "client/gateway/oip/tensor_json.h"

static void write_string(FILE *out, const char *text)
{
    json_t *string = json_string(text);
    if (string == NULL || json_dumpf(string, out, JSON_ENCODE_ANY) != 0)
        fputs("\"\"", out);
    json_decref(string);
}

static void write_shape(FILE *out, const inferd_tensor *tensor)
{
    fputs(",\"shape\":[", out);
    for (int i = 0; i < tensor->rank; i++)
        fprintf(out, i == 0 ? "%lld" : ",%lld", (long long)tensor->shape[i]);
    fputc(']', out);
}

static void write_tensor_type(FILE *out, const inferd_tensor *tensor)
{
    fputs("{\"name\":", out);
    write_string(out, tensor->name);
    fprintf(out, ",\"datatype\":\"%s\"", inferd_dtype_name(tensor->dtype));
    write_shape(out, tensor);
}

static enum inf_code write_outputs(FILE *out, const struct inf_oip_request *request,
                                   const inferd_result *result, bool is_binary[INF_LIMIT_TENSORS],
                                   struct inf_error *err)
{
    size_t count = inferd_result_output_count(result);
    if (count > INF_LIMIT_TENSORS)
        return inf_fail(err, INF_INTERNAL, "the answer has %zu outputs", count);
    for (size_t i = 0; i < count; i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        is_binary[i] =
            i < request->output_count ? request->output_is_binary[i] : request->all_binary;
        if (i > 0)
            fputc(',', out);
        write_tensor_type(out, tensor);
        if (is_binary[i]) {
            fprintf(out, ",\"parameters\":{\"binary_data_size\":%zu}}", tensor->size);
            continue;
        }
        fputs(",\"data\":", out);
        INF_TRY(inf_oip_tensor_to_json(tensor, out, err));
        fputc('}', out);
    }
    return INF_OK;
}

enum inf_code inf_oip_response_encode(const struct inf_oip_request *request,
                                      const inferd_result *result, char **text, size_t *size,
                                      bool is_binary[INF_LIMIT_TENSORS], struct inf_error *err)
{
    *text = NULL;
    FILE *out = open_memstream(text, size);
    if (out == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the answer");
    fputs("{\"model_name\":", out);
    write_string(out, request->model);
    fputs(",\"model_version\":", out);
    write_string(out, inferd_result_model_version(result));
    if (request->id[0] != '\0') {
        fputs(",\"id\":", out);
        write_string(out, request->id);
    }
    fputs(",\"outputs\":[", out);
    enum inf_code code = write_outputs(out, request, result, is_binary, err);
    fputs("]}", out);
    if (fclose(out) != 0 && code == INF_OK)
        code = inf_fail(err, INF_EXHAUSTED, "no memory for the answer");
    if (code != INF_OK) {
        free(*text);
        *text = NULL;
    }
    return code;
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
