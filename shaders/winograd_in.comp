// SPDX-License-Identifier: Apache-2.0
// The input transformation of Winograd's algorithm (backends/vulkan/ops/winograd.c). It reads the
// pixels that a tile of results needs, and writes one element to each of the matrices. Rows of the
// matrices are padded with zeros to a multiple of four channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/winograd.glsl"

layout(constant_id = 2) const bool X_VECTOR = true; // the channels of x are a multiple of four

READS(0, x)
WRITES(1, v)

// Returns vector `block` of four channels of a pixel. Channels behind the last one are 0.
vec4 load_pixel(uint pixel, uint block, uint blocks)
{
    if (X_VECTOR)
        return x4(pixel * blocks + block);
    vec4 four = vec4(0.0);
    uint channels = p.channels;
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (block * 4 + i < channels)
            four[i] = x(pixel * channels + block * 4 + i);
    return four;
}

// Transforms SIDE pixels of a row or column in place. F(2) has the points 0, 1, -1 and infinity,
// and ignores e and f. F(4) has the points 0, 1, -1, 2, -2 and infinity.
void transform(inout vec4 a, inout vec4 b, inout vec4 c, inout vec4 d, inout vec4 e, inout vec4 f)
{
    if (PIXELS == 2) {
        vec4 sum = b + c;
        a = c - a;
        d -= b;
        c -= b;
        b = sum;
        return;
    }
    vec4 p0 = fma(vec4(-4.0), c, e), p1 = fma(vec4(-4.0), b, d), p2 = e - c, p3 = 2.0 * (d - b);
    a = fma(vec4(4.0), a, fma(vec4(-5.0), c, e));
    f = fma(vec4(4.0), b, fma(vec4(-5.0), d, f));
    b = p0 + p1;
    c = p0 - p1;
    d = p2 + p3;
    e = p2 - p3;
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint blocks = (p.channels + 3) / 4;
    uint local = id / blocks, block = id - local * blocks;
    uint tile = p.first + local;
    uint line = tile / p.tiles_w, image = line / p.tiles_h;
    int top = int((line - image * p.tiles_h) * PIXELS) - p.pad_top;
    int left = int((tile - line * p.tiles_w) * PIXELS) - p.pad_left;
    int in_h = int(p.in_h), in_w = int(p.in_w);
    vec4 d[SIDE_MAX * SIDE_MAX];
    [[unroll]] for (int i = 0; i < SIDE_MAX; i++) {
        [[unroll]] for (int k = 0; k < SIDE_MAX; k++) {
            if (i < SIDE && k < SIDE) {
                int row = top + i, column = left + k;
                bool inside = row >= 0 && column >= 0 && row < in_h && column < in_w;
                uint pixel = uint((int(image) * in_h + row) * in_w + column);
                vec4 from = load_pixel(inside ? pixel : 0, block, blocks);
                d[i * SIDE_MAX + k] = inside ? from : vec4(0.0);
            }
        }
    }
    [[unroll]] for (int k = 0; k < SIDE_MAX; k++)
        if (k < SIDE)
            transform(d[k], d[6 + k], d[12 + k], d[18 + k], d[24 + k], d[30 + k]);
    [[unroll]] for (int i = 0; i < SIDE_MAX * SIDE_MAX; i += SIDE_MAX)
        if (i < SIDE * SIDE_MAX)
            transform(d[i], d[i + 1], d[i + 2], d[i + 3], d[i + 4], d[i + 5]);
    uint to = local * blocks + block, step = p.stride * blocks;
    [[unroll]] for (int i = 0; i < SIDE_MAX; i++)
        [[unroll]] for (int k = 0; k < SIDE_MAX; k++)
            if (i < SIDE && k < SIDE)
                put_v4(to + (i * SIDE + k) * step, d[i * SIDE_MAX + k]);
}
