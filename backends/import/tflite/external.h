// SPDX-License-Identifier: Apache-2.0
// Buffers in other files: constants of models that are larger than a flatbuffer may be. The model
// lists groups, each of which is a file in its folder, and buffers, each of which is a range of a
// group. A tensor names a buffer by its id.
#ifndef INF_BACKENDS_IMPORT_TFLITE_EXTERNAL_H
#define INF_BACKENDS_IMPORT_TFLITE_EXTERNAL_H

#include "backends/base/arena.h"
#include "backends/import/common/shards.h"
#include "backends/import/tflite/flatbuffer.h"

// The folder of a model, and the count and hash of the bytes that are read there.
struct inf_tflite_files {
    struct inf_shard_place place;
    struct inf_tally *tally;
};

// One buffer. Its bytes are read when the first tensor needs them.
struct inf_tflite_external_buffer {
    int64_t id;
    struct inf_span file; // name of its file
    uint64_t offset, length;
    const char *packing; // how elements are stored
    uint8_t *data;       // `length` bytes; NULL: not read yet
};

// The buffers of one model. Embedded in its owner; zeroed, it has none.
struct inf_tflite_external {
    const struct inf_tflite_files *files; // borrowed; NULL: no other file may be read
    struct inf_tflite_external_buffer *buffers;
    uint32_t count;
    uint64_t read_bytes; // of all buffers that were read
};

// Reads the list of buffers of a model. The names are allocated from `arena`. A failure is recorded
// as the error of the file, unless it has one.
void inf_tflite_external_list(struct inf_tflite_external *external, const struct inf_fb_table *root,
                              struct inf_arena *arena);

// Returns the bytes of the buffer with the number `id`, to which the field external_buffer of
// `tensor` refers. The bytes are valid until inf_tflite_external_fini(). A failure is recorded as
// the error of the file, unless it has one; `name` is the tensor's name in the error's text.
struct inf_span inf_tflite_external_find(struct inf_tflite_external *external, int64_t id,
                                         const struct inf_fb_table *tensor,
                                         const char *name) INF_MAY_BLOCK;

// Frees the bytes that were read.
void inf_tflite_external_fini(struct inf_tflite_external *external);

#endif
