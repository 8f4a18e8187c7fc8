// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and the index of an extreme along one.
#include <math.h>

#include "backends/ref/ref_kernels.h"

// What a reduction has seen so far; floats use `real`, integers and bools `whole`.
struct tally {
    double real;
    __int128 whole;
};

static struct tally start(enum inf_reduce_kind kind, enum inf_dtype dtype)
{
    bool is_float = inf_dtype_is_float(dtype);
    switch (kind) {
    case INF_REDUCE_MAX:
        return (struct tally){-INFINITY, is_float ? 0 : inf_ref_int_min(dtype)};
    case INF_REDUCE_MIN:
        return (struct tally){INFINITY, is_float ? 0 : inf_ref_int_max(dtype)};
    case INF_REDUCE_PROD:
    case INF_REDUCE_ALL:
        return (struct tally){1, 1};
    default:
        return (struct tally){0, 0};
    }
}

static void add_float(enum inf_reduce_kind kind, struct tally *tally, double value)
{
    switch (kind) {
    case INF_REDUCE_MAX:
        if (value > tally->real || isnan(value))
            tally->real = value;
        break;
    case INF_REDUCE_MIN:
        if (value < tally->real || isnan(value))
            tally->real = value;
        break;
    case INF_REDUCE_PROD:
        tally->real *= value;
        break;
    case INF_REDUCE_ALL:
        tally->real = tally->real != 0 && value != 0;
        break;
    case INF_REDUCE_ANY:
        tally->real = tally->real != 0 || value != 0;
        break;
    default:
        tally->real += value;
        break;
    }
}

static void add_whole(enum inf_reduce_kind kind, struct tally *tally, __int128 value)
{
    switch (kind) {
    case INF_REDUCE_MAX:
        tally->whole = INF_MAX(tally->whole, value);
        break;
    case INF_REDUCE_MIN:
        tally->whole = INF_MIN(tally->whole, value);
        break;
    case INF_REDUCE_PROD:
        tally->whole = (__int128)((unsigned __int128)tally->whole * (unsigned __int128)value);
        break;
    case INF_REDUCE_ALL:
        tally->whole = tally->whole != 0 && value != 0;
        break;
    case INF_REDUCE_ANY:
        tally->whole = tally->whole != 0 || value != 0;
        break;
    default:
        tally->whole += value;
        break;
    }
}

static void put_tally(const struct inf_ref_tensor *y, size_t index, enum inf_reduce_kind kind,
                      const struct tally *tally, size_t count)
{
    bool is_float = inf_dtype_is_float(y->dtype);
    if (is_float)
        inf_ref_put(y, index, kind == INF_REDUCE_MEAN ? tally->real / (double)count : tally->real);
    else if (kind == INF_REDUCE_MEAN)
        inf_ref_store_int(y, index, count != 0 ? tally->whole / (__int128)count : 0);
    else
        inf_ref_store_int(y, index, tally->whole);
}

// Splits the axes of x into those that stay and those that go; each walk follows x as operand 0.
static void split_axes(const struct inf_shape *shape, const struct inf_ints *axes,
                       struct inf_ref_walk *stay, struct inf_ref_walk *go)
{
    bool goes[INF_LIMIT_RANK] = {false};
    for (int32_t i = 0; i < axes->count; i++)
        goes[inf_ref_axis(axes->values[i], shape->rank)] = true;
    int64_t strides[INF_LIMIT_RANK];
    inf_shape_strides(shape, strides);
    inf_ref_walk_init(stay, &(struct inf_shape){0});
    inf_ref_walk_init(go, &(struct inf_shape){0});
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        struct inf_ref_walk *walk = goes[axis] || axes->count == 0 ? go : stay;
        walk->dims[walk->rank] = shape->dims[axis];
        walk->strides[0][walk->rank] = strides[axis];
        walk->rank++;
    }
}

enum inf_code inf_ref_reduce(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_reduce *attrs = &call->node->attrs.reduce;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk stay, go;
    split_axes(x->shape, &attrs->axes, &stay, &go);
    bool is_float = inf_dtype_is_float(x->dtype);
    size_t count = y->count == 0 ? 0 : x->count / y->count;
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&stay)) {
        struct tally tally = start(attrs->kind, x->dtype);
        for (size_t j = 0; j < count; j++, inf_ref_walk_next(&go)) {
            size_t at = (size_t)(stay.offsets[0] + go.offsets[0]);
            if (is_float)
                add_float(attrs->kind, &tally, inf_ref_get(x, at));
            else
                add_whole(attrs->kind, &tally, inf_ref_load_int(x, at));
        }
        put_tally(y, i, attrs->kind, &tally, count);
    }
    return INF_OK;
}

// The index of the first extreme of `count` elements `stride` apart. A NaN is passed over, unless it
// comes first: nothing is beyond it then. As TensorFlow.js.
static size_t first_extreme(const struct inf_ref_tensor *x, enum inf_arg_kind kind, size_t at,
                            size_t stride, size_t count)
{
    size_t best = 0;
    bool is_float = inf_dtype_is_float(x->dtype);
    for (size_t i = 1; i < count; i++) {
        size_t here = at + i * stride, there = at + best * stride;
        bool less, greater;
        if (is_float) {
            less = inf_ref_get(x, here) < inf_ref_get(x, there);
            greater = inf_ref_get(x, here) > inf_ref_get(x, there);
        } else {
            less = inf_ref_load_int(x, here) < inf_ref_load_int(x, there);
            greater = inf_ref_load_int(x, here) > inf_ref_load_int(x, there);
        }
        if (kind == INF_ARG_MAX ? greater : less)
            best = i;
    }
    return best;
}

enum inf_code inf_ref_arg(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_arg *attrs = &call->node->attrs.arg;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    int32_t axis = inf_ref_axis(attrs->axis, x->shape->rank);
    size_t count = (size_t)x->shape->dims[axis];
    size_t inner = inf_ref_extent(x->shape, axis + 1, x->shape->rank);
    if (count == 0 && y->count != 0)
        return inf_fail(err, INF_INVALID, "axis %d of x has no elements to choose from", axis);
    for (size_t i = 0; i < y->count; i++) {
        size_t at = i / inner * count * inner + i % inner;
        inf_ref_store_int(y, i, (__int128)first_extreme(x, attrs->kind, at, inner, count));
    }
    return INF_OK;
}
