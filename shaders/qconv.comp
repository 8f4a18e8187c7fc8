// SPDX-License-Identifier: Apache-2.0
// The convolution of lib/qconv.glsl for devices that have no instruction for products of packed
// bytes.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "lib/bytes.glsl"

int dot4(uint a, uint b)
{
    ivec4 product = signed_bytes_of(a) * signed_bytes_of(b);
    return product.x + product.y + product.z + product.w;
}

#include "lib/qconv.glsl"
