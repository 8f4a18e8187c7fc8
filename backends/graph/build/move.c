// SPDX-License-Identifier: Apache-2.0
// Operators that move elements or change shapes, one node per function. A call that would change
// nothing adds no node and returns its operand.
#include "backends/graph/build/operators.h"

// Cuts a list off at the capacity of struct inf_ints. Shape inference refuses longer lists anyway,
// because no rank is that large.
static struct inf_ints make_ints(const int64_t *values, int32_t count)
{
    struct inf_ints ints = {.count = INF_MIN(count, INF_LIMIT_RANK)};
    for (int32_t i = 0; i < ints.count; i++)
        ints.values[i] = values[i];
    return ints;
}

uint32_t inf_build_transpose(struct inf_builder *b, uint32_t x, const int64_t *perm, int32_t count)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_TRANSPOSE, &x, 1);
    node.attrs.transpose.perm = make_ints(perm, count);
    bool moves = false;
    for (int32_t i = 0; i < count; i++)
        moves |= perm[i] != i;
    return moves ? inf_build_value(b, &node) : x;
}

uint32_t inf_build_reshape(struct inf_builder *b, uint32_t x, const int64_t *dims, int32_t count)
{
    return inf_build_reshape_to(b, x, inf_build_list(b, dims, (uint32_t)count));
}

uint32_t inf_build_reshape_to(struct inf_builder *b, uint32_t x, uint32_t shape)
{
    const uint32_t inputs[] = {x, shape};
    struct inf_build_node node = inf_build_describe_list(INF_OP_RESHAPE, inputs, 2);
    return inf_build_value(b, &node);
}

uint32_t inf_build_expand_dims(struct inf_builder *b, uint32_t x, const int64_t *axes,
                               int32_t count)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_EXPAND_DIMS, &x, 1);
    node.attrs.expand_dims.axes = make_ints(axes, count);
    return count == 0 ? x : inf_build_value(b, &node);
}

uint32_t inf_build_squeeze(struct inf_builder *b, uint32_t x, const int64_t *axes, int32_t count)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_SQUEEZE, &x, 1);
    node.attrs.squeeze.axes = make_ints(axes, count);
    return count == 0 ? x : inf_build_value(b, &node);
}

uint32_t inf_build_concat(struct inf_builder *b, const uint32_t *values, uint32_t count,
                          int32_t axis)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_CONCAT, values, count);
    node.attrs.concat.axis = axis;
    return count == 1 ? values[0] : inf_build_value(b, &node);
}

uint32_t inf_build_slice(struct inf_builder *b, uint32_t x, int32_t axis, int64_t begin,
                         int64_t end, int64_t step)
{
    int64_t begins[INF_LIMIT_RANK] = {0}, ends[INF_LIMIT_RANK] = {0}, steps[INF_LIMIT_RANK];
    int32_t rank = inf_build_rank(b, x);
    axis = inf_build_axis(b, axis, rank);
    if (!inf_build_ok(b))
        return INF_VALUE_NONE;
    for (int32_t i = 0; i < rank; i++)
        steps[i] = 1;
    begins[axis] = begin;
    ends[axis] = end;
    steps[axis] = step;
    uint32_t count = (uint32_t)rank;
    const uint32_t inputs[] = {x, inf_build_list(b, begins, count), inf_build_list(b, ends, count),
                               inf_build_list(b, steps, count)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SLICE, inputs, 4);
    int32_t others = ((1 << rank) - 1) & ~(1 << axis);
    node.attrs.slice.begin_mask = others;
    node.attrs.slice.end_mask = end == INT64_MAX ? others | 1 << axis : others;
    return inf_build_value(b, &node);
}

uint32_t inf_build_pad(struct inf_builder *b, uint32_t x, const int64_t *amounts, int32_t rank,
                       enum inf_pad_mode mode, uint32_t value)
{
    int32_t *data;
    uint32_t list = inf_build_const(b, INF_DTYPE_I32, &INF_SHAPE(rank, 2), &data);
    bool pads_any = false;
    for (int32_t i = 0; data != NULL && i < 2 * rank; i++) {
        data[i] = (int32_t)INF_MAX(INF_MIN(amounts[i], INT32_MAX), INT32_MIN);
        pads_any |= amounts[i] != 0;
    }
    return pads_any ? inf_build_pad_by(b, x, list, mode, value) : x;
}

uint32_t inf_build_pad_by(struct inf_builder *b, uint32_t x, uint32_t pairs, enum inf_pad_mode mode,
                          uint32_t value)
{
    const uint32_t inputs[] = {x, pairs, value};
    struct inf_build_node node =
        inf_build_describe_list(INF_OP_PAD, inputs, value != INF_VALUE_NONE ? 3 : 2);
    node.attrs.pad.mode = mode;
    return inf_build_value(b, &node);
}

uint32_t inf_build_gather(struct inf_builder *b, uint32_t x, uint32_t indices, int32_t axis)
{
    const uint32_t inputs[] = {x, indices};
    struct inf_build_node node = inf_build_describe_list(INF_OP_GATHER, inputs, 2);
    node.attrs.gather.axis = axis;
    return inf_build_value(b, &node);
}

uint32_t inf_build_broadcast(struct inf_builder *b, uint32_t x, uint32_t shape)
{
    const uint32_t inputs[] = {x, shape};
    struct inf_build_node node = inf_build_describe_list(INF_OP_BROADCAST, inputs, 2);
    return inf_build_value(b, &node);
}

uint32_t inf_build_fill(struct inf_builder *b, uint32_t shape, uint32_t scalar)
{
    const uint32_t inputs[] = {shape, scalar};
    struct inf_build_node node = inf_build_describe_list(INF_OP_FILL, inputs, 2);
    return inf_build_value(b, &node);
}

uint32_t inf_build_shape(struct inf_builder *b, uint32_t x)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_SHAPE, &x, 1);
    return inf_build_value(b, &node);
}
