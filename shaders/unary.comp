// SPDX-License-Identifier: Apache-2.0
// Unary operators: y = f(x). An invocation computes four neighbouring elements.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"

layout(constant_id = 1) const uint FUNCTION = FN_NONE;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P {
    uint vectors;
    float low, high;
} p;

void main()
{
    uint i = invocation();
    if (i >= p.vectors)
        return;
    vec4 value = x4(i);
    for (uint k = 0; k < 4; k++)
        value[k] = apply(FUNCTION, value[k], p.low, p.high);
    put_y4(i, value);
}
