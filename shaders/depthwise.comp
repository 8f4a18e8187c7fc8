// SPDX-License-Identifier: Apache-2.0
// Depthwise convolution. An invocation computes four channels of ROWS rows of PIXELS pixels.
// Weights are [tap][block of four output channels].
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 4;
// True if each channel has one filter and the number of channels is a multiple of four.
layout(constant_id = 3) const bool VECTOR = false;
layout(constant_id = 4) const bool PRELU = false;
// The side of a square window with equal strides and no dilation. An invocation then loads each
// pixel of x once and uses it for all taps. 0 for any other window; ROWS is then 1.
layout(constant_id = 5) const uint KERNEL = 0;
layout(constant_id = 6) const uint STRIDE = 1;
layout(constant_id = 7) const uint ROWS = 1;

READS(0, x)
READS(1, w)
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
WRITES(3, y)

// Returns four channels of a pixel of x: those from which block `block` of the channels of y is
// computed. Push constants are passed as parameters, because drivers for the CPU read them again at
// each use (lib/source.glsl).
vec4 load(uint pixel, uint block, uint blocks, uint in_c, uint out_c, uint filters)
{
    if (VECTOR)
        return x4(pixel * blocks + block);
    vec4 result = vec4(0.0);
    [[unroll]] for (uint k = 0; k < 4; k++)
        if (block * 4 + k < out_c)
            result[k] = x(pixel * in_c + (block * 4 + k) / filters);
    return result;
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint blocks = p.blocks, in_c = p.in_c, out_c = p.out_c, filters = p.group_out;
    int in_h = int(p.in_h), in_w = int(p.in_w);
    uint out_h = p.out_h, out_w = p.out_w;
    uint block = id % blocks;
    uint strip = id / blocks;
    uint first = strip % p.strips * PIXELS;
    uint down = (out_h + ROWS - 1) / ROWS; // number of strips of ROWS rows in an image
    uint row = strip / p.strips % down * ROWS;
    uint image = strip / p.strips / down;

    vec4 sum[ROWS * PIXELS];
    vec4 start = bias[block];
    [[unroll]] for (uint t = 0; t < ROWS * PIXELS; t++)
        sum[t] = start;
    if (KERNEL > 0) {
        int from_row = int(row * STRIDE) - p.pad_top,
            from_column = int(first * STRIDE) - p.pad_left;
        vec4 weight[KERNEL * KERNEL + 1];
        [[unroll]] for (uint i = 0; i < KERNEL * KERNEL; i++)
            weight[i] = w4(i * blocks + block);
        [[unroll]] for (uint i = 0; i < (ROWS - 1) * STRIDE + KERNEL; i++) {
            int at_row = from_row + int(i);
            if (at_row < 0 || at_row >= in_h)
                continue;
            uint line = uint(int(image) * in_h + at_row) * uint(in_w);
            [[unroll]] for (uint k = 0; k < (PIXELS - 1) * STRIDE + KERNEL; k++) {
                int column = from_column + int(k);
                // Through a texel view, load unconditionally, from a pixel that exists, so that the
                // driver can issue the load early.
#ifdef TEXELS
                bool inside = column >= 0 && column < in_w;
                vec4 from = load(line + uint(clamp(column, 0, in_w - 1)), block, blocks, in_c,
                    out_c, filters);
                from = inside ? from : vec4(0.0);
#else
                vec4 from = vec4(0.0);
                if (column >= 0 && column < in_w)
                    from = load(line + uint(column), block, blocks, in_c, out_c, filters);
#endif
                [[unroll]] for (uint r = 0; r < ROWS; r++)
                    [[unroll]] for (uint t = 0; t < PIXELS; t++)
                        if (i >= r * STRIDE && i < r * STRIDE + KERNEL && k >= t * STRIDE &&
                            k < t * STRIDE + KERNEL)
                            sum[r * PIXELS + t] =
                                fma(from, weight[(i - r * STRIDE) * KERNEL + k - t * STRIDE],
                                    sum[r * PIXELS + t]);
            }
        }
    } else {
        uint kernel_h = p.kernel_h, kernel_w = p.kernel_w, stride_w = p.stride_w;
        uint dilation_h = p.dilation_h, dilation_w = p.dilation_w;
        int top = int(row * p.stride_h) - p.pad_top, left = int(first * stride_w) - p.pad_left;
        for (uint ky = 0; ky < kernel_h; ky++) {
            int at_row = top + int(ky * dilation_h);
            if (at_row < 0 || at_row >= in_h)
                continue;
            uint line = uint(int(image) * in_h + at_row) * uint(in_w);
            for (uint kx = 0; kx < kernel_w; kx++) {
                vec4 weight = w4((ky * kernel_w + kx) * blocks + block);
                [[unroll]] for (uint t = 0; t < PIXELS; t++) {
                    int column = left + int(t * stride_w + kx * dilation_w);
                    if (column >= 0 && column < in_w)
                        sum[t] = fma(load(line + uint(column), block, blocks, in_c, out_c,
                            filters), weight, sum[t]);
                }
            }
        }
    }

    float high = p.high;
    vec4 low = PRELU ? bias[blocks + block] : vec4(p.low);
    uint pixel = (image * out_h + row) * out_w + first;
    [[unroll]] for (uint r = 0; r < ROWS; r++) {
        [[unroll]] for (uint t = 0; t < PIXELS; t++) {
            if (first + t >= out_w || row + r >= out_h)
                continue;
            vec4 result = activate4(ACTIVATION, sum[r * PIXELS + t], low, high);
            uint at = pixel + r * out_w + t;
            if (VECTOR) {
                put_y4(at * blocks + block, result);
            } else {
                [[unroll]] for (uint k = 0; k < 4; k++)
                    if (block * 4 + k < out_c)
                        put_y(at * out_c + block * 4 + k, result[k]);
            }
        }
    }
}
