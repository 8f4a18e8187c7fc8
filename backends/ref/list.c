// SPDX-License-Identifier: Apache-2.0
// Lists of tensors, stacked along their first axis.
#include <inttypes.h>

#include "backends/ref/dynamic.h"

// Reads index `i` through volatile, so that it is read exactly once: a client may still write to
// the memory of the indices between two reads.
static int64_t read_index(const struct inf_ref_tensor *indices, size_t i)
{
    if (indices->dtype == INF_DTYPE_I64)
        return ((const volatile int64_t *)indices->data)[i];
    return ((const volatile int32_t *)indices->data)[i];
}

enum inf_code inf_ref_list_set_rows(const struct inf_ref_call *call, int64_t *rows,
                                    struct inf_error *err)
{
    const struct inf_ref_tensor *indices = &call->inputs[1];
    *rows = call->inputs[0].shape->dims[0];
    for (size_t i = 0; i < indices->count; i++) {
        int64_t index = read_index(indices, i);
        if (index < 0 || index >= INF_LIMIT_DIM - 1)
            return inf_fail(err, INF_INVALID, "index %" PRId64 " is out of range", index);
        *rows = INF_MAX(*rows, index + 1);
    }
    return INF_OK;
}

enum inf_code inf_ref_list_set(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *list = &call->inputs[0];
    const struct inf_ref_tensor *indices = &call->inputs[1];
    const struct inf_ref_tensor *items = &call->inputs[2];
    const struct inf_ref_tensor *y = &call->outputs[0];
    size_t item = inf_ref_extent(y->shape, 1, y->shape->rank);
    size_t bound = (size_t)y->shape->dims[0];
    // A list that never had an item has no elements to copy. All items of y that are not set below
    // become 0.
    inf_ref_copy(y, 0, list, 0, list->count);
    if (y->count > list->count)
        memset((char *)y->data + list->count * y->element_bytes, 0,
               (y->count - list->count) * y->element_bytes);
    for (size_t i = 0; i < indices->count; i++) {
        int64_t index = read_index(indices, i);
        if (index < 0 || (uint64_t)index >= bound)
            return inf_fail(err, INF_INVALID, "index %" PRId64 " is outside [0, %zu)", index,
                            bound);
        inf_ref_copy(y, (size_t)index * item, items, i * item, item);
    }
    return INF_OK;
}
