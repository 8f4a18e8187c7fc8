// SPDX-License-Identifier: Apache-2.0
// Writes protobuf messages and ONNX models.
#include "tests/support/models/onnx_writer.h"

#include <stdlib.h>
#include <string.h>

void inf_pb_writer_fini(struct inf_pb_writer *writer)
{
    free(writer->data);
    *writer = (struct inf_pb_writer){0};
}

static void append_bytes(struct inf_pb_writer *writer, const void *data, size_t size)
{
    if (writer->size + size > writer->capacity) {
        writer->capacity = (writer->size + size) * 2;
        writer->data = realloc(writer->data, writer->capacity);
        if (writer->data == NULL)
            abort();
    }
    if (size > 0)
        memcpy(writer->data + writer->size, data, size);
    writer->size += size;
}

// Writes a varint to `out`, which has room for 10 bytes. Returns its length.
static size_t encode_varint(uint8_t *out, uint64_t value)
{
    size_t size = 0;
    do {
        out[size++] = (uint8_t)((value & 127) | (value > 127 ? 128 : 0));
        value >>= 7;
    } while (value != 0);
    return size;
}

static void put_varint(struct inf_pb_writer *writer, uint64_t value)
{
    uint8_t bytes[10];
    append_bytes(writer, bytes, encode_varint(bytes, value));
}

void inf_pb_put_int(struct inf_pb_writer *writer, uint32_t field, int64_t value)
{
    put_varint(writer, (uint64_t)field << 3);
    put_varint(writer, (uint64_t)value);
}

void inf_pb_put_float(struct inf_pb_writer *writer, uint32_t field, float value)
{
    put_varint(writer, (uint64_t)field << 3 | 5);
    append_bytes(writer, &value, sizeof value);
}

void inf_pb_put_double(struct inf_pb_writer *writer, uint32_t field, double value)
{
    put_varint(writer, (uint64_t)field << 3 | 1);
    append_bytes(writer, &value, sizeof value);
}

void inf_pb_put_bytes(struct inf_pb_writer *writer, uint32_t field, const void *data, size_t size)
{
    put_varint(writer, (uint64_t)field << 3 | 2);
    put_varint(writer, size);
    append_bytes(writer, data, size);
}

void inf_pb_put_text(struct inf_pb_writer *writer, uint32_t field, const char *text)
{
    inf_pb_put_bytes(writer, field, text, strlen(text));
}

void inf_pb_open(struct inf_pb_writer *writer, uint32_t field)
{
    if (writer->depth == INF_PB_WRITER_DEPTH)
        abort();
    put_varint(writer, (uint64_t)field << 3 | 2);
    writer->open[writer->depth++] = writer->size;
}

void inf_pb_close(struct inf_pb_writer *writer)
{
    uint8_t length[10];
    size_t begin = writer->open[--writer->depth];
    size_t size = encode_varint(length, writer->size - begin);
    append_bytes(writer, length, size);
    // The length precedes the message, so make room for it.
    memmove(writer->data + begin + size, writer->data + begin, writer->size - size - begin);
    memcpy(writer->data + begin, length, size);
}

void inf_onnx_put_head(struct inf_pb_writer *writer, int64_t opset)
{
    inf_pb_put_int(writer, 1, 8);
    inf_pb_put_text(writer, 2, "a test");
    inf_pb_open(writer, 8);
    inf_pb_put_text(writer, 1, "");
    inf_pb_put_int(writer, 2, opset);
    inf_pb_close(writer);
}

void inf_onnx_put_port(struct inf_pb_writer *writer, uint32_t field, const char *name, int32_t type,
                       const int64_t *dims, uint32_t rank)
{
    inf_pb_open(writer, field);
    inf_pb_put_text(writer, 1, name);
    inf_pb_open(writer, 2);
    inf_pb_open(writer, 1);
    inf_pb_put_int(writer, 1, type);
    inf_pb_open(writer, 2);
    for (uint32_t i = 0; i < rank; i++) {
        inf_pb_open(writer, 1);
        if (dims[i] >= 0)
            inf_pb_put_int(writer, 1, dims[i]);
        else
            inf_pb_put_text(writer, 2, "N");
        inf_pb_close(writer);
    }
    for (int i = 0; i < 4; i++)
        inf_pb_close(writer);
}

void inf_onnx_open_node(struct inf_pb_writer *writer, const char *op, const char *a, const char *b,
                        const char *output)
{
    inf_pb_open(writer, 1);
    if (a != NULL)
        inf_pb_put_text(writer, 1, a);
    if (b != NULL)
        inf_pb_put_text(writer, 1, b);
    inf_pb_put_text(writer, 2, output);
    inf_pb_put_text(writer, 4, op);
}

static void open_tensor(struct inf_pb_writer *writer, const char *name, int32_t type,
                        const int64_t *dims, uint32_t rank)
{
    inf_pb_open(writer, 5);
    for (uint32_t i = 0; i < rank; i++)
        inf_pb_put_int(writer, 1, dims[i]);
    inf_pb_put_int(writer, 2, type);
    inf_pb_put_text(writer, 8, name);
}

void inf_onnx_put_floats(struct inf_pb_writer *writer, const char *name, const int64_t *dims,
                         uint32_t rank, const float *data)
{
    size_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= (size_t)dims[i];
    open_tensor(writer, name, 1, dims, rank);
    inf_pb_put_bytes(writer, 9, data, count * sizeof *data);
    inf_pb_close(writer);
}

void inf_onnx_put_int64s(struct inf_pb_writer *writer, const char *name, const int64_t *data,
                         uint32_t count)
{
    int64_t dim = count;
    open_tensor(writer, name, 7, &dim, 1);
    inf_pb_put_bytes(writer, 9, data, count * sizeof *data);
    inf_pb_close(writer);
}

static void open_attr(struct inf_pb_writer *writer, const char *name, int64_t type)
{
    inf_pb_open(writer, 5);
    inf_pb_put_text(writer, 1, name);
    inf_pb_put_int(writer, 20, type);
}

void inf_onnx_put_attr_int(struct inf_pb_writer *writer, const char *name, int64_t value)
{
    open_attr(writer, name, 2);
    inf_pb_put_int(writer, 3, value);
    inf_pb_close(writer);
}

void inf_onnx_put_attr_ints(struct inf_pb_writer *writer, const char *name, const int64_t *values,
                            uint32_t count)
{
    open_attr(writer, name, 7);
    for (uint32_t i = 0; i < count; i++)
        inf_pb_put_int(writer, 8, values[i]);
    inf_pb_close(writer);
}

void inf_onnx_put_attr_float(struct inf_pb_writer *writer, const char *name, float value)
{
    open_attr(writer, name, 1);
    inf_pb_put_float(writer, 2, value);
    inf_pb_close(writer);
}

void inf_onnx_put_attr_floats(struct inf_pb_writer *writer, const char *name, const float *values,
                              uint32_t count)
{
    open_attr(writer, name, 6);
    for (uint32_t i = 0; i < count; i++)
        inf_pb_put_float(writer, 7, values[i]);
    inf_pb_close(writer);
}

void inf_onnx_put_attr_text(struct inf_pb_writer *writer, const char *name, const char *text)
{
    open_attr(writer, name, 3);
    inf_pb_put_text(writer, 4, text);
    inf_pb_close(writer);
}

void inf_onnx_put_attr_texts(struct inf_pb_writer *writer, const char *name,
                             const char *const *texts, uint32_t count)
{
    open_attr(writer, name, 8);
    for (uint32_t i = 0; i < count; i++)
        inf_pb_put_text(writer, 9, texts[i]);
    inf_pb_close(writer);
}
