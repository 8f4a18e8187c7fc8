// SPDX-License-Identifier: Apache-2.0
// Lowers the operators pad and gather.
#include <string.h>

#include "backends/vulkan/ops/ops.h"

// --- operator pad ---

// The push constants of pad.comp.
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

// Lists the axes, innermost first. Neighbouring axes without padding are merged into one.
static enum inf_code fill_padding(const struct vk_lowering *lowering, struct padding *padding,
                                  struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0), *y = vk_output_shape(lowering, 0);
    int64_t amounts[2 * INF_LIMIT_RANK];
    uint32_t count;
    if (!inf_graph_const_ints(lowering->graph, lowering->node->inputs[1], amounts,
                              INF_ARRAY_LENGTH(amounts), &count))
        return vk_decline(lowering, err, "its paddings are not constant");
    bool plain = false; // true: the previous axis has no padding
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
    memcpy(value, lowering->graph->values[index].data->data,
           inf_dtype_size(vk_output_dtype(lowering, 0)));
    return INF_OK;
}

// Returns true if the padding can be computed in vectors of four elements, because four
// neighbouring elements of x are always neighbours in y too. Sizes are then converted to numbers of
// vectors.
static bool vectorise_padding(struct padding *padding, enum inf_pad_mode mode)
{
    uint32_t across = padding->out_dims[0];
    int32_t in = padding->in_dims[0], before = padding->before[0];
    bool padded = across != (uint32_t)in;
    if (padding->axes == 0 || across % 4 != 0 || in % 4 != 0 || before % 4 != 0 ||
        (padded && mode != INF_PAD_CONSTANT))
        return false;
    padding->out_dims[0] /= 4;
    padding->in_dims[0] /= 4;
    padding->before[0] /= 4;
    padding->count /= 4;
    return true;
}

enum inf_code vk_lower_pad(struct vk_lowering *lowering, struct inf_error *err)
{
    struct padding padding = {0};
    size_t size = inf_dtype_size(vk_output_dtype(lowering, 0));
    if (size == 1)
        INF_TRY(vk_need_byte_storage(lowering, err));
    else if (size != 4)
        return vk_decline(lowering, err, "%s is not built",
                          inf_dtype_name(vk_output_dtype(lowering, 0)));
    INF_TRY(fill_padding(lowering, &padding, err));
    INF_TRY(pad_value(lowering, &padding.value, err));
    padding.count = (uint32_t)inf_shape_elements(vk_output_shape(lowering, 0));
    bool vector = vectorise_padding(&padding, lowering->node->attrs.pad.mode);
    struct vk_dispatch dispatch = {.variant = {size == 1 ? INF_SHADER_PAD_BYTES : INF_SHADER_PAD,
                                               {pad_modes[lowering->node->attrs.pad.mode], vector}},
                                   .invocations = padding.count};
    vk_set_push_constants(&dispatch, &padding, sizeof(padding));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, &dispatch, 0, vector);
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

// --- operator gather ---

// Returns INF_UNSUPPORTED unless operand 1 has indices of a type that shaders read. Sets *wide if
// the indices are 64-bit.
static enum inf_code check_indices(const struct vk_lowering *lowering, uint32_t *wide,
                                   struct inf_error *err)
{
    enum inf_dtype dtype = vk_input_dtype(lowering, 1);
    *wide = dtype == INF_DTYPE_I64;
    if (dtype == INF_DTYPE_I32 || dtype == INF_DTYPE_I64)
        return INF_OK;
    return vk_decline(lowering, err, "indices of %s are not built", inf_dtype_name(dtype));
}

static enum inf_code emit_gather(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                 struct inf_error *err)
{
    if (inf_dtype_size(vk_output_dtype(lowering, 0)) != 4)
        return vk_decline(lowering, err, "%s is not built",
                          inf_dtype_name(vk_output_dtype(lowering, 0)));
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->inputs[1], err));
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, dispatch, VK_FEW_ITERATIONS, err);
}

enum inf_code vk_lower_gather(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_gather *attrs = &lowering->node->attrs.gather;
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_value *indices = &lowering->graph->values[lowering->node->inputs[1]];
    int32_t axis = vk_resolve_axis(attrs->axis, x->rank), batches = attrs->batch_dims;
    uint32_t wide;
    INF_TRY(check_indices(lowering, &wide, err));
    struct {
        uint32_t count, outer, n, inner, picks;
    } push = {(uint32_t)inf_shape_elements(vk_output_shape(lowering, 0)),
              vk_dims_product(x, batches, axis), (uint32_t)x->dims[axis],
              vk_dims_product(x, axis + 1, x->rank),
              vk_dims_product(&indices->shape, batches, indices->shape.rank)};
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_GATHER, {wide}}, .invocations = push.count, .checks = true};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    return emit_gather(lowering, &dispatch, err);
}

enum inf_code vk_lower_gather_nd(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_gather_nd *attrs = &lowering->node->attrs.gather_nd;
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *indices = vk_input_shape(lowering, 1);
    int32_t batches = attrs->batch_dims, depth = (int32_t)indices->dims[indices->rank - 1];
    uint32_t wide;
    INF_TRY(check_indices(lowering, &wide, err));
    struct {
        uint32_t count, rows, depth, inner;
        uint32_t dims[GATHER_AXES];
    } push = {.count = (uint32_t)inf_shape_elements(vk_output_shape(lowering, 0)),
              .rows = vk_dims_product(indices, batches, indices->rank - 1),
              .depth = (uint32_t)depth,
              .inner = vk_dims_product(x, batches + depth, x->rank)};
    for (int32_t i = 0; i < depth; i++)
        push.dims[i] = (uint32_t)x->dims[batches + i];
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_GATHER_ND, {wide, attrs->from_end}},
                                   .invocations = push.count,
                                   .checks = true};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    return emit_gather(lowering, &dispatch, err);
}
