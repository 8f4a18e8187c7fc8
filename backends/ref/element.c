// SPDX-License-Identifier: Apache-2.0
// Loads and stores single elements of any type, and walks over tensors by index.
#include "backends/ref/element.h"

#include <math.h>

#include "backends/base/half.h"

double inf_ref_load(const struct inf_ref_tensor *tensor, size_t index)
{
    switch (tensor->dtype) {
    case INF_DTYPE_F32:
        return ((const float *)tensor->data)[index];
    case INF_DTYPE_F64:
        return ((const double *)tensor->data)[index];
    case INF_DTYPE_F16:
        return inf_half_to_float(((const uint16_t *)tensor->data)[index]);
    case INF_DTYPE_BF16:
        return inf_bf16_to_float(((const uint16_t *)tensor->data)[index]);
    default:
        return (double)inf_ref_load_int(tensor, index);
    }
}

__int128 inf_ref_load_int(const struct inf_ref_tensor *tensor, size_t index)
{
    switch (tensor->dtype) {
    case INF_DTYPE_BOOL:
        return ((const uint8_t *)tensor->data)[index] != 0;
    case INF_DTYPE_U8:
        return ((const uint8_t *)tensor->data)[index];
    case INF_DTYPE_U16:
        return ((const uint16_t *)tensor->data)[index];
    case INF_DTYPE_U32:
        return ((const uint32_t *)tensor->data)[index];
    case INF_DTYPE_U64:
    case INF_DTYPE_BYTES: // the handle
        return ((const uint64_t *)tensor->data)[index];
    case INF_DTYPE_I8:
        return ((const int8_t *)tensor->data)[index];
    case INF_DTYPE_I16:
        return ((const int16_t *)tensor->data)[index];
    case INF_DTYPE_I32:
        return ((const int32_t *)tensor->data)[index];
    case INF_DTYPE_I64:
        return ((const int64_t *)tensor->data)[index];
    default:
        return inf_ref_truncate(inf_ref_load(tensor, index), INF_DTYPE_I64);
    }
}

void inf_ref_store(const struct inf_ref_tensor *tensor, size_t index, double value)
{
    switch (tensor->dtype) {
    case INF_DTYPE_F32:
        ((float *)tensor->data)[index] = (float)value;
        break;
    case INF_DTYPE_F64:
        ((double *)tensor->data)[index] = value;
        break;
    case INF_DTYPE_F16:
        ((uint16_t *)tensor->data)[index] = inf_half_from_float((float)value);
        break;
    case INF_DTYPE_BF16:
        ((uint16_t *)tensor->data)[index] = inf_bf16_from_float((float)value);
        break;
    case INF_DTYPE_BOOL:
        ((uint8_t *)tensor->data)[index] = value != 0;
        break;
    default:
        inf_ref_store_int(tensor, index, inf_ref_truncate(value, tensor->dtype));
        break;
    }
}

void inf_ref_store_int(const struct inf_ref_tensor *tensor, size_t index, __int128 value)
{
    switch (tensor->element_bytes) {
    case 1:
        ((uint8_t *)tensor->data)[index] =
            tensor->dtype == INF_DTYPE_BOOL ? value != 0 : (uint8_t)value;
        break;
    case 2:
        ((uint16_t *)tensor->data)[index] = (uint16_t)value;
        break;
    case 4:
        ((uint32_t *)tensor->data)[index] = (uint32_t)value;
        break;
    default:
        ((uint64_t *)tensor->data)[index] = (uint64_t)value;
        break;
    }
}

static bool is_signed(enum inf_dtype dtype)
{
    return dtype >= INF_DTYPE_I8 && dtype <= INF_DTYPE_I64;
}

__int128 inf_ref_int_min(enum inf_dtype dtype)
{
    return is_signed(dtype) ? -((__int128)1 << (8 * inf_dtype_size(dtype) - 1)) : 0;
}

__int128 inf_ref_int_max(enum inf_dtype dtype)
{
    if (dtype == INF_DTYPE_BOOL)
        return 1;
    return ((__int128)1 << (8 * inf_dtype_size(dtype) - is_signed(dtype))) - 1;
}

__int128 inf_ref_truncate(double value, enum inf_dtype dtype)
{
    if (isnan(value))
        return 0;
    // The bounds are powers of two, or one less. A bound that is one less rounds up to the power as
    // a double, so the comparisons include equality.
    if (value <= (double)inf_ref_int_min(dtype))
        return inf_ref_int_min(dtype);
    if (value >= (double)inf_ref_int_max(dtype))
        return inf_ref_int_max(dtype);
    return (__int128)value;
}

void inf_ref_walk_init(struct inf_ref_walk *walk, const struct inf_shape *shape)
{
    memset(walk, 0, sizeof(*walk));
    walk->rank = shape->rank;
    memcpy(walk->dims, shape->dims, sizeof(walk->dims));
}

void inf_ref_walk_broadcast(struct inf_ref_walk *walk, uint32_t operand,
                            const struct inf_shape *shape)
{
    int32_t missing = walk->rank - shape->rank;
    int64_t stride = 1;
    for (int32_t axis = shape->rank - 1; axis >= 0; axis--) {
        walk->strides[operand][axis + missing] = shape->dims[axis] == 1 ? 0 : stride;
        stride *= shape->dims[axis];
    }
}

// Returns the shape without its last two axes, which are the rows and columns of a matrix.
static struct inf_shape leading_axes(const struct inf_shape *shape)
{
    struct inf_shape result = *shape;
    result.rank -= 2;
    return result;
}

size_t inf_ref_walk_matrices(struct inf_ref_walk *walk, const struct inf_shape *y,
                             const struct inf_shape *a, const struct inf_shape *b)
{
    const struct inf_shape batch = leading_axes(y);
    const struct inf_shape a_batch = leading_axes(a);
    const struct inf_shape b_batch = leading_axes(b);
    inf_ref_walk_init(walk, &batch);
    inf_ref_walk_broadcast(walk, 0, &a_batch);
    inf_ref_walk_broadcast(walk, 1, &b_batch);
    return inf_shape_elements(&batch);
}
