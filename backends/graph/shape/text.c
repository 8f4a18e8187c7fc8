// SPDX-License-Identifier: Apache-2.0
// Shapes of operators on strings.
#include "backends/graph/shape/rules.h"

// Checks that input `index` has one element.
static enum inf_code want_one(struct inf_infer *infer, uint32_t index)
{
    char text[INF_SHAPE_TEXT_SIZE];
    size_t count;
    const struct inf_shape *shape = inf_infer_input(infer, index);
    if (inf_shape_known(shape) && (!inf_shape_count(shape, &count) || count != 1))
        return inf_shape_fault(infer, "input %u has shape %s, wanted a scalar", index,
                               inf_shape_print(shape, text));
    return INF_OK;
}

// Checks that input `index` is a list.
static enum inf_code want_list(struct inf_infer *infer, uint32_t index)
{
    char text[INF_SHAPE_TEXT_SIZE];
    const struct inf_shape *shape = inf_infer_input(infer, index);
    if (shape->rank >= 0 && shape->rank != 1)
        return inf_shape_fault(infer, "input %u has shape %s, wanted a list", index,
                               inf_shape_print(shape, text));
    return INF_OK;
}

// Sets output `index` to the shape of x with one more axis, whose size only the strings determine.
static enum inf_code append_axis(struct inf_infer *infer, uint32_t index)
{
    struct inf_shape y = *inf_infer_input(infer, 0);
    if (y.rank == INF_LIMIT_RANK)
        return inf_shape_fault(infer, "x has rank %d, wanted less", y.rank);
    if (y.rank >= 0)
        y.dims[y.rank++] = INF_DIM_UNKNOWN;
    return inf_infer_output(infer, index, &y);
}

// Sets the only output to the shape of x and to `dtype`.
static enum inf_code keep_shape(struct inf_infer *infer, enum inf_dtype dtype)
{
    infer->dtypes[0] = dtype;
    return inf_infer_output(infer, 0, inf_infer_input(infer, 0));
}

enum inf_code inf_infer_string_case(struct inf_infer *infer)
{
    return keep_shape(infer, INF_DTYPE_BYTES);
}

enum inf_code inf_infer_string_repair(struct inf_infer *infer)
{
    return keep_shape(infer, INF_DTYPE_BYTES);
}

enum inf_code inf_infer_string_join(struct inf_infer *infer)
{
    const struct inf_shape *a = inf_infer_input(infer, 0), *b = inf_infer_input(infer, 1);
    char text_a[INF_SHAPE_TEXT_SIZE], text_b[INF_SHAPE_TEXT_SIZE];
    struct inf_shape y;
    if (!inf_shape_broadcast(a, b, &y))
        return inf_shape_fault(infer, "shapes %s and %s do not broadcast",
                               inf_shape_print(a, text_a), inf_shape_print(b, text_b));
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_string_split(struct inf_infer *infer)
{
    INF_TRY(want_one(infer, 1));
    infer->dtypes[1] = INF_DTYPE_I32;
    INF_TRY(append_axis(infer, 0));
    return inf_infer_output(infer, 1, inf_infer_input(infer, 0));
}

enum inf_code inf_infer_string_tokens(struct inf_infer *infer)
{
    INF_TRY(want_list(infer, 1));
    INF_TRY(want_one(infer, 2));
    return append_axis(infer, 0);
}

enum inf_code inf_infer_string_find(struct inf_infer *infer)
{
    INF_TRY(want_list(infer, 1));
    return keep_shape(infer, INF_DTYPE_I32);
}

enum inf_code inf_infer_string_match(struct inf_infer *infer)
{
    INF_TRY(want_one(infer, 1));
    return keep_shape(infer, INF_DTYPE_BOOL);
}

enum inf_code inf_infer_string_hash(struct inf_infer *infer)
{
    return keep_shape(infer, INF_DTYPE_I64);
}

enum inf_code inf_infer_murmur_hash(struct inf_infer *infer)
{
    return keep_shape(infer, INF_DTYPE_I32);
}

enum inf_code inf_infer_string_ngrams(struct inf_infer *infer)
{
    const struct inf_shape *splits = inf_infer_input(infer, 1);
    struct inf_shape y = INF_SHAPE(INF_DIM_UNKNOWN);
    INF_TRY(want_list(infer, 0));
    INF_TRY(want_list(infer, 1));
    for (uint32_t i = 2; i < 5; i++)
        INF_TRY(want_one(infer, i));
    infer->dtypes[1] = INF_DTYPE_I32;
    INF_TRY(inf_infer_output(infer, 0, &y));
    return inf_infer_output(infer, 1, splits);
}

enum inf_code inf_infer_sparse_fill_rows(struct inf_infer *infer)
{
    const struct inf_shape *indices = inf_infer_input(infer, 0);
    const struct inf_shape *values = inf_infer_input(infer, 1);
    char text[INF_SHAPE_TEXT_SIZE], values_text[INF_SHAPE_TEXT_SIZE];
    int64_t count = INF_DIM_UNKNOWN;
    if ((indices->rank >= 0 && indices->rank != 2) || (values->rank >= 0 && values->rank != 1) ||
        (indices->rank == 2 && values->rank == 1 &&
         !inf_dim_merge(indices->dims[0], values->dims[0], &count)) ||
        (indices->rank == 2 && indices->dims[1] == 0))
        return inf_shape_fault(infer, "indices have shape %s and values %s, wanted [n,r] and [n]",
                               inf_shape_print(indices, text),
                               inf_shape_print(values, values_text));
    INF_TRY(want_one(infer, 2));
    INF_TRY(want_one(infer, 3));
    struct inf_shape y =
        INF_SHAPE(INF_DIM_UNKNOWN, indices->rank == 2 ? indices->dims[1] : INF_DIM_UNKNOWN);
    struct inf_shape places = INF_SHAPE(count);
    infer->dtypes[1] = infer->graph->values[infer->node->inputs[1]].dtype;
    infer->dtypes[2] = INF_DTYPE_I32;
    INF_TRY(inf_infer_output(infer, 0, &y));
    y.rank = 1;
    y.dims[1] = 0;
    INF_TRY(inf_infer_output(infer, 1, &y));
    return inf_infer_output(infer, 2, &places);
}
