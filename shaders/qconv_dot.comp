// SPDX-License-Identifier: Apache-2.0
// The convolution of lib/qconv.glsl for devices with VK_KHR_shader_integer_dot_product.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_spirv_intrinsics : require
#include "lib/bytes.glsl"

// OpSDot of two words of four signed bytes; the compiler does not know
// GL_EXT_integer_dot_product. The capabilities are DotProduct and DotProductInput4x8BitPacked, and
// the format is PackedVectorFormat4x8Bit (SPV_KHR_integer_dot_product).
spirv_instruction(extensions = ["SPV_KHR_integer_dot_product"], capabilities = [6019, 6018],
                  id = 4450)
int packed_dot(uint a, uint b, spirv_literal int format);

int dot4(uint a, uint b)
{
    return packed_dot(a, b, 0);
}

#include "lib/qconv.glsl"
