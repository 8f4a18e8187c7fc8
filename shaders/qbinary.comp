// SPDX-License-Identifier: Apache-2.0
// Combines two tensors of bytes, broadcast by NumPy's rule. The host computes a table with the
// result of each of the 256 * 256 pairs of bytes, so that the results do not depend on how a driver
// divides and rounds. An invocation computes four neighbouring elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/invocation.glsl"
#include "lib/bytes.glsl"
#include "lib/broadcast.glsl"

layout(constant_id = 1) const uint MODE_A = MODE_FLAT;
layout(constant_id = 2) const uint MODE_B = MODE_FLAT;

BYTE_BUFFERS(0, readonly, a)
BYTE_BUFFERS(1, readonly, b)
BYTE_BUFFERS(2, readonly, table)
layout(binding = 3) writeonly buffer Y { uint y_packed[]; };

uint load_a(uint element)
{
    return uint(a_bytes[offset_a(element)]);
}

uint load_b(uint element)
{
    return uint(b_bytes[offset_b(element)]);
}

void main()
{
    uint i = invocation();
    if (i >= shape.vectors)
        return;
    uint at = i * 4, last = shape.elements - 1;
    uvec4 a, b;
    if (MODE_A == MODE_FLAT)
        a = bytes_of(a_packed[i]);
    else
        a = uvec4(load_a(at), load_a(min(at + 1, last)), load_a(min(at + 2, last)),
            load_a(min(at + 3, last)));
    if (MODE_B == MODE_FLAT)
        b = bytes_of(b_packed[i]);
    else
        b = uvec4(load_b(at), load_b(min(at + 1, last)), load_b(min(at + 2, last)),
            load_b(min(at + 3, last)));
    uvec4 pair = a << 8 | b;
    y_packed[i] = word_of(uvec4(table_bytes[pair.x], table_bytes[pair.y], table_bytes[pair.z],
        table_bytes[pair.w]));
}
