// SPDX-License-Identifier: Apache-2.0
// Computes exp(x - max) / sum, or its logarithm, along the middle axis of [outer, n, inner]. An
// invocation computes one line: the n elements that have the same outer and inner index.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"

layout(constant_id = 1) const bool LOGARITHM = false;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P { uint count, n, inner; } p;

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint at = id / p.inner * p.n * p.inner + id % p.inner;
    float largest = -INFINITY;
    for (uint i = 0; i < p.n; i++)
        largest = max(largest, x(at + i * p.inner));
    float sum = 0.0;
    for (uint i = 0; i < p.n; i++)
        sum += exp_of(x(at + i * p.inner) - largest);
    float scale = LOGARITHM ? log_of(sum) : 1.0 / sum;
    for (uint i = 0; i < p.n; i++) {
        float value = x(at + i * p.inner) - largest;
        put_y(at + i * p.inner, LOGARITHM ? value - scale : exp_of(value) * scale);
    }
}
