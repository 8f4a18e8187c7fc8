// SPDX-License-Identifier: Apache-2.0
// Comparisons of a and b, both broadcast by NumPy's rule. An invocation writes four bools, which
// form one 32-bit word.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/broadcast.glsl"

layout(constant_id = 1) const uint KIND = COMPARE_EQUAL;
layout(constant_id = 2) const uint TYPE = TYPE_F32;

READS(0, a)
READS(1, b)
layout(binding = 2) writeonly buffer Y { uint y[]; };

bool holds(bool less, bool equal, bool greater)
{
    switch (KIND) {
    case COMPARE_EQUAL:
        return equal;
    case COMPARE_NOT_EQUAL:
        return !equal;
    case COMPARE_LESS:
        return less;
    case COMPARE_LESS_EQUAL:
        return less || equal;
    case COMPARE_GREATER:
        return greater;
    default:
        return greater || equal;
    }
}

void main()
{
    uint i = invocation();
    if (i >= shape.vectors)
        return;
    uint result = 0;
    for (uint k = 0; k < 4; k++) {
        uint left = a_word(offset_a(i * 4 + k)), right = b_word(offset_b(i * 4 + k));
        float x = uintBitsToFloat(left), z = uintBitsToFloat(right);
        bool is = TYPE == TYPE_F32 ? holds(x < z, x == z, x > z)
                                   : holds(int(left) < int(right), left == right,
                                       int(left) > int(right));
        result |= (is ? 1u : 0u) << (8 * k);
    }
    y[i] = result;
}
