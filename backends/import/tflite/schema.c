// SPDX-License-Identifier: Apache-2.0
// Tables of names and numbers of LiteRT's schema.fbs.
#include "backends/import/tflite/schema.h"

#include <stddef.h>

#include "proto/core/attributes.h"

const char *inf_tflite_builtin_name(int32_t code)
{
    switch (code) {
#define INF_TFLITE_BUILTIN(name, number)                                                           \
    case number:                                                                                   \
        return #name;
#include "backends/import/tflite/builtins.def"
    default:
        return NULL;
    }
}

struct inf_tflite_type_info inf_tflite_type_info(int64_t type)
{
    static const struct inf_tflite_type_info types[] = {
        {"FLOAT32", INF_DTYPE_F32, 32},     {"FLOAT16", INF_DTYPE_F16, 16},
        {"INT32", INF_DTYPE_I32, 32},       {"UINT8", INF_DTYPE_U8, 8},
        {"INT64", INF_DTYPE_I64, 64},       {"STRING", INF_DTYPE_NONE, 0},
        {"BOOL", INF_DTYPE_BOOL, 8},        {"INT16", INF_DTYPE_I16, 16},
        {"COMPLEX64", INF_DTYPE_NONE, 0},   {"INT8", INF_DTYPE_I8, 8},
        {"FLOAT64", INF_DTYPE_F64, 64},     {"COMPLEX128", INF_DTYPE_NONE, 0},
        {"UINT64", INF_DTYPE_U64, 64},      {"RESOURCE", INF_DTYPE_NONE, 0},
        {"VARIANT", INF_DTYPE_NONE, 0},     {"UINT32", INF_DTYPE_U32, 32},
        {"UINT16", INF_DTYPE_U16, 16},      {"INT4", INF_DTYPE_I8, 4},
        {"BFLOAT16", INF_DTYPE_BF16, 16},   {"INT2", INF_DTYPE_I8, 2},
        {"UINT4", INF_DTYPE_U8, 4},         {"FLOAT8_E4M3FN", INF_DTYPE_NONE, 0},
        {"FLOAT8_E5M2", INF_DTYPE_NONE, 0},
    };
    if (type < 0 || type >= (int64_t)INF_ARRAY_LENGTH(types))
        return (struct inf_tflite_type_info){0};
    return types[type];
}
