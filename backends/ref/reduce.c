// SPDX-License-Identifier: Apache-2.0
// Reductions over axes, and the index of an extreme along one axis.
#include <math.h>

#include "backends/ref/kernels.h"

// The intermediate result of a reduction. Reductions of floats use `real`; reductions of integers
// and bools use `whole`.
struct tally {
    double real;
    double scaled; // for log_sum_exp: the sum of e^(x - real) of all elements x so far
    __int128 whole;
};

// Returns true if the reduction computes in double.
static bool in_reals(enum inf_reduce_kind kind, enum inf_dtype dtype)
{
    return inf_dtype_is_float(dtype) || kind == INF_REDUCE_L2 || kind == INF_REDUCE_LOG_SUM ||
           kind == INF_REDUCE_LOG_SUM_EXP;
}

static struct tally start_value(enum inf_reduce_kind kind, enum inf_dtype dtype)
{
    bool is_float = inf_dtype_is_float(dtype);
    switch (kind) {
    case INF_REDUCE_MAX:
        return (struct tally){.real = -INFINITY, .whole = is_float ? 0 : inf_ref_int_min(dtype)};
    case INF_REDUCE_MIN:
        return (struct tally){.real = INFINITY, .whole = is_float ? 0 : inf_ref_int_max(dtype)};
    case INF_REDUCE_PROD:
    case INF_REDUCE_ALL:
        return (struct tally){.real = 1, .whole = 1};
    case INF_REDUCE_LOG_SUM_EXP:
        return (struct tally){.real = -INFINITY};
    default:
        return (struct tally){0};
    }
}

// Adds e^value to a sum that is stored as e^real * scaled, where `real` is the maximum so far.
static void add_exp(struct tally *tally, double value)
{
    if (value == tally->real) {
        tally->scaled += !isinf(value) || value > 0;
    } else if (value < tally->real) {
        tally->scaled += exp(value - tally->real);
    } else {
        tally->scaled = tally->scaled * exp(tally->real - value) + 1;
        tally->real = value;
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
    case INF_REDUCE_L1:
        tally->real += fabs(value);
        break;
    case INF_REDUCE_L2:
    case INF_REDUCE_SUM_SQUARE:
        tally->real += value * value;
        break;
    case INF_REDUCE_LOG_SUM_EXP:
        add_exp(tally, value);
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
    case INF_REDUCE_L1:
        tally->whole += value < 0 ? -value : value;
        break;
    case INF_REDUCE_SUM_SQUARE:
        tally->whole += (__int128)((unsigned __int128)value * (unsigned __int128)value);
        break;
    default:
        tally->whole += value;
        break;
    }
}

// Returns the result of a reduction in double.
static double real_result(enum inf_reduce_kind kind, const struct tally *tally, size_t count)
{
    switch (kind) {
    case INF_REDUCE_MEAN:
        return tally->real / (double)count;
    case INF_REDUCE_L2:
        return sqrt(tally->real);
    case INF_REDUCE_LOG_SUM:
        return log(tally->real);
    case INF_REDUCE_LOG_SUM_EXP:
        return tally->real + (isinf(tally->real) ? 0 : log(tally->scaled));
    default:
        return tally->real;
    }
}

static void put_tally(const struct inf_ref_tensor *y, size_t index, enum inf_reduce_kind kind,
                      const struct tally *tally, size_t count)
{
    if (in_reals(kind, y->dtype))
        inf_ref_put(y, index, real_result(kind, tally, count));
    else if (kind == INF_REDUCE_MEAN)
        inf_ref_store_int(y, index, count != 0 ? tally->whole / (__int128)count : 0);
    else
        inf_ref_store_int(y, index, tally->whole);
}

enum inf_code inf_ref_reduce(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_reduce *attrs = &call->node->attrs.reduce;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk stay, go;
    struct inf_ref_walk whole;
    inf_ref_walk_init(&whole, x->shape);
    inf_ref_walk_broadcast(&whole, 0, x->shape);
    inf_ref_walk_split(&whole, &attrs->axes, &stay, &go);
    bool is_float = in_reals(attrs->kind, x->dtype);
    size_t count = y->count == 0 ? 0 : x->count / y->count;
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&stay)) {
        struct tally tally = start_value(attrs->kind, x->dtype);
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

// Returns the number (0 to count - 1) of the first largest or first smallest of `count` elements
// that are `stride` elements apart. As in TensorFlow.js, a NaN is skipped. If the first element is
// NaN, 0 is returned, because no comparison with NaN is true.
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
