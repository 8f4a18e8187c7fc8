// SPDX-License-Identifier: Apache-2.0
// Adds elements around a tensor: constants, mirrored elements, or copies of the elements at the
// edge.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

layout(constant_id = 1) const uint MODE = PAD_CONSTANT;
layout(constant_id = 2) const bool VECTOR = false;

READS(0, x)
WRITES(1, y)
layout(push_constant) uniform P {
    uint count;
    uint axes;
    uint value;
    uint out_dims[PAD_AXES]; // sizes of the axes of y, innermost first
    int in_dims[PAD_AXES];
    int before[PAD_AXES];
} p;

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint rest = id;
    int from = 0, stride = 1;
    bool inside = true;
    for (uint i = 0; i < p.axes; i++) {
        int at = int(rest % p.out_dims[i]) - p.before[i];
        int size = p.in_dims[i];
        rest /= p.out_dims[i];
        if (MODE == PAD_REFLECT)
            at = at < 0 ? -at : (at >= size ? 2 * size - 2 - at : at);
        if (MODE == PAD_SYMMETRIC)
            at = at < 0 ? -at - 1 : (at >= size ? 2 * size - 1 - at : at);
        if (MODE == PAD_EDGE)
            at = clamp(at, 0, size - 1);
        inside = inside && at >= 0 && at < size;
        from += at * stride;
        stride *= size;
    }
    uvec4 result = uvec4(p.value);
    if (inside)
        result = VECTOR ? x4_word(uint(from)) : uvec4(x_word(uint(from)));
    if (VECTOR)
        put_y4_word(id, result);
    else
        put_y_word(id, result.x);
}
