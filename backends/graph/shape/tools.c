// SPDX-License-Identifier: Apache-2.0
// Helpers that the shape functions of all operator families share.
#include "backends/graph/shape/rules.h"

bool inf_infer_has_input(const struct inf_infer *infer, uint32_t index)
{
    return index < infer->node->input_count && infer->node->inputs[index] != INF_VALUE_NONE;
}

const struct inf_shape *inf_infer_input(const struct inf_infer *infer, uint32_t index)
{
    return &infer->graph->values[infer->node->inputs[index]].shape;
}

enum inf_code inf_infer_output(struct inf_infer *infer, uint32_t index,
                               const struct inf_shape *shape)
{
    size_t size_bytes;
    bool fits = inf_shape_known(shape) ? inf_shape_bytes(shape, infer->dtypes[index], &size_bytes)
                                       : inf_shape_valid(shape);
    if (!fits) {
        char text[INF_SHAPE_TEXT_SIZE];
        return inf_shape_fault(infer, "output of shape %s is larger than a tensor may be",
                               inf_shape_print(shape, text));
    }
    infer->shapes[index] = *shape;
    return INF_OK;
}

enum inf_code inf_infer_operand(struct inf_infer *infer, uint32_t index, int64_t columns,
                                struct inf_operand *operand)
{
    const struct inf_shape *shape = inf_infer_input(infer, index);
    int32_t rank = columns == 0 ? 1 : 2;
    char text[INF_SHAPE_TEXT_SIZE];
    *operand = (struct inf_operand){.count = INF_DIM_UNKNOWN};
    if (shape->rank == INF_RANK_UNKNOWN)
        return INF_OK;
    if (shape->rank != rank ||
        (rank == 2 && shape->dims[1] != INF_DIM_UNKNOWN && shape->dims[1] != columns))
        return inf_shape_fault(infer, "input %u has shape %s, wanted [n%s]", index,
                               inf_shape_print(shape, text), columns == 2 ? ",2" : "");
    operand->count = shape->dims[0];
    if (operand->count > INF_LIMIT_RANK)
        return inf_shape_fault(infer, "input %u has shape %s, wanted at most %d rows", index,
                               inf_shape_print(shape, text), INF_LIMIT_RANK);
    uint32_t count;
    operand->known = inf_graph_const_ints(infer->graph, infer->node->inputs[index], operand->values,
                                          INF_ARRAY_LENGTH(operand->values), &count);
    return INF_OK;
}

enum inf_code inf_infer_integer(struct inf_infer *infer, uint32_t index, int64_t *value,
                                bool *known)
{
    const struct inf_shape *shape = inf_infer_input(infer, index);
    char text[INF_SHAPE_TEXT_SIZE];
    size_t elements;
    *known = false;
    if (inf_shape_known(shape) && (!inf_shape_count(shape, &elements) || elements != 1))
        return inf_shape_fault(infer, "input %u has shape %s, wanted one integer", index,
                               inf_shape_print(shape, text));
    uint32_t count;
    *known = inf_graph_const_ints(infer->graph, infer->node->inputs[index], value, 1, &count) &&
             count == 1;
    return INF_OK;
}

bool inf_axis_resolve(int64_t axis, int32_t rank, int32_t *resolved)
{
    if (axis < -(int64_t)rank || axis >= rank)
        return false;
    *resolved = (int32_t)(axis < 0 ? axis + rank : axis);
    return true;
}

enum inf_code inf_infer_axes(struct inf_infer *infer, const struct inf_ints *axes, int32_t rank,
                             uint32_t *set)
{
    *set = 0;
    for (int32_t i = 0; i < axes->count; i++) {
        int32_t axis;
        if (!inf_axis_resolve(axes->values[i], rank, &axis))
            return inf_shape_fault(infer, "axis %lld is out of range for rank %d",
                                   (long long)axes->values[i], rank);
        if (*set & 1u << axis)
            return inf_shape_fault(infer, "axis %d is named twice", axis);
        *set |= 1u << axis;
    }
    return INF_OK;
}

bool inf_dim_merge(int64_t a, int64_t b, int64_t *merged)
{
    if (a != b && a != INF_DIM_UNKNOWN && b != INF_DIM_UNKNOWN)
        return false;
    *merged = a == INF_DIM_UNKNOWN ? b : a;
    return true;
}

bool inf_dim_product(int64_t a, int64_t b, int64_t *product)
{
    size_t count;
    *product = INF_DIM_UNKNOWN;
    if (a < 0 || b < 0)
        return true;
    if (!inf_shape_count(&INF_SHAPE(a, b), &count) || count >= (size_t)INF_LIMIT_DIM)
        return false;
    *product = (int64_t)count;
    return true;
}

enum inf_code inf_infer_listed(struct inf_infer *infer, uint32_t index, int64_t least,
                               struct inf_shape *shape, bool *known)
{
    struct inf_operand operand;
    INF_TRY(inf_infer_operand(infer, index, 0, &operand));
    *known = operand.known;
    *shape = (struct inf_shape){.rank = INF_RANK_UNKNOWN};
    if (operand.count == INF_DIM_UNKNOWN)
        return INF_OK;
    shape->rank = (int32_t)operand.count;
    for (int32_t i = 0; i < shape->rank; i++) {
        shape->dims[i] = operand.known ? operand.values[i] : INF_DIM_UNKNOWN;
        if (operand.known && (operand.values[i] < least || operand.values[i] >= INF_LIMIT_DIM))
            return inf_shape_fault(infer, "input %u has %lld at %d, wanted %lld or more", index,
                                   (long long)operand.values[i], i, (long long)least);
    }
    return INF_OK;
}

enum inf_code inf_infer_image(struct inf_infer *infer, uint32_t index, struct inf_shape *shape)
{
    const struct inf_shape *input = inf_infer_input(infer, index);
    char text[INF_SHAPE_TEXT_SIZE];
    *shape = input->rank < 0 ? INF_SHAPE(-1, -1, -1, -1) : *input;
    return shape->rank == 4 ? INF_OK
                            : inf_shape_fault(infer, "input %u has shape %s, wanted rank 4", index,
                                              inf_shape_print(input, text));
}
