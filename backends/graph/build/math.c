// SPDX-License-Identifier: Apache-2.0
// Arithmetic, reductions and softmax: one node per function. Operands and results have the meaning
// that ops.def defines. Operators that move elements are in move.c.
#include "backends/graph/build/operators.h"

uint32_t inf_build_unary(struct inf_builder *b, enum inf_unary_kind kind, uint32_t x)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_UNARY, &x, 1);
    node.attrs.unary.kind = kind;
    return inf_build_value(b, &node);
}

uint32_t inf_build_binary(struct inf_builder *b, enum inf_binary_kind kind, uint32_t x, uint32_t y)
{
    struct inf_build_node node = inf_build_describe(INF_OP_BINARY, x, y, INF_VALUE_NONE);
    node.attrs.binary.kind = kind;
    return inf_build_value(b, &node);
}

uint32_t inf_build_binary_number(struct inf_builder *b, enum inf_binary_kind kind, uint32_t x,
                                 double number)
{
    return inf_build_binary(b, kind, x, inf_build_scalar(b, inf_build_dtype(b, x), number));
}

uint32_t inf_build_compare(struct inf_builder *b, enum inf_compare_kind kind, uint32_t x,
                           uint32_t y)
{
    struct inf_build_node node = inf_build_describe(INF_OP_COMPARE, x, y, INF_VALUE_NONE);
    node.attrs.compare.kind = kind;
    return inf_build_value(b, &node);
}

uint32_t inf_build_select(struct inf_builder *b, uint32_t condition, uint32_t x, uint32_t y)
{
    const uint32_t inputs[] = {condition, x, y};
    struct inf_build_node node = inf_build_describe_list(INF_OP_SELECT, inputs, 3);
    return inf_build_value(b, &node);
}

uint32_t inf_build_cast(struct inf_builder *b, uint32_t x, enum inf_dtype dtype)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_CAST, &x, 1);
    node.attrs.cast.dtype = dtype;
    return inf_build_dtype(b, x) == dtype ? x : inf_build_value(b, &node);
}

uint32_t inf_build_clip(struct inf_builder *b, uint32_t x, double min, double max)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_CLIP, &x, 1);
    node.attrs.clip.min = (float)min;
    node.attrs.clip.max = (float)max;
    return inf_build_value(b, &node);
}

uint32_t inf_build_reduce(struct inf_builder *b, enum inf_reduce_kind kind, uint32_t x,
                          const struct inf_ints *axes, bool keep_dims)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_REDUCE, &x, 1);
    node.attrs.reduce.kind = kind;
    node.attrs.reduce.axes = *axes;
    node.attrs.reduce.keep_dims = keep_dims;
    return axes->count == 0 ? x : inf_build_value(b, &node);
}

uint32_t inf_build_softmax(struct inf_builder *b, uint32_t x, int32_t axis, bool log)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_SOFTMAX, &x, 1);
    node.attrs.softmax.axis = axis;
    node.attrs.softmax.log = log;
    return inf_build_value(b, &node);
}
