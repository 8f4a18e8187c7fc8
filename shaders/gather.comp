// SPDX-License-Identifier: Apache-2.0
// Gathers slices of x [batch, outer, n, inner] at indices [batch, picks]. y is [batch, outer,
// picks, inner].
#version 450
#extension GL_GOOGLE_include_directive : require
#define CHECKS
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

layout(constant_id = 1) const bool WIDE = false; // true: indices are 64-bit

READS(0, x)
layout(binding = 1) readonly buffer I { uint indices[]; };
WRITES(2, y)
layout(push_constant) uniform P { uint count, outer, n, inner, picks; } p;

#include "lib/index.glsl"

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint within = id % p.inner, pick = id / p.inner % p.picks;
    // Index of the row of y: the batch index * outer + the outer index.
    uint row = id / p.inner / p.picks;
    uint index = index_at(row / p.outer * p.picks + pick, p.n);
    put_y_word(id, x_word((row * p.n + index) * p.inner + within));
}
