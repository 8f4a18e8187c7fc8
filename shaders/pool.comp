// SPDX-License-Identifier: Apache-2.0
// Computes the maximum or the mean of the elements of a window. Elements outside the image are
// ignored. The module for bytes only computes the maximum.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/numbers.glsl"
#include "lib/window.glsl"

layout(constant_id = 1) const bool LARGEST = false;
layout(constant_id = 2) const bool VECTOR = false;
// The side of square windows that never reach outside the image; 0 for other windows.
layout(constant_id = 3) const uint SQUARE = 0;
// The number of consecutive pixels of a row that an invocation computes.
layout(constant_id = 4) const uint PIXELS = 1;

READS(0, x)
WRITES(1, y)

#ifdef BYTES
// 0x80 for signed bytes, which have the order of unsigned bytes after this XOR; otherwise 0.
layout(constant_id = 5) const uint FLIP = 0;

float x(uint i)
{
    return float(x_word(i) ^ FLIP);
}

vec4 x4(uint i)
{
    return vec4(x4_word(i) ^ uvec4(FLIP));
}

void put_y(uint i, float value)
{
    put_y_word(i, uint(value) ^ FLIP);
}

void put_y4(uint i, vec4 value)
{
    put_y4_word(i, uvec4(value) ^ uvec4(FLIP));
}
#endif

// Combines `result` with the element at `at`. Max pooling ignores NaN, because a comparison with
// NaN is false.
vec4 pooled(vec4 result, uint at)
{
    vec4 from = VECTOR ? x4(at) : vec4(x(at));
    return LARGEST ? mix(result, from, greaterThan(from, result)) : result + from;
}

// Computes the pixel of y at `row` and `column`.
vec4 pool(uint image, uint row, uint column, uint channel)
{
    vec4 result = vec4(LARGEST ? -INFINITY : 0.0);
    float count = 0.0;
    if (SQUARE != 0) {
        uint corner = ((image * p.in_h + row * p.stride_h) * p.in_w + column * p.stride_w)
            * p.blocks + channel;
        [[unroll]] for (uint i = 0; i < SQUARE; i++)
            [[unroll]] for (uint k = 0; k < SQUARE; k++)
                result = pooled(result, corner + (i * p.in_w + k) * p.blocks);
        count = float(SQUARE * SQUARE);
    } else {
        int top = int(row * p.stride_h) - p.pad_top, left = int(column * p.stride_w) - p.pad_left;
        int rows_end = min(top + int(p.kernel_h), int(p.in_h));
        int columns_end = min(left + int(p.kernel_w), int(p.in_w));
        for (int i = max(top, 0); i < rows_end; i++) {
            for (int k = max(left, 0); k < columns_end; k++) {
                result = pooled(result, ((image * p.in_h + uint(i)) * p.in_w + uint(k))
                    * p.blocks + channel);
                count += 1.0;
            }
        }
    }
    return LARGEST ? result : result / vec4(count);
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    // Compute the position once for all pixels of a strip, because divisions are the largest cost
    // on drivers for the CPU. p.blocks is the number of vectors (or single channels) of a pixel.
    uint pixel = id / p.blocks, channel = id - pixel * p.blocks;
    uint line = pixel / p.strips, column = (pixel - line * p.strips) * PIXELS;
    uint image = line / p.out_h, row = line - image * p.out_h;
    uint to = (line * p.out_w + column) * p.blocks + channel;
    [[unroll]] for (uint i = 0; i < PIXELS; i++, to += p.blocks) {
        vec4 result = pool(image, row, column + i, channel);
        if (VECTOR)
            put_y4(to, result);
        else
            put_y(to, result.x);
    }
}
