// SPDX-License-Identifier: Apache-2.0
// The input transformation of Winograd's F(4,3) (backends/vulkan/ops/winograd.c). It reads the 6x6
// pixels that a tile of 4x4 results needs, and writes one element to each of 36 matrices.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/winograd.glsl"

READS(0, x)
WRITES(1, v)

// Transforms six pixels of a row or column in place.
void transform(inout vec4 a, inout vec4 b, inout vec4 c, inout vec4 d, inout vec4 e, inout vec4 f)
{
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
    uint local = id / p.blocks, block = id - local * p.blocks;
    uint tile = p.first + local;
    uint line = tile / p.tiles_w, image = line / p.tiles_h;
    int top = int(line - image * p.tiles_h) * 4 - p.pad_top;
    int left = int(tile - line * p.tiles_w) * 4 - p.pad_left;
    int in_h = int(p.in_h), in_w = int(p.in_w);
    vec4 d[36];
    [[unroll]] for (int i = 0; i < 6; i++) {
        [[unroll]] for (int k = 0; k < 6; k++) {
            int row = top + i, column = left + k;
            bool inside = row >= 0 && column >= 0 && row < in_h && column < in_w;
            uint at = uint((int(image) * in_h + row) * in_w + column) * p.blocks + block;
            vec4 from = x4(inside ? at : 0);
            d[i * 6 + k] = inside ? from : vec4(0.0);
        }
    }
    [[unroll]] for (int k = 0; k < 6; k++)
        transform(d[k], d[6 + k], d[12 + k], d[18 + k], d[24 + k], d[30 + k]);
    uint to = local * p.blocks + block, step = p.stride * p.blocks;
    [[unroll]] for (int i = 0; i < 6; i++) {
        transform(d[i * 6], d[i * 6 + 1], d[i * 6 + 2], d[i * 6 + 3], d[i * 6 + 4], d[i * 6 + 5]);
        [[unroll]] for (int k = 0; k < 6; k++)
            put_v4(to + k * step, d[i * 6 + k]);
        to += 6 * step;
    }
}
