// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, with the names of the Open Inference Protocol.
#ifndef INF_PROTO_CORE_DTYPE_H
#define INF_PROTO_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum inf_dtype {
    INF_DTYPE_NONE, // the type is not set or unknown
    INF_DTYPE_BOOL, // one byte, 0 or 1
    INF_DTYPE_U8,
    INF_DTYPE_U16,
    INF_DTYPE_U32,
    INF_DTYPE_U64,
    INF_DTYPE_I8,
    INF_DTYPE_I16,
    INF_DTYPE_I32,
    INF_DTYPE_I64,
    INF_DTYPE_F16,  // IEEE binary16
    INF_DTYPE_BF16, // upper half of a binary32
    INF_DTYPE_F32,
    INF_DTYPE_F64,
    // A string of bytes of any length. The engine represents an element by an 8-byte handle
    // (backends/base/string_pool.h), a message by its bytes (proto/core/bytes_tensor.h).
    INF_DTYPE_BYTES,
    INF_DTYPE_COUNT
};

// Returns the size of one element in bytes, or 0 for NONE and for numbers that are no dtype. For
// BYTES it is the size of a handle. Tensors of strings in messages have no fixed element size.
size_t inf_dtype_size(enum inf_dtype dtype);

// Returns the name in the Open Inference Protocol ("FP32", "INT64", "BOOL"), or "NONE".
const char *inf_dtype_name(enum inf_dtype dtype);

// Returns the dtype with this name in the Open Inference Protocol, or INF_DTYPE_NONE.
enum inf_dtype inf_dtype_parse(const char *name);

// Returns whether the dtype is a floating-point type.
bool inf_dtype_is_float(enum inf_dtype dtype);

#endif
