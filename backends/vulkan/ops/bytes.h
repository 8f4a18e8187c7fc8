// SPDX-License-Identifier: Apache-2.0
// Numbers of one byte: U8 or I8.
#ifndef INF_BACKENDS_VULKAN_OPS_BYTES_H
#define INF_BACKENDS_VULKAN_OPS_BYTES_H

#include "backends/vulkan/lowering/lowering.h"

static inline bool vk_is_byte(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I8;
}

// Returns the number that a byte is in this type.
static inline int32_t vk_byte_number(uint8_t byte, enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_I8 ? (int8_t)byte : byte;
}

// Returns the lowest number of the type. The highest one is larger by 255.
static inline int32_t vk_byte_lowest(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_I8 ? -128 : 0;
}

// Narrows the bounds of a result to the range of its type. Makes them equal if min is above max.
static inline void vk_byte_narrow(int32_t *min, int32_t *max, enum inf_dtype dtype)
{
    *max = INF_MIN(*max, vk_byte_lowest(dtype) + 255);
    *min = INF_MIN(INF_MAX(*min, vk_byte_lowest(dtype)), *max);
}

// Returns the zero point in constant operand `index`, for a tensor of type `dtype`; 0 if the
// operand is absent.
static inline int32_t vk_zero_point(const struct vk_lowering *lowering, uint32_t index,
                                    enum inf_dtype dtype)
{
    const uint8_t *zero = vk_const_data(lowering, index);
    return zero != NULL ? vk_byte_number(*zero, dtype) : 0;
}

#endif
