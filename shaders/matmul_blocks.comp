// SPDX-License-Identifier: Apache-2.0
// Products with weights of 2, 4 or 8 bits in blocks, which stay packed in device memory. A weight
// becomes a float in registers: (number - zero point) * scale.
//
// A product with few rows reads each weight once, and packed weights have a quarter to a sixteenth
// of the bytes of floats. A work group computes ROWS rows of BLOCKS_COLUMNS
// columns. Its invocations are BLOCKS_COLUMNS columns by BLOCKS_PARTS parts; a part adds the
// numbers of every BLOCKS_PARTSth word of its column. At the end, the parts are added in shared
// memory. Neighbours in a row read neighbouring words (lib/blocks.glsl).
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 3) const uint ROWS = 1;
layout(constant_id = 4) const bool X_VECTOR = false; // the depth is a multiple of four
layout(constant_id = 5) const bool BIAS = false;

READS(2, x)
WRITES(3, y)
#include "lib/blocks.glsl"

const uint GROUP = BLOCKS_COLUMNS * BLOCKS_PARTS;

shared float sums[ROWS * GROUP];

// Returns elements k to k + 3 of row `row` of x; 0 behind the end of the row.
vec4 load_four(uint row, uint k)
{
    uint at = row * p.depth + k;
    if (X_VECTOR)
        return k < p.depth ? x4(at / 4) : vec4(0.0);
    vec4 four = vec4(0.0);
    [[unroll]] for (uint i = 0; i < 4; i++)
        if (k + i < p.depth)
            four[i] = x(at + i);
    return four;
}

void main()
{
    uint local = gl_LocalInvocationID.x;
    uint part = local / BLOCKS_COLUMNS;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    uint tiles = (p.columns + BLOCKS_COLUMNS - 1) / BLOCKS_COLUMNS;
    uint column = group % tiles * BLOCKS_COLUMNS + local % BLOCKS_COLUMNS;
    uint first = group / tiles * ROWS;
    // All invocations of a group return together, so no barrier waits for one that returned.
    if (first >= p.rows)
        return;
    // Columns behind the last one, and rows behind the last one, compute it again.
    uint from = min(column, p.columns - 1);
    float sum[ROWS];
    [[unroll]] for (uint r = 0; r < ROWS; r++)
        sum[r] = 0.0;

    for (uint at = part; at < p.column_words; at += BLOCKS_PARTS) {
        Word word = load_word(at, from);
        [[unroll]] for (uint i = 0; i < WORD_NUMBERS; i += 4) {
            vec4 weights = four_weights(word, i);
            [[unroll]] for (uint r = 0; r < ROWS; r++) {
                vec4 values = load_four(min(first + r, p.rows - 1), at * WORD_NUMBERS + i);
                [[unroll]] for (uint j = 0; j < 4; j++)
                    sum[r] = fma(values[j], weights[j], sum[r]);
            }
        }
    }

    [[unroll]] for (uint r = 0; r < ROWS; r++)
        sums[r * GROUP + local] = sum[r];
    for (uint parts = BLOCKS_PARTS / 2; parts > 0; parts /= 2) {
        barrier();
        if (part < parts)
            [[unroll]] for (uint r = 0; r < ROWS; r++)
                sums[r * GROUP + local] += sums[r * GROUP + local + parts * BLOCKS_COLUMNS];
    }
    if (part != 0 || column >= p.columns)
        return;
    float bias = BIAS ? uintBitsToFloat(numbers[column]) : 0.0;
    for (uint r = 0; r < ROWS && first + r < p.rows; r++)
        put_y((first + r) * p.columns + column, sums[r * GROUP + local] + bias);
}
