// SPDX-License-Identifier: Apache-2.0
// The output transformation of Winograd's F(4,3). It reads one element from each of 36 products and
// writes a tile of 4x4 pixels.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/winograd.glsl"

layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const bool PRELU = false;
layout(constant_id = 3) const uint ADDED = ADDED_NOTHING;

READS(0, m)
layout(binding = 1) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(2, added)
WRITES(3, y)

#include "lib/added.glsl"

// Transforms six products to four sums, which replace the first four arguments.
void transform(inout vec4 a, inout vec4 b, inout vec4 c, inout vec4 d, vec4 e, vec4 f)
{
    vec4 p = b + c, m = b - c, q = d + e, n = d - e;
    a = a + p + q;
    b = fma(vec4(2.0), n, m);
    c = fma(vec4(4.0), q, p);
    d = fma(vec4(8.0), n, m) + f;
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint local = id / p.blocks, block = id - local * p.blocks;
    uint tile = p.first + local;
    uint line = tile / p.tiles_w, image = line / p.tiles_h;
    uint row = (line - image * p.tiles_h) * 4, column = (tile - line * p.tiles_w) * 4;
    uint from = local * p.blocks + block, step = p.stride * p.blocks;
    vec4 s[24];
    [[unroll]] for (int k = 0; k < 6; k++) {
        vec4 a = m4(from + k * step), b = m4(from + (6 + k) * step), c = m4(from + (12 + k) * step);
        vec4 d = m4(from + (18 + k) * step), e = m4(from + (24 + k) * step),
            f = m4(from + (30 + k) * step);
        transform(a, b, c, d, e, f);
        s[k] = a;
        s[6 + k] = b;
        s[12 + k] = c;
        s[18 + k] = d;
    }
    vec4 low = PRELU ? bias[p.blocks + block] : vec4(p.low), start = bias[block];
    [[unroll]] for (uint i = 0; i < 4; i++) {
        vec4 made[4], e = s[i * 6 + 4], f = s[i * 6 + 5];
        [[unroll]] for (uint k = 0; k < 4; k++)
            made[k] = s[i * 6 + k];
        transform(made[0], made[1], made[2], made[3], e, f);
        [[unroll]] for (uint k = 0; k < 4; k++) {
            if (row + i >= p.out_h || column + k >= p.out_w)
                continue;
            vec4 result = start + made[k];
            uint place = (image * p.out_h + row + i) * p.out_w + column + k;
            if (ADDED != ADDED_NOTHING)
                result += added_to(place, block * 4, p.added);
            put_y4(place * p.blocks + block, activate4(ACTIVATION, result, low, p.high));
        }
    }
}
