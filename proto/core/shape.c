// SPDX-License-Identifier: Apache-2.0
// Compares, counts, broadcasts and prints shapes. Only this file multiplies dimensions, and it
// checks each product for overflow.
#include "proto/core/shape.h"

#include <stdio.h>

#include "proto/core/span.h"

bool inf_shape_valid(const struct inf_shape *shape)
{
    if (shape->rank == INF_RANK_UNKNOWN)
        return true;
    if (shape->rank < 0 || shape->rank > INF_LIMIT_RANK)
        return false;
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < INF_DIM_UNKNOWN || shape->dims[i] >= INF_LIMIT_DIM)
            return false;
    return true;
}

bool inf_shape_known(const struct inf_shape *shape)
{
    if (shape->rank < 0)
        return false;
    for (int32_t i = 0; i < shape->rank; i++)
        if (shape->dims[i] < 0)
            return false;
    return true;
}

bool inf_shape_equal(const struct inf_shape *a, const struct inf_shape *b)
{
    if (a->rank != b->rank)
        return false;
    for (int32_t i = 0; i < a->rank; i++)
        if (a->dims[i] != b->dims[i])
            return false;
    return true;
}

bool inf_shape_matches(const struct inf_shape *shape, const struct inf_shape *pattern)
{
    if (pattern->rank == INF_RANK_UNKNOWN)
        return true;
    if (shape->rank != pattern->rank)
        return false;
    for (int32_t i = 0; i < shape->rank; i++)
        if (pattern->dims[i] != INF_DIM_UNKNOWN && shape->dims[i] != pattern->dims[i])
            return false;
    return true;
}

bool inf_shape_count(const struct inf_shape *shape, size_t *count)
{
    if (!inf_shape_valid(shape) || !inf_shape_known(shape))
        return false;
    size_t product = 1;
    bool empty = false;
    for (int32_t i = 0; i < shape->rank; i++) {
        if (shape->dims[i] == 0)
            empty = true;
        else if (!inf_size_mul(product, (size_t)shape->dims[i], &product))
            return false;
    }
    *count = empty ? 0 : product;
    return true;
}

bool inf_shape_bytes(const struct inf_shape *shape, enum inf_dtype dtype, size_t *size_bytes)
{
    size_t count;
    size_t bytes;
    if (inf_dtype_size(dtype) == 0 || !inf_shape_count(shape, &count) ||
        !inf_size_mul(count, inf_dtype_size(dtype), &bytes) || bytes > INF_LIMIT_TENSOR_BYTES)
        return false;
    *size_bytes = bytes;
    return true;
}

size_t inf_shape_elements(const struct inf_shape *shape)
{
    size_t count = 1;
    for (int32_t i = 0; i < shape->rank; i++)
        count *= (size_t)shape->dims[i];
    return count;
}

void inf_shape_strides(const struct inf_shape *shape, int64_t strides[INF_LIMIT_RANK])
{
    int64_t stride = 1;
    for (int32_t i = shape->rank - 1; i >= 0; i--) {
        strides[i] = stride;
        stride *= shape->dims[i];
    }
}

// Broadcasts dimension `a` of one shape with dimension `b` of another. Both are equally far from
// the end of their shapes. Returns false if they are known, differ, and neither is 1.
static bool join_dims(int64_t a, int64_t b, int64_t *result)
{
    if (a == b || b == 1)
        *result = a;
    else if (a == 1)
        *result = b;
    else if (a == INF_DIM_UNKNOWN)
        *result = b;
    else if (b == INF_DIM_UNKNOWN)
        *result = a;
    else
        return false;
    return true;
}

bool inf_shape_broadcast(const struct inf_shape *a, const struct inf_shape *b,
                         struct inf_shape *result)
{
    if (a->rank < 0 || b->rank < 0) {
        *result = (struct inf_shape){.rank = INF_RANK_UNKNOWN};
        return true;
    }
    struct inf_shape joined = {.rank = INF_MAX(a->rank, b->rank)};
    for (int32_t i = 0; i < joined.rank; i++) {
        int32_t ia = i - (joined.rank - a->rank);
        int32_t ib = i - (joined.rank - b->rank);
        int64_t da = ia < 0 ? 1 : a->dims[ia];
        int64_t db = ib < 0 ? 1 : b->dims[ib];
        if (!join_dims(da, db, &joined.dims[i]))
            return false;
    }
    *result = joined;
    return true;
}

const char *inf_shape_print(const struct inf_shape *shape, char text[INF_SHAPE_TEXT_SIZE])
{
    if (shape->rank < 0) {
        snprintf(text, INF_SHAPE_TEXT_SIZE, "[*]");
        return text;
    }
    size_t at = 0;
    text[at++] = '[';
    for (int32_t i = 0; i < shape->rank && at < INF_SHAPE_TEXT_SIZE - 2; i++) {
        const char *comma = i > 0 ? "," : "";
        int written = shape->dims[i] == INF_DIM_UNKNOWN
                          ? snprintf(text + at, INF_SHAPE_TEXT_SIZE - at, "%s?", comma)
                          : snprintf(text + at, INF_SHAPE_TEXT_SIZE - at, "%s%lld", comma,
                                     (long long)shape->dims[i]);
        at = INF_MIN(at + (size_t)written, (size_t)INF_SHAPE_TEXT_SIZE - 2);
    }
    text[at++] = ']';
    text[at] = '\0';
    return text;
}
