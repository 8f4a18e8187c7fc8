// SPDX-License-Identifier: Apache-2.0
// y = condition ? a : b, with all three operands broadcast by NumPy's rule. Elements of a, b and y
// have four bytes.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/broadcast.glsl"

READS(0, a)
READS(1, b)
layout(binding = 2) readonly buffer C { uint c[]; }; // bools, four in each word
WRITES(3, y)

void main()
{
    uint i = invocation();
    if (i >= shape.vectors)
        return;
    uvec4 result;
    for (uint k = 0; k < 4; k++) {
        uint at = offset_c(i * 4 + k);
        bool first = (c[at / 4] >> (8 * (at % 4)) & 0xffu) != 0;
        result[k] = first ? a_word(offset_a(i * 4 + k)) : b_word(offset_b(i * 4 + k));
    }
    put_y4_word(i, result);
}
