// SPDX-License-Identifier: Apache-2.0
// The largest or the mean of a window's elements inside the picture.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/numbers.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const bool LARGEST = false;
layout(constant_id = 2) const bool VECTOR = false;

READS(0, x)
WRITES(1, y)

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint channel = id % p.blocks; // p.blocks: vectors or channels of a pixel
    uint pixel = id / p.blocks;
    uint column = pixel % p.out_w, row = pixel / p.out_w % p.out_h;
    uint image = pixel / p.out_w / p.out_h;
    int top = int(row * p.stride_h) - p.pad_top, left = int(column * p.stride_w) - p.pad_left;
    uint rows_end = uint(min(top + int(p.kernel_h), int(p.in_h)));
    uint columns_end = uint(min(left + int(p.kernel_w), int(p.in_w)));

    vec4 result = vec4(LARGEST ? -INFINITY : 0.0);
    float count = 0.0;
    for (uint i = uint(max(top, 0)); i < rows_end && int(rows_end) > 0; i++) {
        for (uint k = uint(max(left, 0)); k < columns_end && int(columns_end) > 0; k++) {
            uint at = ((image * p.in_h + i) * p.in_w + k) * p.blocks + channel;
            vec4 from = VECTOR ? x4(at) : vec4(x(at));
            // A NaN is never larger: max pooling passes over it.
            result = LARGEST ? mix(result, from, greaterThan(from, result)) : result + from;
            count += 1.0;
        }
    }
    if (!LARGEST)
        result /= vec4(count);
    if (VECTOR)
        put_y4(id, result);
    else
        put_y(id, result.x);
}
