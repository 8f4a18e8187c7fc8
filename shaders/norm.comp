// SPDX-License-Identifier: Apache-2.0
// Batch normalisation along the last axis.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/invocation.glsl"

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 1) readonly buffer S { float scale[]; };
layout(binding = 2) readonly buffer O { float offset[]; };
layout(binding = 3) readonly buffer M { float mean[]; };
layout(binding = 4) readonly buffer V { float variance[]; };
layout(binding = 5) writeonly buffer Y { float y[]; };
layout(push_constant) uniform P {
    uint count, channels;
    float epsilon;
} p;

void main()
{
    uint i = invocation();
    if (i >= p.count)
        return;
    uint c = i % p.channels;
    y[i] = (x[i] - mean[c]) / sqrt(variance[c] + p.epsilon) * scale[c] + offset[c];
}
