// SPDX-License-Identifier: Apache-2.0
// Describes how operands are broadcast to the shape of a result, for lib/broadcast.glsl: merges
// axes, and recognises the common cases, which shaders compute without divisions.
#include "backends/vulkan/ops/broadcast.h"

// Returns the size of an operand along axis `axis` of the result y. The shapes are aligned at their
// last axes; an axis that the operand lacks has size 1.
static uint32_t operand_dim(const struct inf_shape *operand, const struct inf_shape *y,
                            int32_t axis)
{
    int32_t own = axis - (y->rank - operand->rank);
    return own < 0 ? 1 : (uint32_t)operand->dims[own];
}

// Returns true if the next outer axis continues axis `inner` in all operands, so that the two can
// be merged into one axis.
static bool continues_axis(const struct vk_broadcast *shape, uint32_t inner,
                           const uint32_t strides[3], uint32_t operands)
{
    for (uint32_t i = 0; i < operands; i++)
        if (strides[i] != shape->strides[i][inner] * shape->dims[inner])
            return false;
    return true;
}

enum inf_code vk_broadcast_fill(struct vk_broadcast *shape, const struct vk_lowering *lowering,
                                const uint32_t *inputs, uint32_t operands, struct inf_error *err)
{
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    uint32_t steps[3] = {1, 1, 1};
    shape->vectors = vk_vector_count(y);
    shape->elements = (uint32_t)inf_shape_elements(y);
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        uint32_t strides[3] = {0}, dim = (uint32_t)y->dims[axis];
        for (uint32_t i = 0; i < operands; i++) {
            uint32_t own = operand_dim(vk_input_shape(lowering, inputs[i]), y, axis);
            strides[i] = own == 1 ? 0 : steps[i];
            steps[i] *= own;
        }
        if (dim == 1)
            continue;
        if (shape->axes > 0 && continues_axis(shape, shape->axes - 1, strides, operands)) {
            shape->dims[shape->axes - 1] *= dim;
            continue;
        }
        if (shape->axes == BROADCAST_AXES)
            return vk_decline(lowering, err, "stretched along too many axes");
        shape->dims[shape->axes] = dim;
        for (uint32_t i = 0; i < operands; i++)
            shape->strides[i][shape->axes] = strides[i];
        shape->axes++;
    }
    return INF_OK;
}

uint32_t vk_broadcast_mode(struct vk_broadcast *shape, uint32_t operand)
{
    const uint32_t *strides = shape->strides[operand];
    if (shape->axes == 0 || (shape->axes == 1 && strides[0] == 1))
        return MODE_FLAT;
    bool scalar = true, row = strides[0] == 1 && shape->dims[0] % 4 == 0, aligned = true;
    for (uint32_t i = 0; i < shape->axes; i++) {
        scalar &= strides[i] == 0;
        row &= i == 0 || strides[i] == 0;
        aligned &= i == 0 || strides[i] % 4 == 0;
    }
    shape->rows[operand] = shape->dims[0] / 4;
    if (scalar)
        return MODE_SCALAR;
    if (row)
        return MODE_ROW;
    if (shape->dims[0] % 4 != 0)
        return MODE_GENERAL;
    if (strides[0] == 0)
        return MODE_INNER_SCALAR;
    return strides[0] == 1 && aligned ? MODE_INNER_VECTOR : MODE_GENERAL;
}

uint32_t vk_operand_broadcast_mode(const struct vk_lowering *lowering, uint32_t input,
                                   uint32_t *row)
{
    struct vk_broadcast shape = {0};
    *row = 0;
    if (vk_broadcast_fill(&shape, lowering, &input, 1, NULL) != INF_OK)
        return MODE_GENERAL;
    uint32_t mode = vk_broadcast_mode(&shape, 0);
    *row = shape.rows[0];
    return mode;
}
