// SPDX-License-Identifier: Apache-2.0
// Element types of tensors, with the names of the Open Inference Protocol.
#ifndef INF_PROTO_CORE_DTYPE_H
#define INF_PROTO_CORE_DTYPE_H

#include <stdbool.h>
#include <stddef.h>

enum inf_dtype {
    INF_DTYPE_NONE, // no type: unset, or unknown
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
    INF_DTYPE_COUNT
};

// Bytes of one element; 0 for NONE and for numbers that are no dtype.
size_t inf_dtype_size(enum inf_dtype dtype);

// The Open Inference Protocol name ("FP32", "INT64", "BOOL"); "NONE" for NONE and unknown numbers.
const char *inf_dtype_name(enum inf_dtype dtype);

// The dtype with the Open Inference Protocol name `name`; INF_DTYPE_NONE where there is none.
enum inf_dtype inf_dtype_parse(const char *name);

// Whether the dtype is a floating-point one.
bool inf_dtype_is_float(enum inf_dtype dtype);

#endif
