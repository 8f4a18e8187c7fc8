// SPDX-License-Identifier: Apache-2.0
// The names and sizes of element types, in one table.
#include "proto/core/dtype.h"

#include <string.h>

#include "proto/core/attributes.h"

static const struct {
    const char *name;
    size_t size;
} dtypes[INF_DTYPE_COUNT] = {
    [INF_DTYPE_NONE] = {"NONE", 0},   [INF_DTYPE_BOOL] = {"BOOL", 1},
    [INF_DTYPE_U8] = {"UINT8", 1},    [INF_DTYPE_U16] = {"UINT16", 2},
    [INF_DTYPE_U32] = {"UINT32", 4},  [INF_DTYPE_U64] = {"UINT64", 8},
    [INF_DTYPE_I8] = {"INT8", 1},     [INF_DTYPE_I16] = {"INT16", 2},
    [INF_DTYPE_I32] = {"INT32", 4},   [INF_DTYPE_I64] = {"INT64", 8},
    [INF_DTYPE_F16] = {"FP16", 2},    [INF_DTYPE_BF16] = {"BF16", 2},
    [INF_DTYPE_F32] = {"FP32", 4},    [INF_DTYPE_F64] = {"FP64", 8},
    [INF_DTYPE_BYTES] = {"BYTES", 8},
};

size_t inf_dtype_size(enum inf_dtype dtype)
{
    return (size_t)dtype < INF_DTYPE_COUNT ? dtypes[dtype].size : 0;
}

const char *inf_dtype_name(enum inf_dtype dtype)
{
    return (size_t)dtype < INF_DTYPE_COUNT ? dtypes[dtype].name : "NONE";
}

enum inf_dtype inf_dtype_parse(const char *name)
{
    for (size_t i = INF_DTYPE_NONE + 1; i < INF_DTYPE_COUNT; i++)
        if (strcmp(dtypes[i].name, name) == 0)
            return (enum inf_dtype)i;
    return INF_DTYPE_NONE;
}

bool inf_dtype_is_float(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_F16 || dtype == INF_DTYPE_BF16 || dtype == INF_DTYPE_F32 ||
           dtype == INF_DTYPE_F64;
}
