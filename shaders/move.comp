// SPDX-License-Identifier: Apache-2.0
// Any strided copy: transpose, slice, concat, split, tile, broadcast, fill. Elements are words, or
// vectors of four words if all extents and strides are multiples of four.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

layout(constant_id = 1) const bool VECTOR = false;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P {
    uint count;
    uint axes;
    int from, to; // index of the first element to read (from) and to write (to)
    uint dims[MOVE_AXES]; // number of elements along each axis, innermost first
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
        put_y4_word(uint(to), x4_word(uint(from)));
    else
        put_y_word(uint(to), x_word(uint(from)));
}
