// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that move data without computing with it. Slices are in slice.c.
#include "backends/graph/shape/rules.h"

enum inf_code inf_infer_identity(struct inf_infer *infer)
{
    return inf_infer_output(infer, 0, inf_infer_input(infer, 0));
}

// Computes the dimension `hole` of `shape`, which the model left open (-1), so that `shape` has as
// many elements as x.
static enum inf_code fill_hole(struct inf_infer *infer, const struct inf_shape *x,
                               struct inf_shape *shape, int32_t hole)
{
    char from[INF_SHAPE_TEXT_SIZE];
    char to[INF_SHAPE_TEXT_SIZE];
    size_t has;
    size_t rest;
    shape->dims[hole] = 1;
    bool counted = inf_shape_count(x, &has) && inf_shape_count(shape, &rest);
    shape->dims[hole] = INF_DIM_UNKNOWN;
    if (!counted && inf_shape_known(x))
        return inf_shape_fault(infer, "%s cannot become %s", inf_shape_print(x, from),
                               inf_shape_print(shape, to));
    if (!counted)
        return INF_OK;
    if (rest == 0 || has % rest != 0 || has / rest >= (size_t)INF_LIMIT_DIM)
        return inf_shape_fault(infer, "%s cannot become %s", inf_shape_print(x, from),
                               inf_shape_print(shape, to));
    shape->dims[hole] = (int64_t)(has / rest);
    return INF_OK;
}

enum inf_code inf_infer_reshape(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    struct inf_shape shape;
    bool known;
    INF_TRY(inf_infer_listed(infer, 1, -1, &shape, &known));
    if (!known) {
        inf_infer_partial(infer, 1, &shape);
        return inf_infer_output(infer, 0, &shape);
    }
    int32_t hole = -1;
    for (int32_t i = 0; i < shape.rank; i++) {
        if (shape.dims[i] != -1)
            continue;
        if (hole >= 0)
            return inf_shape_fault(infer, "the shape wanted has -1 at %d and at %d", hole, i);
        hole = i;
    }
    if (hole >= 0)
        INF_TRY(fill_hole(infer, x, &shape, hole));
    size_t has;
    size_t wanted;
    if (inf_shape_count(x, &has) && (!inf_shape_count(&shape, &wanted) || has != wanted)) {
        char from[INF_SHAPE_TEXT_SIZE];
        char to[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "%s cannot become %s", inf_shape_print(x, from),
                               inf_shape_print(&shape, to));
    }
    return inf_infer_output(infer, 0, &shape);
}

enum inf_code inf_infer_expand_dims(struct inf_infer *infer)
{
    const struct inf_ints *axes = &infer->node->attrs.expand_dims.axes;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    if (x->rank < 0)
        return INF_OK;
    struct inf_shape y = {.rank = x->rank + axes->count};
    if (y.rank > INF_LIMIT_RANK)
        return inf_shape_fault(infer, "the result has rank %d, wanted at most %d", y.rank,
                               INF_LIMIT_RANK);
    uint32_t set;
    INF_TRY(inf_infer_axes(infer, axes, y.rank, &set));
    for (int32_t i = 0, from = 0; i < y.rank; i++)
        y.dims[i] = set & 1u << i ? 1 : x->dims[from++];
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_squeeze(struct inf_infer *infer)
{
    const struct inf_ints *axes = &infer->node->attrs.squeeze.axes;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    if (x->rank < 0)
        return INF_OK;
    uint32_t set;
    INF_TRY(inf_infer_axes(infer, axes, x->rank, &set));
    struct inf_shape y = {0};
    for (int32_t i = 0; i < x->rank; i++) {
        bool named = set & 1u << i;
        if (named && x->dims[i] != 1 && x->dims[i] != INF_DIM_UNKNOWN)
            return inf_shape_fault(infer, "axis %d has size %lld, wanted 1", i,
                                   (long long)x->dims[i]);
        // A squeeze without a list of axes drops the axes of size 1. Whether an axis of unknown
        // size is dropped is not known, so the rank of y is not known either.
        if (axes->count == 0 && x->dims[i] == INF_DIM_UNKNOWN)
            return INF_OK;
        if (axes->count == 0 ? x->dims[i] != 1 : !named)
            y.dims[y.rank++] = x->dims[i];
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_transpose(struct inf_infer *infer)
{
    const struct inf_ints *perm = &infer->node->attrs.transpose.perm;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    int32_t rank = perm->count > 0 ? perm->count : x->rank;
    uint32_t set;
    INF_TRY(inf_infer_axes(infer, perm, INF_MAX(rank, 0), &set));
    if (x->rank >= 0 && x->rank != rank)
        return inf_shape_fault(infer, "perm has %d axes, x has %d", rank, x->rank);
    struct inf_shape y = {.rank = rank};
    for (int32_t i = 0; i < rank; i++) {
        int32_t from = rank - 1 - i;
        if (perm->count > 0 && !inf_axis_resolve(perm->values[i], rank, &from))
            return inf_shape_fault(infer, "axis %lld is out of range", (long long)perm->values[i]);
        y.dims[i] = x->rank < 0 ? INF_DIM_UNKNOWN : x->dims[from];
    }
    return inf_infer_output(infer, 0, &y);
}

bool inf_node_swaps_last_axes(const struct inf_node *node, int32_t rank)
{
    const struct inf_ints *perm = &node->attrs.transpose.perm;
    if (node->op != INF_OP_TRANSPOSE || rank < 2)
        return false;
    if (perm->count == 0) // an empty permutation reverses the axes
        return rank == 2;
    for (int32_t i = 0; i < perm->count; i++) {
        int32_t wanted = i < rank - 2 ? i : i == rank - 2 ? rank - 1 : rank - 2;
        int64_t axis = perm->values[i] < 0 ? perm->values[i] + rank : perm->values[i];
        if (axis != wanted)
            return false;
    }
    return perm->count == rank;
}

// Adds the size of input `index` to the shape of the concatenation so far.
static enum inf_code join_input(struct inf_infer *infer, uint32_t index, int32_t axis,
                                struct inf_shape *joined)
{
    const struct inf_shape *x = inf_infer_input(infer, index);
    char has[INF_SHAPE_TEXT_SIZE];
    char so_far[INF_SHAPE_TEXT_SIZE];
    bool fits = x->rank == joined->rank;
    for (int32_t i = 0; fits && i < x->rank; i++) {
        // below 2^32, because the sum is checked after each input
        int64_t sum = joined->dims[i] + x->dims[i];
        if (i != axis)
            fits = inf_dim_merge(joined->dims[i], x->dims[i], &joined->dims[i]);
        else if (joined->dims[i] < 0 || x->dims[i] < 0)
            joined->dims[i] = INF_DIM_UNKNOWN;
        else if (sum < INF_LIMIT_DIM)
            joined->dims[i] = sum;
        else
            fits = false;
    }
    return fits ? INF_OK
                : inf_shape_fault(infer, "input %u of shape %s does not join %s along axis %d",
                                  index, inf_shape_print(x, has), inf_shape_print(joined, so_far),
                                  axis);
}

enum inf_code inf_infer_concat(struct inf_infer *infer)
{
    struct inf_shape joined = {.rank = INF_RANK_UNKNOWN};
    int32_t axis = 0;
    bool all_ranks_known = true;
    for (uint32_t i = 0; i < infer->node->input_count; i++) {
        const struct inf_shape *x = inf_infer_input(infer, i);
        if (x->rank < 0) {
            all_ranks_known = false;
        } else if (joined.rank < 0) {
            joined = *x;
            if (!inf_axis_resolve(infer->node->attrs.concat.axis, x->rank, &axis))
                return inf_shape_fault(infer, "axis %d is out of range for rank %d",
                                       infer->node->attrs.concat.axis, x->rank);
        } else {
            INF_TRY(join_input(infer, i, axis, &joined));
        }
    }
    if (!all_ranks_known && joined.rank > 0)
        joined.dims[axis] = INF_DIM_UNKNOWN;
    return inf_infer_output(infer, 0, &joined);
}
