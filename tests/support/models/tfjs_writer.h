// SPDX-License-Identifier: Apache-2.0
// Writes small TensorFlow.js graph models for tests: DIRECTORY/model.json and
// DIRECTORY/weights.bin. Errors abort.
#ifndef INF_TESTS_SUPPORT_MODELS_TFJS_WRITER_H
#define INF_TESTS_SUPPORT_MODELS_TFJS_WRITER_H

#include <stddef.h>
#include <stdint.h>

// A model that is being written.
struct inf_tfjs_writer;

// Begins a model in an existing directory.
struct inf_tfjs_writer *inf_tfjs_writer_begin(const char *directory);

// Adds an input of the model, named `name` in the signature. `type` is "DT_FLOAT" or "DT_INT32";
// dimension -1 is unknown.
void inf_tfjs_writer_placeholder(struct inf_tfjs_writer *writer, const char *name, const char *type,
                                 const int64_t *dims, size_t rank);

// Adds a float constant with as many elements as the dimensions say.
void inf_tfjs_writer_floats(struct inf_tfjs_writer *writer, const char *name, const float *elements,
                            const int64_t *dims, size_t rank);

// As inf_tfjs_writer_floats(), for integers.
void inf_tfjs_writer_ints(struct inf_tfjs_writer *writer, const char *name, const int32_t *elements,
                          const int64_t *dims, size_t rank);

// Adds a node; `inputs` are references separated by commas ("a,b:1,^c"). The functions below set
// attributes of the last node.
void inf_tfjs_writer_node(struct inf_tfjs_writer *writer, const char *name, const char *op,
                          const char *inputs);
// {"i": "value"}
void inf_tfjs_writer_attr_int(struct inf_tfjs_writer *writer, const char *key, int64_t value);
// {"b": value}
void inf_tfjs_writer_attr_bool(struct inf_tfjs_writer *writer, const char *key, int value);
// {"f": value}
void inf_tfjs_writer_attr_float(struct inf_tfjs_writer *writer, const char *key, double value);
// {"type": "DT_FLOAT"}
void inf_tfjs_writer_attr_type(struct inf_tfjs_writer *writer, const char *key, const char *type);
// {"s": base64 of text}
void inf_tfjs_writer_attr_text(struct inf_tfjs_writer *writer, const char *key, const char *text);
// {"list": {"i": [...]}}
void inf_tfjs_writer_attr_ints(struct inf_tfjs_writer *writer, const char *key,
                               const int64_t *values, size_t count);
// {"list": {"s": [...]}}, from texts with commas between them
void inf_tfjs_writer_attr_texts(struct inf_tfjs_writer *writer, const char *key, const char *texts);

// Makes a tensor ("node", "node:1") the output `key` of the signature. A model without such a call
// has no signature.
void inf_tfjs_writer_output(struct inf_tfjs_writer *writer, const char *key, const char *tensor);

// Writes the files and frees the writer.
void inf_tfjs_writer_end(struct inf_tfjs_writer *writer);

// --- ready-made models ---

// a, b FP32 [-1,4]; y FP32 [-1,4] = a + b.
void inf_write_add_model(const char *directory);

// x FP32 [-1,8,8,3]; y FP32 [-1,2,2,4]: zero pad by 1, 3x3 convolution with stride 2, bias, relu,
// 2x2 max pool. The filter picks one element of each window, so that
//   y[n,p,q,k] = max over i in {2p,2p+1}, j in {2q,2q+1} of
//                max(0, (k + 1) * x[n,2i,2j,k % 3] + bias[k]),   bias = {0, 0.5, -1, 2}.
void inf_write_conv_model(const char *directory);

// x FP32 [elements], or [-1] if `elements` is 0; y FP32 = the first four elements of x, or fewer.
// It measures the cost of a request: almost nothing of x is read.
void inf_write_null_model(const char *directory, int64_t elements);

#endif
