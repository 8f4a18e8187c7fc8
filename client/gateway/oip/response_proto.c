// SPDX-License-Identifier: Apache-2.0
// Writes responses of GRPCInferenceService. The data of outputs is sent as raw contents, directly
// from the memory of the result.
#include "client/gateway/oip/response_proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Size of the prefix of a gRPC message: one byte that says whether the message is compressed, and
// four bytes for its length, high byte first.
#define PREFIX_BYTES 5

static void write_varint(FILE *out, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        fputc((int)(value & 0x7f) | 0x80, out);
    fputc((int)value, out);
}

static void write_bytes(FILE *out, unsigned field, const void *data, size_t size)
{
    write_varint(out, field << 3 | 2);
    write_varint(out, size);
    fwrite(data, 1, size, out);
}

static void write_string(FILE *out, unsigned field, const char *text)
{
    if (text[0] != '\0')
        write_bytes(out, field, text, strlen(text));
}

// Writes a field that is a message with name (field 1), datatype (field 2) and shape (field 3) of a
// tensor.
static void write_tensor(FILE *out, unsigned field, const inferd_tensor *tensor)
{
    char *text = NULL;
    size_t size = 0;
    FILE *inner = open_memstream(&text, &size);
    if (inner == NULL)
        return;
    write_string(inner, 1, tensor->name);
    write_string(inner, 2, inferd_dtype_name(tensor->dtype));
    for (int i = 0; i < tensor->rank; i++) {
        write_varint(inner, 3 << 3);
        write_varint(inner, (uint64_t)tensor->shape[i]);
    }
    if (fclose(inner) == 0)
        write_bytes(out, field, text, size);
    free(text);
}

// Writes the prefix of a message that is not compressed to the start of `text`.
static void set_prefix(char *text, size_t message_size)
{
    text[0] = 0;
    for (int i = 0; i < 4; i++)
        text[1 + i] = (char)(message_size >> (24 - 8 * i));
}

enum inf_code inf_oip_response_encode_proto(const struct inf_oip_request *request,
                                            const inferd_result *result, char **text,
                                            struct iovec pieces[INF_OIP_PROTO_PIECES],
                                            size_t *piece_count, struct inf_error *err)
{
    size_t size = 0, total = 0, ends[1 + INF_LIMIT_TENSORS];
    size_t count = inferd_result_output_count(result);
    *text = NULL;
    FILE *out = count <= INF_LIMIT_TENSORS ? open_memstream(text, &size) : NULL;
    if (out == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the answer");
    fwrite("\0\0\0\0", 1, PREFIX_BYTES, out);
    write_string(out, 1, request->model);
    write_string(out, 2, inferd_result_model_version(result));
    write_string(out, 3, request->id);
    for (size_t i = 0; i < count; i++)
        write_tensor(out, 5, inferd_result_output(result, i));
    fflush(out);
    ends[0] = size;
    for (size_t i = 0; i < count; i++) {
        write_varint(out, 6 << 3 | 2);
        write_varint(out, inferd_result_output(result, i)->size);
        fflush(out);
        ends[1 + i] = size;
        total += inferd_result_output(result, i)->size;
    }
    bool ok = !ferror(out);
    if (fclose(out) != 0 || !ok || total + size > UINT32_MAX) {
        free(*text);
        *text = NULL;
        return inf_fail(err, INF_EXHAUSTED, "no memory for the answer, or it is too large");
    }
    set_prefix(*text, total + size - PREFIX_BYTES);
    *piece_count = 0;
    pieces[(*piece_count)++] = (struct iovec){*text, ends[0]};
    for (size_t i = 0; i < count; i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        pieces[(*piece_count)++] = (struct iovec){*text + ends[i], ends[1 + i] - ends[i]};
        pieces[(*piece_count)++] = (struct iovec){tensor->data, tensor->size};
    }
    return INF_OK;
}

// Closes `out`, completes the prefix of the message in *text, and returns the message. Returns NULL
// and frees *text if there is no memory.
static char *end_message(FILE *out, char **text, const size_t *size)
{
    if (fclose(out) != 0) {
        free(*text);
        return NULL;
    }
    set_prefix(*text, *size - PREFIX_BYTES);
    return *text;
}

char *inf_oip_number_encode_proto(unsigned field, uint64_t value, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (out == NULL)
        return NULL;
    fwrite("\0\0\0\0", 1, PREFIX_BYTES, out);
    if (value != 0) {
        write_varint(out, field << 3);
        write_varint(out, value);
    }
    return end_message(out, &text, size);
}

char *inf_oip_server_encode_proto(const char *version, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (out == NULL)
        return NULL;
    fwrite("\0\0\0\0", 1, PREFIX_BYTES, out);
    write_string(out, 1, "inferd");
    write_string(out, 2, version);
    return end_message(out, &text, size);
}

char *inf_oip_model_encode_proto(const inferd_model_info *info, size_t *size)
{
    char *text = NULL;
    FILE *out = open_memstream(&text, size);
    if (out == NULL)
        return NULL;
    fwrite("\0\0\0\0", 1, PREFIX_BYTES, out);
    write_string(out, 1, info->name);
    write_string(out, 2, info->version);
    write_string(out, 3, info->platform);
    for (size_t i = 0; i < info->input_count; i++)
        write_tensor(out, 4, &info->inputs[i]);
    for (size_t i = 0; i < info->output_count; i++)
        write_tensor(out, 5, &info->outputs[i]);
    return end_message(out, &text, size);
}
