// SPDX-License-Identifier: Apache-2.0
// Writes small TensorFlow.js graph models for tests: DIRECTORY/model.json and
// DIRECTORY/weights.bin. Errors abort.
#ifndef INF_TESTS_SUPPORT_MODELS_TFJS_WRITER_H
#define INF_TESTS_SUPPORT_MODELS_TFJS_WRITER_H

#include <stddef.h>
#include <stdint.h>

// A TensorFlow.js model to which the functions below add nodes, weights and outputs.
struct inf_tfjs_writer;

// Begins a model in an existing directory.
struct inf_tfjs_writer *inf_tfjs_writer_begin(const char *directory);

// Adds an input of the model, named `name` in the signature. `type` is "DT_FLOAT" or "DT_INT32";
// dimension -1 is unknown.
void inf_tfjs_writer_placeholder(struct inf_tfjs_writer *writer, const char *name, const char *type,
                                 const int64_t *dims, size_t rank);

// Adds a float constant. The dimensions determine the number of elements.
void inf_tfjs_writer_floats(struct inf_tfjs_writer *writer, const char *name, const float *elements,
                            const int64_t *dims, size_t rank);

// Adds an integer constant. The dimensions determine the number of elements.
void inf_tfjs_writer_ints(struct inf_tfjs_writer *writer, const char *name, const int32_t *elements,
                          const int64_t *dims, size_t rank);

// Adds a node. `inputs` are references separated by commas ("a,b:1,^c"). The functions below set
// attributes of the node that was added last.
void inf_tfjs_writer_node(struct inf_tfjs_writer *writer, const char *name, const char *op,
                          const char *inputs);
// Sets an attribute to {"i": "value"}.
void inf_tfjs_writer_attr_int(struct inf_tfjs_writer *writer, const char *key, int64_t value);
// Sets an attribute to {"b": value}.
void inf_tfjs_writer_attr_bool(struct inf_tfjs_writer *writer, const char *key, int value);
// Sets an attribute to {"f": value}.
void inf_tfjs_writer_attr_float(struct inf_tfjs_writer *writer, const char *key, double value);
// Sets an attribute to a type, such as {"type": "DT_FLOAT"}.
void inf_tfjs_writer_attr_type(struct inf_tfjs_writer *writer, const char *key, const char *type);
// Sets an attribute to {"s": base64 of text}.
void inf_tfjs_writer_attr_text(struct inf_tfjs_writer *writer, const char *key, const char *text);
// Sets an attribute to {"list": {"i": [...]}}.
void inf_tfjs_writer_attr_ints(struct inf_tfjs_writer *writer, const char *key,
                               const int64_t *values, size_t count);
// Sets an attribute to {"list": {"s": [...]}}. `texts` are separated by commas.
void inf_tfjs_writer_attr_texts(struct inf_tfjs_writer *writer, const char *key, const char *texts);

// Makes a tensor ("node" or "node:1") an output of the model, called `key` in the model's
// signature. If this function is never called, the model has no signature.
void inf_tfjs_writer_output(struct inf_tfjs_writer *writer, const char *key, const char *tensor);

// Writes the files and frees the writer.
void inf_tfjs_writer_end(struct inf_tfjs_writer *writer);

// --- functions that write a whole model ---

// Writes a model that computes y = a + b: a, b FP32 [-1,4]; y FP32 [-1,4].
void inf_write_add_model(const char *directory);

// Writes a model with x FP32 [-1,8,8,3] and y FP32 [-1,2,2,4]: zero padding by 1, 3x3 convolution
// with stride 2, bias, relu, 2x2 max pool. The filter picks one element of each window, so that
//   y[n,p,q,k] = max over i in {2p,2p+1}, j in {2q,2q+1} of
//     max(0, (k + 1) * x[n,2i,2j,k % 3] + bias[k]),   bias = {0, 0.5, -1, 2}.
void inf_write_conv_model(const char *directory);

// Writes a model with x FP32 [elements], or [-1] if `elements` is 0. y FP32 is the first four
// elements of x, or fewer. The model is for measuring the cost of a request, because it reads
// almost nothing of x.
void inf_write_null_model(const char *directory, int64_t elements);

#endif
