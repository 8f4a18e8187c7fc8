// SPDX-License-Identifier: Apache-2.0
// Operators that read or write elements by index along several axes: gather_nd, scatter_nd,
// gather_elements, scatter_elements. Also space_to_batch, batch_to_space and append.
#include <inttypes.h>

#include "backends/ref/kernels.h"

static enum inf_code out_of_range(int64_t index, size_t position, int64_t bound,
                                  struct inf_error *err)
{
    return inf_fail(err, INF_INVALID,
                    "index %" PRId64 " (element %zu of the indices) is outside [0, %" PRId64 ")",
                    index, position, bound);
}

// Describes an operand of rows with `depth` indices each. A row selects a slice of x: its indices
// apply to `depth` consecutive axes of x, beginning with axis `first`.
struct row {
    const struct inf_ref_tensor *x, *indices;
    int32_t first;
    size_t depth;
    bool from_end;
};

static bool locate_element(const struct row *row, size_t position, size_t *slice, int64_t *bad,
                           size_t *bad_at)
{
    *slice = 0;
    for (size_t i = 0; i < row->depth; i++) {
        int64_t bound = row->x->shape->dims[(size_t)row->first + i];
        int64_t index = inf_ref_index(row->indices, position + i);
        *bad = index;
        *bad_at = position + i;
        if (!inf_ref_index_ok(&index, bound, row->from_end))
            return false;
        *slice = *slice * (size_t)bound + (size_t)index;
    }
    return true;
}

enum inf_code inf_ref_gather_nd(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_gather_nd *attrs = &call->node->attrs.gather_nd;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_shape *picks = call->inputs[1].shape;
    struct row row = {x, &call->inputs[1], attrs->batch_dims, (size_t)picks->dims[picks->rank - 1],
                      attrs->from_end};
    int32_t behind = attrs->batch_dims + (int32_t)row.depth;
    size_t rows = inf_ref_extent(picks, attrs->batch_dims, picks->rank - 1);
    size_t batches = inf_ref_extent(picks, 0, attrs->batch_dims);
    size_t slice = inf_ref_extent(x->shape, behind, x->shape->rank);
    size_t slices = inf_ref_extent(x->shape, attrs->batch_dims, behind);
    for (size_t i = 0; i < rows * batches; i++) {
        size_t at, bad_at;
        int64_t bad;
        if (!locate_element(&row, i * row.depth, &at, &bad, &bad_at))
            return out_of_range(bad, bad_at, x->shape->dims[(size_t)row.first + bad_at % row.depth],
                                err);
        inf_ref_copy(&call->outputs[0], i * slice, x, (i / rows * slices + at) * slice, slice);
    }
    return INF_OK;
}

// Combines element `from` of the updates with element `at` of y.
static void put_update(enum inf_scatter_kind kind, const struct inf_ref_tensor *y, size_t at,
                       const struct inf_ref_tensor *updates, size_t from)
{
    if (kind == INF_SCATTER_NONE) {
        inf_ref_copy(y, at, updates, from, 1);
        return;
    }
    if (inf_dtype_is_float(y->dtype)) {
        double old = inf_ref_get(y, at), update = inf_ref_get(updates, from);
        bool less = update < old || update != update;
        bool greater = update > old || update != update;
        double values[] = {[INF_SCATTER_ADD] = old + update,
                           [INF_SCATTER_MUL] = old * update,
                           [INF_SCATTER_MIN] = less ? update : old,
                           [INF_SCATTER_MAX] = greater ? update : old};
        inf_ref_put(y, at, values[kind]);
        return;
    }
    __int128 old = inf_ref_load_int(y, at), update = inf_ref_load_int(updates, from);
    __int128 values[] = {[INF_SCATTER_ADD] = old + update,
                         [INF_SCATTER_MUL] =
                             (__int128)((unsigned __int128)old * (unsigned __int128)update),
                         [INF_SCATTER_MIN] = INF_MIN(old, update),
                         [INF_SCATTER_MAX] = INF_MAX(old, update)};
    inf_ref_store_int(y, at, values[kind]);
}

// Combines `count` elements of the updates, starting at `from`, with the elements of y starting at
// `at`.
static void put_updates(enum inf_scatter_kind kind, const struct inf_ref_tensor *y, size_t at,
                        const struct inf_ref_tensor *updates, size_t from, size_t count)
{
    if (kind == INF_SCATTER_NONE) {
        inf_ref_copy(y, at, updates, from, count);
        return;
    }
    if (kind != INF_SCATTER_ADD || y->dtype != INF_DTYPE_F32) {
        for (size_t j = 0; j < count; j++)
            put_update(kind, y, at + j, updates, from + j);
        return;
    }
    // Compute the sum of two floats as put_update() does, with a single rounding.
    float *to = (float *)y->data + at;
    const float *add = (const float *)updates->data + from;
    for (size_t j = 0; j < count; j++)
        to[j] += add[j];
}

enum inf_code inf_ref_scatter_nd(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_scatter_nd *attrs = &call->node->attrs.scatter_nd;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    const struct inf_shape *places = call->inputs[1].shape;
    struct row row = {x, &call->inputs[1], 0, (size_t)places->dims[places->rank - 1],
                      attrs->from_end};
    size_t slice = inf_ref_extent(x->shape, (int32_t)row.depth, x->shape->rank);
    size_t rows = inf_ref_extent(places, 0, places->rank - 1);
    inf_ref_copy(y, 0, x, 0, x->count);
    for (size_t i = 0; i < rows; i++) {
        size_t at, bad_at;
        int64_t bad;
        bool found = locate_element(&row, i * row.depth, &at, &bad, &bad_at);
        if (!found && !attrs->drop)
            return out_of_range(bad, bad_at, x->shape->dims[bad_at % row.depth], err);
        if (found)
            put_updates(attrs->kind, y, at * slice, &call->inputs[2], i * slice, slice);
    }
    return INF_OK;
}

// Starts a walk over the indices. Operand 0 is x without its axis `axis`.
static struct inf_ref_walk element_walk(const struct inf_ref_tensor *x,
                                        const struct inf_ref_tensor *indices, int32_t axis,
                                        int64_t *axis_stride)
{
    struct inf_ref_walk walk;
    int64_t strides[INF_LIMIT_RANK];
    inf_ref_walk_init(&walk, indices->shape);
    inf_shape_strides(x->shape, strides);
    memcpy(walk.strides[0], strides, sizeof(strides[0]) * (size_t)x->shape->rank);
    *axis_stride = strides[axis];
    walk.strides[0][axis] = 0;
    return walk;
}

enum inf_code inf_ref_gather_elements(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_gather_elements *attrs = &call->node->attrs.gather_elements;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *indices = &call->inputs[1];
    int32_t axis = inf_ref_axis(attrs->axis, x->shape->rank);
    int64_t stride;
    struct inf_ref_walk walk = element_walk(x, indices, axis, &stride);
    for (size_t i = 0; i < indices->count; i++, inf_ref_walk_next(&walk)) {
        int64_t index = inf_ref_index(indices, i);
        if (!inf_ref_index_ok(&index, x->shape->dims[axis], attrs->from_end))
            return out_of_range(index, i, x->shape->dims[axis], err);
        inf_ref_copy(&call->outputs[0], i, x, (size_t)(walk.offsets[0] + index * stride), 1);
    }
    return INF_OK;
}

enum inf_code inf_ref_scatter_elements(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_scatter_elements *attrs = &call->node->attrs.scatter_elements;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *indices = &call->inputs[1];
    const struct inf_ref_tensor *y = &call->outputs[0];
    int32_t axis = inf_ref_axis(attrs->axis, x->shape->rank);
    int64_t stride;
    struct inf_ref_walk walk = element_walk(x, indices, axis, &stride);
    inf_ref_copy(y, 0, x, 0, x->count);
    for (size_t i = 0; i < indices->count; i++, inf_ref_walk_next(&walk)) {
        int64_t index = inf_ref_index(indices, i);
        if (!inf_ref_index_ok(&index, x->shape->dims[axis], attrs->from_end))
            return out_of_range(index, i, x->shape->dims[axis], err);
        put_update(attrs->kind, y, (size_t)(walk.offsets[0] + index * stride), &call->inputs[2], i);
    }
    return INF_OK;
}

// The two tensors of space_to_batch or batch_to_space, and the block sizes. `batch` has more
// images, and `space` has larger spatial axes; both have the same elements except padding.
struct blocks {
    const struct inf_ref_tensor *space, *batch;
    int32_t axes; // number of spatial axes
    // block size of each spatial axis, and padding or cropping before it
    int64_t sizes[INF_LIMIT_RANK], before[INF_LIMIT_RANK];
};

static struct blocks blocks_of(const struct inf_ref_call *call, const struct inf_ref_tensor *space,
                               const struct inf_ref_tensor *batch)
{
    struct blocks blocks = {.space = space, .batch = batch, .axes = (int32_t)call->inputs[1].count};
    for (int32_t i = 0; i < blocks.axes; i++) {
        blocks.sizes[i] = inf_ref_index(&call->inputs[1], (size_t)i);
        blocks.before[i] = inf_ref_index(&call->inputs[2], 2 * (size_t)i);
    }
    return blocks;
}

// Given the element of `batch` that the walk has reached, computes the index *at of the same
// element in `space`. Returns false if `space` does not have that element, because it is padding or
// cropped.
static bool in_space(const struct blocks *blocks, const struct inf_ref_walk *walk, size_t *at)
{
    const struct inf_shape *space = blocks->space->shape;
    int64_t images = space->dims[0], block = walk->index[0] / images;
    int64_t positions[INF_LIMIT_RANK] = {walk->index[0] % images};
    for (int32_t i = blocks->axes - 1; i >= 0; i--) {
        int64_t within = block % blocks->sizes[i];
        block /= blocks->sizes[i];
        positions[1 + i] = walk->index[1 + i] * blocks->sizes[i] + within - blocks->before[i];
        if (positions[1 + i] < 0 || positions[1 + i] >= space->dims[1 + i])
            return false;
    }
    for (int32_t i = 1 + blocks->axes; i < space->rank; i++)
        positions[i] = walk->index[i];
    *at = 0;
    for (int32_t i = 0; i < space->rank; i++)
        *at = *at * (size_t)space->dims[i] + (size_t)positions[i];
    return true;
}

enum inf_code inf_ref_space_to_batch(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct blocks blocks = blocks_of(call, &call->inputs[0], y);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        size_t at;
        if (in_space(&blocks, &walk, &at))
            inf_ref_copy(y, i, blocks.space, at, 1);
        else
            inf_ref_put(y, i, 0);
    }
    return INF_OK;
}

enum inf_code inf_ref_batch_to_space(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    struct blocks blocks = blocks_of(call, &call->outputs[0], x);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, x->shape);
    for (size_t i = 0; i < x->count; i++, inf_ref_walk_next(&walk)) {
        size_t at;
        if (blocks.space->shape->dims[0] > 0 && in_space(&blocks, &walk, &at))
            inf_ref_copy(blocks.space, at, x, i, 1);
    }
    return INF_OK;
}

enum inf_code inf_ref_append(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *at = &call->inputs[1];
    const struct inf_ref_tensor *rows = &call->inputs[2], *y = &call->outputs[0];
    int32_t axis = inf_ref_axis(call->node->attrs.append.axis, x->shape->rank);
    size_t inner = inf_ref_extent(x->shape, axis + 1, x->shape->rank);
    size_t outer = inf_ref_extent(x->shape, 0, axis);
    size_t each = outer / INF_MAX(at->count, 1); // consecutive parts with the same position
    int64_t room = x->shape->dims[axis], count = rows->shape->dims[axis];
    if (y->data != x->data)
        inf_ref_copy(y, 0, x, 0, x->count);
    for (size_t item = 0; item < at->count; item++) {
        int64_t position = inf_ref_index(at, item);
        if (call->node->attrs.append.ring)
            position = room > 0 ? (position % room + room) % room : 0;
        else if (position < 0 || position > room - count)
            return inf_fail(err, INF_INVALID,
                            "%" PRId64 " rows at %" PRId64 " do not fit the %" PRId64 " of x",
                            count, position, room);
        for (size_t i = item * each; i < (item + 1) * each; i++)
            for (int64_t row = 0; row < count; row++)
                inf_ref_copy(y, (i * (size_t)room + (size_t)((position + row) % room)) * inner,
                             rows, (i * (size_t)count + (size_t)row) * inner, inner);
    }
    return INF_OK;
}
