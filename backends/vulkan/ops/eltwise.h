// SPDX-License-Identifier: Apache-2.0
// Describes element-wise operators as functions that a shader generated at run time can call.
#ifndef INF_BACKENDS_VULKAN_OPS_ELTWISE_H
#define INF_BACKENDS_VULKAN_OPS_ELTWISE_H

#include "backends/vulkan/lowering/lowering.h"

// An element-wise operator of floats in the form that shaders expect.
struct vk_element_call {
    uint32_t operands; // number of operands, 1 or 2
    uint32_t kind;     // BINARY_*, used for two operands
    uint32_t function; // FN_*: applied to the operand, or to the result of two operands
    float low, high;   // parameters of the function
};

// Fills *call for the node. Returns false if the operator is not element-wise or shaders do not
// support it.
bool vk_element_call_of(const struct vk_lowering *lowering,
                        struct vk_element_call *call) INF_NODISCARD;

#endif
