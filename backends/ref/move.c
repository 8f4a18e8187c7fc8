// SPDX-License-Identifier: Apache-2.0
// Operators that move elements of any type without reading their values.
#include "backends/graph/shape/infer.h"
#include "backends/ref/kernels.h"

static enum inf_code copy_all(const struct inf_ref_call *call)
{
    inf_ref_copy(&call->outputs[0], 0, &call->inputs[0], 0, call->outputs[0].count);
    return INF_OK;
}

enum inf_code inf_ref_identity(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    return copy_all(call);
}

enum inf_code inf_ref_reshape(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    return copy_all(call);
}

enum inf_code inf_ref_expand_dims(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    return copy_all(call);
}

enum inf_code inf_ref_squeeze(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    return copy_all(call);
}

// Copies elements of x to all elements of y in order: y[i] = x[base + the current offset of the
// walk].
static void copy_walked(const struct inf_ref_call *call, struct inf_ref_walk *walk, int64_t base)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    const unsigned char *from = call->inputs[0].data;
    unsigned char *to = y->data;
    // Loads transpose their weights with this loop. A copy of a size that the compiler knows is one
    // instruction and no call.
    if (y->element_bytes == 4)
        for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(walk))
            memcpy(to + 4 * i, from + 4 * (base + walk->offsets[0]), 4);
    else
        for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(walk))
            inf_ref_copy(y, i, &call->inputs[0], (size_t)(base + walk->offsets[0]), 1);
}

enum inf_code inf_ref_transpose(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ints *perm = &call->node->attrs.transpose.perm;
    const struct inf_shape *shape = call->inputs[0].shape;
    int64_t strides[INF_LIMIT_RANK];
    inf_shape_strides(shape, strides);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, call->outputs[0].shape);
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        int32_t from = perm->count == 0 ? shape->rank - 1 - axis
                                        : inf_ref_axis(perm->values[axis], shape->rank);
        walk.strides[0][axis] = strides[from];
    }
    copy_walked(call, &walk, 0);
    return INF_OK;
}

enum inf_code inf_ref_broadcast(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, call->outputs[0].shape);
    inf_ref_walk_broadcast(&walk, 0, call->inputs[0].shape);
    copy_walked(call, &walk, 0);
    return INF_OK;
}

enum inf_code inf_ref_slice(const struct inf_ref_call *call, struct inf_error *err)
{
    struct inf_slice_plan plan;
    if (!inf_node_slice_plan(call->graph, call->node, &plan))
        return inf_fail(err, INF_INVALID, "begin, end and stride are not constant");
    int64_t strides[INF_LIMIT_RANK];
    inf_shape_strides(call->inputs[0].shape, strides);
    struct inf_shape taken = {.rank = plan.rank};
    memcpy(taken.dims, plan.count, sizeof(taken.dims));
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, &taken);
    int64_t base = 0;
    for (int32_t axis = 0; axis < plan.rank; axis++) {
        walk.strides[0][axis] = strides[axis] * plan.stride[axis];
        base += strides[axis] * plan.begin[axis];
    }
    copy_walked(call, &walk, base);
    return INF_OK;
}

enum inf_code inf_ref_tile(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    int64_t strides[INF_LIMIT_RANK];
    inf_shape_strides(x->shape, strides);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        int64_t at = 0;
        for (int32_t axis = 0; axis < walk.rank; axis++)
            at += walk.index[axis] % x->shape->dims[axis] * strides[axis];
        inf_ref_copy(y, i, x, (size_t)at, 1);
    }
    return INF_OK;
}

// Moves elements between the wide tensor x [n,h,w,c] and the deep tensor that holds its blocks.
// Element [n,row,column,channel] of the deep tensor is element [n, row * block + by, column * block
// + bx, channel % c] of the wide tensor, where c is the channels of the wide tensor and by * block
// + bx = channel / c.
static void move_blocks(const struct inf_ref_tensor *from, const struct inf_ref_tensor *to,
                        int64_t block, bool from_is_deep)
{
    const int64_t *wide = (from_is_deep ? to : from)->shape->dims;
    const struct inf_ref_tensor *deep = from_is_deep ? from : to;
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, deep->shape);
    for (size_t i = 0; i < deep->count; i++, inf_ref_walk_next(&walk)) {
        int64_t part = walk.index[3] / wide[3];
        int64_t row = walk.index[1] * block + part / block;
        int64_t column = walk.index[2] * block + part % block;
        size_t at = (size_t)(((walk.index[0] * wide[1] + row) * wide[2] + column) * wide[3] +
                             walk.index[3] % wide[3]);
        inf_ref_copy(to, from_is_deep ? at : i, from, from_is_deep ? i : at, 1);
    }
}

enum inf_code inf_ref_space_to_depth(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    move_blocks(&call->inputs[0], &call->outputs[0], call->node->attrs.space_to_depth.block, false);
    return INF_OK;
}

enum inf_code inf_ref_depth_to_space(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    move_blocks(&call->inputs[0], &call->outputs[0], call->node->attrs.depth_to_space.block, true);
    return INF_OK;
}
