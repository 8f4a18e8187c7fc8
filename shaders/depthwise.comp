// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution: four channels of a strip of PIXELS pixels an invocation. Weights are
// [tap][block of four output channels].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 4;
layout(constant_id = 3) const bool VECTOR = false; // one filter a channel, channels in fours
layout(constant_id = 4) const bool PRELU = false;

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 0) readonly buffer X4 { vec4 x4[]; };
layout(binding = 1) readonly buffer W { vec4 w[]; };
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // bias, then the slopes of prelu
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Y4 { vec4 y4[]; };

vec4 load(uint pixel, uint block)
{
    if (VECTOR)
        return x4[pixel * p.blocks + block];
    vec4 result = vec4(0.0);
    for (uint k = 0; k < 4; k++)
        if (block * 4 + k < p.out_c)
            result[k] = x[pixel * p.in_c + (block * 4 + k) / p.group_out];
    return result;
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint block = id % p.blocks;
    uint strip = id / p.blocks;
    uint first = strip % p.strips * PIXELS;
    uint row = strip / p.strips % p.out_h;
    uint image = strip / p.strips / p.out_h;

    vec4 sum[PIXELS];
    for (uint t = 0; t < PIXELS; t++)
        sum[t] = bias[block];
    for (uint ky = 0; ky < p.kernel_h; ky++) {
        int from_row = int(row * p.stride_h + ky * p.dilation_h) - p.pad_top;
        if (from_row < 0 || from_row >= int(p.in_h))
            continue;
        uint line = (image * p.in_h + uint(from_row)) * p.in_w;
        for (uint kx = 0; kx < p.kernel_w; kx++) {
            vec4 weight = w[(ky * p.kernel_w + kx) * p.blocks + block];
            for (uint t = 0; t < PIXELS; t++) {
                int column = int((first + t) * p.stride_w + kx * p.dilation_w) - p.pad_left;
                if (column >= 0 && column < int(p.in_w))
                    sum[t] = fma(load(line + uint(column), block), weight, sum[t]);
            }
        }
    }

    vec4 low = PRELU ? bias[p.blocks + block] : vec4(p.low);
    uint pixel = (image * p.out_h + row) * p.out_w + first;
    for (uint t = 0; t < PIXELS; t++, pixel++) {
        if (first + t >= p.out_w)
            break;
        vec4 result = activate4(ACTIVATION, sum[t], low, p.high);
        if (VECTOR) {
            y4[pixel * p.blocks + block] = result;
        } else {
            for (uint k = 0; k < 4; k++)
                if (block * 4 + k < p.out_c)
                    y[pixel * p.out_c + block * 4 + k] = result[k];
        }
    }
}
