// SPDX-License-Identifier: Apache-2.0
// Convolution, transposed convolution, and product with a constant matrix, with blocks of x and of
// the weights in shared memory. For GPUs, whose work groups share a fast memory.
//
// The problem: an invocation that computes a few results alone loads almost as many numbers as it
// multiplies, and the loads of neighbouring invocations are the same.
//
// The idea: see the convolution as one product of matrices, the sum over k of
// x[pixel][k] * w[k][channel], where k counts all taps and input channels. A work group of
// SIDE x SIDE invocations computes a block of SIDE * PIXELS pixels by SIDE * VECTORS vectors of
// four channels. For each slice of DEPTH values of k, all invocations together copy the block's
// rows of x and of w to shared memory once, and then each invocation multiplies the part that it
// needs:
//
//              w   [DEPTH][SIDE * VECTORS]            invocation (row, column) computes the pixels
//     x   +-----------------------------+             row, row + SIDE, ... and the vectors
//     +-+ |                             |             column, column + SIDE, ..., so that
//     | | |  SIDE * PIXELS pixels by    |             neighbours read neighbouring words of shared
//     +-+ |  SIDE * VECTORS vectors     |             memory and of y
//         +-----------------------------+
//
// A module built with F16 keeps the blocks in 16-bit floats and multiplies in 16 bits, which many
// GPUs do twice as fast. The products of a slice are added in 16 bits, and slices in 32 bits, so
// that the error does not grow with the number of slices. A sum that leaves the range of 16 bits
// becomes infinite, and is reported.
//
// Weights have the layout of conv.comp. The convolution must have one group of channels.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#ifdef F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#define NUMBER float16_t
#define VECTOR f16vec4
#else
#define NUMBER float
#define VECTOR vec4
#endif
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/functions.glsl"
#include "lib/window.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 4;
layout(constant_id = 3) const bool X_VECTOR = false; // the channels of x are a multiple of four
layout(constant_id = 4) const bool Y_VECTOR = false;
layout(constant_id = 5) const bool TRANSPOSED = false;
layout(constant_id = 6) const bool PRELU = false;
// True for a 1x1 window that never reaches outside the image.
layout(constant_id = 7) const bool ONE_TAP = false;
layout(constant_id = 8) const uint ADDED = ADDED_NOTHING;
layout(constant_id = 9) const uint VECTORS = 1;

// A work group has SIDE * SIDE invocations.
const uint SIDE = BLOCK_SIDE;
const uint GROUP = SIDE * SIDE;
// The number of values of k that are in shared memory at a time.
const uint DEPTH = BLOCK_DEPTH;
const uint ROWS = SIDE * PIXELS;     // pixels of a block
const uint COLUMNS = SIDE * VECTORS; // vectors of a block
// The distance of two values of k in `from`. One more than ROWS, so that invocations that write
// different values of k write to different banks of the memory.
const uint STRIDE = ROWS + 1;

READS(0, x)
READS(1, w)
layout(binding = 2) readonly buffer B { vec4 bias[]; }; // the bias, followed by the slopes of prelu
READS(3, added)
WRITES(4, y)

#include "lib/source.glsl"
#include "lib/outside.glsl"
#include "lib/added.glsl"

shared NUMBER from[DEPTH * STRIDE];
shared VECTOR weights[DEPTH * COLUMNS];

#include "lib/block.glsl"

void main()
{
    uint local = gl_LocalInvocationID.x;
    uint row = local / SIDE, column = local % SIDE;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint blocks = p.blocks, pixels = p.strips;
    uint tiles = (blocks + COLUMNS - 1) / COLUMNS;
    uint tile = group % tiles * COLUMNS, first = group / tiles * ROWS;
    // All invocations of a group return together, so no barrier waits for one that returned.
    if (first >= pixels)
        return;
    Picture picture = picture_of_window();
    uint total = (ONE_TAP ? 1 : p.kernel_h * p.kernel_w) * p.group_in;
    choose_pixels(local, first);

    vec4 sum[PIXELS * VECTORS];
    [[unroll]] for (uint v = 0; v < VECTORS; v++) {
        vec4 start = bias[min(tile + column + v * SIDE, blocks - 1)];
        [[unroll]] for (uint t = 0; t < PIXELS; t++)
            sum[t * VECTORS + v] = start;
    }

    for (uint k = 0; k < total; k += DEPTH) {
        copy_pixels(picture, local, k, total);
        for (uint place = local; place < DEPTH * COLUMNS; place += GROUP) {
            uint depth = k + place / COLUMNS, vector = tile + place % COLUMNS;
            weights[place] = VECTOR(
                depth < total && vector < blocks ? w4(depth * blocks + vector) : vec4(0.0));
        }
        barrier();
#ifdef F16
        VECTOR terms[PIXELS * VECTORS];
        [[unroll]] for (uint i = 0; i < PIXELS * VECTORS; i++)
            terms[i] = VECTOR(0.0);
#else
#define terms sum
#endif
        for (uint d = 0; d < DEPTH; d++) {
            VECTOR each[VECTORS];
            [[unroll]] for (uint v = 0; v < VECTORS; v++)
                each[v] = weights[d * COLUMNS + v * SIDE + column];
            [[unroll]] for (uint t = 0; t < PIXELS; t++) {
                VECTOR value = VECTOR(from[d * STRIDE + t * SIDE + row]);
                [[unroll]] for (uint v = 0; v < VECTORS; v++)
                    terms[t * VECTORS + v] = fma(value, each[v], terms[t * VECTORS + v]);
            }
        }
#ifdef F16
        [[unroll]] for (uint i = 0; i < PIXELS * VECTORS; i++)
            sum[i] += vec4(terms[i]);
#endif
        barrier();
    }

    [[unroll]] for (uint v = 0; v < VECTORS; v++)
        [[unroll]] for (uint t = 0; t < PIXELS; t++)
            store_sums(first + t * SIDE + row, tile + column + v * SIDE, sum[t * VECTORS + v]);
}
