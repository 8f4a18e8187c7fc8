// SPDX-License-Identifier: Apache-2.0
// The output transformation of Winograd's algorithm (backends/vulkan/ops/winograd.c). It reads one
// element from each of the products and writes a tile of results. Rows of the products are padded
// to a multiple of four channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"
#include "lib/functions.glsl"
#include "lib/winograd.glsl"

layout(constant_id = 2) const bool Y_VECTOR = true; // the channels of y are a multiple of four
layout(constant_id = 3) const uint ACTIVATION = FN_NONE;
layout(constant_id = 4) const bool PRELU = false;
layout(constant_id = 5) const uint ADDED = ADDED_NOTHING;

READS(0, m)
layout(binding = 1) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(2, added)
WRITES(3, y)

#include "lib/added.glsl"
#include "lib/block_store.glsl"

// Transforms SIDE products to PIXELS sums, which replace the first arguments. The points are those
// of winograd_in.comp. F(2) ignores e and f.
void transform(inout vec4 a, inout vec4 b, inout vec4 c, inout vec4 d, vec4 e, vec4 f)
{
    vec4 p = b + c, m = b - c;
    if (PIXELS == 2) {
        a += p;
        b = m + d;
        return;
    }
    vec4 q = d + e, n = d - e;
    a = a + p + q;
    b = fma(vec4(2.0), n, m);
    c = fma(vec4(4.0), q, p);
    d = fma(vec4(8.0), n, m) + f;
}

// Returns the element of row `row` of the matrices of one column; 0 if F(PIXELS) has no such row.
vec4 load_product(uint from, uint row, uint step)
{
    return row < SIDE ? m4(from + row * SIDE * step) : vec4(0.0);
}

void main()
{
    uint id = invocation();
    if (id >= p.count)
        return;
    uint channels = p.channels, blocks = (channels + 3) / 4;
    uint local = id / blocks, block = id - local * blocks;
    uint tile = p.first + local;
    uint line = tile / p.tiles_w, image = line / p.tiles_h;
    uint row = (line - image * p.tiles_h) * PIXELS, column = (tile - line * p.tiles_w) * PIXELS;
    uint from = local * blocks + block, step = p.stride * blocks;
    vec4 s[PIXELS_MAX * SIDE_MAX];
    [[unroll]] for (uint k = 0; k < SIDE_MAX; k++) {
        if (k < SIDE) {
            vec4 a = load_product(from, 0, step), b = load_product(from, 1, step),
                 c = load_product(from, 2, step), d = load_product(from, 3, step),
                 e = load_product(from, 4, step), f = load_product(from, 5, step);
            transform(a, b, c, d, e, f);
            s[k] = a;
            s[6 + k] = b;
            s[12 + k] = c;
            s[18 + k] = d;
            from += step;
        }
    }
    vec4 low = PRELU ? bias[blocks + block] : vec4(p.low), start = bias[block];
    [[unroll]] for (uint i = 0; i < PIXELS_MAX; i++) {
        vec4 made[PIXELS_MAX], e = s[i * 6 + 4], f = s[i * 6 + 5];
        [[unroll]] for (uint k = 0; k < PIXELS_MAX; k++)
            made[k] = s[i * 6 + k];
        transform(made[0], made[1], made[2], made[3], e, f);
        [[unroll]] for (uint k = 0; k < PIXELS_MAX; k++) {
            if (i >= PIXELS || k >= PIXELS || row + i >= p.out_h || column + k >= p.out_w)
                continue;
            vec4 result = start + made[k];
            uint place = (image * p.out_h + row + i) * p.out_w + column + k;
            if (ADDED != ADDED_NOTHING)
                result += added_to(place, block * 4, p.added);
            result = activate4(ACTIVATION, result, low, p.high);
            store_vector(place * channels, block, channels, result);
        }
    }
}
