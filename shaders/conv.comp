// SPDX-License-Identifier: Apache-2.0
// Convolution, its transpose, and products with a constant matrix. An invocation makes four
// channels of a strip of PIXELS pixels, so that each weight it loads is used that many times.
// Weights are [tap][input channel of the group][block of four output channels].
#version 450
#extension GL_GOOGLE_include_directive : require
#include "constants.h"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 8;
layout(constant_id = 3) const bool X_VECTOR = false; // channels of x come in fours
layout(constant_id = 4) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool TRANSPOSED = false;
layout(constant_id = 6) const bool PRELU = false;
layout(constant_id = 7) const bool ONE_TAP = false; // 1x1, nothing outside the picture

layout(binding = 0) readonly buffer X { float x[]; };
layout(binding = 0) readonly buffer X4 { vec4 x4[]; };
layout(binding = 1) readonly buffer W { vec4 w[]; };
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // bias, then the slopes of prelu
layout(binding = 3) writeonly buffer Y { float y[]; };
layout(binding = 3) writeonly buffer Y4 { vec4 y4[]; };

// Where a pixel's channels begin in x for one tap; ~0 where that is padding.
uint source(uint image, int row, int column)
{
    if (TRANSPOSED) {
        int sh = int(p.stride_h), sw = int(p.stride_w);
        if (row < 0 || column < 0 || row % sh != 0 || column % sw != 0)
            return ~0u;
        row /= sh;
        column /= sw;
    }
    bool inside = row >= 0 && column >= 0 && row < int(p.in_h) && column < int(p.in_w);
    return inside ? ((image * p.in_h + uint(row)) * p.in_w + uint(column)) * p.in_c : ~0u;
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
    uint group = block / p.group_blocks;

    vec4 sum[PIXELS];
    for (uint t = 0; t < PIXELS; t++)
        sum[t] = bias[block];
    for (uint tap = 0; tap < (ONE_TAP ? 1 : p.kernel_h * p.kernel_w); tap++) {
        uint at[PIXELS];
        for (uint t = 0; t < PIXELS; t++) {
            uint column = min(first + t, p.out_w - 1);
            if (ONE_TAP) {
                at[t] = ((image * p.in_h + row * p.stride_h) * p.in_w + column * p.stride_w) * p.in_c;
            } else if (TRANSPOSED) {
                at[t] = source(image, int(row) + p.pad_top - int(tap / p.kernel_w * p.dilation_h),
                               int(column) + p.pad_left - int(tap % p.kernel_w * p.dilation_w));
            } else {
                at[t] = source(image, int(row * p.stride_h + tap / p.kernel_w * p.dilation_h) - p.pad_top,
                               int(column * p.stride_w + tap % p.kernel_w * p.dilation_w) - p.pad_left);
            }
        }
        uint weights = tap * p.group_in * p.blocks + block;
        uint channel = group * p.group_in;
        if (X_VECTOR) {
            for (uint c = 0; c < p.group_in; c += 4, weights += 4 * p.blocks) {
                vec4 w0 = w[weights], w1 = w[weights + p.blocks];
                vec4 w2 = w[weights + 2 * p.blocks], w3 = w[weights + 3 * p.blocks];
                for (uint t = 0; t < PIXELS; t++) {
                    vec4 from = vec4(0.0);
                    if (ONE_TAP || at[t] != ~0u)
                        from = x4[(at[t] + channel + c) / 4];
                    sum[t] = fma(vec4(from.x), w0, sum[t]);
                    sum[t] = fma(vec4(from.y), w1, sum[t]);
                    sum[t] = fma(vec4(from.z), w2, sum[t]);
                    sum[t] = fma(vec4(from.w), w3, sum[t]);
                }
            }
        } else {
            for (uint c = 0; c < p.group_in; c++, weights += p.blocks) {
                vec4 w0 = w[weights];
                for (uint t = 0; t < PIXELS; t++) {
                    float from = 0.0;
                    if (ONE_TAP || at[t] != ~0u)
                        from = x[at[t] + channel + c];
                    sum[t] = fma(vec4(from), w0, sum[t]);
                }
            }
        }
    }

    vec4 low = PRELU ? bias[p.blocks + block] : vec4(p.low);
    uint inner = block % p.group_blocks * 4;
    uint to = ((image * p.out_h + row) * p.out_w + first) * p.out_c + group * p.group_out + inner;
    for (uint t = 0; t < PIXELS; t++, to += p.out_c) {
        if (first + t >= p.out_w)
            break;
        vec4 result = activate4(ACTIVATION, sum[t], low, p.high);
        if (Y_VECTOR) {
            y4[to / 4] = result;
        } else {
            for (uint k = 0; k < 4; k++)
                if (inner + k < p.group_out)
                    y[to + k] = result[k];
        }
    }
}
