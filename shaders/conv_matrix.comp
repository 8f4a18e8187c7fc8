// SPDX-License-Identifier: Apache-2.0
// Convolution, transposed convolution, and product with a constant matrix, with the instructions
// of GPUs that multiply whole matrices of 16-bit floats (tensor cores). A module built with PAIR
// multiplies two tensors, as in conv_block.comp.
//
// The idea is that of conv_block.comp: a work group copies slices of x and of the weights to shared
// memory, and computes a block of results from them. Here four subgroups share the block. Each of
// them computes a quarter of it: PIXELS by VECTORS matrices of M pixels by N channels.
//
//              w   [DEPTH][channels]
//     x   +-------------+-------------+
//     +-+ | subgroup 0  | subgroup 1  |     MATRIX_SIDES by MATRIX_SIDES subgroups
//     | | +-------------+-------------+
//     | | | subgroup 2  | subgroup 3  |
//     +-+ +-------------+-------------+
//
// The driver decides which elements of a matrix each invocation of a subgroup holds. So subgroups
// write their sums to shared memory, and then each invocation applies bias and activation to some
// vectors of them.
//
// Products are added in 32 bits. Values of the operands that are infinite in 16 bits give sums that
// are not finite; the shader reports such sums as an overflow (STATUS_OVERFLOWED).
//
// The functions that copy slices and store results are in lib/block_window.glsl for convolutions,
// and in lib/block_pair.glsl for products of two tensors.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#extension GL_KHR_shader_subgroup_basic : require
#ifdef MATRIX_NV
#extension GL_KHR_memory_scope_semantics : require
#extension GL_NV_cooperative_matrix : require
#endif
#define F16
#define NUMBER float16_t
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/functions.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const uint ACTIVATION = FN_NONE;
layout(constant_id = 2) const uint PIXELS = 1;  // rows of matrices of a subgroup
layout(constant_id = 9) const uint VECTORS = 1; // columns of matrices of a subgroup
layout(constant_id = 10) const uint SUBGROUP = 32; // invocations of a subgroup
// The instruction multiplies a matrix of M pixels by K values with one of K values by N channels.
layout(constant_id = 11) const uint M = 16;
layout(constant_id = 12) const uint N = 16;
layout(constant_id = 13) const uint K = 16;

// A work group has MATRIX_SIDES * MATRIX_SIDES subgroups.
const uint GROUP = MATRIX_SIDES * MATRIX_SIDES * SUBGROUP;
const uint DEPTH = MATRIX_DEPTH;
#define SPLITS 1
const uint ROWS = MATRIX_SIDES * M * PIXELS;      // pixels of a block
const uint CHANNELS = MATRIX_SIDES * N * VECTORS; // channels of a block
const uint COLUMNS = CHANNELS / 4;                // vectors of a block
const uint STRIDE = ROWS + MATRIX_GAP;              // numbers of `from` for a value of k
const uint CHANNELS_STRIDE = CHANNELS + MATRIX_GAP; // numbers of `weights` for a value of k
const uint RESULTS_STRIDE = CHANNELS + MATRIX_GAP;  // numbers of `results` for a pixel

shared float16_t from[DEPTH * STRIDE];
shared float16_t weights[DEPTH * CHANNELS_STRIDE];
shared float results[ROWS * RESULTS_STRIDE];

// Stores the weight of channel `channel` of the block for value `depth` of the slice.
void put_weight(uint depth, uint channel, float value)
{
    weights[depth * CHANNELS_STRIDE + channel] = float16_t(value);
}

// Stores vector `column` of the weights of the block for value `depth` of the slice.
void put_weights(uint depth, uint column, vec4 values)
{
    [[unroll]] for (uint i = 0; i < 4; i++)
        put_weight(depth, column * 4 + i, values[i]);
}

#ifdef PAIR
#include "lib/block_pair.glsl"
#else
#include "lib/block_window.glsl"
#endif
#include "lib/matrix.glsl"

void main()
{
    uint local = gl_LocalInvocationID.x;
    uint first, tile;
    // All invocations of a group return together, so no barrier waits for one that returned.
    if (!choose_block(local, first, tile))
        return;
    uint total = count_terms();

    // The first pixel and channel, within the block, of this subgroup.
    uint row = gl_SubgroupID / MATRIX_SIDES * M * PIXELS;
    uint channel = gl_SubgroupID % MATRIX_SIDES * N * VECTORS;
    SUMS(PIXELS * VECTORS);
    [[unroll]] for (uint i = 0; i < PIXELS * VECTORS; i++) {
        CLEAR_SUM(i);
    }

    for (uint k = 0; k < total; k += DEPTH) {
        copy_pixels(local, k, total);
        copy_weights(local, tile, k, total);
        barrier();
        [[unroll]] for (uint d = 0; d < DEPTH; d += K) {
            CHANNEL_FACTOR each[VECTORS];
            [[unroll]] for (uint v = 0; v < VECTORS; v++)
                LOAD_WEIGHTS(each[v], d * CHANNELS_STRIDE + channel + v * N);
            [[unroll]] for (uint t = 0; t < PIXELS; t++) {
                PIXEL_FACTOR values;
                LOAD_PIXELS(values, d * STRIDE + row + t * M);
                [[unroll]] for (uint v = 0; v < VECTORS; v++) {
                    ADD_PRODUCT(t * VECTORS + v, values, each[v]);
                }
            }
        }
        barrier();
    }

    [[unroll]] for (uint i = 0; i < PIXELS * VECTORS; i++) {
        STORE_SUM(i, (row + i / VECTORS * M) * RESULTS_STRIDE + channel + i % VECTORS * N);
    }
    barrier();
    for (uint place = local; place < ROWS * COLUMNS; place += GROUP) {
        uint at = place / COLUMNS * RESULTS_STRIDE + place % COLUMNS * 4;
        uint block = tile + place % COLUMNS;
        vec4 result = vec4(results[at], results[at + 1], results[at + 2], results[at + 3]);
        store_sums(first + place / COLUMNS, block, result + load_bias(block));
    }
}
