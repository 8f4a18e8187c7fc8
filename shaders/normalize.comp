// SPDX-License-Identifier: Apache-2.0
// Layer, instance and group normalisation along the middle axis of [outer, n, inner]. An invocation
// normalises one line: the n elements that have the same outer and inner index.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/sums.glsl"

layout(constant_id = 1) const bool RMS = false;
layout(constant_id = 2) const bool SCALED = false;
layout(constant_id = 3) const bool SHIFTED = false;

READS(0, x)
READS(1, scale)
READS(2, offset)
WRITES(3, y)
layout(push_constant) uniform P {
    uint count, n, inner;
    // How the scale is broadcast: scale_under consecutive elements of y use the same element of the
    // scale, which has scale_count elements.
    uint scale_under, scale_count;
    uint offset_under, offset_count;
    float epsilon;
} p;

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint first = id / p.inner * p.n * p.inner + id % p.inner;
    uint end = first + p.n * p.inner;
    // Subtract the first element from all elements before they are summed, so that a large mean
    // does not cost precision.
    float about = RMS ? 0.0 : x(first);
    float mean = 0.0, lost = 0.0;
    for (uint at = first; !RMS && at < end; at += p.inner)
        add_term(x(at) - about, mean, lost);
    mean /= float(p.n);
    float squares = 0.0;
    lost = 0.0;
    for (uint at = first; at < end; at += p.inner) {
        float distance = x(at) - about - mean;
        add_term(distance * distance, squares, lost);
    }
    float factor = 1.0 / sqrt(squares / float(p.n) + p.epsilon);
    for (uint at = first; at < end; at += p.inner) {
        float value = (x(at) - about - mean) * factor;
        if (SCALED)
            value *= scale(at / p.scale_under % p.scale_count);
        if (SHIFTED)
            value += offset(at / p.offset_under % p.offset_count);
        put_y(at, value);
    }
}
