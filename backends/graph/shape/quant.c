// SPDX-License-Identifier: Apache-2.0
// Shapes of operators on quantised numbers.
#include <math.h>

#include "backends/graph/shape/rules.h"

// Limits of inf_qsum_factors(): the bits of the larger factor, and the ratios of scales.
#define FACTOR_BITS 21
#define RATIO_MIN   0x1p-10f
#define RATIO_MAX   0x1p8f

// Checks that input `index`, if present, has one element or, if `per_channel` is true, one for each
// of `channels`.
static enum inf_code check_parameter(struct inf_infer *infer, uint32_t index, bool per_channel,
                                     int64_t channels)
{
    size_t count;
    int64_t merged;
    if (!inf_infer_has_input(infer, index))
        return INF_OK;
    const struct inf_shape *shape = inf_infer_input(infer, index);
    if (!inf_shape_count(shape, &count) || count == 1 ||
        (per_channel && shape->rank == 1 && inf_dim_merge(shape->dims[0], channels, &merged)))
        return INF_OK;
    char text[INF_SHAPE_TEXT_SIZE];
    if (per_channel)
        return inf_shape_fault(infer, "input %u has shape %s, wanted one element or %lld", index,
                               inf_shape_print(shape, text), (long long)channels);
    return inf_shape_fault(infer, "input %u has shape %s, wanted one element", index,
                           inf_shape_print(shape, text));
}

// Checks inputs 2 to 6 of qconv2d or qmatmul: the bias, and the scales and zero points.
static enum inf_code check_parameters(struct inf_infer *infer, int64_t channels)
{
    int64_t merged;
    if (inf_infer_has_input(infer, 2)) {
        const struct inf_shape *bias = inf_infer_input(infer, 2);
        char text[INF_SHAPE_TEXT_SIZE];
        if (bias->rank >= 0 &&
            (bias->rank != 1 || !inf_dim_merge(bias->dims[0], channels, &merged)))
            return inf_shape_fault(infer, "the bias has shape %s, wanted %lld elements",
                                   inf_shape_print(bias, text), (long long)channels);
    }
    INF_TRY(check_parameter(infer, 3, false, channels));
    INF_TRY(check_parameter(infer, 4, true, channels));
    INF_TRY(check_parameter(infer, 5, true, channels));
    return check_parameter(infer, 6, false, channels);
}

enum inf_code inf_infer_qconv2d(struct inf_infer *infer)
{
    int64_t groups = infer->node->attrs.qconv2d.groups;
    struct inf_shape x;
    struct inf_shape filter;
    INF_TRY(inf_infer_image(infer, 0, &x));
    INF_TRY(inf_infer_image(infer, 1, &filter));
    int64_t merged;
    if (x.dims[3] >= 0 &&
        (x.dims[3] % groups != 0 || !inf_dim_merge(x.dims[3] / groups, filter.dims[2], &merged)))
        return inf_shape_fault(infer, "the filter is for %lld channels, x has %lld in %lld groups",
                               (long long)filter.dims[2], (long long)x.dims[3], (long long)groups);
    if (filter.dims[3] >= 0 && filter.dims[3] % groups != 0)
        return inf_shape_fault(infer, "%lld output channels do not divide into %lld groups",
                               (long long)filter.dims[3], (long long)groups);
    INF_TRY(check_parameters(infer, filter.dims[3]));
    struct inf_shape y = {.rank = 4, .dims = {[0] = x.dims[0], [3] = filter.dims[3]}};
    INF_TRY(inf_infer_window_count(infer, 0, x.dims[1], filter.dims[0], &y.dims[1]));
    INF_TRY(inf_infer_window_count(infer, 1, x.dims[2], filter.dims[1], &y.dims[2]));
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_qmatmul(struct inf_infer *infer)
{
    bool transpose_b = infer->node->attrs.qmatmul.transpose_b;
    const struct inf_shape *b = inf_infer_input(infer, 1);
    struct inf_shape y;
    INF_TRY(inf_infer_product(infer, false, transpose_b, &y));
    INF_TRY(check_parameters(infer, b->rank < 0 ? INF_DIM_UNKNOWN
                                                : b->dims[b->rank - (transpose_b ? 2 : 1)]));
    return y.rank < 0 ? INF_OK : inf_infer_output(infer, 0, &y);
}

// Fails because input `index` of matmul_blocks does not have the wanted shape.
static enum inf_code refuse_blocks(struct inf_infer *infer, uint32_t index)
{
    static const char *const names[] = {"x", "weights", "scales", "zero points", "bias"};
    char text[INF_SHAPE_TEXT_SIZE], weights[INF_SHAPE_TEXT_SIZE];
    return inf_shape_fault(infer, "%s have shape %s, which does not fit weights %s of %d bits",
                           names[index], inf_shape_print(inf_infer_input(infer, index), text),
                           inf_shape_print(inf_infer_input(infer, 1), weights),
                           infer->node->attrs.matmul_blocks.bits);
}

// Checks that input `index` of matmul_blocks, if present, has `count` elements.
static enum inf_code check_block_numbers(struct inf_infer *infer, uint32_t index, size_t count)
{
    size_t has;
    if (!inf_infer_has_input(infer, index) ||
        !inf_shape_count(inf_infer_input(infer, index), &has) || has == count)
        return INF_OK;
    return refuse_blocks(infer, index);
}

enum inf_code inf_infer_matmul_blocks(struct inf_infer *infer)
{
    const struct inf_attrs_matmul_blocks *attrs = &infer->node->attrs.matmul_blocks;
    const struct inf_shape *x = inf_infer_input(infer, 0), *w = inf_infer_input(infer, 1);
    size_t count;
    if ((attrs->bits != 2 && attrs->bits != 4 && attrs->bits != 8) || attrs->block % 16 != 0)
        return inf_fail(infer->err, INF_INVALID,
                        "bits is %d and block is %d, wanted 2, 4 or 8, and a multiple of 16",
                        attrs->bits, attrs->block);
    if (x->rank == 0)
        return refuse_blocks(infer, 0);
    if (inf_shape_count(w, &count)) {
        if (w->rank != 3 || w->dims[2] != (int64_t)attrs->block / 8 * attrs->bits)
            return refuse_blocks(infer, 1);
        size_t n = (size_t)w->dims[0], b = (size_t)w->dims[1];
        int64_t depth = x->rank < 0 ? INF_DIM_UNKNOWN : x->dims[x->rank - 1];
        if (depth >= 0 && (depth + attrs->block - 1) / attrs->block != w->dims[1])
            return refuse_blocks(infer, 0);
        INF_TRY(check_block_numbers(infer, 2, n * b));
        if (inf_infer_has_input(infer, 3)) {
            bool bytes = infer->graph->values[infer->node->inputs[3]].dtype == INF_DTYPE_U8;
            INF_TRY(check_block_numbers(infer, 3, n * (bytes ? (b + 3) / 4 * 4 : b)));
        }
        INF_TRY(check_block_numbers(infer, 4, n));
    }
    if (x->rank < 0)
        return INF_OK;
    struct inf_shape y = *x;
    y.dims[y.rank - 1] = w->rank == 3 ? w->dims[0] : INF_DIM_UNKNOWN;
    return inf_infer_output(infer, 0, &y);
}

bool inf_qsum_factors(float a_scale, float b_scale, float y_scale, struct inf_qsum_factors *factors)
{
    float a = a_scale / y_scale, b = b_scale / y_scale, larger = fmaxf(fabsf(a), fabsf(b));
    int exponent;
    if (!isfinite(a) || !isfinite(b) || !(larger >= RATIO_MIN && larger < RATIO_MAX))
        return false;
    (void)frexpf(larger, &exponent); // larger = m * 2^exponent, m from 0.5 to 1
    factors->shift = FACTOR_BITS - exponent;
    factors->a = (int32_t)lrintf(ldexpf(a, factors->shift));
    factors->b = (int32_t)lrintf(ldexpf(b, factors->shift));
    return true;
}

enum inf_code inf_infer_qbinary(struct inf_infer *infer)
{
    const struct inf_shape *a = inf_infer_input(infer, 0);
    const struct inf_shape *b = inf_infer_input(infer, 1);
    struct inf_shape y;
    for (uint32_t i = 2; i < 8; i++)
        INF_TRY(check_parameter(infer, i, false, 1));
    if (a->rank < 0 || b->rank < 0)
        return INF_OK;
    if (!inf_shape_broadcast(a, b, &y)) {
        char has_a[INF_SHAPE_TEXT_SIZE];
        char has_b[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "shapes %s and %s do not broadcast",
                               inf_shape_print(a, has_a), inf_shape_print(b, has_b));
    }
    return inf_infer_output(infer, 0, &y);
}

enum inf_code inf_infer_lookup(struct inf_infer *infer)
{
    const struct inf_shape *table = inf_infer_input(infer, 1);
    int64_t merged;
    if (table->rank >= 0 && (table->rank != 1 || !inf_dim_merge(table->dims[0], 256, &merged))) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "the table has shape %s, wanted 256 elements",
                               inf_shape_print(table, text));
    }
    return inf_infer_output(infer, 0, inf_infer_input(infer, 0));
}
