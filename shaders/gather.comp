// SPDX-License-Identifier: Apache-2.0
// Slices of x [batch, outer, n, inner] at indices [batch, picks]: y [batch, outer, picks, inner].
// Indices are constants that were looked at when the program was compiled.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

READS(0, x)
layout(binding = 1) readonly buffer I { uint indices[]; };
WRITES(2, y)
layout(push_constant) uniform P { uint count, outer, n, inner, picks; } p;

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint within = id % p.inner, pick = id / p.inner % p.picks;
    uint row = id / p.inner / p.picks; // batch * outer
    uint index = indices[row / p.outer * p.picks + pick];
    put_y_word(id, x_word((row * p.n + index) * p.inner + within));
}
