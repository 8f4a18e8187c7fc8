// SPDX-License-Identifier: Apache-2.0
// The index of the first minimum or maximum along the middle axis of [outer, n, inner]. An
// invocation computes one index.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

layout(constant_id = 1) const bool LARGEST = true;
layout(constant_id = 2) const bool WIDE = false; // true: y has 64-bit indices

READS(0, x)
layout(binding = 1) writeonly buffer Y { uint y[]; };
layout(push_constant) uniform P { uint count, n, inner; } p;

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint at = id / p.inner * p.n * p.inner + id % p.inner;
    uint best = 0;
    float extreme = x(at);
    for (uint i = 1; i < p.n; i++) {
        float value = x(at + i * p.inner);
        if (LARGEST ? value > extreme : value < extreme) {
            extreme = value;
            best = i;
        }
    }
    if (WIDE) {
        y[2 * id] = best;
        y[2 * id + 1] = 0;
    } else {
        y[id] = best;
    }
}
