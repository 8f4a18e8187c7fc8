// SPDX-License-Identifier: Apache-2.0
// Axes that a run computes. The operators of the graph have their axes in attributes, so operators
// with computed axes become operators with computed shapes, which the graph has:
//
//   unsqueeze   a reshape to the shape of x with ones put in
//   squeeze     a reshape to the shape of x with dimensions taken out
//   reduce      for each axis of size d in turn, a reshape of x to [before, a, b, behind] with
//               a * b = d, and a reduction over b; b is d for an axis that is listed, else 1
#include "backends/import/onnx/ops/axes.h"

#include "backends/graph/build/operators.h"

bool inf_onnx_axes_computed(struct inf_onnx_scope *s, uint32_t index)
{
    uint32_t axes = inf_onnx_input(s, index);
    return inf_build_ok(&s->b) && axes != INF_VALUE_NONE && !inf_build_is_const(&s->b, axes) &&
           inf_build_known_dim(&s->b, axes, 0) > 0;
}

uint32_t inf_onnx_axes_clamp(struct inf_onnx_scope *s, uint32_t x)
{
    if (inf_build_dtype(&s->b, x) == INF_DTYPE_I64) {
        x = inf_build_binary_number(&s->b, INF_BINARY_MIN, x, INT32_MAX);
        x = inf_build_binary_number(&s->b, INF_BINARY_MAX, x, INT32_MIN);
    }
    return inf_build_cast(&s->b, x, INF_DTYPE_I32);
}

uint32_t inf_onnx_axes_spread(struct inf_onnx_scope *s, uint32_t axes, uint32_t values,
                              int64_t size, int64_t fallback)
{
    int64_t list[2 * INF_LIMIT_RANK];
    if (inf_build_ok(&s->b) && (size < 0 || size > 2 * INF_LIMIT_RANK))
        inf_build_fail(&s->b, INF_INVALID, "spreads over %lld axes", (long long)size);
    for (int64_t i = 0; inf_build_ok(&s->b) && i < size; i++)
        list[i] = fallback;
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t at = inf_build_expand_dims(&s->b, inf_onnx_axes_clamp(s, axes), (int64_t[]){1}, 1);
    struct inf_build_node node =
        inf_build_describe(INF_OP_SCATTER_ND, inf_build_list(&s->b, list, (uint32_t)size), at,
                           inf_onnx_axes_clamp(s, values));
    node.attrs.scatter_nd.from_end = true;
    return inf_build_value(&s->b, &node);
}

// Adds a list of `size` (i32): 1 at each of `axes`, else 0.
static uint32_t add_mask(struct inf_onnx_scope *s, uint32_t axes, int64_t size)
{
    uint32_t ones = inf_build_binary_number(&s->b, INF_BINARY_MUL, axes, 0);
    ones = inf_build_binary_number(&s->b, INF_BINARY_ADD, ones, 1);
    return inf_onnx_axes_spread(s, axes, ones, size, 0);
}

static uint32_t add_i32(struct inf_onnx_scope *s, double number)
{
    return inf_build_scalar(&s->b, INF_DTYPE_I32, number);
}

uint32_t inf_onnx_axes_unsqueeze(struct inf_onnx_scope *s, uint32_t x, uint32_t axes)
{
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t size = rank + inf_build_known_dim(&s->b, axes, 0);
    if (size > INF_LIMIT_RANK)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "makes rank %lld, at most %d are built",
                       (long long)size, INF_LIMIT_RANK);
    uint32_t mask = add_mask(s, axes, size);
    // The axis of x at each position that no axis is put in.
    uint32_t stays = inf_build_sub(&s->b, add_i32(s, 1), mask);
    struct inf_build_node node =
        inf_build_describe(INF_OP_CUMULATE, stays, INF_VALUE_NONE, INF_VALUE_NONE);
    node.attrs.cumulate.exclusive = true;
    uint32_t from = inf_build_value(&s->b, &node);
    const uint32_t parts[] = {inf_build_shape(&s->b, x), inf_build_list(&s->b, (int64_t[]){1}, 1)};
    uint32_t dims = inf_build_concat(&s->b, parts, 2, 0);
    // The element of `dims` after the dimensions of x is 1, the size of the inserted axes.
    uint32_t is_new = inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, mask, add_i32(s, 0));
    from = inf_build_select(&s->b, is_new, add_i32(s, rank), from);
    return inf_build_reshape_to(&s->b, x, inf_build_gather(&s->b, dims, from, 0));
}

// Adds the dimensions of x, in their order, that the mask [rank] does not mark. `count` is how many
// there are.
static uint32_t keep_dims(struct inf_onnx_scope *s, uint32_t dims, uint32_t mask, int64_t rank,
                          int64_t count)
{
    uint32_t values[2];
    if (inf_build_ok(&s->b) && (count < 0 || count > rank))
        inf_build_fail(&s->b, INF_INVALID, "more axes than the %lld of x", (long long)rank);
    // The keys of the axes that stay decrease from axis to axis, and the other keys are 0, so topk
    // returns the axes that stay in their order.
    uint32_t order =
        inf_build_sub(&s->b, add_i32(s, (double)rank), inf_build_iota(&s->b, INF_DTYPE_I32, rank));
    uint32_t key = inf_build_mul(&s->b, order, inf_build_sub(&s->b, add_i32(s, 1), mask));
    struct inf_build_node node =
        inf_build_describe(INF_OP_TOPK, key, add_i32(s, (double)count), INF_VALUE_NONE);
    node.output_count = 2;
    inf_build_emit(&s->b, &node, values);
    return inf_build_gather(&s->b, dims, values[1], 0);
}

uint32_t inf_onnx_axes_squeeze(struct inf_onnx_scope *s, uint32_t x, uint32_t axes)
{
    int32_t rank = inf_build_rank(&s->b, x);
    int64_t count = rank - inf_build_known_dim(&s->b, axes, 0);
    uint32_t mask = add_mask(s, axes, rank);
    return inf_build_reshape_to(&s->b, x,
                                keep_dims(s, inf_build_shape(&s->b, x), mask, rank, count));
}

uint32_t inf_onnx_axes_reduce(struct inf_onnx_scope *s, enum inf_reduce_kind kind, uint32_t x,
                              uint32_t axes, bool keep, uint32_t *out_count)
{
    const struct inf_ints third = {.count = 1, .values = {2}}, all = {.count = 1};
    uint32_t inner[INF_LIMIT_RANK], outer[INF_LIMIT_RANK];
    uint32_t dims = inf_build_shape(&s->b, x);
    int32_t rank = inf_build_rank(&s->b, x);
    uint32_t mask = add_mask(s, axes, rank), before = inf_build_list(&s->b, (int64_t[]){1}, 1);
    uint32_t is_listed = inf_build_compare(&s->b, INF_COMPARE_NOT_EQUAL, mask, add_i32(s, 0));
    uint32_t reduced = inf_build_select(&s->b, is_listed, dims, add_i32(s, 1));
    uint32_t left = inf_build_select(&s->b, is_listed, add_i32(s, 1), dims);
    for (int32_t i = 0; inf_build_ok(&s->b) && i < rank; i++) {
        outer[i] = inf_build_slice(&s->b, left, 0, i, i + 1, 1);
        inner[i] = inf_build_slice(&s->b, reduced, 0, i, i + 1, 1);
    }
    for (int32_t i = 0; inf_build_ok(&s->b) && i < rank; i++) {
        uint32_t behind = inf_build_slice(&s->b, dims, 0, i + 1, INT64_MAX, 1);
        behind = inf_build_reduce(&s->b, INF_REDUCE_PROD, behind, &all, true);
        const uint32_t parts[] = {before, outer[i], inner[i], behind};
        x = inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, parts, 4, 0));
        x = inf_build_reduce(&s->b, kind, x, &third, false);
        before = inf_build_mul(&s->b, before, outer[i]);
    }
    if (out_count != NULL)
        *out_count = inf_build_reduce(&s->b, INF_REDUCE_PROD, reduced, &all, false);
    uint32_t shape = left;
    if (!keep)
        shape = keep_dims(s, dims, mask, rank, rank - inf_build_known_dim(&s->b, axes, 0));
    return inf_build_reshape_to(&s->b, x, shape);
}
