// SPDX-License-Identifier: Apache-2.0
// Shapes of operators that look up, order, count and place elements.
#include "backends/graph/shape/rules.h"

// Resolves an axis attribute against the rank of `shape`, which is known.
static enum inf_code resolve_axis(struct inf_infer *infer, int32_t axis,
                                  const struct inf_shape *shape, int32_t *resolved)
{
    if (inf_axis_resolve(axis, shape->rank, resolved))
        return INF_OK;
    return inf_shape_fault(infer, "axis %d is out of range for rank %d", axis, shape->rank);
}

enum inf_code inf_infer_reverse(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    uint32_t set;
    if (x->rank >= 0)
        INF_TRY(inf_infer_axes(infer, &infer->node->attrs.reverse.axes, x->rank, &set));
    return inf_infer_output(infer, 0, x);
}

enum inf_code inf_infer_reverse_sequence(struct inf_infer *infer)
{
    const struct inf_attrs_reverse_sequence *attrs = &infer->node->attrs.reverse_sequence;
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *lengths = inf_infer_input(infer, 1);
    if (x->rank < 0)
        return inf_infer_output(infer, 0, x);
    int32_t axis, batch_axis;
    int64_t batch;
    INF_TRY(resolve_axis(infer, attrs->axis, x, &axis));
    INF_TRY(resolve_axis(infer, attrs->batch_axis, x, &batch_axis));
    if (axis == batch_axis)
        return inf_shape_fault(infer, "axis and batch_axis are both %d", axis);
    if (lengths->rank >= 0 &&
        (lengths->rank != 1 || !inf_dim_merge(lengths->dims[0], x->dims[batch_axis], &batch))) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "lengths have shape %s, wanted [%lld]",
                               inf_shape_print(lengths, text), (long long)x->dims[batch_axis]);
    }
    return inf_infer_output(infer, 0, x);
}

enum inf_code inf_infer_cumulate(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    int32_t axis;
    if (x->rank >= 0)
        INF_TRY(resolve_axis(infer, infer->node->attrs.cumulate.axis, x, &axis));
    return inf_infer_output(infer, 0, x);
}

enum inf_code inf_infer_topk(struct inf_infer *infer)
{
    struct inf_shape y = *inf_infer_input(infer, 0);
    int64_t k;
    bool known;
    int32_t axis;
    infer->dtypes[1] = INF_DTYPE_I32;
    INF_TRY(inf_infer_integer(infer, 1, &k, &known));
    if (y.rank < 0)
        return INF_OK;
    INF_TRY(resolve_axis(infer, infer->node->attrs.topk.axis, &y, &axis));
    if (known && (k < 0 || (y.dims[axis] >= 0 && k > y.dims[axis])))
        return inf_shape_fault(infer, "k is %lld, wanted at most the %lld elements of axis %d",
                               (long long)k, (long long)y.dims[axis], axis);
    y.dims[axis] = known ? k : INF_DIM_UNKNOWN;
    INF_TRY(inf_infer_output(infer, 0, &y));
    return inf_infer_output(infer, 1, &y);
}

enum inf_code inf_infer_search_sorted(struct inf_infer *infer)
{
    const struct inf_shape *sorted = inf_infer_input(infer, 0);
    const struct inf_shape *values = inf_infer_input(infer, 1);
    if (sorted->rank < 0 || values->rank < 0)
        return inf_infer_output(infer, 0, values);
    bool fits = sorted->rank == values->rank && sorted->rank > 0;
    struct inf_shape y = *values;
    for (int32_t i = 0; fits && i + 1 < y.rank; i++)
        fits = inf_dim_merge(sorted->dims[i], values->dims[i], &y.dims[i]);
    if (!fits) {
        char a[INF_SHAPE_TEXT_SIZE];
        char b[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "shapes %s and %s differ in more than the last dimension",
                               inf_shape_print(sorted, a), inf_shape_print(values, b));
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_pair_coupling(struct inf_infer *infer)
{
    struct inf_shape y = *inf_infer_input(infer, 0);
    char text[INF_SHAPE_TEXT_SIZE];
    if (y.rank < 0)
        return inf_infer_output(infer, 0, &y);
    int64_t classes = INF_DIM_UNKNOWN;
    if (y.rank < 2 || !inf_dim_merge(y.dims[y.rank - 2], y.dims[y.rank - 1], &classes) ||
        classes > INF_LIMIT_COUPLED_CLASSES)
        return inf_shape_fault(infer, "the shape is %s, wanted matrices [k,k], k at most %d",
                               inf_shape_print(&y, text), INF_LIMIT_COUPLED_CLASSES);
    y.dims[--y.rank] = 0;
    y.dims[y.rank - 1] = classes;
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_bincount(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *weights = inf_infer_input(infer, 2);
    char a[INF_SHAPE_TEXT_SIZE];
    char b[INF_SHAPE_TEXT_SIZE];
    int64_t size;
    bool known;
    INF_TRY(inf_infer_integer(infer, 1, &size, &known));
    if (known && (size < 0 || size >= INF_LIMIT_DIM))
        return inf_shape_fault(infer, "size is %lld, wanted 0 or more", (long long)size);
    if (x->rank < 0)
        return INF_OK;
    if (x->rank != 1 && x->rank != 2)
        return inf_shape_fault(infer, "x has shape %s, wanted rank 1 or 2", inf_shape_print(x, a));
    size_t count;
    bool empty = inf_shape_count(weights, &count) && count == 0;
    if (inf_shape_known(weights) && inf_shape_known(x) && !empty && !inf_shape_equal(x, weights))
        return inf_shape_fault(infer, "weights have shape %s, wanted %s or none",
                               inf_shape_print(weights, b), inf_shape_print(x, a));
    struct inf_shape y = *x;
    y.dims[y.rank - 1] = known ? size : INF_DIM_UNKNOWN;
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_one_hot(struct inf_infer *infer)
{
    const struct inf_shape *indices = inf_infer_input(infer, 0);
    int64_t depth, ignored;
    bool known, ignored_known;
    int32_t axis;
    INF_TRY(inf_infer_integer(infer, 1, &depth, &known));
    for (uint32_t i = 2; i < 4; i++)
        INF_TRY(inf_infer_integer(infer, i, &ignored, &ignored_known));
    if (known && (depth < 0 || depth >= INF_LIMIT_DIM))
        return inf_shape_fault(infer, "depth is %lld, wanted 0 or more", (long long)depth);
    if (indices->rank < 0)
        return INF_OK;
    struct inf_shape y = {.rank = indices->rank + 1};
    if (y.rank > INF_LIMIT_RANK)
        return inf_shape_fault(infer, "the result has rank %d, wanted at most %d", y.rank,
                               INF_LIMIT_RANK);
    INF_TRY(resolve_axis(infer, infer->node->attrs.one_hot.axis, &y, &axis));
    for (int32_t i = 0, from = 0; i < y.rank; i++)
        y.dims[i] = i != axis ? indices->dims[from++] : known ? depth : INF_DIM_UNKNOWN;
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_band(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    if (x->rank >= 0 && x->rank < 2)
        return inf_shape_fault(infer, "x has rank %d, wanted 2 or more", x->rank);
    return inf_infer_output(infer, 0, x);
}

enum inf_code inf_infer_gather_nd(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *indices = inf_infer_input(infer, 1);
    int32_t shared = infer->node->attrs.gather_nd.batch_dims;
    if (x->rank < 0 || indices->rank < 0)
        return INF_OK;
    if (shared >= indices->rank || shared > x->rank)
        return inf_shape_fault(infer, "batch_dims is %d, wanted less than the indices' rank %d",
                               shared, indices->rank);
    int64_t depth = indices->dims[indices->rank - 1];
    if (depth == INF_DIM_UNKNOWN)
        return INF_OK;
    if (depth > x->rank - shared)
        return inf_shape_fault(infer, "the indices name %lld axes, x has %d", (long long)depth,
                               x->rank - shared);
    struct inf_shape y = {.rank = indices->rank - 1};
    for (int32_t i = 0; i < y.rank; i++)
        if (!inf_dim_merge(indices->dims[i], i < shared ? x->dims[i] : INF_DIM_UNKNOWN, &y.dims[i]))
            return inf_shape_fault(infer, "axis %d is %lld in x and %lld in the indices", i,
                                   (long long)x->dims[i], (long long)indices->dims[i]);
    if (y.rank + x->rank - shared - depth > INF_LIMIT_RANK)
        return inf_shape_fault(infer, "the result has more than %d axes", INF_LIMIT_RANK);
    for (int32_t i = shared + (int32_t)depth; i < x->rank; i++)
        y.dims[y.rank++] = x->dims[i];
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_scatter_nd(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *indices = inf_infer_input(infer, 1);
    const struct inf_shape *updates = inf_infer_input(infer, 2);
    if (x->rank < 0 || indices->rank < 0 || updates->rank < 0)
        return inf_infer_output(infer, 0, x);
    if (indices->rank == 0)
        return inf_shape_fault(infer, "the indices are a scalar, wanted rank 1 or more");
    int64_t depth = indices->dims[indices->rank - 1];
    if (depth == INF_DIM_UNKNOWN)
        return inf_infer_output(infer, 0, x);
    int64_t merged;
    bool fits = depth <= x->rank && updates->rank == indices->rank - 1 + x->rank - depth;
    for (int32_t i = 0; fits && i < updates->rank; i++)
        fits = inf_dim_merge(updates->dims[i],
                             i < indices->rank - 1 ? indices->dims[i]
                                                   : x->dims[i - indices->rank + 1 + depth],
                             &merged);
    if (!fits) {
        char a[INF_SHAPE_TEXT_SIZE];
        char b[INF_SHAPE_TEXT_SIZE];
        char c[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "updates %s at indices %s do not fit into %s",
                               inf_shape_print(updates, a), inf_shape_print(indices, b),
                               inf_shape_print(x, c));
    }
    return inf_infer_output(infer, 0, x);
}

// Checks indices of elements along `axis`: they must have the rank of x, and no axis except `axis`
// may be larger than in x.
static enum inf_code check_elements(struct inf_infer *infer, int32_t axis_attr)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    const struct inf_shape *indices = inf_infer_input(infer, 1);
    if (x->rank < 0 || indices->rank < 0)
        return INF_OK;
    int32_t axis;
    INF_TRY(resolve_axis(infer, axis_attr, x, &axis));
    bool fits = x->rank == indices->rank;
    for (int32_t i = 0; fits && i < x->rank; i++)
        fits = i == axis || x->dims[i] < 0 || indices->dims[i] <= x->dims[i];
    char a[INF_SHAPE_TEXT_SIZE];
    char b[INF_SHAPE_TEXT_SIZE];
    return fits ? INF_OK
                : inf_shape_fault(infer, "indices of shape %s do not fit %s along axis %d",
                                  inf_shape_print(indices, a), inf_shape_print(x, b), axis);
}

enum inf_code inf_infer_gather_elements(struct inf_infer *infer)
{
    INF_TRY(check_elements(infer, infer->node->attrs.gather_elements.axis));
    return inf_infer_output(infer, 0, inf_infer_input(infer, 1));
}

enum inf_code inf_infer_scatter_elements(struct inf_infer *infer)
{
    const struct inf_shape *indices = inf_infer_input(infer, 1);
    const struct inf_shape *updates = inf_infer_input(infer, 2);
    INF_TRY(check_elements(infer, infer->node->attrs.scatter_elements.axis));
    if (inf_shape_known(indices) && inf_shape_known(updates) &&
        !inf_shape_equal(indices, updates)) {
        char a[INF_SHAPE_TEXT_SIZE];
        char b[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "updates have shape %s, the indices %s",
                               inf_shape_print(updates, a), inf_shape_print(indices, b));
    }
    return inf_infer_output(infer, 0, inf_infer_input(infer, 0));
}
