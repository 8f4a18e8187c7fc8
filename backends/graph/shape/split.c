// SPDX-License-Identifier: Apache-2.0
// Shapes of split, which may have many outputs.
#include <stdlib.h>

#include "backends/graph/shape/rules.h"

// Checks that the `sizes`, one per output, add up to the axis. One of them may be -1 and is then
// computed.
static enum inf_code check_sizes(struct inf_infer *infer, int64_t whole, int64_t *sizes)
{
    uint32_t hole = UINT32_MAX;
    int64_t sum = 0; // cannot overflow, because there are at most 4096 sizes below 2^31
    for (uint32_t i = 0; i < infer->node->output_count; i++) {
        if (sizes[i] < -1 || sizes[i] >= INF_LIMIT_DIM || (sizes[i] == -1 && hole != UINT32_MAX))
            return inf_shape_fault(infer, "part %u has size %lld", i, (long long)sizes[i]);
        if (sizes[i] == -1)
            hole = i;
        else
            sum += sizes[i];
    }
    if (whole == INF_DIM_UNKNOWN)
        return INF_OK;
    if (hole != UINT32_MAX && sum <= whole)
        sizes[hole] = whole - sum;
    else if (sum != whole)
        return inf_shape_fault(infer, "the parts have %lld together, the axis has %lld",
                               (long long)sum, (long long)whole);
    return INF_OK;
}

// Reads the sizes from the second input. If the input is not constant yet, the sizes are unknown.
static enum inf_code listed_sizes(struct inf_infer *infer, int64_t whole, int64_t *sizes)
{
    uint32_t parts = infer->node->output_count;
    const struct inf_shape *shape = inf_infer_input(infer, 1);
    int64_t merged;
    uint32_t count;
    if (shape->rank >= 0 && (shape->rank != 1 || !inf_dim_merge(shape->dims[0], parts, &merged))) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "sizes have shape %s, wanted [%u]",
                               inf_shape_print(shape, text), parts);
    }
    if (inf_graph_const_ints(infer->graph, infer->node->inputs[1], sizes, parts, &count))
        return check_sizes(infer, whole, sizes);
    for (uint32_t i = 0; i < parts; i++)
        sizes[i] = INF_DIM_UNKNOWN;
    return INF_OK;
}

static enum inf_code equal_sizes(struct inf_infer *infer, int64_t whole, int64_t *sizes)
{
    uint32_t parts = infer->node->output_count;
    if (whole >= 0 && whole % parts != 0)
        return inf_shape_fault(infer, "an axis of %lld does not divide into %u parts",
                               (long long)whole, parts);
    for (uint32_t i = 0; i < parts; i++)
        sizes[i] = whole < 0 ? INF_DIM_UNKNOWN : whole / parts;
    return INF_OK;
}

static enum inf_code cut_axis(struct inf_infer *infer, const struct inf_shape *x, int32_t axis,
                              int64_t *sizes)
{
    if (inf_infer_has_input(infer, 1))
        INF_TRY(listed_sizes(infer, x->dims[axis], sizes));
    else
        INF_TRY(equal_sizes(infer, x->dims[axis], sizes));
    struct inf_shape part = *x;
    for (uint32_t i = 0; i < infer->node->output_count; i++) {
        part.dims[axis] = sizes[i];
        INF_TRY(inf_infer_output(infer, i, &part));
    }
    return INF_OK;
}

enum inf_code inf_infer_split(struct inf_infer *infer)
{
    const struct inf_shape *x = inf_infer_input(infer, 0);
    int32_t axis;
    if (x->rank < 0)
        return INF_OK;
    if (!inf_axis_resolve(infer->node->attrs.split.axis, x->rank, &axis))
        return inf_shape_fault(infer, "axis %d is out of range for rank %d",
                               infer->node->attrs.split.axis, x->rank);
    int64_t *sizes = calloc(infer->node->output_count, sizeof *sizes);
    if (sizes == NULL)
        return inf_fail_reason(infer->err, INF_EXHAUSTED, INF_REASON_HOST_OOM, "no memory");
    enum inf_code code = cut_axis(infer, x, axis, sizes);
    free(sizes);
    return code;
}
