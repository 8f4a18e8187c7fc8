// SPDX-License-Identifier: Apache-2.0
// The kernel of gather, which copies the slices of a tensor that a list of indices selects.
#include <inttypes.h>

#include "backends/ref/kernels.h"

// The operands of a gather, and the sizes of their axes after merging: x is [batch, outer, bound,
// inner], indices are [batch, picked], and y is [batch, outer, picked, inner]. An index selects one
// of `bound` slices.
struct gather {
    const struct inf_ref_tensor *x, *indices, *y;
    size_t batch, outer, bound, picked, inner;
};

static struct gather prepare_gather(const struct inf_ref_call *call)
{
    const struct inf_attrs_gather *attrs = &call->node->attrs.gather;
    struct gather gather = {
        .x = &call->inputs[0], .indices = &call->inputs[1], .y = &call->outputs[0]};
    const struct inf_shape *shape = gather.x->shape;
    int32_t axis = inf_ref_axis(attrs->axis, shape->rank);
    gather.batch = inf_ref_extent(shape, 0, attrs->batch_dims);
    gather.outer = inf_ref_extent(shape, attrs->batch_dims, axis);
    gather.bound = (size_t)shape->dims[axis];
    gather.inner = inf_ref_extent(shape, axis + 1, shape->rank);
    gather.picked =
        inf_ref_extent(gather.indices->shape, attrs->batch_dims, gather.indices->shape->rank);
    return gather;
}

// Copies the slices that one row of indices selects, for position `outer` on the axes before the
// gathered axis.
static enum inf_code pick_slice(const struct gather *gather, size_t batch, size_t outer,
                                struct inf_error *err)
{
    size_t row = batch * gather->outer + outer;
    for (size_t i = 0; i < gather->picked; i++) {
        size_t position = batch * gather->picked + i;
        int64_t index = inf_ref_index(gather->indices, position);
        if (index < 0 || (uint64_t)index >= gather->bound)
            return inf_fail(err, INF_INVALID,
                            "index %" PRId64 " (element %zu of the indices) is outside [0, %zu)",
                            index, position, gather->bound);
        inf_ref_copy(gather->y, (row * gather->picked + i) * gather->inner, gather->x,
                     (row * gather->bound + (size_t)index) * gather->inner, gather->inner);
    }
    return INF_OK;
}

enum inf_code inf_ref_gather(const struct inf_ref_call *call, struct inf_error *err)
{
    struct gather gather = prepare_gather(call);
    for (size_t batch = 0; batch < gather.batch; batch++)
        for (size_t outer = 0; outer < gather.outer; outer++)
            INF_TRY(pick_slice(&gather, batch, outer, err));
    return INF_OK;
}
