// SPDX-License-Identifier: Apache-2.0
// Reads TensorProtos into constants: elements from typed fields, raw_data or external files.
#ifndef INF_BACKENDS_IMPORT_ONNX_TENSOR_H
#define INF_BACKENDS_IMPORT_ONNX_TENSOR_H

#include "backends/base/arena.h"
#include "backends/base/blob.h"
#include "backends/base/role.h"
#include "backends/base/string_pool.h"
#include "backends/import/common/shards.h"
#include "backends/import/onnx/protobuf.h"
#include "proto/core/shape.h"

// The folder of external files, and a count of the bytes read.
struct inf_onnx_files {
    struct inf_shard_place place; // if directory_fd is -1, external files are refused
    struct inf_tally *tally;
};

struct inf_onnx_tensor {
    const char *name; // "" if it has none
    enum inf_dtype dtype;
    struct inf_shape shape;
    struct inf_blob *data; // the caller owns the reference
    // TensorProto.DataType of a narrow tensor, which has one element in each byte of `data`; else 0
    int32_t narrow;
};

// Returns the element type for a number of TensorProto.DataType; INF_DTYPE_NONE if it is not
// supported.
enum inf_dtype inf_onnx_dtype(int64_t type);

// Returns the name of a number of TensorProto.DataType ("FLOAT8E4M3FN"), "?" if the number is
// unknown.
const char *inf_onnx_type_name(int64_t type);

// Reads a TensorProto that was checked by inf_onnx_model_read(). Its name is copied to `arena`,
// and its strings to `strings`.
//
// INF_NOT_FOUND, INF_DENIED  the external file does not exist, or may not be read.
// INF_INVALID      dimensions, type and data do not fit together; the text names the tensor.
// INF_UNSUPPORTED  complex numbers.
// INF_EXHAUSTED    no memory.
//
// Blocks (reads external files).
enum inf_code inf_onnx_tensor_read(struct inf_onnx_tensor *tensor, struct inf_arena *arena,
                                   const struct inf_onnx_files *files, struct inf_span bytes,
                                   struct inf_string_pool *strings,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

// Reads a TensorProto like inf_onnx_tensor_read(), but for the last time: the pages of its raw_data
// are returned to the system and read as zeros afterwards.
enum inf_code inf_onnx_tensor_take(struct inf_onnx_tensor *tensor, struct inf_arena *arena,
                                   const struct inf_onnx_files *files, struct inf_span bytes,
                                   struct inf_string_pool *strings,
                                   struct inf_error *err) INF_NODISCARD INF_MAY_BLOCK;

#endif
