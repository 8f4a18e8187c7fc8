// SPDX-License-Identifier: Apache-2.0
// Any strided copy: transpose, slice, concat, split, tile, broadcast, fill. Elements are words, or
// vectors of four where everything is a multiple of that.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/invocation.glsl"

layout(constant_id = 1) const bool VECTOR = false;

layout(binding = 0) readonly buffer X { uint x[]; };
layout(binding = 0) readonly buffer X4 { uvec4 x4[]; };
layout(binding = 1) writeonly buffer Y { uint y[]; };
layout(binding = 1) writeonly buffer Y4 { uvec4 y4[]; };
layout(push_constant) uniform P {
    uint count;
    uint axes;
    int from, to; // the first element
    uint dims[MOVE_AXES]; // innermost first
    int from_strides[MOVE_AXES];
    int to_strides[MOVE_AXES];
} p;

void main()
{
    uint rest = invocation();
    if (rest >= p.count)
        return;
    int from = p.from, to = p.to;
    for (uint i = 0; i < p.axes; i++) {
        int index = int(rest % p.dims[i]);
        rest /= p.dims[i];
        from += index * p.from_strides[i];
        to += index * p.to_strides[i];
    }
    if (VECTOR)
        y4[to] = x4[from];
    else
        y[to] = x[from];
}
