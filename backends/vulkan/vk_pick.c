// SPDX-License-Identifier: Apache-2.0
// Padding and gathering.
#include <string.h>

#include "backends/vulkan/vk_kernel.h"

// --- pad ---

// pad.comp's push constants.
struct padding {
    uint32_t count, axes;
    uint32_t value;
    uint32_t out_dims[PAD_AXES];
    int32_t in_dims[PAD_AXES], before[PAD_AXES];
};
_Static_assert(sizeof(struct padding) == 84, "as pad.comp");

static const uint32_t pad_modes[INF_PAD_COUNT] = {
    [INF_PAD_CONSTANT] = PAD_CONSTANT,
    [INF_PAD_REFLECT] = PAD_REFLECT,
    [INF_PAD_SYMMETRIC] = PAD_SYMMETRIC,
    [INF_PAD_EDGE] = PAD_EDGE,
};

// Fills the axes, innermost first; neighbours without padding are one.
static enum inf_code fill_padding(const struct vk_lowering *lowering, struct padding *padding,
                                  struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0), *y = vk_output_shape(lowering, 0);
    int64_t amounts[2 * INF_LIMIT_RANK];
    uint32_t count;
    if (!inf_graph_const_ints(lowering->graph, lowering->node->inputs[1], amounts,
                              INF_ARRAY_LENGTH(amounts), &count))
        return vk_decline(lowering, err, "its paddings are not constant");
    bool plain = false; // the axis before had no padding
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        bool padded = x->dims[axis] != y->dims[axis];
        if (plain && !padded) {
            padding->in_dims[padding->axes - 1] *= (int32_t)x->dims[axis];
            padding->out_dims[padding->axes - 1] *= (uint32_t)x->dims[axis];
            continue;
        }
        if (padding->axes == PAD_AXES)
            return vk_decline(lowering, err, "more than %d axes are not built", PAD_AXES);
        padding->in_dims[padding->axes] = (int32_t)x->dims[axis];
        padding->out_dims[padding->axes] = (uint32_t)y->dims[axis];
        padding->before[padding->axes++] = (int32_t)amounts[2 * axis];
        plain = !padded;
    }
    return INF_OK;
}

static enum inf_code pad_value(const struct vk_lowering *lowering, uint32_t *value,
                               struct inf_error *err)
{
    *value = 0;
    if (!vk_has_input(lowering, 2))
        return INF_OK;
    uint32_t index = lowering->node->inputs[2];
    if (!inf_graph_is_const(lowering->graph, index))
        return vk_decline(lowering, err, "its value is not constant");
    memcpy(value, lowering->graph->values[index].data->data, sizeof(*value));
    return INF_OK;
}

enum inf_code vk_lower_pad(struct vk_lowering *lowering, struct inf_error *err)
{
    struct padding padding = {0};
    if (inf_dtype_size(vk_output_dtype(lowering, 0)) != 4)
        return vk_decline(lowering, err, "%s is not built",
                          inf_dtype_name(vk_output_dtype(lowering, 0)));
    INF_TRY(fill_padding(lowering, &padding, err));
    INF_TRY(pad_value(lowering, &padding.value, err));
    padding.count = (uint32_t)inf_shape_elements(vk_output_shape(lowering, 0));
    bool vector = padding.axes > 0 && padding.out_dims[0] == (uint32_t)padding.in_dims[0] &&
                  padding.out_dims[0] % 4 == 0;
    if (vector) {
        padding.out_dims[0] /= 4;
        padding.in_dims[0] /= 4;
        padding.count /= 4;
    }
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_PAD, {pad_modes[lowering->node->attrs.pad.mode], vector}},
        .invocations = padding.count};
    vk_push(&dispatch, &padding, sizeof(padding));
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit(lowering, &dispatch, err);
}

// --- gather ---

// An index as a number, whichever integer type it has.
static int64_t index_at(const struct inf_value *indices, size_t i)
{
    return indices->dtype == INF_DTYPE_I64 ? ((const int64_t *)indices->data->data)[i]
                                           : ((const int32_t *)indices->data->data)[i];
}

static void fill_indices(void *bytes, const void *context)
{
    const struct inf_value *indices = context;
    size_t count = inf_shape_elements(&indices->shape);
    for (size_t i = 0; i < count; i++)
        ((uint32_t *)bytes)[i] = (uint32_t)index_at(indices, i);
}

// Indices that come with the run might be out of range, which must fail it and a shader cannot.
static enum inf_code check_indices(const struct vk_lowering *lowering,
                                   const struct inf_value *indices, int64_t n,
                                   struct inf_error *err)
{
    if (indices->data == NULL)
        return vk_decline(lowering, err, "its indices are not constant");
    size_t count = inf_shape_elements(&indices->shape);
    for (size_t i = 0; i < count; i++)
        if (index_at(indices, i) < 0 || index_at(indices, i) >= n)
            return vk_decline(lowering, err, "an index is out of range");
    return INF_OK;
}

enum inf_code vk_lower_gather(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_gather *attrs = &lowering->node->attrs.gather;
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_value *indices = &lowering->graph->values[lowering->node->inputs[1]];
    if (inf_dtype_size(vk_output_dtype(lowering, 0)) != 4)
        return vk_decline(lowering, err, "%s is not built",
                          inf_dtype_name(vk_output_dtype(lowering, 0)));
    int32_t axis = vk_axis(attrs->axis, x->rank), batches = attrs->batch_dims;
    INF_TRY(check_indices(lowering, indices, x->dims[axis], err));
    struct {
        uint32_t count, outer, n, inner, picks;
    } push = {(uint32_t)inf_shape_elements(vk_output_shape(lowering, 0)),
              vk_extent(x, batches, axis), (uint32_t)x->dims[axis], vk_extent(x, axis + 1, x->rank),
              vk_extent(&indices->shape, batches, indices->shape.rank)};
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_GATHER, {0}}, .invocations = push.count};
    vk_push(&dispatch, &push, sizeof(push));
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_pack(lowering, &dispatch, inf_shape_elements(&indices->shape) * 4, fill_indices,
                    indices, err));
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit(lowering, &dispatch, err);
}
