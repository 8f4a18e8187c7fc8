// SPDX-License-Identifier: Apache-2.0
// Convolution, transposed convolution, and product with a constant matrix, with blocks of x and of
// the weights in shared memory. A module built with PAIR multiplies two tensors: a takes the place
// of x, and b takes the place of the weights. For GPUs, whose work groups share a fast memory.
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
// If there are few results with long sums, several work groups compute a block, each with a part of
// the values of k (SPLITS).
//
// The functions that copy slices and store results are in lib/block_window.glsl for convolutions,
// and in lib/block_pair.glsl for products of two tensors.
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

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 4;
layout(constant_id = 9) const uint VECTORS = 1;
#ifdef PAIR
#define SPLITS 1
#else
// The number of work groups that share the sums of a block. Each adds a part of the values of k. If
// there are several, y gets their sums without bias; sum_parts.comp does the rest.
layout(constant_id = 10) const uint SPLITS = 1;
#endif

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

shared NUMBER from[DEPTH * STRIDE];
shared VECTOR weights[DEPTH * COLUMNS];

// Stores vector `column` of the weights of the block for value `depth` of the slice.
void put_weights(uint depth, uint column, vec4 values)
{
    weights[depth * COLUMNS + column] = VECTOR(values);
}

// Stores the weight of channel `channel` of the block for value `depth` of the slice.
void put_weight(uint depth, uint channel, float value)
{
    weights[depth * COLUMNS + channel / 4][channel % 4] = NUMBER(value);
}

#ifdef PAIR
#include "lib/block_pair.glsl"
#else
#include "lib/block_window.glsl"
#endif

void main()
{
    uint local = gl_LocalInvocationID.x;
    uint row = local / SIDE, column = local % SIDE;
    uint first, tile;
    // All invocations of a group return together, so no barrier waits for one that returned.
    if (!choose_block(local, first, tile))
        return;
    uint total = count_terms(), slices = (total + DEPTH - 1) / DEPTH;
    uint terms = (slices + SPLITS - 1) / SPLITS * DEPTH, begin = choose_split() * terms;

    vec4 sum[PIXELS * VECTORS];
    [[unroll]] for (uint v = 0; v < VECTORS; v++) {
        vec4 start = load_bias(tile + column + v * SIDE);
        [[unroll]] for (uint t = 0; t < PIXELS; t++)
            sum[t * VECTORS + v] = start;
    }

    for (uint k = begin; k < min(total, begin + terms); k += DEPTH) {
        copy_pixels(local, k, total);
        copy_weights(local, tile, k, total);
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
