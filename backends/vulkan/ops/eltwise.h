// SPDX-License-Identifier: Apache-2.0
// Element-wise operators as functions that a shader can call: for shaders that are generated.
#ifndef INF_BACKENDS_VULKAN_OPS_ELTWISE_H
#define INF_BACKENDS_VULKAN_OPS_ELTWISE_H

#include "backends/vulkan/lowering/lowering.h"

// An element-wise operator of floats as shaders have it.
struct vk_element_call {
    uint32_t operands; // 1 or 2
    uint32_t kind;     // BINARY_*, of two
    uint32_t function; // FN_*: of the one, or behind that
    float low, high;   // of the function
};

// The node's; false where it is no such operator, or one that shaders do not have.
bool vk_element_call_of(const struct vk_lowering *lowering,
                        struct vk_element_call *call) INF_NODISCARD;

// How operand `input` of an element-wise node is stretched (MODE_*); *row: vectors in a row, for MODE_ROW.
uint32_t vk_operand_broadcast_mode(const struct vk_lowering *lowering, uint32_t input,
                                   uint32_t *row);

#endif
