// SPDX-License-Identifier: Apache-2.0
// Writes responses of GRPCInferenceService. The data of outputs is sent as raw contents, directly
// from the memory of the result.
#include "client/gateway/oip/response_proto.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "client/gateway/oip/proto_writer.h"

// Size of the prefix of a gRPC message: one byte that says whether the message is compressed, and
// four bytes for its length, high byte first.
#define PREFIX_BYTES 5
// Maximum size of the tag and the length of a field that contains a message, in bytes.
#define WRAP_BYTES 6

static void write_string(FILE *out, unsigned field, const char *text)
{
    if (text[0] != '\0')
        inf_proto_write_bytes(out, field, text, strlen(text));
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
        inf_proto_write_varint(inner, 3 << 3);
        inf_proto_write_varint(inner, (uint64_t)tensor->shape[i]);
    }
    if (fclose(inner) == 0)
        inf_proto_write_bytes(out, field, text, size);
    free(text);
}

// Writes the prefix of a message that is not compressed to the start of `text`.
static void set_prefix(char *text, size_t message_size)
{
    text[0] = 0;
    for (int i = 0; i < 4; i++)
        text[1 + i] = (char)(message_size >> (24 - 8 * i));
}

// Writes the tag and the length of a field in front of its contents, which begin at `contents`.
// Returns the first byte of the tag.
static char *wrap_contents(char *contents, unsigned field, uint64_t size)
{
    char bytes[WRAP_BYTES];
    size_t count = 0;
    bytes[count++] = (char)(field << 3 | 2);
    for (; size >= 0x80; size >>= 7)
        bytes[count++] = (char)((size & 0x7f) | 0x80);
    bytes[count++] = (char)size;
    return memcpy(contents - count, bytes, count);
}

static void write_infer_fields(FILE *out, const struct inf_oip_request *request,
                               const inferd_result *result, bool in_stream)
{
    // The parameter that Triton sets in each response of a stream: a map entry with the key, and an
    // InferParameter whose bool_param is true.
    static const char last[] = "\x0a\x15triton_final_response\x12\x02\x08\x01";
    write_string(out, 1, request->model);
    write_string(out, 2, inferd_result_model_version(result));
    write_string(out, 3, request->id);
    if (in_stream)
        inf_proto_write_bytes(out, 4, last, sizeof last - 1);
    for (size_t i = 0; i < inferd_result_output_count(result); i++)
        write_tensor(out, 5, inferd_result_output(result, i));
}

enum inf_code inf_oip_response_encode_proto(const struct inf_oip_request *request,
                                            const inferd_result *result, bool in_stream,
                                            char **text, struct iovec pieces[INF_OIP_PROTO_PIECES],
                                            size_t *piece_count, struct inf_error *err)
{
    static const char zeros[PREFIX_BYTES + WRAP_BYTES];
    size_t size = 0, total = 0, ends[1 + INF_LIMIT_TENSORS];
    size_t count = inferd_result_output_count(result);
    *text = NULL;
    FILE *out = count <= INF_LIMIT_TENSORS ? open_memstream(text, &size) : NULL;
    if (out == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for the answer");
    fwrite(zeros, 1, sizeof zeros, out);
    write_infer_fields(out, request, result, in_stream);
    fflush(out);
    ends[0] = size;
    for (size_t i = 0; i < count; i++) {
        inf_proto_write_varint(out, 6 << 3 | 2);
        inf_proto_write_varint(out, inferd_result_output(result, i)->size);
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
    char *begin = *text + sizeof zeros;
    uint64_t message_size = total + size - sizeof zeros;
    if (in_stream) {
        char *wrapped = wrap_contents(begin, 2, message_size);
        message_size += (uint64_t)(begin - wrapped);
        begin = wrapped;
    }
    begin -= PREFIX_BYTES;
    set_prefix(begin, message_size);
    *piece_count = 0;
    pieces[(*piece_count)++] = (struct iovec){begin, ends[0] - (size_t)(begin - *text)};
    for (size_t i = 0; i < count; i++) {
        const inferd_tensor *tensor = inferd_result_output(result, i);
        pieces[(*piece_count)++] = (struct iovec){*text + ends[i], ends[1 + i] - ends[i]};
        pieces[(*piece_count)++] = (struct iovec){tensor->data, tensor->size};
    }
    return INF_OK;
}

// Begins a message: opens a stream of bytes and leaves room for the prefix. Returns NULL if there
// is no memory.
static FILE *begin_message(char **text, size_t *size)
{
    *text = NULL;
    FILE *out = open_memstream(text, size);
    if (out != NULL)
        fwrite("\0\0\0\0", 1, PREFIX_BYTES, out);
    return out;
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
    char *text;
    FILE *out = begin_message(&text, size);
    if (out == NULL)
        return NULL;
    if (value != 0) {
        inf_proto_write_varint(out, field << 3);
        inf_proto_write_varint(out, value);
    }
    return end_message(out, &text, size);
}

char *inf_oip_server_encode_proto(const char *version, size_t *size)
{
    char *text;
    FILE *out = begin_message(&text, size);
    if (out == NULL)
        return NULL;
    write_string(out, 1, "inferd");
    write_string(out, 2, version);
    for (size_t i = 0; inf_oip_extensions[i] != NULL; i++)
        write_string(out, 3, inf_oip_extensions[i]);
    return end_message(out, &text, size);
}

char *inf_oip_model_encode_proto(const inferd_model_info *info, size_t *size)
{
    char *text;
    FILE *out = begin_message(&text, size);
    if (out == NULL)
        return NULL;
    write_string(out, 1, info->name);
    write_string(out, 2, info->version);
    write_string(out, 3, info->platform);
    for (size_t i = 0; i < info->input_count; i++)
        write_tensor(out, 4, &info->inputs[i]);
    for (size_t i = 0; i < info->output_count; i++)
        write_tensor(out, 5, &info->outputs[i]);
    return end_message(out, &text, size);
}

// A message inside another one.
struct inner {
    char *text;
    size_t size;
    FILE *out;
};

static bool begin_inner(struct inner *inner)
{
    *inner = (struct inner){0};
    inner->out = open_memstream(&inner->text, &inner->size);
    return inner->out != NULL;
}

static void end_inner(FILE *out, unsigned field, struct inner *inner)
{
    if (fclose(inner->out) == 0)
        inf_proto_write_bytes(out, field, inner->text, inner->size);
    free(inner->text);
}

char *inf_oip_stream_error_encode_proto(const struct inf_oip_request *request, const char *message,
                                        size_t *size)
{
    char *text;
    struct inner inner;
    FILE *out = begin_message(&text, size);
    if (out == NULL)
        return NULL;
    // A client recognises an error by a text that is not empty.
    write_string(out, 1, message[0] != '\0' ? message : "the inference failed");
    if (begin_inner(&inner)) {
        write_string(inner.out, 1, request->model);
        write_string(inner.out, 3, request->id);
        end_inner(out, 2, &inner);
    }
    return end_message(out, &text, size);
}

char *inf_oip_empty_encode_proto(size_t *size)
{
    char *text;
    FILE *out = begin_message(&text, size);
    return out != NULL ? end_message(out, &text, size) : NULL;
}

char *inf_oip_index_encode_proto(const inferd_model_row *rows, size_t count, bool only_ready,
                                 size_t *size)
{
    char *text;
    struct inner inner;
    FILE *out = begin_message(&text, size);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < count; i++) {
        if ((only_ready && strcmp(rows[i].state, "READY") != 0) || !begin_inner(&inner))
            continue;
        write_string(inner.out, 1, rows[i].name);
        write_string(inner.out, 2, rows[i].version);
        write_string(inner.out, 3, rows[i].state);
        write_string(inner.out, 4, rows[i].reason);
        end_inner(out, 1, &inner);
    }
    return end_message(out, &text, size);
}

// Writes a field with a StatisticDuration.
static void write_duration(FILE *out, unsigned field, const struct inf_oip_duration *duration)
{
    struct inner inner;
    if (!begin_inner(&inner))
        return;
    inf_proto_write_varint(inner.out, 1 << 3);
    inf_proto_write_varint(inner.out, duration->count);
    inf_proto_write_varint(inner.out, 2 << 3);
    inf_proto_write_varint(inner.out, duration->ns);
    end_inner(out, field, &inner);
}

char *inf_oip_statistics_encode_proto(const struct inf_oip_statistics *statistics, size_t *size)
{
    char *text;
    struct inner model, times;
    FILE *out = begin_message(&text, size);
    if (out == NULL)
        return NULL;
    for (size_t i = 0; i < statistics->count; i++) {
        const struct inf_oip_model_statistics *row = &statistics->rows[i];
        if (!begin_inner(&model))
            continue;
        write_string(model.out, 1, row->name);
        write_string(model.out, 2, row->version);
        inf_proto_write_varint(model.out, 4 << 3);
        inf_proto_write_varint(model.out, row->rows);
        if (begin_inner(&times)) {
            write_duration(times.out, 1, &row->success);
            write_duration(times.out, 2, &row->fail);
            write_duration(times.out, 3, &row->queue);
            write_duration(times.out, 5, &row->compute);
            end_inner(model.out, 6, &times);
        }
        end_inner(out, 1, &model);
    }
    return end_message(out, &text, size);
}
