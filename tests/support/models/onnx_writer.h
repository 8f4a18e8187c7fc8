// SPDX-License-Identifier: Apache-2.0
// Writes ONNX models field by field, valid or not, for tests of the importer.
#ifndef INF_TESTS_SUPPORT_MODELS_ONNX_WRITER_H
#define INF_TESTS_SUPPORT_MODELS_ONNX_WRITER_H

#include <stddef.h>
#include <stdint.h>

#define INF_PB_WRITER_DEPTH 1024

// A protobuf message that is being written. An all-zero struct is an empty message. Functions abort
// if there is no memory.
struct inf_pb_writer {
    uint8_t *data;
    size_t size, capacity;
    size_t open[INF_PB_WRITER_DEPTH]; // offsets of the open nested messages
    uint32_t depth;
};

// Frees the bytes of the message.
void inf_pb_writer_fini(struct inf_pb_writer *writer);

// Appends a varint field.
void inf_pb_put_int(struct inf_pb_writer *writer, uint32_t field, int64_t value);
// Appends a FIXED32 field.
void inf_pb_put_float(struct inf_pb_writer *writer, uint32_t field, float value);
// Appends a FIXED64 field.
void inf_pb_put_double(struct inf_pb_writer *writer, uint32_t field, double value);
// Appends a field of bytes.
void inf_pb_put_bytes(struct inf_pb_writer *writer, uint32_t field, const void *data, size_t size);
// Appends a field with a text.
void inf_pb_put_text(struct inf_pb_writer *writer, uint32_t field, const char *text);

// Opens a nested message in a field. Later fields belong to the nested message until
// inf_pb_close().
void inf_pb_open(struct inf_pb_writer *writer, uint32_t field);
// Closes the innermost open message.
void inf_pb_close(struct inf_pb_writer *writer);

// --- writing the messages of an ONNX model ---

// Writes ir_version and one opset import.
void inf_onnx_put_head(struct inf_pb_writer *writer, int64_t opset);
// Adds an input (field 11) or output (field 12) to a graph. The type is a TensorProto.DataType;
// dimension -1 is a symbolic one.
void inf_onnx_put_port(struct inf_pb_writer *writer, uint32_t field, const char *name, int32_t type,
                       const int64_t *dims, uint32_t rank);
// Opens a node with one or two inputs (NULL: no second input) and one output. The caller may add
// attributes.
void inf_onnx_open_node(struct inf_pb_writer *writer, const char *op, const char *a, const char *b,
                        const char *output);
// Adds a constant tensor (an initialiser, field 5) of floats, stored as raw_data.
void inf_onnx_put_floats(struct inf_pb_writer *writer, const char *name, const int64_t *dims,
                         uint32_t rank, const float *data);
// Adds a constant tensor of rank 1 (an initialiser, field 5) of INT64, stored as raw_data.
void inf_onnx_put_int64s(struct inf_pb_writer *writer, const char *name, const int64_t *data,
                         uint32_t count);
// These add an attribute to the open node: a number, a text, or a list of them.
void inf_onnx_put_attr_int(struct inf_pb_writer *writer, const char *name, int64_t value);
void inf_onnx_put_attr_ints(struct inf_pb_writer *writer, const char *name, const int64_t *values,
                            uint32_t count);
void inf_onnx_put_attr_float(struct inf_pb_writer *writer, const char *name, float value);
void inf_onnx_put_attr_floats(struct inf_pb_writer *writer, const char *name, const float *values,
                              uint32_t count);
void inf_onnx_put_attr_text(struct inf_pb_writer *writer, const char *name, const char *text);
void inf_onnx_put_attr_texts(struct inf_pb_writer *writer, const char *name,
                             const char *const *texts, uint32_t count);

// The lists with their elements as arguments, for example INF_ONNX_INTS(&writer, "axes", 0, 2).
#define INF_ONNX_INTS(writer, name, ...)                                                           \
    inf_onnx_put_attr_ints(writer, name, (const int64_t[]){__VA_ARGS__},                           \
                           sizeof((const int64_t[]){__VA_ARGS__}) / sizeof(int64_t))
#define INF_ONNX_FLOATS(writer, name, ...)                                                         \
    inf_onnx_put_attr_floats(writer, name, (const float[]){__VA_ARGS__},                           \
                             sizeof((const float[]){__VA_ARGS__}) / sizeof(float))

#endif
