// SPDX-License-Identifier: Apache-2.0
// Convolution, transposed convolution, and product with a constant matrix, with each sum split
// among several invocations. For few results with long sums, such as dense layers of one row and
// the last convolutions of a network.
//
// The problem: a GPU has room for tens of thousands of invocations. With one invocation for four
// results, a row of 1000 results keeps 250 of them busy, and each loads its weights alone.
//
// The idea: as in conv_block.comp, a result is the sum over k of x[pixel][k] * w[k][channel]. A
// work group computes PIXELS pixels of SPLIT_COLUMNS vectors of four channels. Its invocations are
// SPLIT_COLUMNS columns by PARTS parts; a part adds four of every 4 * PARTS values of k. Neighbours
// in a row read neighbouring weights. At the end, the parts of a column are added in shared memory.
//
// Weights have the layout of conv.comp. The convolution must have one group of channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/functions.glsl"
#include "lib/window.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 1;
layout(constant_id = 3) const bool X_VECTOR = false; // the channels of x are a multiple of four
layout(constant_id = 4) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool TRANSPOSED = false;
layout(constant_id = 6) const bool PRELU = false;
// True for a 1x1 window that never reaches outside the image.
layout(constant_id = 7) const bool ONE_TAP = false;
layout(constant_id = 8) const uint ADDED = ADDED_NOTHING;
layout(constant_id = 9) const uint PARTS = 8; // a power of two

const uint GROUP = SPLIT_COLUMNS * PARTS;

READS(0, x)
READS(1, w)
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(3, added)
WRITES(4, y)

#include "lib/source.glsl"
#include "lib/outside.glsl"
#include "lib/added.glsl"
#include "lib/block_store.glsl"

shared vec4 sums[PIXELS * GROUP];

void main()
{
    uint local = gl_LocalInvocationID.x;
    uint part = local / SPLIT_COLUMNS, column = local % SPLIT_COLUMNS;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint blocks = p.blocks, pixels = p.strips, group_in = p.group_in;
    uint tiles = (blocks + SPLIT_COLUMNS - 1) / SPLIT_COLUMNS;
    uint block = group % tiles * SPLIT_COLUMNS + column, first = group / tiles * PIXELS;
    // All invocations of a group return together, so no barrier waits for one that returned.
    if (first >= pixels)
        return;
    uint out_w = p.out_w, out_h = p.out_h;
    Picture picture = picture_of_window();
    uint kernel_w = ONE_TAP ? 1 : p.kernel_w;
    uint total = (ONE_TAP ? 1 : p.kernel_h * kernel_w) * group_in;
    uint from = min(block, blocks - 1); // columns behind the last one compute it again

    // Pixels beyond the last one compute the last one again.
    uint image[PIXELS], y_at[PIXELS], x_at[PIXELS];
    vec4 sum[PIXELS];
    [[unroll]] for (uint t = 0; t < PIXELS; t++) {
        uint pixel = min(first + t, pixels - 1);
        x_at[t] = pixel % out_w;
        y_at[t] = pixel / out_w % out_h;
        image[t] = pixel / out_w / out_h;
        sum[t] = vec4(0.0);
    }

    for (uint k = part * 4; k < total; k += PARTS * 4) {
        // If x is read in vectors, the four values have the same tap, and total is a multiple of 4.
        uint tap = k / group_in, c = k % group_in;
        vec4 weights[4];
        [[unroll]] for (uint i = 0; i < 4; i++)
            weights[i] = X_VECTOR || k + i < total ? w4((k + i) * blocks + from) : vec4(0.0);
        [[unroll]] for (uint t = 0; t < PIXELS; t++) {
            vec4 four = vec4(0.0);
            if (X_VECTOR) {
                four = load4(source(picture, image[t], y_at[t], x_at[t], tap / kernel_w,
                                    tap % kernel_w), c);
            } else {
                [[unroll]] for (uint i = 0; i < 4; i++) {
                    uint tap_i = (k + i) / group_in, c_i = (k + i) % group_in;
                    if (k + i < total)
                        four[i] = load(source(picture, image[t], y_at[t], x_at[t],
                                              tap_i / kernel_w, tap_i % kernel_w), c_i);
                }
            }
            [[unroll]] for (uint i = 0; i < 4; i++)
                sum[t] = fma(vec4(four[i]), weights[i], sum[t]);
        }
    }

    [[unroll]] for (uint t = 0; t < PIXELS; t++)
        sums[t * GROUP + local] = sum[t];
    for (uint parts = PARTS / 2; parts > 0; parts /= 2) {
        barrier();
        if (part < parts)
            [[unroll]] for (uint t = 0; t < PIXELS; t++)
                sums[t * GROUP + local] += sums[t * GROUP + local + parts * SPLIT_COLUMNS];
    }
    if (part != 0 || block >= blocks)
        return;

    uint out_c = p.out_c;
    vec4 low = PRELU ? bias[blocks + block] : vec4(p.low);
    [[unroll]] for (uint t = 0; t < PIXELS; t++) {
        uint pixel = first + t;
        if (pixel >= pixels)
            continue;
        vec4 result = sums[t * GROUP + local] + bias[block];
        if (ADDED != ADDED_NOTHING)
            result += added_to(pixel, block * 4, p.added);
        result = activate4(ACTIVATION, result, low, p.high);
        store_vector(pixel * out_c, block, out_c, result);
    }
}
