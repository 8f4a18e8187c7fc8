// SPDX-License-Identifier: Apache-2.0
// Operators that create data: shape, fill, range.
#include "backends/ref/kernels.h"

enum inf_code inf_ref_shape(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_shape *shape = call->inputs[0].shape;
    for (int32_t axis = 0; axis < shape->rank; axis++)
        inf_ref_store_int(&call->outputs[0], (size_t)axis, shape->dims[axis]);
    return INF_OK;
}

enum inf_code inf_ref_fill(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *y = &call->outputs[0];
    if (y->count > 0)
        inf_ref_copy(y, 0, &call->inputs[1], 0, 1);
    for (size_t done = 1; done < y->count; done *= 2)
        inf_ref_copy(y, done, y, 0, INF_MIN(done, y->count - done));
    return INF_OK;
}

enum inf_code inf_ref_range(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *y = &call->outputs[0];
    bool is_float = inf_dtype_is_float(y->dtype);
    for (size_t i = 0; i < y->count; i++) {
        if (is_float)
            inf_ref_put(y, i,
                        inf_ref_get(&call->inputs[0], 0) +
                            (double)i * inf_ref_get(&call->inputs[2], 0));
        else
            inf_ref_store_int(y, i,
                              inf_ref_load_int(&call->inputs[0], 0) +
                                  (__int128)i * inf_ref_load_int(&call->inputs[2], 0));
    }
    return INF_OK;
}
