// SPDX-License-Identifier: Apache-2.0
// Constants of a builder: scalars, lists, and tensors that the caller fills.
#include <string.h>

#include "backends/base/half.h"
#include "backends/graph/build/builder.h"

uint32_t inf_build_const(struct inf_builder *b, enum inf_dtype dtype, const struct inf_shape *shape,
                         void *out_data)
{
    void *data = NULL;
    uint32_t value = INF_VALUE_NONE;
    size_t size_bytes;
    memcpy(out_data, &data, sizeof data);
    if (!inf_build_ok(b))
        return value;
    if (!inf_shape_bytes(shape, dtype, &size_bytes) || size_bytes > INF_BUILD_CONST_BYTES_MAX) {
        inf_build_fail(b, INF_EXHAUSTED, "it needs a constant that is too large");
        return value;
    }
    struct inf_blob *blob = inf_blob_create(size_bytes);
    data = blob != NULL ? blob->data : NULL;
    b->code = inf_graph_add_const(b->graph, b->name, dtype, shape, blob, &value, b->err);
    if (inf_build_ok(b))
        memcpy(out_data, &data, sizeof data);
    return inf_build_ok(b) ? value : INF_VALUE_NONE;
}

static void store_number(void *data, enum inf_dtype dtype, size_t index, double number)
{
    switch (dtype) {
    case INF_DTYPE_F32:
        ((float *)data)[index] = (float)number;
        break;
    case INF_DTYPE_F64:
        ((double *)data)[index] = number;
        break;
    case INF_DTYPE_F16:
        ((uint16_t *)data)[index] = inf_half_from_float((float)number);
        break;
    case INF_DTYPE_BF16:
        ((uint16_t *)data)[index] = inf_bf16_from_float((float)number);
        break;
    case INF_DTYPE_BOOL:
        ((uint8_t *)data)[index] = number != 0;
        break;
    default: {
        // The low bytes of a 64-bit integer are the same number as a narrower integer, because all
        // supported machines are little-endian.
        int64_t integer = number >= 0x1p63 ? (int64_t)(uint64_t)number : (int64_t)number;
        size_t size = inf_dtype_size(dtype);
        memcpy((char *)data + index * size, &integer, size);
    }
    }
}

uint32_t inf_build_scalar(struct inf_builder *b, enum inf_dtype dtype, double number)
{
    void *data;
    uint32_t value = inf_build_const(b, dtype, &(struct inf_shape){0}, &data);
    if (data != NULL)
        store_number(data, dtype, 0, number);
    return value;
}

uint32_t inf_build_list(struct inf_builder *b, const int64_t *values, uint32_t count)
{
    int32_t *data;
    uint32_t value = inf_build_const(b, INF_DTYPE_I32, &INF_SHAPE(count), &data);
    for (uint32_t i = 0; data != NULL && i < count; i++)
        data[i] = (int32_t)INF_MAX(INF_MIN(values[i], INT32_MAX), INT32_MIN);
    return value;
}

uint32_t inf_build_floats(struct inf_builder *b, const float *values, uint32_t count)
{
    float *data;
    uint32_t value = inf_build_const(b, INF_DTYPE_F32, &INF_SHAPE(count), &data);
    if (data != NULL && count > 0)
        memcpy(data, values, count * sizeof *values);
    return value;
}

uint32_t inf_build_iota(struct inf_builder *b, enum inf_dtype dtype, int64_t count)
{
    void *data;
    uint32_t value = inf_build_const(b, dtype, &INF_SHAPE(count), &data);
    for (int64_t i = 0; data != NULL && i < count; i++)
        store_number(data, dtype, (size_t)i, (double)i);
    return value;
}
