// SPDX-License-Identifier: Apache-2.0
// Expressions that move elements and change shapes.
#include <string.h>

#include "backends/import/onnx/lower.h"

static struct inf_ints make_ints(const int64_t *values, int32_t count)
{
    struct inf_ints ints = {.count = INF_MIN(count, INF_LIMIT_RANK)};
    for (int32_t i = 0; i < ints.count; i++)
        ints.values[i] = values[i];
    return ints;
}

uint32_t inf_ox_transpose(struct inf_onnx_scope *s, uint32_t x, const int64_t *perm, int32_t count)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_TRANSPOSE, &x, 1);
    call.attrs.transpose.perm = make_ints(perm, count);
    bool moves = false;
    for (int32_t i = 0; i < count; i++)
        moves |= perm[i] != i;
    return moves ? inf_ox_value(s, &call) : x;
}

uint32_t inf_ox_reshape(struct inf_onnx_scope *s, uint32_t x, const int64_t *dims, int32_t count)
{
    return inf_ox_reshape_to(s, x, inf_ox_list(s, dims, (uint32_t)count));
}

uint32_t inf_ox_reshape_to(struct inf_onnx_scope *s, uint32_t x, uint32_t shape)
{
    const uint32_t inputs[] = {x, shape};
    struct inf_ox_call call = inf_ox_call(INF_OP_RESHAPE, inputs, 2);
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_expand_dims(struct inf_onnx_scope *s, uint32_t x, const int64_t *axes,
                            int32_t count)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_EXPAND_DIMS, &x, 1);
    call.attrs.expand_dims.axes = make_ints(axes, count);
    return count == 0 ? x : inf_ox_value(s, &call);
}

uint32_t inf_ox_squeeze(struct inf_onnx_scope *s, uint32_t x, const int64_t *axes, int32_t count)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_SQUEEZE, &x, 1);
    call.attrs.squeeze.axes = make_ints(axes, count);
    return count == 0 ? x : inf_ox_value(s, &call);
}

uint32_t inf_ox_concat(struct inf_onnx_scope *s, const uint32_t *values, uint32_t count,
                       int32_t axis)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_CONCAT, values, count);
    call.attrs.concat.axis = axis;
    return count == 1 ? values[0] : inf_ox_value(s, &call);
}

uint32_t inf_ox_slice(struct inf_onnx_scope *s, uint32_t x, int32_t axis, int64_t begin,
                      int64_t end, int64_t step)
{
    int64_t begins[INF_LIMIT_RANK] = {0}, ends[INF_LIMIT_RANK] = {0}, steps[INF_LIMIT_RANK];
    int32_t rank = inf_ox_rank(s, x);
    if (!inf_ox_ok(s))
        return INF_VALUE_NONE;
    for (int32_t i = 0; i < rank; i++)
        steps[i] = 1;
    begins[axis] = begin;
    ends[axis] = end;
    steps[axis] = step;
    uint32_t count = (uint32_t)rank;
    const uint32_t inputs[] = {x, inf_ox_list(s, begins, count), inf_ox_list(s, ends, count),
                               inf_ox_list(s, steps, count)};
    struct inf_ox_call call = inf_ox_call(INF_OP_SLICE, inputs, 4);
    int32_t others = ((1 << rank) - 1) & ~(1 << axis);
    call.attrs.slice.begin_mask = others;
    call.attrs.slice.end_mask = end == INT64_MAX ? others | 1 << axis : others;
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_pad(struct inf_onnx_scope *s, uint32_t x, const int64_t *pairs, int32_t rank,
                    enum inf_pad_mode mode, uint32_t value)
{
    int32_t *data;
    uint32_t pads = inf_ox_const(s, INF_DTYPE_I32, &INF_SHAPE(rank, 2), &data);
    bool any = false;
    for (int32_t i = 0; data != NULL && i < 2 * rank; i++) {
        data[i] = (int32_t)INF_MAX(INF_MIN(pairs[i], INT32_MAX), INT32_MIN);
        any |= pairs[i] != 0;
    }
    const uint32_t inputs[] = {x, pads, value};
    struct inf_ox_call call = inf_ox_call(INF_OP_PAD, inputs, value != INF_VALUE_NONE ? 3 : 2);
    call.attrs.pad.mode = mode;
    return any ? inf_ox_value(s, &call) : x;
}

uint32_t inf_ox_gather(struct inf_onnx_scope *s, uint32_t x, uint32_t indices, int32_t axis)
{
    const uint32_t inputs[] = {x, indices};
    struct inf_ox_call call = inf_ox_call(INF_OP_GATHER, inputs, 2);
    call.attrs.gather.axis = axis;
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_broadcast(struct inf_onnx_scope *s, uint32_t x, uint32_t shape)
{
    const uint32_t inputs[] = {x, shape};
    struct inf_ox_call call = inf_ox_call(INF_OP_BROADCAST, inputs, 2);
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_fill(struct inf_onnx_scope *s, uint32_t shape, uint32_t scalar)
{
    const uint32_t inputs[] = {shape, scalar};
    struct inf_ox_call call = inf_ox_call(INF_OP_FILL, inputs, 2);
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_shape(struct inf_onnx_scope *s, uint32_t x)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_SHAPE, &x, 1);
    return inf_ox_value(s, &call);
}

uint32_t inf_ox_dim_value(struct inf_onnx_scope *s, uint32_t x, int32_t axis)
{
    int64_t dim = inf_ox_dim(s, x, axis);
    if (dim != INF_DIM_UNKNOWN)
        return inf_ox_list(s, &dim, 1);
    axis = inf_ox_axis(s, axis, inf_ox_rank(s, x));
    return inf_ox_slice(s, inf_ox_shape(s, x), 0, axis, axis + 1, 1);
}

uint32_t inf_ox_channels_last(struct inf_onnx_scope *s, uint32_t x)
{
    int64_t perm[INF_LIMIT_RANK] = {0};
    int32_t rank = inf_ox_rank(s, x);
    for (int32_t i = 1; i < rank; i++)
        perm[i] = i + 1 < rank ? i + 1 : 1;
    return rank < 3 ? x : inf_ox_transpose(s, x, perm, rank);
}

uint32_t inf_ox_channels_first(struct inf_onnx_scope *s, uint32_t x)
{
    int64_t perm[INF_LIMIT_RANK] = {0};
    int32_t rank = inf_ox_rank(s, x);
    for (int32_t i = 1; i < rank; i++)
        perm[i] = i == 1 ? rank - 1 : i - 1;
    return rank < 3 ? x : inf_ox_transpose(s, x, perm, rank);
}

// The product of dimensions [from, to) as an i32 [1].
static uint32_t dim_product(struct inf_onnx_scope *s, uint32_t x, int32_t from, int32_t to)
{
    if (from == to)
        return inf_ox_list(s, (int64_t[]){1}, 1);
    if (to == from + 1)
        return inf_ox_dim_value(s, x, from);
    uint32_t part = inf_ox_slice(s, inf_ox_shape(s, x), 0, from, to, 1);
    return inf_ox_reduce(s, INF_REDUCE_PROD, part, &(struct inf_ints){.count = 1}, true);
}

uint32_t inf_ox_flatten(struct inf_onnx_scope *s, uint32_t x, int32_t axis)
{
    int32_t rank = inf_ox_rank(s, x);
    int64_t first = 1, second = 1;
    for (int32_t i = 0; i < rank; i++) {
        int64_t dim = inf_ox_dim(s, x, i);
        int64_t *product = i < axis ? &first : &second;
        if (dim < 0 || *product < 0 || __builtin_mul_overflow(*product, dim, product) ||
            *product >= INF_LIMIT_DIM)
            *product = -1;
    }
    // One -1 is computed by the reshape itself, unless there is nothing to compute it from.
    if ((first >= 0 && second > 0) || (first > 0 && second >= 0))
        return inf_ox_reshape(s, x, (int64_t[]){first, second}, 2);
    if ((first > 0 && second < 0) || (first < 0 && second > 0))
        return inf_ox_reshape(s, x, (int64_t[]){first, second}, 2);
    const uint32_t parts[] = {dim_product(s, x, 0, axis), dim_product(s, x, axis, rank)};
    return inf_ox_reshape_to(s, x, inf_ox_concat(s, parts, 2, 0));
}
