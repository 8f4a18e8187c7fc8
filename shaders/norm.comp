// SPDX-License-Identifier: Apache-2.0
// Batch normalisation of a tensor whose last axis has the channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

READS(0, x)
READS(1, scale)
READS(2, offset)
READS(3, mean)
READS(4, variance)
WRITES(5, y)
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
    put_y(i, (x(i) - mean(c)) / sqrt(variance(c) + p.epsilon) * scale(c) + offset(c));
}
