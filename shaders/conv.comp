// SPDX-License-Identifier: Apache-2.0
// Convolution, transposed convolution, and product with a constant matrix. An invocation computes
// four channels of a strip of PIXELS pixels, so that each weight that is loaded is used PIXELS
// times. Weights are [tap][input channel of the group][block of four output channels].
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 8;
layout(constant_id = 3) const bool X_VECTOR = false; // the channels of x are a multiple of four
layout(constant_id = 4) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool TRANSPOSED = false;
layout(constant_id = 6) const bool PRELU = false;
// True for a 1x1 window that never reaches outside the image.
layout(constant_id = 7) const bool ONE_TAP = false;
layout(constant_id = 8) const uint ADDED = ADDED_NOTHING;

READS(0, x)
READS(1, w)
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(3, added)
WRITES(4, y)

#include "lib/source.glsl"
#include "lib/outside.glsl"
#include "lib/added.glsl"

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
    Picture picture = picture_of_window();
    uint last = p.out_w - 1, blocks = p.blocks, group_in = p.group_in;
    uint kernel_h = ONE_TAP ? 1 : p.kernel_h, kernel_w = ONE_TAP ? 1 : p.kernel_w;

    vec4 sum[PIXELS];
    for (uint t = 0; t < PIXELS; t++)
        sum[t] = bias[block];
    uint weights = block, channel = group * group_in;
    for (uint ky = 0; ky < kernel_h; ky++) {
        for (uint kx = 0; kx < kernel_w; kx++) {
            uint at[PIXELS];
            for (uint t = 0; t < PIXELS; t++)
                at[t] = source(picture, image, row, min(first + t, last), ky, kx);
            for (uint c = 0; X_VECTOR && c < group_in; c += 4, weights += 4 * blocks) {
                vec4 w0 = w4(weights), w1 = w4(weights + blocks);
                vec4 w2 = w4(weights + 2 * blocks), w3 = w4(weights + 3 * blocks);
                [[unroll]] for (uint t = 0; t < PIXELS; t++) {
                    vec4 from = load4(at[t], channel + c);
                    sum[t] = fma(vec4(from.x), w0, sum[t]);
                    sum[t] = fma(vec4(from.y), w1, sum[t]);
                    sum[t] = fma(vec4(from.z), w2, sum[t]);
                    sum[t] = fma(vec4(from.w), w3, sum[t]);
                }
            }
            for (uint c = 0; !X_VECTOR && c < group_in; c++, weights += blocks) {
                vec4 w0 = w4(weights);
                [[unroll]] for (uint t = 0; t < PIXELS; t++)
                    sum[t] = fma(vec4(load(at[t], channel + c)), w0, sum[t]);
            }
        }
    }

    vec4 low = PRELU ? bias[p.blocks + block] : vec4(p.low);
    uint inner = block % p.group_blocks * 4;
    uint width = p.out_w, out_c = p.out_c, group_out = p.group_out;
    uint to = ((image * p.out_h + row) * width + first) * out_c + group * group_out + inner;
    float high = p.high;
    uint added_c = p.added;
    for (uint t = 0; t < PIXELS; t++, to += out_c) {
        if (first + t >= width)
            break;
        vec4 result = sum[t];
        if (ADDED != ADDED_NOTHING)
            result += added_to((image * p.out_h + row) * width + first + t, block * 4, added_c);
        result = activate4(ACTIVATION, result, low, high);
        if (Y_VECTOR) {
            put_y4(to / 4, result);
        } else {
            for (uint k = 0; k < 4; k++)
                if (inner + k < group_out)
                    put_y(to + k, result[k]);
        }
    }
}
