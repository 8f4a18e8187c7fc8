// SPDX-License-Identifier: Apache-2.0
// The kernels of reverse, cumulate, one_hot, band and bincount.
#include <inttypes.h>

#include "backends/ref/kernels.h"

void inf_ref_walk_split(const struct inf_ref_walk *walk, const struct inf_ints *axes,
                        struct inf_ref_walk *stay, struct inf_ref_walk *go)
{
    bool goes[INF_LIMIT_RANK] = {false};
    for (int32_t i = 0; i < axes->count; i++)
        goes[inf_ref_axis(axes->values[i], walk->rank)] = true;
    inf_ref_walk_init(stay, &(struct inf_shape){0});
    inf_ref_walk_init(go, &(struct inf_shape){0});
    for (int32_t axis = 0; axis < walk->rank; axis++) {
        struct inf_ref_walk *into = goes[axis] || axes->count == 0 ? go : stay;
        into->dims[into->rank] = walk->dims[axis];
        for (uint32_t i = 0; i < INF_REF_WALK_OPERANDS; i++)
            into->strides[i][into->rank] = walk->strides[i][axis];
        into->rank++;
    }
}

enum inf_code inf_ref_reverse(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ints *axes = &call->node->attrs.reverse.axes;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, x->shape);
    for (int32_t i = 0; i < axes->count; i++) {
        int32_t axis = inf_ref_axis(axes->values[i], walk.rank);
        walk.offsets[0] += walk.strides[0][axis] * (walk.dims[axis] - 1);
        walk.strides[0][axis] = -walk.strides[0][axis];
    }
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk))
        inf_ref_copy(y, i, x, (size_t)walk.offsets[0], 1);
    return INF_OK;
}

enum inf_code inf_ref_reverse_sequence(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_reverse_sequence *attrs = &call->node->attrs.reverse_sequence;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, x->shape);
    int32_t axis = inf_ref_axis(attrs->axis, walk.rank);
    int32_t batch_axis = inf_ref_axis(attrs->batch_axis, walk.rank);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        int64_t length = inf_ref_index(&call->inputs[1], (size_t)walk.index[batch_axis]);
        length = INF_MIN(length, walk.dims[axis]);
        int64_t position = walk.index[axis], from = walk.offsets[0];
        if (position < length)
            from += (length - 1 - 2 * position) * walk.strides[0][axis];
        inf_ref_copy(y, i, x, (size_t)from, 1);
    }
    return INF_OK;
}

// One line along the cumulated axis: `count` elements that are `stride` elements apart, beginning
// at element `at`.
struct line {
    size_t at, stride, count;
};

static void cumulate_reals(const struct inf_attrs_cumulate *attrs, const struct inf_ref_tensor *x,
                           const struct inf_ref_tensor *y, const struct line *line)
{
    double so_far = attrs->kind == INF_CUMULATE_PROD;
    for (size_t i = 0; i < line->count; i++) {
        size_t at = line->at + (attrs->reverse ? line->count - 1 - i : i) * line->stride;
        double value = inf_ref_get(x, at), before = so_far;
        so_far = attrs->kind == INF_CUMULATE_PROD ? so_far * value : so_far + value;
        inf_ref_put(y, at, attrs->exclusive ? before : so_far);
    }
}

static void cumulate_integers(const struct inf_attrs_cumulate *attrs,
                              const struct inf_ref_tensor *x, const struct inf_ref_tensor *y,
                              const struct line *line)
{
    unsigned __int128 so_far = attrs->kind == INF_CUMULATE_PROD;
    for (size_t i = 0; i < line->count; i++) {
        size_t at = line->at + (attrs->reverse ? line->count - 1 - i : i) * line->stride;
        unsigned __int128 value = (unsigned __int128)inf_ref_load_int(x, at), before = so_far;
        so_far = attrs->kind == INF_CUMULATE_PROD ? so_far * value : so_far + value;
        inf_ref_store_int(y, at, (__int128)(attrs->exclusive ? before : so_far));
    }
}

enum inf_code inf_ref_cumulate(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_cumulate *attrs = &call->node->attrs.cumulate;
    const struct inf_ref_tensor *x = &call->inputs[0];
    int32_t axis = inf_ref_axis(attrs->axis, x->shape->rank);
    struct line line = {.stride = inf_ref_extent(x->shape, axis + 1, x->shape->rank),
                        .count = (size_t)x->shape->dims[axis]};
    size_t lines = line.count == 0 ? 0 : x->count / line.count;
    for (size_t i = 0; i < lines; i++) {
        line.at = i / line.stride * line.count * line.stride + i % line.stride;
        if (inf_dtype_is_float(x->dtype))
            cumulate_reals(attrs, x, &call->outputs[0], &line);
        else
            cumulate_integers(attrs, x, &call->outputs[0], &line);
    }
    return INF_OK;
}

enum inf_code inf_ref_one_hot(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_one_hot *attrs = &call->node->attrs.one_hot;
    const struct inf_ref_tensor *y = &call->outputs[0];
    int32_t axis = inf_ref_axis(attrs->axis, y->shape->rank);
    size_t inner = inf_ref_extent(y->shape, axis + 1, y->shape->rank);
    size_t depth = (size_t)y->shape->dims[axis];
    for (size_t i = 0; i < y->count; i++)
        inf_ref_copy(y, i, &call->inputs[3], 0, 1);
    for (size_t i = 0; depth != 0 && i < call->inputs[0].count; i++) {
        int64_t index = inf_ref_index(&call->inputs[0], i);
        if (inf_ref_index_ok(&index, (int64_t)depth, attrs->from_end))
            inf_ref_copy(y, (i / inner * depth + (size_t)index) * inner + i % inner,
                         &call->inputs[2], 0, 1);
    }
    return INF_OK;
}

enum inf_code inf_ref_band(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_band *attrs = &call->node->attrs.band;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    int64_t rows = x->shape->dims[x->shape->rank - 2], columns = x->shape->dims[x->shape->rank - 1];
    for (size_t i = 0; i < y->count; i++) {
        int64_t diagonal = (int64_t)i % columns - (int64_t)i / columns % rows;
        if (diagonal >= attrs->low && diagonal <= attrs->high)
            inf_ref_copy(y, i, x, i, 1);
        else
            inf_ref_put(y, i, 0);
    }
    return INF_OK;
}

enum inf_code inf_ref_bincount(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *weights = &call->inputs[2];
    const struct inf_ref_tensor *y = &call->outputs[0];
    size_t size = (size_t)y->shape->dims[y->shape->rank - 1];
    size_t row_length = (size_t)x->shape->dims[x->shape->rank - 1];
    bool binary = call->node->attrs.bincount.binary;
    for (size_t i = 0; i < y->count; i++)
        inf_ref_put(y, i, 0);
    for (size_t i = 0; i < x->count; i++) {
        int64_t number = inf_ref_index(x, i);
        if (number < 0)
            return inf_fail(err, INF_INVALID, "number %" PRId64 " (element %zu) is negative",
                            number, i);
        if ((uint64_t)number >= size)
            continue;
        size_t at = i / row_length * size + (size_t)number;
        double weight = weights->count == 0 ? 1 : inf_ref_get(weights, i);
        inf_ref_put(y, at, binary ? 1 : inf_ref_get(y, at) + weight);
    }
    return INF_OK;
}
