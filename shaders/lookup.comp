// SPDX-License-Identifier: Apache-2.0
// y = table[x], where x has bytes and the table 256 words. An invocation computes four elements. If
// y has bytes, they are the lowest ones of the words of the table.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/bytes.glsl"

layout(constant_id = 1) const bool TO_BYTES = false;

layout(binding = 0) readonly buffer X { uint x_packed[]; };
layout(binding = 1) readonly buffer Table { uint table[]; };
WRITES(2, y)
layout(push_constant) uniform P { uint vectors; } p;

void main()
{
    uint i = invocation();
    if (i >= p.vectors)
        return;
    uvec4 from = bytes_of(x_packed[i]);
    uvec4 result = uvec4(table[from.x], table[from.y], table[from.z], table[from.w]);
    if (TO_BYTES)
        put_y_word(i, word_of(result));
    else
        put_y4_word(i, result);
}
