// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that repeat, pick, rearrange or create elements.
#include "backends/graph/shape/rules.h"

// Checks that input `index` has one element.
static enum inf_code check_scalar(struct inf_infer *infer, uint32_t index)
{
    size_t count;
    const struct inf_shape *shape = inf_infer_input(infer, index);
    if (!inf_shape_known(shape) || (inf_shape_count(shape, &count) && count == 1))
        return INF_OK;
    char text[INF_SHAPE_TEXT_SIZE];
    return inf_shape_fault(infer, "input %u has shape %s, wanted a scalar", index,
                           inf_shape_print(shape, text));
}

// Computes *rank, the rank of x: it must equal `rows`, the number of rows of the other operand, if
// both are known. The rank is unknown if neither is known.
static enum inf_code common_rank(struct inf_infer *infer, int64_t rows, int32_t *rank)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    *rank = x->rank < 0 ? (int32_t)rows : x->rank;
    if (x->rank >= 0 && rows != INF_DIM_UNKNOWN && rows != x->rank)
        return inf_shape_fault(infer, "input 1 has %lld rows, x has rank %d", (long long)rows,
                               x->rank);
    return INF_OK;
}

// Computes the output size of one axis of pad.
static enum inf_code pad_axis(struct inf_infer *infer, int32_t axis, int64_t before, int64_t after,
                              int64_t *dim)
{
    int64_t most = INF_LIMIT_DIM - 1;
    enum inf_pad_mode mode = infer->node->attrs.pad.mode;
    if (*dim >= 0 && mode == INF_PAD_REFLECT)
        most = INF_MAX(*dim - 1, 0);
    else if (*dim >= 0 && mode == INF_PAD_SYMMETRIC)
        most = *dim;
    else if (*dim == 0 && mode == INF_PAD_EDGE)
        most = 0;
    if (before < 0 || after < 0 || before > most || after > most)
        return inf_shape_fault(
            infer, "axis %d of size %lld is padded by %lld and %lld, wanted 0 to %lld", axis,
            (long long)*dim, (long long)before, (long long)after, (long long)most);
    if (*dim >= 0)
        *dim += before + after;
    return INF_OK;
}

enum inf_code inf_infer_pad(struct inf_infer *infer)
{
    struct inf_operand paddings;
    struct inf_shape y = {0};
    if (inf_infer_has_input(infer, 2))
        INF_TRY(check_scalar(infer, 2));
    INF_TRY(inf_infer_operand(infer, 1, 2, &paddings));
    INF_TRY(common_rank(infer, paddings.count, &y.rank));
    for (int32_t i = 0; i < y.rank; i++) {
        const struct inf_shape *x = inf_infer_input(infer, 0);
        y.dims[i] = x->rank < 0 || !paddings.known ? INF_DIM_UNKNOWN : x->dims[i];
        if (paddings.known)
            INF_TRY(
                pad_axis(infer, i, paddings.values[2 * i], paddings.values[2 * i + 1], &y.dims[i]));
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_tile(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    struct inf_shape multiples;
    bool known;
    struct inf_shape y = {0};
    INF_TRY(inf_infer_listed(infer, 1, 0, &multiples, &known));
    INF_TRY(common_rank(infer, multiples.rank, &y.rank));
    for (int32_t i = 0; i < y.rank; i++) {
        int64_t times = multiples.rank < 0 ? INF_DIM_UNKNOWN : multiples.dims[i];
        if (!inf_dim_product(x->rank < 0 ? INF_DIM_UNKNOWN : x->dims[i], times, &y.dims[i]))
            return inf_shape_fault(infer, "axis %d of size %lld repeated %lld times is too large",
                                   i, (long long)x->dims[i], (long long)times);
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_broadcast(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    struct inf_shape wanted;
    bool known;
    INF_TRY(inf_infer_listed(infer, 1, 0, &wanted, &known));
    if (x->rank >= 0 && wanted.rank >= 0) {
        // Broadcasting may extend x to the wanted shape, but must not extend the wanted shape.
        struct inf_shape joined;
        bool fits = inf_shape_broadcast(x, &wanted, &joined) && joined.rank == wanted.rank;
        for (int32_t i = 0; fits && i < joined.rank; i++)
            fits = wanted.dims[i] == INF_DIM_UNKNOWN || joined.dims[i] == wanted.dims[i] ||
                   joined.dims[i] == INF_DIM_UNKNOWN;
        if (!fits) {
            char from[INF_SHAPE_TEXT_SIZE];
            char to[INF_SHAPE_TEXT_SIZE];
            return inf_shape_fault(infer, "%s does not stretch to %s", inf_shape_print(x, from),
                                   inf_shape_print(&wanted, to));
        }
    }
    return inf_infer_output(infer, 0, &wanted);
}

enum inf_code inf_infer_gather(struct inf_infer *infer)
{
    const struct inf_attrs_gather *attrs = &infer->node->attrs.gather;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *indices = inf_infer_input(infer, 1);
    if (x->rank < 0 || indices->rank < 0)
        return INF_OK;
    int32_t axis;
    int32_t shared = attrs->batch_dims;
    if (!inf_axis_resolve(attrs->axis, x->rank, &axis))
        return inf_shape_fault(infer, "axis %d is out of range for rank %d", attrs->axis, x->rank);
    if (shared > axis || shared > indices->rank)
        return inf_shape_fault(infer,
                               "batch_dims is %d, wanted at most axis %d and the indices' rank %d",
                               shared, axis, indices->rank);
    struct inf_shape y = {.rank = x->rank - 1 + indices->rank - shared};
    if (y.rank > INF_LIMIT_RANK)
        return inf_shape_fault(infer, "the result has rank %d, wanted at most %d", y.rank,
                               INF_LIMIT_RANK);
    int32_t at = 0;
    for (int32_t i = 0; i < axis; i++, at++) {
        y.dims[at] = x->dims[i];
        if (i < shared && !inf_dim_merge(x->dims[i], indices->dims[i], &y.dims[at]))
            return inf_shape_fault(infer, "axis %d is %lld in x and %lld in the indices", i,
                                   (long long)x->dims[i], (long long)indices->dims[i]);
    }
    for (int32_t i = shared; i < indices->rank; i++)
        y.dims[at++] = indices->dims[i];
    for (int32_t i = axis + 1; i < x->rank; i++)
        y.dims[at++] = x->dims[i];
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_space_to_depth(struct inf_infer *infer)
{
    int32_t block = infer->node->attrs.space_to_depth.block;
    struct inf_shape y;
    INF_TRY(inf_infer_image(infer, 0, &y));
    for (int32_t i = 1; i <= 2; i++) {
        if (y.dims[i] >= 0 && y.dims[i] % block != 0)
            return inf_shape_fault(infer, "axis %d of size %lld does not divide into blocks of %d",
                                   i, (long long)y.dims[i], block);
        y.dims[i] = y.dims[i] < 0 ? INF_DIM_UNKNOWN : y.dims[i] / block;
    }
    if (!inf_dim_product(y.dims[3], (int64_t)block * block, &y.dims[3]))
        return inf_shape_fault(infer, "blocks of %d make too many channels", block);
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_depth_to_space(struct inf_infer *infer)
{
    int32_t block = infer->node->attrs.depth_to_space.block;
    struct inf_shape y;
    INF_TRY(inf_infer_image(infer, 0, &y));
    if (y.dims[3] >= 0 && y.dims[3] % (block * block) != 0)
        return inf_shape_fault(infer, "%lld channels do not divide into blocks of %d by %d",
                               (long long)y.dims[3], block, block);
    y.dims[3] = y.dims[3] < 0 ? INF_DIM_UNKNOWN : y.dims[3] / (block * block);
    for (int32_t i = 1; i <= 2; i++)
        if (!inf_dim_product(y.dims[i], block, &y.dims[i]))
            return inf_shape_fault(infer, "blocks of %d make axis %d too large", block, i);
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_shape(struct inf_infer *infer)
{
    int32_t rank = inf_infer_input(infer, 0)->rank;
    return inf_infer_output(infer, 0, &INF_SHAPE(rank < 0 ? INF_DIM_UNKNOWN : rank));
}

enum inf_code inf_infer_fill(struct inf_infer *infer)
{
    struct inf_shape y;
    bool known;
    INF_TRY(check_scalar(infer, 1));
    INF_TRY(inf_infer_listed(infer, 0, 0, &y, &known));
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_random(struct inf_infer *infer)
{
    struct inf_shape y;
    bool known;
    INF_TRY(inf_infer_listed(infer, 0, 0, &y, &known));
    return inf_infer_output(infer, 0, &y);
}
