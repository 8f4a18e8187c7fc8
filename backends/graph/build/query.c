// SPDX-License-Identifier: Apache-2.0
// Queries about the values of a builder: element types, shapes, and the elements of constants.
#include "backends/base/half.h"
#include "backends/graph/build/builder.h"

// Returns NULL for INF_VALUE_NONE, because expressions return INF_VALUE_NONE after a failure.
static const struct inf_value *find_value(const struct inf_builder *b, uint32_t value)
{
    return value < b->graph->value_count ? &b->graph->values[value] : NULL;
}

enum inf_dtype inf_build_dtype(const struct inf_builder *b, uint32_t value)
{
    const struct inf_value *found = find_value(b, value);
    return found != NULL ? found->dtype : INF_DTYPE_NONE;
}

const struct inf_shape *inf_build_shape_of(const struct inf_builder *b, uint32_t value)
{
    static const struct inf_shape unknown = {.rank = INF_RANK_UNKNOWN};
    const struct inf_value *found = find_value(b, value);
    return found != NULL ? &found->shape : &unknown;
}

int32_t inf_build_rank(struct inf_builder *b, uint32_t value)
{
    const struct inf_value *found = find_value(b, value);
    if (found == NULL || found->shape.rank < 0) {
        inf_build_fail(b, INF_UNSUPPORTED, "the rank of '%.100s' is not known",
                       found != NULL ? found->name : "");
        return 0;
    }
    return found->shape.rank;
}

int32_t inf_build_axis(struct inf_builder *b, int64_t axis, int32_t rank)
{
    if (axis >= -rank && axis < rank)
        return (int32_t)(axis < 0 ? axis + rank : axis);
    inf_build_fail(b, INF_INVALID, "axis %lld is out of range for rank %d", (long long)axis, rank);
    return 0;
}

int64_t inf_build_dim(struct inf_builder *b, uint32_t value, int32_t axis)
{
    int32_t rank = inf_build_rank(b, value);
    axis = inf_build_axis(b, axis, rank);
    return inf_build_ok(b) ? b->graph->values[value].shape.dims[axis] : 1;
}

int64_t inf_build_known_dim(struct inf_builder *b, uint32_t value, int32_t axis)
{
    int64_t dim = inf_build_dim(b, value, axis);
    if (dim != INF_DIM_UNKNOWN)
        return dim;
    inf_build_fail(b, INF_UNSUPPORTED, "dimension %d of '%.100s' must be known when it is imported",
                   axis, b->graph->values[value].name);
    return 1;
}

struct inf_shape inf_build_known_shape(struct inf_builder *b, uint32_t value)
{
    struct inf_shape shape = {.rank = inf_build_rank(b, value)};
    for (int32_t i = 0; i < shape.rank; i++)
        shape.dims[i] = inf_build_known_dim(b, value, i);
    return shape;
}

bool inf_build_is_const(const struct inf_builder *b, uint32_t value)
{
    return value != INF_VALUE_NONE && inf_graph_is_const(b->graph, value);
}

struct inf_build_ints inf_build_const_ints(struct inf_builder *b, uint32_t value, const char *what)
{
    struct inf_build_ints ints = {.count = 0};
    if (!inf_build_ok(b))
        return ints;
    if (!inf_build_is_const(b, value)) {
        inf_build_fail(b, INF_UNSUPPORTED, "%s is not constant", what);
        return ints;
    }
    if (!inf_graph_const_ints(b->graph, value, ints.values, INF_BUILD_INTS_MAX, &ints.count)) {
        ints.count = 0;
        inf_build_fail(b, INF_INVALID, "%s is %s, wanted at most %d integers", what,
                       inf_dtype_name(inf_build_dtype(b, value)), INF_BUILD_INTS_MAX);
    }
    return ints;
}

int64_t inf_build_const_int(struct inf_builder *b, uint32_t value, const char *what)
{
    struct inf_build_ints ints = inf_build_const_ints(b, value, what);
    if (ints.count == 1)
        return ints.values[0];
    inf_build_fail(b, INF_INVALID, "%s has %u elements, wanted 1", what, ints.count);
    return 0;
}

bool inf_build_const_number(const struct inf_builder *b, uint32_t value, double *out)
{
    size_t count;
    if (!inf_build_is_const(b, value))
        return false;
    const struct inf_value *constant = &b->graph->values[value];
    const void *data = constant->data->data;
    if (!inf_shape_count(&constant->shape, &count) || count != 1)
        return false;
    int64_t ints[1];
    uint32_t one;
    switch (constant->dtype) {
    case INF_DTYPE_F32:
        *out = *(const float *)data;
        return true;
    case INF_DTYPE_F64:
        *out = *(const double *)data;
        return true;
    case INF_DTYPE_F16:
        *out = (double)inf_half_to_float(*(const uint16_t *)data);
        return true;
    case INF_DTYPE_BF16:
        *out = (double)inf_bf16_to_float(*(const uint16_t *)data);
        return true;
    case INF_DTYPE_BOOL:
    case INF_DTYPE_U8:
        *out = *(const uint8_t *)data;
        return true;
    case INF_DTYPE_I8:
        *out = *(const int8_t *)data;
        return true;
    default:
        if (!inf_graph_const_ints(b->graph, value, ints, 1, &one))
            return false;
        *out = (double)ints[0];
        return true;
    }
}
