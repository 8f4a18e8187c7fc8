// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution of bytes. An invocation computes four channels of PIXELS pixels. Weights
// are [tap][block of four output channels], four integers for a block, less their zero points.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/invocation.glsl"
#include "lib/bytes.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const uint PIXELS = 4;
// True if each channel has one filter and the number of channels is a multiple of four.
layout(constant_id = 2) const bool X_VECTOR = false;
layout(constant_id = 3) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool SUMS = false; // y is the sums in 32 bits

layout(binding = 1) readonly buffer Weights { ivec4 weights[]; };
#include "lib/requantize.glsl"

// Returns the channels of a pixel from which block `block` of the channels of y is computed.
ivec4 load(uint pixel, uint block, uint flip, uint in_c, uint out_c, uint filters)
{
    if (X_VECTOR)
        return signed_bytes_of(x_packed[pixel * (in_c / 4) + block] ^ flip);
    uint word = 0;
    for (uint k = 0; k < 4 && block * 4 + k < out_c; k++)
        word |= uint(x_bytes[pixel * in_c + (block * 4 + k) / filters]) << (8 * k);
    return signed_bytes_of(word ^ flip);
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint blocks = p.blocks, in_c = p.in_c, out_c = p.out_c, filters = p.group_out;
    int in_h = int(p.in_h), in_w = int(p.in_w);
    uint out_w = p.out_w, kernel_h = p.kernel_h, kernel_w = p.kernel_w, stride_w = p.stride_w;
    uint block = id % blocks;
    uint strip = id / blocks;
    uint first = strip % p.strips * PIXELS;
    uint line = strip / p.strips; // of all images
    uint row = line % p.out_h, image = line / p.out_h;
    uint flip = channels[0].y, dilation_w = p.dilation_w;
    ivec4 zero = signed_bytes_of(channels[0].x);

    ivec4 sum[PIXELS];
    [[unroll]] for (uint t = 0; t < PIXELS; t++)
        sum[t] = ivec4(channels[1 + block]);
    int top = int(row * p.stride_h) - p.pad_top, left = int(first * stride_w) - p.pad_left;
    for (uint ky = 0; ky < kernel_h; ky++) {
        int at_row = top + int(ky * p.dilation_h);
        if (at_row < 0 || at_row >= in_h)
            continue;
        uint start = uint(int(image) * in_h + at_row) * uint(in_w);
        for (uint kx = 0; kx < kernel_w; kx++) {
            ivec4 weight = weights[(ky * kernel_w + kx) * blocks + block];
            [[unroll]] for (uint t = 0; t < PIXELS; t++) {
                int column = left + int(t * stride_w + kx * dilation_w);
                if (column >= 0 && column < in_w)
                    sum[t] += (load(start + uint(column), block, flip, in_c, out_c, filters) - zero)
                        * weight;
            }
        }
    }
    uint to = (line * out_w + first) * out_c + block * 4;
    for (uint t = 0; t < PIXELS && first + t < out_w; t++, to += out_c)
        put_sums(to, block, out_c - block * 4, sum[t]);
}
