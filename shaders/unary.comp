// SPDX-License-Identifier: Apache-2.0
// y = f(x), four elements an invocation.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"

layout(constant_id = 1) const uint FUNCTION = FN_NONE;

layout(binding = 0) readonly buffer X { vec4 x[]; };
layout(binding = 1) writeonly buffer Y { vec4 y[]; };
layout(push_constant) uniform P {
    uint vectors;
    float low, high;
} p;

void main()
{
    uint i = invocation();
    if (i >= p.vectors)
        return;
    vec4 value = x[i];
    for (uint k = 0; k < 4; k++)
        value[k] = apply(FUNCTION, value[k], p.low, p.high);
    y[i] = value;
}
