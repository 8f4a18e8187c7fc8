// SPDX-License-Identifier: Apache-2.0
// Functions that add several nodes: matrix products, flattening to matrices, sizes of
// dimensions as values, ranges and indices that depend on a size, conversion between channels-first
// (NCHW) and channels-last (NHWC) layout, and the part of its input that a transposed convolution
// of TensorFlow.js reads.
#include "backends/graph/build/operators.h"

#include "backends/graph/shape/infer.h"
#include "backends/graph/shape/rules.h"

uint32_t inf_build_dim_value(struct inf_builder *b, uint32_t x, int32_t axis)
{
    int64_t dim = inf_build_dim(b, x, axis);
    if (dim != INF_DIM_UNKNOWN)
        return inf_build_list(b, &dim, 1);
    axis = inf_build_axis(b, axis, inf_build_rank(b, x));
    return inf_build_slice(b, inf_build_shape(b, x), 0, axis, axis + 1, 1);
}

uint32_t inf_build_range(struct inf_builder *b, uint32_t end)
{
    enum inf_dtype dtype = inf_build_dtype(b, end);
    struct inf_build_node node = inf_build_describe(INF_OP_RANGE, inf_build_scalar(b, dtype, 0),
                                                    end, inf_build_scalar(b, dtype, 1));
    return inf_build_value(b, &node);
}

uint32_t inf_build_wrap_indices(struct inf_builder *b, uint32_t indices, uint32_t size)
{
    uint32_t zero = inf_build_scalar(b, inf_build_dtype(b, indices), 0);
    uint32_t is_negative = inf_build_compare(b, INF_COMPARE_LESS, indices, zero);
    return inf_build_select(b, is_negative, inf_build_add(b, indices, size), indices);
}

uint32_t inf_build_channels_last(struct inf_builder *b, uint32_t x)
{
    int64_t perm[INF_LIMIT_RANK] = {0};
    int32_t rank = inf_build_rank(b, x);
    for (int32_t i = 1; i < rank; i++)
        perm[i] = i + 1 < rank ? i + 1 : 1;
    return rank < 3 ? x : inf_build_transpose(b, x, perm, rank);
}

uint32_t inf_build_channels_first(struct inf_builder *b, uint32_t x)
{
    int64_t perm[INF_LIMIT_RANK] = {0};
    int32_t rank = inf_build_rank(b, x);
    for (int32_t i = 1; i < rank; i++)
        perm[i] = i == 1 ? rank - 1 : i - 1;
    return rank < 3 ? x : inf_build_transpose(b, x, perm, rank);
}

uint32_t inf_build_matmul(struct inf_builder *b, uint32_t x, uint32_t y)
{
    int32_t rank_x = inf_build_rank(b, x), rank_y = inf_build_rank(b, y);
    if (rank_x == 0 || rank_y == 0)
        inf_build_fail(b, INF_INVALID, "an operand is a scalar, wanted at least a vector");
    if (rank_x == 1)
        x = inf_build_expand_dims(b, x, (int64_t[]){0}, 1);
    if (rank_y == 1)
        y = inf_build_expand_dims(b, y, (int64_t[]){1}, 1);
    struct inf_build_node node = inf_build_describe(INF_OP_MATMUL, x, y, INF_VALUE_NONE);
    uint32_t product = inf_build_value(b, &node);
    if (rank_x == 1 && rank_y == 1)
        return inf_build_squeeze(b, product, (int64_t[]){-2, -1}, 2);
    if (rank_x == 1 || rank_y == 1)
        return inf_build_squeeze(b, product, (int64_t[]){rank_x == 1 ? -2 : -1}, 1);
    return product;
}

uint32_t inf_build_matmul_blocks(struct inf_builder *b, const uint32_t operands[5], int32_t bits,
                                 int32_t block, bool rounds_x)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_MATMUL_BLOCKS, operands, 5);
    node.attrs.matmul_blocks.bits = bits;
    node.attrs.matmul_blocks.block = block;
    node.attrs.matmul_blocks.rounds_x = rounds_x;
    return inf_build_value(b, &node);
}

// Adds the product of the dimensions from..to-1 of x as an i32 value of shape [1].
static uint32_t multiply_dims(struct inf_builder *b, uint32_t x, int32_t from, int32_t to)
{
    if (from == to)
        return inf_build_list(b, (int64_t[]){1}, 1);
    if (to == from + 1)
        return inf_build_dim_value(b, x, from);
    uint32_t part = inf_build_slice(b, inf_build_shape(b, x), 0, from, to, 1);
    return inf_build_reduce(b, INF_REDUCE_PROD, part, &(struct inf_ints){.count = 1}, true);
}

uint32_t inf_build_flatten(struct inf_builder *b, uint32_t x, int32_t axis)
{
    int32_t rank = inf_build_rank(b, x);
    int64_t first = 1, second = 1;
    for (int32_t i = 0; i < rank; i++) {
        int64_t dim = inf_build_dim(b, x, i);
        int64_t *product = i < axis ? &first : &second;
        if (dim < 0 || *product < 0 || __builtin_mul_overflow(*product, dim, product) ||
            *product >= INF_LIMIT_DIM)
            *product = -1;
    }
    // A reshape accepts -1 for one dimension and computes that dimension from the number of
    // elements. So it is enough that one of the two sizes is known, unless the known size is 0.
    if (first > 0 || second > 0)
        return inf_build_reshape(b, x, (int64_t[]){first, second}, 2);
    const uint32_t parts[] = {multiply_dims(b, x, 0, axis), multiply_dims(b, x, axis, rank)};
    return inf_build_reshape_to(b, x, inf_build_concat(b, parts, 2, 0));
}

uint32_t inf_build_crop_gradient(struct inf_builder *b, const struct inf_build_node *node)
{
    uint32_t x = node->inputs[0], size = node->inputs[2];
    if (!inf_build_ok(b) || inf_build_shape_of(b, x)->rank != 4 ||
        inf_build_shape_of(b, node->inputs[1])->rank != 4 || !inf_build_is_const(b, size))
        return x;
    const struct inf_node described = {.op = node->op, .attrs = node->attrs};
    const struct inf_window_attrs attrs = inf_node_window_attrs(&described);
    const struct inf_build_ints sizes = inf_build_const_ints(b, size, "the output shape");
    for (int32_t axis = 0; sizes.count == 4 && axis < 2; axis++) {
        int64_t kernel = inf_build_dim(b, node->inputs[1], axis);
        int64_t has = inf_build_dim(b, x, 1 + axis);
        struct inf_window window;
        if (sizes.values[1 + axis] >= 0 &&
            inf_window_resolve(&attrs, axis, sizes.values[1 + axis], kernel, &window) &&
            has > window.output)
            x = inf_build_slice(b, x, 1 + axis, 0, window.output, 1);
    }
    return x;
}
