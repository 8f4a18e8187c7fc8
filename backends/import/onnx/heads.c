// SPDX-License-Identifier: Apache-2.0
// Indices along an axis, and the building blocks of attention. If a size is unknown while the model
// is imported, nodes compute it from the shapes of values. These nodes are folded when the shapes
// of the inputs are known.
#include "backends/import/onnx/heads.h"

#include <math.h>

#include "backends/graph/build/operators.h"

uint32_t inf_onnx_add_range(struct inf_onnx_scope *s, uint32_t x, int32_t axis)
{
    int64_t size = inf_build_dim(&s->b, x, axis);
    if (size != INF_DIM_UNKNOWN)
        return inf_build_iota(&s->b, INF_DTYPE_I32, size);
    uint32_t end = inf_build_squeeze(&s->b, inf_build_dim_value(&s->b, x, axis), (int64_t[]){0}, 1);
    return inf_build_range(&s->b, end);
}

uint32_t inf_onnx_wrap_indices(struct inf_onnx_scope *s, uint32_t indices, uint32_t x, int32_t axis)
{
    uint32_t size = inf_build_dim_value(&s->b, x, axis);
    size = inf_build_cast(&s->b, size, inf_build_dtype(&s->b, indices));
    return inf_build_wrap_indices(&s->b, indices, inf_build_reshape(&s->b, size, NULL, 0));
}

uint32_t inf_onnx_add_diagonals(struct inf_onnx_scope *s, uint32_t x)
{
    uint32_t row = inf_onnx_add_range(s, x, -2), column = inf_onnx_add_range(s, x, -1);
    row = inf_build_expand_dims(&s->b, row, (int64_t[]){1}, 1);
    return inf_build_sub(&s->b, column, row);
}

uint32_t inf_onnx_split_heads(struct inf_onnx_scope *s, uint32_t x, int32_t heads)
{
    int64_t size = inf_build_dim(&s->b, x, 2);
    if (inf_build_ok(&s->b) && (inf_build_rank(&s->b, x) != 3 || heads < 1 ||
                                (size != INF_DIM_UNKNOWN && size % heads != 0)))
        inf_build_fail(&s->b, INF_INVALID, "%lld channels do not divide into %d heads",
                       (long long)size, heads);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    int64_t each = size == INF_DIM_UNKNOWN ? -1 : size / heads;
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0), inf_build_dim_value(&s->b, x, 1),
                             inf_build_list(&s->b, (int64_t[]){heads, each}, 2)};
    x = inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, 3, 0));
    return inf_build_transpose(&s->b, x, (int64_t[]){0, 2, 1, 3}, 4);
}

uint32_t inf_onnx_join_heads(struct inf_onnx_scope *s, uint32_t x)
{
    x = inf_build_transpose(&s->b, x, (int64_t[]){0, 2, 1, 3}, 4);
    int64_t heads = inf_build_dim(&s->b, x, 2), size = inf_build_dim(&s->b, x, 3);
    int64_t width = heads < 0 || size < 0 ? -1 : heads * size;
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0), inf_build_dim_value(&s->b, x, 1),
                             inf_build_list(&s->b, &width, 1)};
    return inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, 3, 0));
}

uint32_t inf_onnx_repeat_heads(struct inf_onnx_scope *s, uint32_t x, uint32_t q)
{
    int64_t own = inf_build_dim(&s->b, x, 1), heads = inf_build_dim(&s->b, q, 1);
    bool is_known = own != INF_DIM_UNKNOWN && heads != INF_DIM_UNKNOWN;
    if (inf_build_ok(&s->b) && is_known && (own < 1 || heads % own != 0))
        inf_build_fail(&s->b, INF_INVALID, "%lld heads look at %lld", (long long)heads,
                       (long long)own);
    if (!inf_build_ok(&s->b) || (is_known && heads == own))
        return x;
    // If the division has a remainder, the last index is beyond the heads of x.
    uint32_t each = inf_build_binary(&s->b, INF_BINARY_FLOOR_DIV, inf_build_dim_value(&s->b, q, 1),
                                     inf_build_dim_value(&s->b, x, 1));
    uint32_t indices = inf_onnx_add_range(s, q, 1);
    indices = inf_build_binary(&s->b, INF_BINARY_FLOOR_DIV, indices, each);
    return inf_build_gather(&s->b, x, indices, 1);
}

// Adds nodes that rotate all `size` channels of x in pairs; see struct inf_onnx_rotation.
static uint32_t rotate_pairs(struct inf_onnx_scope *s, uint32_t x, uint32_t cosine, uint32_t sine,
                             int64_t size, bool interleaved)
{
    uint32_t halves[2];
    for (int32_t i = 0; i < 2; i++)
        halves[i] = interleaved ? inf_build_slice(&s->b, x, 3, i, size, 2)
                                : inf_build_slice(&s->b, x, 3, i * size / 2, (i + 1) * size / 2, 1);
    uint32_t real = inf_build_sub(&s->b, inf_build_mul(&s->b, cosine, halves[0]),
                                  inf_build_mul(&s->b, sine, halves[1]));
    uint32_t other = inf_build_add(&s->b, inf_build_mul(&s->b, sine, halves[0]),
                                   inf_build_mul(&s->b, cosine, halves[1]));
    if (!interleaved)
        return inf_build_concat(&s->b, (uint32_t[]){real, other}, 2, 3);
    real = inf_build_expand_dims(&s->b, real, (int64_t[]){4}, 1);
    other = inf_build_expand_dims(&s->b, other, (int64_t[]){4}, 1);
    uint32_t pairs = inf_build_concat(&s->b, (uint32_t[]){real, other}, 2, 4);
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0), inf_build_dim_value(&s->b, x, 1),
                             inf_build_dim_value(&s->b, x, 2), inf_build_list(&s->b, &size, 1)};
    return inf_build_reshape_to(&s->b, pairs, inf_build_concat(&s->b, dims, 4, 0));
}

uint32_t inf_onnx_rotate(struct inf_onnx_scope *s, uint32_t x,
                         const struct inf_onnx_rotation *rotation)
{
    uint32_t cosine = rotation->cosine, sine = rotation->sine;
    int64_t whole = inf_build_dim(&s->b, x, 3), size = rotation->size;
    if (size == 0)
        size = whole != INF_DIM_UNKNOWN ? whole : 2 * inf_build_known_dim(&s->b, cosine, -1);
    if (inf_build_ok(&s->b) &&
        (size < 2 || size % 2 != 0 || (whole != INF_DIM_UNKNOWN && size > whole)))
        inf_build_fail(&s->b, INF_INVALID, "rotary_embedding_dim is %lld of %lld", (long long)size,
                       (long long)whole);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    if (rotation->ids != INF_VALUE_NONE) {
        cosine = inf_build_gather(&s->b, cosine, rotation->ids, 0);
        sine = inf_build_gather(&s->b, sine, rotation->ids, 0);
    }
    cosine = inf_build_expand_dims(&s->b, cosine, (int64_t[]){1}, 1);
    sine = inf_build_expand_dims(&s->b, sine, (int64_t[]){1}, 1);
    bool is_whole = size == whole || rotation->size == 0;
    uint32_t turned = is_whole ? x : inf_build_slice(&s->b, x, 3, 0, size, 1);
    turned = rotate_pairs(s, turned, cosine, sine, size, rotation->interleaved);
    if (is_whole)
        return turned;
    uint32_t rest = inf_build_slice(&s->b, x, 3, size, INT64_MAX, 1);
    return inf_build_concat(&s->b, (uint32_t[]){turned, rest}, 2, 3);
}

uint32_t inf_onnx_multiply_keys(struct inf_onnx_scope *s, uint32_t q, uint32_t k)
{
    struct inf_build_node node = inf_build_describe(INF_OP_MATMUL, q, k, INF_VALUE_NONE);
    node.attrs.matmul.transpose_b = true;
    return inf_build_value(&s->b, &node);
}

uint32_t inf_onnx_scale(struct inf_onnx_scope *s, uint32_t x, uint32_t q, float scale)
{
    int64_t size = inf_build_dim(&s->b, q, 3);
    if (scale != 0)
        return inf_build_binary_number(&s->b, INF_BINARY_MUL, x, (double)scale);
    if (size > 0)
        return inf_build_binary_number(&s->b, INF_BINARY_MUL, x,
                                       (double)(float)(1 / sqrt((double)size)));
    uint32_t root =
        inf_build_cast(&s->b, inf_build_dim_value(&s->b, q, 3), inf_build_dtype(&s->b, x));
    return inf_build_div(&s->b, x, inf_build_unary(&s->b, INF_UNARY_SQRT, root));
}

uint32_t inf_onnx_softcap(struct inf_onnx_scope *s, uint32_t x, float cap)
{
    if (cap == 0)
        return x;
    x = inf_build_binary_number(&s->b, INF_BINARY_DIV, x, (double)cap);
    return inf_build_binary_number(&s->b, INF_BINARY_MUL, inf_build_unary(&s->b, INF_UNARY_TANH, x),
                                   (double)cap);
}

uint32_t inf_onnx_mask_bias(struct inf_onnx_scope *s, uint32_t mask, enum inf_dtype dtype,
                            double hidden)
{
    return inf_build_select(&s->b, mask, inf_build_scalar(&s->b, dtype, 0),
                            inf_build_scalar(&s->b, dtype, hidden));
}

uint32_t inf_onnx_softmax(struct inf_onnx_scope *s, uint32_t scores)
{
    const struct inf_ints keys = {.count = 1, .values = {3}};
    enum inf_dtype dtype = inf_build_dtype(&s->b, scores);
    uint32_t zero = inf_build_scalar(&s->b, dtype, 0);
    uint32_t best = inf_build_reduce(&s->b, INF_REDUCE_MAX, scores, &keys, true);
    uint32_t hidden = inf_build_compare(&s->b, INF_COMPARE_EQUAL, best,
                                        inf_build_scalar(&s->b, dtype, -INFINITY));
    uint32_t weights =
        inf_build_softmax(&s->b, inf_build_select(&s->b, hidden, zero, scores), -1, false);
    return inf_build_select(&s->b, hidden, zero, weights);
}
