// SPDX-License-Identifier: Apache-2.0
// Concatenating, splitting and padding along axes.
#include "backends/ref/kernels.h"

enum inf_code inf_ref_concat(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *y = &call->outputs[0];
    int32_t axis = inf_ref_axis(call->node->attrs.concat.axis, y->shape->rank);
    size_t outer = inf_ref_extent(y->shape, 0, axis);
    size_t y_run = inf_ref_extent(y->shape, axis, y->shape->rank);
    size_t start = 0;
    for (uint32_t input = 0; input < call->node->input_count; input++) {
        const struct inf_ref_tensor *x = &call->inputs[input];
        size_t x_run = inf_ref_extent(x->shape, axis, x->shape->rank);
        for (size_t i = 0; i < outer; i++)
            inf_ref_copy(y, i * y_run + start, x, i * x_run, x_run);
        start += x_run;
    }
    return INF_OK;
}

enum inf_code inf_ref_split(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    int32_t axis = inf_ref_axis(call->node->attrs.split.axis, x->shape->rank);
    size_t outer = inf_ref_extent(x->shape, 0, axis);
    size_t x_run = inf_ref_extent(x->shape, axis, x->shape->rank);
    size_t start = 0;
    for (uint32_t output = 0; output < call->node->output_count; output++) {
        const struct inf_ref_tensor *y = &call->outputs[output];
        size_t y_run = inf_ref_extent(y->shape, axis, y->shape->rank);
        for (size_t i = 0; i < outer; i++)
            inf_ref_copy(y, i * y_run, x, i * x_run + start, y_run);
        start += y_run;
    }
    return INF_OK;
}

// Returns which of `size` elements pad copies to `position`, which may be outside. Returns -1 if
// the element there is the pad value.
static int64_t mirror_index(enum inf_pad_mode mode, int64_t position, int64_t size)
{
    if (position >= 0 && position < size)
        return position;
    int64_t period;
    switch (mode) {
    case INF_PAD_REFLECT:
        period = INF_MAX(2 * (size - 1), (int64_t)1);
        position = (position % period + period) % period;
        return position < size ? position : period - position;
    case INF_PAD_SYMMETRIC:
        period = 2 * size;
        position = (position % period + period) % period;
        return position < size ? position : period - 1 - position;
    case INF_PAD_EDGE:
        return position < 0 ? 0 : size - 1;
    default:
        return -1;
    }
}

// Computes the index in x of the element of y that the walk has reached. Returns false if that
// element of y is padding.
static bool source_of(const struct inf_ref_walk *walk, const struct inf_shape *shape,
                      enum inf_pad_mode mode, const int64_t *before, size_t *at)
{
    size_t element = 0;
    for (int32_t axis = 0; axis < shape->rank; axis++) {
        int64_t size = shape->dims[axis];
        int64_t position = mirror_index(mode, walk->index[axis] - before[axis], size);
        if (position < 0)
            return false;
        element = element * (size_t)size + (size_t)position;
    }
    *at = element;
    return true;
}

enum inf_code inf_ref_pad(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    enum inf_pad_mode mode = call->node->attrs.pad.mode;
    if (x->count == 0 && y->count != 0 && mode != INF_PAD_CONSTANT)
        return inf_fail(err, INF_INVALID, "x has no elements to pad with");
    int64_t before[INF_LIMIT_RANK];
    for (int32_t axis = 0; axis < x->shape->rank; axis++)
        before[axis] = (int64_t)inf_ref_load_int(&call->inputs[1], (size_t)axis * 2);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        size_t at;
        if (source_of(&walk, x->shape, mode, before, &at))
            inf_ref_copy(y, i, x, at, 1);
        else if (inf_ref_has_input(call, 2))
            inf_ref_copy(y, i, &call->inputs[2], 0, 1);
        else
            memset((char *)y->data + i * y->element_bytes, 0, y->element_bytes);
    }
    return INF_OK;
}
