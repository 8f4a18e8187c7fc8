// SPDX-License-Identifier: Apache-2.0
// How the operands of an element-wise node are broadcast to the shape of its result.
#ifndef INF_BACKENDS_VULKAN_OPS_BROADCAST_H
#define INF_BACKENDS_VULKAN_OPS_BROADCAST_H

#include "backends/vulkan/lowering/lowering.h"

// The push constants of lib/broadcast.glsl.
struct vk_broadcast {
    uint32_t vectors, axes;
    uint32_t dims[BROADCAST_AXES];
    uint32_t strides[3][BROADCAST_AXES];
    uint32_t rows[2];
    float low, high;
    uint32_t elements;
};
_Static_assert(sizeof(struct vk_broadcast) == 108, "as lib/broadcast.glsl");

// Returns the number of vectors of four elements that hold a tensor of this shape.
static inline uint32_t vk_vector_count(const struct inf_shape *shape)
{
    return (uint32_t)((inf_shape_elements(shape) + 3) / 4);
}

// Lists the axes of y, the innermost first. Neighbouring axes are merged if each operand either
// advances along both or is repeated along both. `inputs` has the node's inputs that are operand 0,
// 1, and so on. *shape must be zeroed but for `low` and `high`.
//
// INF_UNSUPPORTED  more axes than BROADCAST_AXES remain.
enum inf_code vk_broadcast_fill(struct vk_broadcast *shape, const struct vk_lowering *lowering,
                                const uint32_t *inputs, uint32_t operands,
                                struct inf_error *err) INF_NODISCARD;

// Returns how operand `operand` is broadcast (MODE_*), and sets its row length in *shape.
uint32_t vk_broadcast_mode(struct vk_broadcast *shape, uint32_t operand);

// Returns how operand `input` of an element-wise node is broadcast (MODE_*). For MODE_ROW, *row is
// the number of vectors in a row.
uint32_t vk_operand_broadcast_mode(const struct vk_lowering *lowering, uint32_t input,
                                   uint32_t *row);

#endif
