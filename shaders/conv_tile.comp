// SPDX-License-Identifier: Apache-2.0
// Convolution, transposed convolution, and product with a constant matrix, in subgroups of eight.
// Each invocation computes 4 * VECTORS channels of PIXELS pixels. The eight invocations of a
// subgroup compute the same channels of neighbouring pixels. One of the eight loads each weight and
// broadcasts it to all. Weights are [4 * VECTORS output channels][tap][input channel][block of four
// channels], so the next eight blocks are the next eight vectors. The convolution must have one
// group of channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_KHR_shader_subgroup_shuffle : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/functions.glsl"
#include "lib/window.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 4;
layout(constant_id = 3) const uint DEPTH = 1; // channels of x in one step: 4 or 3 (one texel), or 1
layout(constant_id = 4) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool TRANSPOSED = false;
layout(constant_id = 6) const bool PRELU = false;
// True for a 1x1 window that never reaches outside the image.
layout(constant_id = 7) const bool ONE_TAP = false;
layout(constant_id = 8) const uint ADDED = ADDED_NOTHING;
layout(constant_id = 9) const uint VECTORS = 4;
layout(constant_id = 10) const bool BY_ROW = false; // true: each row of x has its own weights

// The number of vectors of weights that a subgroup loads in one step of the loop.
const uint STEP_VECTORS = DEPTH * VECTORS;

READS(0, x)
READS(1, w)
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(3, added)
WRITES(4, y)

#include "lib/source.glsl"
#include "lib/outside.glsl"
#include "lib/added.glsl"
#include "lib/block_store.glsl"

// Adds products to all sums. One factor is the vector of weights that invocation `lane` loaded (one
// of eight vectors, starting at `first`); the other factor is the matching channel of `from`.
#define MULTIPLY(lane)                                                                            \
    if (first + lane < STEP_VECTORS) {                                                            \
        vec4 weight = subgroupShuffle(mine, lane);                                                \
        uint c = (first + lane) / VECTORS, v = (first + lane) % VECTORS;                          \
        [[unroll]] for (uint t = 0; t < PIXELS; t++)                                              \
            sum[t * VECTORS + v] = fma(vec4(from[t][c]), weight, sum[t * VECTORS + v]);           \
    }

void main()
{
    uint lane = gl_SubgroupInvocationID;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    // Number of tiles of output channels; a tile has VECTORS blocks of four channels.
    uint tiles = p.group_blocks;
    uint tile = group % tiles, strip = group / tiles;
    uint out_w = p.out_w, out_h = p.out_h, pixels = p.strips;
    Picture picture = picture_of_window();
    uint group_in = p.group_in;
    uint kernel_h = ONE_TAP ? 1 : p.kernel_h, kernel_w = ONE_TAP ? 1 : p.kernel_w;

    // If the strip extends beyond the last pixel of y, the surplus positions compute the last pixel
    // again and are not stored.
    vec4 sum[PIXELS * VECTORS], from[PIXELS];
    uint place[PIXELS], image[PIXELS], row[PIXELS], column[PIXELS];
    [[unroll]] for (uint t = 0; t < PIXELS; t++) {
        place[t] = (strip * PIXELS + t) * 8 + lane;
        uint pixel = min(place[t], pixels - 1);
        column[t] = pixel % out_w;
        row[t] = pixel / out_w % out_h;
        image[t] = pixel / out_w / out_h;
    }
    [[unroll]] for (uint v = 0; v < VECTORS; v++) {
        vec4 start = bias[tile * VECTORS + v];
        [[unroll]] for (uint t = 0; t < PIXELS; t++)
            sum[t * VECTORS + v] = start;
    }
    uint weights = (BY_ROW ? row[0] * tiles + tile : tile) * kernel_h * kernel_w * group_in
        * VECTORS + lane;
    // A single loop runs over the rows, columns and channels of the window. Nested loops are
    // slower, because drivers for the CPU copy all sums for each loop.
    uint ky = 0, kx = 0, c = 0, at[PIXELS];
    uint steps = kernel_h * kernel_w * (group_in / DEPTH);
    [[unroll]] for (uint t = 0; t < PIXELS; t++)
        at[t] = source(picture, image[t], row[t], column[t], 0, 0);
    for (uint i = 0; i < steps; i++, weights += STEP_VECTORS) {
        [[unroll]] for (uint t = 0; t < PIXELS; t++) {
            if (!ONE_TAP)
                at[t] = source(picture, image[t], row[t], column[t], ky, kx);
            if (DEPTH == 4)
                from[t] = load4(at[t], c);
            else if (DEPTH == 3)
                from[t] = load3(at[t], c);
            else
                from[t].x = load(at[t], c);
        }
        [[unroll]] for (uint first = 0; first < STEP_VECTORS; first += 8) {
            vec4 mine = w4(weights + first);
            MULTIPLY(0) MULTIPLY(1) MULTIPLY(2) MULTIPLY(3)
            MULTIPLY(4) MULTIPLY(5) MULTIPLY(6) MULTIPLY(7)
        }
        c += DEPTH;
        kx += c == group_in ? 1 : 0;
        c = c == group_in ? 0 : c;
        ky += kx == kernel_w ? 1 : 0;
        kx = kx == kernel_w ? 0 : kx;
    }

    uint blocks = p.blocks, out_c = p.out_c, added_c = p.added;
    float high = p.high, bottom = p.low;
    [[unroll]] for (uint v = 0; v < VECTORS; v++) {
        uint block = tile * VECTORS + v;
        vec4 low = PRELU ? bias[tiles * VECTORS + block] : vec4(bottom);
        [[unroll]] for (uint t = 0; t < PIXELS; t++) {
            if (place[t] >= pixels || block >= blocks)
                continue;
            vec4 result = sum[t * VECTORS + v];
            if (ADDED != ADDED_NOTHING)
                result += added_to(place[t], block * 4, added_c);
            result = activate4(ACTIVATION, result, low, high);
            store_vector(place[t] * out_c, block, out_c, result);
        }
    }
}
