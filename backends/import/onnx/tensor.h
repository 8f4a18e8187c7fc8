// SPDX-License-Identifier: Apache-2.0
// TensorProtos to constants: elements from typed fields, raw_data, or a file beside the model's.
#ifndef INF_BACKENDS_IMPORT_ONNX_TENSOR_H
#define INF_BACKENDS_IMPORT_ONNX_TENSOR_H

#include "backends/base/arena.h"
#include "backends/base/blob.h"
#include "backends/base/role.h"
#include "backends/import/common/shards.h"
#include "backends/import/onnx/protobuf.h"
#include "proto/core/shape.h"

// Where files that a tensor names lie, and what was read from them.
struct inf_onnx_files {
    struct inf_shard_place place; // directory_fd -1: there are none
    struct inf_tally *tally;
};

struct inf_onnx_tensor {
    const char *name; // "" where it has none
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_blob *data; // the caller's reference
    const char *narrow;    // "INT4", say, of integers that are given 8 bits here; else NULL
};

// The element type with that number in TensorProto.DataType; NONE where there is none here.
enum inf_dtype inf_onnx_dtype(int64_t type);

// Its name in ONNX ("FLOAT8E4M3FN"), also of types that are not built; "?" for other numbers.
const char *inf_onnx_type_name(int64_t type);

// Reads a TensorProto that has been checked (inf_onnx_model_read() does). Its name goes to `arena`.
//
// INF_NOT_FOUND, INF_DENIED  the external file does not exist, or may not be read.
// INF_INVALID      dimensions, type and data do not fit together; the text names the tensor.
// INF_UNSUPPORTED  strings, complex numbers, floats of less than 16 bits.
// INF_EXHAUSTED    no memory.
//
// Blocks (reads external files).
enum inf_code inf_onnx_tensor_read(struct inf_onnx_tensor *tensor, struct inf_arena *arena,
                                   const struct inf_onnx_files *files, struct inf_span bytes,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// As inf_onnx_tensor_read(), for a tensor that nobody reads again: the pages that hold its raw_data go
// back to the system as they are copied, and read as zeros from then on.
enum inf_code inf_onnx_tensor_take(struct inf_onnx_tensor *tensor, struct inf_arena *arena,
                                   const struct inf_onnx_files *files, struct inf_span bytes,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
