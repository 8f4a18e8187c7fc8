// SPDX-License-Identifier: Apache-2.0
// The operators of the graph as functions of a builder. Each function adds one or a few nodes and
// returns the result. builder.h describes how errors latch.
#ifndef INF_BACKENDS_GRAPH_BUILD_OPERATORS_H
#define INF_BACKENDS_GRAPH_BUILD_OPERATORS_H

#include "backends/graph/build/builder.h"

// --- arithmetic on each element: math.c ---

// Adds kind(x).
uint32_t inf_build_unary(struct inf_builder *b, enum inf_unary_kind kind, uint32_t x);
// Adds kind(x, y), broadcast as in NumPy.
uint32_t inf_build_binary(struct inf_builder *b, enum inf_binary_kind kind, uint32_t x, uint32_t y);
// Adds kind(x, number). `number` is converted to the element type of x.
uint32_t inf_build_binary_number(struct inf_builder *b, enum inf_binary_kind kind, uint32_t x,
                                 double number);
// Adds a comparison; the result is bool.
uint32_t inf_build_compare(struct inf_builder *b, enum inf_compare_kind kind, uint32_t x,
                           uint32_t y);
// Adds condition ? x : y.
uint32_t inf_build_select(struct inf_builder *b, uint32_t condition, uint32_t x, uint32_t y);
// Adds a conversion of x to `dtype`; returns x if it has that type.
uint32_t inf_build_cast(struct inf_builder *b, uint32_t x, enum inf_dtype dtype);
// Adds a node that clamps x to min..max.
uint32_t inf_build_clip(struct inf_builder *b, uint32_t x, double min, double max);

// --- reductions over axes: math.c ---

// Adds the reduction of x over `axes`, which must not be negative; returns x if the list is empty.
uint32_t inf_build_reduce(struct inf_builder *b, enum inf_reduce_kind kind, uint32_t x,
                          const struct inf_ints *axes, bool keep_dims);
// Adds softmax along an axis, or its logarithm.
uint32_t inf_build_softmax(struct inf_builder *b, uint32_t x, int32_t axis, bool log);

// --- operators that move elements or change shapes: move.c ---

// Adds x with its axes permuted: axis i of the result is axis perm[i] of x. Returns x if the
// permutation is the identity.
uint32_t inf_build_transpose(struct inf_builder *b, uint32_t x, const int64_t *perm, int32_t count);
// Adds a reshape of x to a constant shape. One dimension may be -1; it is computed from the others.
uint32_t inf_build_reshape(struct inf_builder *b, uint32_t x, const int64_t *dims, int32_t count);
// Adds x reshaped to the shape that is given by the i32 value `shape`.
uint32_t inf_build_reshape_to(struct inf_builder *b, uint32_t x, uint32_t shape);
// Adds x with axes of size 1 inserted. `axes` are positions in the result.
uint32_t inf_build_expand_dims(struct inf_builder *b, uint32_t x, const int64_t *axes,
                               int32_t count);
// Adds x without the listed axes, which have size 1.
uint32_t inf_build_squeeze(struct inf_builder *b, uint32_t x, const int64_t *axes, int32_t count);
// Adds `count` values joined along an axis; returns the value if there is only one.
uint32_t inf_build_concat(struct inf_builder *b, const uint32_t *values, uint32_t count,
                          int32_t axis);
// Adds elements begin, begin+step, ... below `end` of one axis. If `end` is INT64_MAX, the slice
// extends to the end of the axis.
uint32_t inf_build_slice(struct inf_builder *b, uint32_t x, int32_t axis, int64_t begin,
                         int64_t end, int64_t step);
// Adds padding: amounts[2*i] elements before and amounts[2*i+1] after axis i. `value` is the scalar
// to pad with; INF_VALUE_NONE pads with 0. Returns x if all amounts are 0.
uint32_t inf_build_pad(struct inf_builder *b, uint32_t x, const int64_t *amounts, int32_t rank,
                       enum inf_pad_mode mode, uint32_t value);
// Adds padding by amounts that may be computed: `pairs` is i32 [rank, 2], the elements before and
// after each axis. `value` is as in inf_build_pad().
uint32_t inf_build_pad_by(struct inf_builder *b, uint32_t x, uint32_t pairs, enum inf_pad_mode mode,
                          uint32_t value);
// Adds the slices of x along an axis that are selected by `indices`.
uint32_t inf_build_gather(struct inf_builder *b, uint32_t x, uint32_t indices, int32_t axis);
// Adds x broadcast to the shape that is given by the i32 value `shape`.
uint32_t inf_build_broadcast(struct inf_builder *b, uint32_t x, uint32_t shape);
// Adds a tensor whose elements all equal `scalar`. The i32 value `shape` gives its shape.
uint32_t inf_build_fill(struct inf_builder *b, uint32_t shape, uint32_t scalar);
// Adds the shape of x as an i32 value of shape [rank].
uint32_t inf_build_shape(struct inf_builder *b, uint32_t x);

// --- functions that add several nodes (compose.c) ---

// Adds one dimension of x as an i32 value of shape [1], which is a constant if the dimension is
// known.
uint32_t inf_build_dim_value(struct inf_builder *b, uint32_t x, int32_t axis);
// Adds 0, 1, ... end - 1. `end` is an integer scalar, and gives the type of the result.
uint32_t inf_build_range(struct inf_builder *b, uint32_t end);
// Adds the indices, with `size` added to those that are negative, because they count from the end.
// `size` is a scalar of the type of the indices.
uint32_t inf_build_wrap_indices(struct inf_builder *b, uint32_t indices, uint32_t size);
// Adds the matrix product as NumPy defines it: operands of rank 1 are vectors.
uint32_t inf_build_matmul(struct inf_builder *b, uint32_t x, uint32_t y);
// Adds a product whose weights are packed in blocks of `block` numbers of `bits` bits. The operands
// are x, the weights, the scales, the zero points and the bias; the last two may be INF_VALUE_NONE.
// `rounds_x` is the attribute of that name.
uint32_t inf_build_matmul_blocks(struct inf_builder *b, const uint32_t operands[5], int32_t bits,
                                 int32_t block, bool rounds_x);
// Adds x with axis 1 (channels) moved to the end; returns x if its rank is below 3.
uint32_t inf_build_channels_last(struct inf_builder *b, uint32_t x);
// Adds x with the last axis (channels) moved to axis 1; returns x if its rank is below 3.
uint32_t inf_build_channels_first(struct inf_builder *b, uint32_t x);
// Adds x reshaped to a matrix: axes before `axis` become rows, the other axes become columns.
uint32_t inf_build_flatten(struct inf_builder *b, uint32_t x, int32_t axis);
// Returns the input of a described conv2d_transpose, cut to the rows and columns that a convolution
// of the node's output would give. TensorFlow.js ignores further rows and columns; the node refuses
// them. Returns the input as it is if its shape or the output's is not known.
uint32_t inf_build_crop_gradient(struct inf_builder *b, const struct inf_build_node *node);

// Adds x + y.
static inline uint32_t inf_build_add(struct inf_builder *b, uint32_t x, uint32_t y)
{
    return inf_build_binary(b, INF_BINARY_ADD, x, y);
}

// Adds x - y.
static inline uint32_t inf_build_sub(struct inf_builder *b, uint32_t x, uint32_t y)
{
    return inf_build_binary(b, INF_BINARY_SUB, x, y);
}

// Adds x * y.
static inline uint32_t inf_build_mul(struct inf_builder *b, uint32_t x, uint32_t y)
{
    return inf_build_binary(b, INF_BINARY_MUL, x, y);
}

// Adds x / y.
static inline uint32_t inf_build_div(struct inf_builder *b, uint32_t x, uint32_t y)
{
    return inf_build_binary(b, INF_BINARY_DIV, x, y);
}

#endif
