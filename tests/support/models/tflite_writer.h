// SPDX-License-Identifier: Apache-2.0
// Writes TFLite files for tests: tables, vectors and strings of a flatbuffer one by one, correct or
// not, and small models of one operator. Aborts if the file gets too large.
#ifndef INF_TESTS_SUPPORT_MODELS_TFLITE_WRITER_H
#define INF_TESTS_SUPPORT_MODELS_TFLITE_WRITER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/span.h"

#define TFLITE_FILE_MAX 16384

// A file that is being written. Begin with tflite_begin().
struct tflite_file {
    uint8_t data[TFLITE_FILE_MAX];
    size_t size;
};

// Starts a file with the identifier TFL3. The first table that is written is the root.
void tflite_begin(struct tflite_file *file);

// Returns the bytes written so far.
struct inf_span tflite_bytes(const struct tflite_file *file);

// Appends a table with `count` fields of the given sizes in bytes: 1, 2, 4 or 8, or 0 for an absent
// field. All fields are 0. Returns the position of the table.
size_t tflite_table(struct tflite_file *file, const uint8_t *sizes, uint32_t count);

// Returns the position of field `id` of a table, which must be present.
size_t tflite_field(const struct tflite_file *file, size_t table, uint32_t id);

// Writes the lowest bytes of a number at a position.
void tflite_put(struct tflite_file *file, size_t at, uint64_t number, size_t size);

// Sets scalar field `id`, which has `size` bytes, of a table to `number`.
void tflite_set(struct tflite_file *file, size_t table, uint32_t id, uint64_t number, size_t size);

// Lets the 4 bytes at `at`, a field or an element of a vector, point to `target`.
void tflite_point(struct tflite_file *file, size_t at, size_t target);

// Appends a vector of `count` elements, and lets field `id` point to it. `elements` may be NULL for
// zeros. Returns the position of element 0.
size_t tflite_vector(struct tflite_file *file, size_t table, uint32_t id, const void *elements,
                     uint32_t count, uint32_t element_bytes);

// A tensor of a small model.
struct tflite_tensor {
    const char *name;
    uint8_t type; // number of the element type in the TFLite schema
    uint32_t rank;
    int32_t shape[4];
    const void *data; // NULL unless the tensor is a constant
    uint32_t data_bytes;
    const float *scales; // NULL unless the tensor is quantised
    const int64_t *zeros;
    uint32_t scale_count;
    int32_t axis;
    bool is_sparse;   // true: has an empty table SparsityParameters
    bool is_variable; // true: the tensor keeps its value between runs, and is no input of the model
};

// A model of one operator. The last tensor is the output. The other tensors that have no data are
// the inputs.
struct tflite_model {
    int32_t builtin;
    const char *custom; // name of a custom operator; NULL for builtins
    const struct tflite_tensor *tensors;
    uint32_t tensor_count;
    uint8_t options_type; // 0: no options
    const uint8_t *option_sizes;
    const uint64_t *options;
    uint32_t option_count;
    const void *custom_options; // bytes of the custom options; NULL: none
    uint32_t custom_option_bytes;
    struct inf_span metadata; // the buffer TFLITE_METADATA; empty: none
    const char *signature;    // key of a signature of the only subgraph; NULL: none
};

// Positions in a small model, for tests that change it.
struct tflite_places {
    size_t root, subgraph, op;
    size_t tensors[16];
};

// Writes a small model. Returns where its tables are.
struct tflite_places tflite_write(struct tflite_file *file, const struct tflite_model *model);

#endif
