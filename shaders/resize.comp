// SPDX-License-Identifier: Apache-2.0
// Resizes images. The host computes a table with one entry for each row of y, then one for each
// column. An entry holds the positions of the two neighbours in x and the weight of the second one.
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const bool BILINEAR = false;
layout(constant_id = 2) const bool VECTOR = false;

READS(0, x)
// The resize table: entries for the rows of y, followed by entries for its columns.
layout(binding = 1) readonly buffer T { uvec4 table[]; };
WRITES(2, y)

uvec4 load(uint at)
{
    return VECTOR ? x4_word(at) : uvec4(x_word(at));
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint channel = id % p.blocks; // p.blocks is the number of vectors or channels of a pixel
    uint pixel = id / p.blocks;
    uvec4 column = table[p.out_h + pixel % p.out_w];
    uvec4 row = table[pixel / p.out_w % p.out_h];
    uint image = pixel / p.out_w / p.out_h * p.in_h;
    uint top = (image + row.x) * p.in_w, bottom = (image + row.y) * p.in_w;

    uvec4 result = load((top + column.x) * p.blocks + channel);
    if (BILINEAR) {
        vec4 top_left = uintBitsToFloat(result);
        vec4 top_right = uintBitsToFloat(load((top + column.y) * p.blocks + channel));
        vec4 bottom_left = uintBitsToFloat(load((bottom + column.x) * p.blocks + channel));
        vec4 bottom_right = uintBitsToFloat(load((bottom + column.y) * p.blocks + channel));
        vec4 across = vec4(uintBitsToFloat(column.z)), down = vec4(uintBitsToFloat(row.z));
        vec4 upper = fma(top_right - top_left, across, top_left);
        vec4 lower = fma(bottom_right - bottom_left, across, bottom_left);
        result = floatBitsToUint(fma(lower - upper, down, upper));
    }
    if (VECTOR)
        put_y4_word(id, result);
    else
        put_y_word(id, result.x);
}
