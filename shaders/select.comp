// SPDX-License-Identifier: Apache-2.0
// y = condition ? a : b, all three stretched by NumPy's rule; elements of four bytes.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/invocation.glsl"
#include "lib/broadcast.glsl"

layout(binding = 0) readonly buffer A { uint a[]; };
layout(binding = 1) readonly buffer B { uint b[]; };
layout(binding = 2) readonly buffer C { uint c[]; }; // bools, four a word
layout(binding = 3) writeonly buffer Y { uvec4 y[]; };

void main()
{
    uint i = invocation();
    if (i >= shape.vectors)
        return;
    uvec4 result;
    for (uint k = 0; k < 4; k++) {
        uint at = offset_c(i * 4 + k);
        bool first = (c[at / 4] >> (8 * (at % 4)) & 0xffu) != 0;
        result[k] = first ? a[offset_a(i * 4 + k)] : b[offset_b(i * 4 + k)];
    }
    y[i] = result;
}
