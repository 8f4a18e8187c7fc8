// SPDX-License-Identifier: Apache-2.0
// Attention as matrix products and a softmax. To hide a key, ONNX Runtime adds a large negative
// number to its score. The number is added only once if the key is hidden by a mask and is also
// later than the query. If the number is finite and all keys of a query are hidden, such as for
// padding in front of a text, the softmax still gives weight to all keys. Operands of 16 bits are
// computed in f32, which can represent the number and the scores.
#include "backends/import/onnx/contrib/attend.h"

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/heads.h"

uint32_t inf_onnx_causal_mask(struct inf_onnx_scope *s, const struct inf_onnx_attention *attention)
{
    uint32_t key = inf_onnx_add_range(s, attention->k, 2);
    uint32_t past = inf_build_sub(&s->b, inf_build_dim_value(&s->b, attention->k, 2),
                                  inf_build_dim_value(&s->b, attention->q, 2));
    uint32_t place = inf_build_add(&s->b, inf_onnx_add_range(s, attention->q, 2), past);
    place = inf_build_expand_dims(&s->b, place, (int64_t[]){1}, 1);
    return inf_build_compare(&s->b, INF_COMPARE_LESS_EQUAL, key, place);
}

// Adds nodes that compute which keys are visible, a bool [batch, keys], from a mask of rank 1: the
// number of visible keys of each row, or the end and then the start of the visible keys.
static uint32_t compare_lengths(struct inf_onnx_scope *s,
                                const struct inf_onnx_attention *attention, uint32_t mask)
{
    int64_t batch = inf_build_dim(&s->b, attention->q, 0), count = inf_build_dim(&s->b, mask, 0);
    uint32_t key = inf_onnx_add_range(s, attention->k, 2);
    uint32_t ends = mask, starts = INF_VALUE_NONE;
    if (batch > 0 && count == 2 * batch) {
        ends = inf_build_slice(&s->b, mask, 0, 0, batch, 1);
        starts = inf_build_slice(&s->b, mask, 0, batch, count, 1);
    } else if (batch > 0 && count > 0 && count != batch) {
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "the mask has %lld elements for %lld rows, wanted flags for each key",
                       (long long)count, (long long)batch);
    }
    ends = inf_build_expand_dims(&s->b, ends, (int64_t[]){1}, 1);
    uint32_t visible = inf_build_compare(&s->b, INF_COMPARE_LESS, key, ends);
    if (starts == INF_VALUE_NONE)
        return visible;
    starts = inf_build_expand_dims(&s->b, starts, (int64_t[]){1}, 1);
    return inf_build_binary(&s->b, INF_BINARY_LOGICAL_AND, visible,
                            inf_build_compare(&s->b, INF_COMPARE_GREATER_EQUAL, key, starts));
}

uint32_t inf_onnx_key_mask(struct inf_onnx_scope *s, const struct inf_onnx_attention *attention,
                           uint32_t mask)
{
    int32_t rank = inf_build_rank(&s->b, mask);
    uint32_t visible;
    mask = inf_build_cast(&s->b, mask, INF_DTYPE_I32);
    if (inf_build_ok(&s->b) && (rank < 1 || rank > 3))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "the mask has rank %d, wanted 1 to 3", rank);
    if (rank == 1)
        visible = compare_lengths(s, attention, mask);
    else
        visible = inf_build_compare(&s->b, INF_COMPARE_GREATER, mask,
                                    inf_build_scalar(&s->b, INF_DTYPE_I32, 0));
    return rank == 3 ? inf_build_expand_dims(&s->b, visible, (int64_t[]){1}, 1)
                     : inf_build_expand_dims(&s->b, visible, (int64_t[]){1, 2}, 2);
}

// Returns the type in which an attention is computed.
static enum inf_dtype find_work_type(struct inf_onnx_scope *s,
                                     const struct inf_onnx_attention *attention)
{
    return inf_build_dtype(&s->b, attention->q) == INF_DTYPE_F64 ? INF_DTYPE_F64 : INF_DTYPE_F32;
}

// Adds nodes that reshape x [batch, heads, rows, columns] to [batch, groups, heads / groups * rows,
// columns]. The query heads that share a key head become rows of one matrix product, so that keys
// are not copied.
static uint32_t regroup_heads(struct inf_onnx_scope *s, uint32_t x, int64_t groups)
{
    if (inf_build_dim(&s->b, x, 1) == groups)
        return x;
    const uint32_t dims[] = {inf_build_dim_value(&s->b, x, 0),
                             inf_build_list(&s->b, (int64_t[]){groups, -1}, 2),
                             inf_build_dim_value(&s->b, x, 3)};
    return inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, 3, 0));
}

// Adds nodes that undo regroup_heads(): x gets the number of heads and rows of q.
static uint32_t split_groups(struct inf_onnx_scope *s, uint32_t x, uint32_t q, int64_t groups)
{
    if (inf_build_dim(&s->b, q, 1) == groups)
        return x;
    const uint32_t dims[] = {inf_build_dim_value(&s->b, q, 0), inf_build_dim_value(&s->b, q, 1),
                             inf_build_dim_value(&s->b, q, 2), inf_build_dim_value(&s->b, x, 3)};
    return inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, 4, 0));
}

// Adds nodes that compute the softmax of the scores [batch, heads, queries, keys] with one more
// score per head, its sink [heads]. The weight of the sink is dropped from the result.
static uint32_t add_softmax_with_sinks(struct inf_onnx_scope *s, uint32_t scores, uint32_t sinks)
{
    uint32_t column = inf_build_slice(&s->b, scores, 3, 0, 1, 1);
    sinks = inf_build_cast(&s->b, sinks, inf_build_dtype(&s->b, scores));
    sinks = inf_build_expand_dims(&s->b, sinks, (int64_t[]){1, 2}, 2);
    sinks = inf_build_broadcast(&s->b, sinks, inf_build_shape(&s->b, column));
    uint32_t weights = inf_build_softmax(
        &s->b, inf_build_concat(&s->b, (uint32_t[]){sinks, scores}, 2, 3), -1, false);
    return inf_build_slice(&s->b, weights, 3, 1, INT64_MAX, 1);
}

uint32_t inf_onnx_attend(struct inf_onnx_scope *s, const struct inf_onnx_attention *attention)
{
    int64_t heads = inf_build_known_dim(&s->b, attention->q, 1);
    enum inf_dtype dtype = inf_build_dtype(&s->b, attention->q);
    enum inf_dtype work = find_work_type(s, attention);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    int64_t groups = inf_build_known_dim(&s->b, attention->k, 1);
    if (inf_build_ok(&s->b) && (groups < 1 || heads % groups != 0))
        inf_build_fail(&s->b, INF_INVALID, "%lld heads look at %lld", (long long)heads,
                       (long long)groups);
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    uint32_t q = inf_build_cast(&s->b, attention->q, work);
    uint32_t k = inf_build_cast(&s->b, attention->k, work);
    uint32_t v = inf_build_cast(&s->b, attention->v, work);
    uint32_t scaled = inf_onnx_scale(s, q, q, attention->scale);
    uint32_t scores = inf_onnx_multiply_keys(s, regroup_heads(s, scaled, groups), k);
    scores = split_groups(s, scores, attention->q, groups);
    scores = inf_onnx_softcap(s, scores, attention->softcap);
    if (attention->visible != INF_VALUE_NONE)
        scores = inf_build_add(&s->b, scores,
                               inf_onnx_mask_bias(s, attention->visible, work, attention->hidden));
    if (attention->bias != INF_VALUE_NONE)
        scores = inf_build_add(&s->b, scores, inf_build_cast(&s->b, attention->bias, work));
    uint32_t weights = attention->sinks == INF_VALUE_NONE
                           ? inf_build_softmax(&s->b, scores, -1, false)
                           : add_softmax_with_sinks(s, scores, attention->sinks);
    uint32_t y = inf_build_matmul(&s->b, regroup_heads(s, weights, groups), v);
    y = inf_onnx_join_heads(s, split_groups(s, y, attention->q, groups));
    return inf_build_cast(&s->b, y, dtype);
}
