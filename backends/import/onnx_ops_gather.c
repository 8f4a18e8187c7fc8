// SPDX-License-Identifier: Apache-2.0
// Operators that pick elements by index.
#include "backends/import/onnx_lower.h"

// Indices brought into 0..dim-1: negative ones count from the end.
static uint32_t settle_indices(struct inf_onnx_scope *s, uint32_t indices, uint32_t x, int32_t axis)
{
    enum inf_dtype dtype = inf_ox_dtype(s, indices);
    uint32_t size = inf_ox_cast(s, inf_ox_dim_value(s, x, axis), dtype);
    uint32_t zero = inf_ox_scalar(s, dtype, 0);
    uint32_t negative = inf_ox_compare(s, INF_COMPARE_LESS, indices, zero);
    size = inf_ox_squeeze(s, size, (int64_t[]){0}, 1);
    return inf_ox_select(s, negative, inf_ox_add(s, indices, size), indices);
}

// Whether indices are a constant without negative elements.
static bool is_settled(struct inf_onnx_scope *s, uint32_t indices)
{
    struct inf_ox_ints ints;
    if (!inf_graph_const_ints(s->graph, indices, ints.values, INF_OX_INTS_MAX, &ints.count))
        return false;
    for (uint32_t i = 0; i < ints.count; i++)
        if (ints.values[i] < 0)
            return false;
    return true;
}

static void lower_gather(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], indices = s->inputs[1];
    int32_t axis = inf_ox_axis(s, inf_ox_attr_int(s, "axis", 0), inf_ox_rank(s, x));
    if (!is_settled(s, indices))
        indices = settle_indices(s, indices, x, axis);
    s->outputs[0] = inf_ox_gather(s, x, indices, axis);
}

static uint32_t flat(struct inf_onnx_scope *s, uint32_t x)
{
    return inf_ox_reshape(s, x, (int64_t[]){-1}, 1);
}

// Sizes times strides: what one step along an axis is in a flattened tensor.
static int64_t stride_of(const struct inf_shape *shape, int32_t axis)
{
    int64_t stride = 1;
    for (int32_t i = shape->rank - 1; i > axis; i--)
        stride *= INF_MAX(shape->dims[i], 1);
    return stride;
}

// y[i, j, ..] = x[i, .., index[i, j, ..], ..]: where each element lies in x taken as one row.
static void lower_gather_elements(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], indices = s->inputs[1];
    struct inf_shape from = inf_ox_known_shape(s, x), to = inf_ox_known_shape(s, indices);
    int32_t axis = inf_ox_axis(s, inf_ox_attr_int(s, "axis", 0), from.rank);
    int32_t *base;
    if (from.rank != to.rank)
        inf_ox_fail(s, INF_INVALID, "indices have rank %d, x has %d", to.rank, from.rank);
    size_t count = 0;
    if (!inf_shape_count(&to, &count) || count > 1u << 22)
        inf_ox_fail(s, INF_UNSUPPORTED, "picks more than %u elements", 1u << 22);
    if (!inf_ox_ok(s))
        return;
    for (int32_t i = 0; i < to.rank; i++)
        if (i != axis && to.dims[i] > from.dims[i])
            inf_ox_fail(s, INF_INVALID, "indices are %lld along axis %d, x is %lld",
                        (long long)to.dims[i], i, (long long)from.dims[i]);
    uint32_t offsets = inf_ox_const(s, INF_DTYPE_I32, &to, &base);
    for (size_t i = 0; base != NULL && i < count; i++) {
        size_t rest = i;
        for (int32_t j = to.rank - 1; j >= 0; j--) {
            if (j != axis)
                base[i] += (int32_t)((int64_t)(rest % (size_t)to.dims[j]) * stride_of(&from, j));
            rest /= (size_t)to.dims[j];
        }
    }
    indices = inf_ox_cast(s, settle_indices(s, indices, x, axis), INF_DTYPE_I32);
    indices = inf_ox_binary_number(s, INF_BINARY_MUL, indices, (double)stride_of(&from, axis));
    s->outputs[0] = inf_ox_gather(s, flat(s, x), inf_ox_add(s, indices, offsets), 0);
}

// The last axis of the indices holds a position in the leading axes of x.
static void lower_gather_nd(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], indices = s->inputs[1];
    int32_t shared = inf_ox_attr_int(s, "batch_dims", 0);
    struct inf_shape from = inf_ox_known_shape(s, x), at = inf_ox_known_shape(s, indices);
    int32_t depth = at.rank > 0 ? (int32_t)at.dims[at.rank - 1] : 0;
    if (at.rank < 1 || shared < 0 || shared >= at.rank || shared + depth > from.rank || depth < 1)
        inf_ox_fail(s, INF_INVALID, "positions of %d axes with %d shared, x has rank %d", depth,
                    shared, from.rank);
    if (!inf_ox_ok(s))
        return;
    // Rows of x: the axes that positions (and what is shared) name become one.
    struct inf_shape rows = from;
    rows.rank = shared + depth;
    int64_t dims[INF_LIMIT_RANK + 1], outer = 1;
    for (int32_t i = 0; i < rows.rank; i++)
        outer *= from.dims[i];
    dims[0] = outer;
    for (int32_t i = rows.rank; i < from.rank; i++)
        dims[1 + i - rows.rank] = from.dims[i];
    uint32_t flat_x = inf_ox_reshape(s, x, dims, 1 + from.rank - rows.rank);
    uint32_t offset = INF_VALUE_NONE;
    for (int32_t j = 0; j < depth; j++) {
        uint32_t part = inf_ox_slice(s, indices, at.rank - 1, j, j + 1, 1);
        part = inf_ox_squeeze(s, part, (int64_t[]){at.rank - 1}, 1);
        part = inf_ox_cast(s, settle_indices(s, part, x, shared + j), INF_DTYPE_I32);
        part = inf_ox_binary_number(s, INF_BINARY_MUL, part, (double)stride_of(&rows, shared + j));
        offset = j == 0 ? part : inf_ox_add(s, offset, part);
    }
    for (int32_t i = 0; i < shared; i++) {
        uint32_t index = inf_ox_iota(s, INF_DTYPE_I32, from.dims[i]);
        index = inf_ox_binary_number(s, INF_BINARY_MUL, index, (double)stride_of(&rows, i));
        index = inf_ox_expand_dims(s, index, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, at.rank - 2 - i);
        offset = inf_ox_add(s, offset, index);
    }
    s->outputs[0] = inf_ox_gather(s, flat_x, offset, 0);
}

// 1 where the index is, 0 elsewhere, or two other values.
static void lower_one_hot(struct inf_onnx_scope *s)
{
    uint32_t indices = s->inputs[0], values = s->inputs[2];
    double depth = 0;
    int32_t rank = inf_ox_rank(s, indices);
    int32_t axis = inf_ox_axis(s, inf_ox_attr_int(s, "axis", -1), rank + 1);
    if (!inf_ox_const_number(s, s->inputs[1], &depth))
        inf_ox_fail(s, INF_UNSUPPORTED, "depth is not constant");
    if (!(depth >= 0 && depth < 1 << 24))
        inf_ox_fail(s, INF_INVALID, "depth is %g", depth);
    if (!inf_ox_ok(s))
        return;
    indices = inf_ox_cast(s, indices, INF_DTYPE_I64);
    uint32_t wrapped = inf_ox_binary_number(s, INF_BINARY_ADD, indices, (double)(int64_t)depth);
    uint32_t negative =
        inf_ox_compare(s, INF_COMPARE_LESS, indices, inf_ox_scalar(s, INF_DTYPE_I64, 0));
    indices = inf_ox_select(s, negative, wrapped, indices);
    indices = inf_ox_expand_dims(s, indices, (int64_t[]){axis}, 1);
    uint32_t index = inf_ox_iota(s, INF_DTYPE_I64, (int64_t)depth);
    index = inf_ox_expand_dims(s, index, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - axis);
    uint32_t here = inf_ox_compare(s, INF_COMPARE_EQUAL, indices, index);
    uint32_t off = inf_ox_reshape(s, inf_ox_slice(s, values, 0, 0, 1, 1), NULL, 0);
    uint32_t on = inf_ox_reshape(s, inf_ox_slice(s, values, 0, 1, 2, 1), NULL, 0);
    s->outputs[0] = inf_ox_select(s, here, on, off);
}

// The upper or lower triangle of the last two axes.
static void lower_trilu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    bool upper = inf_ox_attr_int(s, "upper", 1) != 0;
    int64_t shift = inf_ox_in(s, 1) != INF_VALUE_NONE ? inf_ox_const_int(s, s->inputs[1], "k") : 0;
    int64_t rows = inf_ox_known_dim(s, x, -2), columns = inf_ox_known_dim(s, x, -1);
    uint8_t *keep;
    uint32_t mask = inf_ox_const(s, INF_DTYPE_BOOL, &INF_SHAPE(rows, columns), &keep);
    for (int64_t i = 0; keep != NULL && i < rows; i++)
        for (int64_t j = 0; j < columns; j++) {
            // Compared without adding: the shift may be anything.
            bool on = upper ? j - i >= shift : j - i <= shift;
            keep[i * columns + j] = on;
        }
    uint32_t zero = inf_ox_scalar(s, inf_ox_dtype(s, x), 0);
    s->outputs[0] = inf_ox_select(s, mask, x, zero);
}

static const struct inf_onnx_op ops[] = {
    {"Gather", lower_gather, 2, 2, 1, 0},
    {"GatherElements", lower_gather_elements, 2, 2, 1, 0},
    {"GatherND", lower_gather_nd, 2, 2, 1, 0},
    {"OneHot", lower_one_hot, 3, 3, 1, 0},
    {"Trilu", lower_trilu, 1, 2, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_gather = {ops, INF_ARRAY_LENGTH(ops)};
