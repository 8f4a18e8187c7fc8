// SPDX-License-Identifier: Apache-2.0
// Attention: y = softmax(q * keys * scale + mask) * values, without storing the scores. For GPUs,
// whose work groups share a fast memory.
//
// The problem: softmax needs the largest score of a row and the sum of all exponentials before the
// first weight of a value is known.
//
// The idea (flash attention): a work group computes ATTENTION_ROWS rows, and goes through the keys
// in tiles. It keeps for each row the largest score so far, the sum of exp(score - largest), and
// the weighted sum of the values. If a tile has a larger score, both sums are multiplied by
// exp(old largest - new largest). Dividing at the end gives the result.
//
// SIDE invocations compute a row: first the scores of a tile, each invocation those of every
// SIDE-th key, and then every SIDE-th column of the result.
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/functions.glsl"

layout(local_size_x_id = 0) in;
layout(constant_id = 1) const bool KEYS_BY_ROW = true; // keys are [key][depth], else [depth][key]
layout(constant_id = 2) const bool MASKED = false;
layout(constant_id = 3) const uint COLUMNS = 8; // columns of an invocation

const uint ROWS = ATTENTION_ROWS;
const uint SIDE = ATTENTION_SIDE;
const uint TILE = ATTENTION_TILE;
const uint KEYS = TILE / SIDE; // keys of an invocation in a tile

READS(0, q)
READS(1, keys)
READS(2, values)
READS(3, mask)
WRITES(4, y)
layout(push_constant) uniform P {
    uint groups; // number of work groups
    uint rows, count, depth, width; // rows of q, keys, columns of q and keys, columns of values
    uint row_groups; // work groups of one product
    float scale;
    // How the mask is broadcast to the scores: the stride of the last axis, and the sizes and
    // strides of the others, innermost first.
    uint mask_column, mask_axes;
    uint mask_dims[ATTENTION_AXES], mask_strides[ATTENTION_AXES];
} p;

shared float q_rows[ROWS * ATTENTION_DEPTH];
shared float scores[ROWS * TILE];

// Returns the index of the mask for the first key of a row of the scores.
uint mask_start(uint rest)
{
    uint at = 0;
    for (uint i = 0; i < p.mask_axes; i++) {
        at += rest % p.mask_dims[i] * p.mask_strides[i];
        rest /= p.mask_dims[i];
    }
    return at;
}

void main()
{
    uint local = gl_LocalInvocationID.x;
    uint group = gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x;
    // All invocations of a group return together, so no barrier waits for one that returned.
    if (group >= p.groups)
        return;
    uint depth = p.depth, width = p.width, count = p.count;
    uint product = group / p.row_groups, first = group % p.row_groups * ROWS;
    uint lane = local % SIDE, own = local / SIDE;
    // Rows after the last one compute the last one again, and store nothing.
    uint row = min(first + own, p.rows - 1);
    uint keys_at = product * count * depth, values_at = product * count * width;
    uint mask_at = MASKED ? mask_start(product * p.rows + row) : 0;
    for (uint d = lane; d < depth; d += SIDE)
        q_rows[own * ATTENTION_DEPTH + d] = q((product * p.rows + row) * depth + d) * p.scale;
    barrier();

    float largest = -INFINITY, total = 0.0, result[COLUMNS];
    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
        result[j] = 0.0;
    for (uint start = 0; start < count; start += TILE) {
        [[unroll]] for (uint j = 0; j < KEYS; j++) {
            uint key = start + j * SIDE + lane;
            float score = -INFINITY;
            if (key < count) {
                score = 0.0;
                uint at = keys_at + (KEYS_BY_ROW ? key * depth : key);
                uint step = KEYS_BY_ROW ? 1 : count;
                for (uint d = 0; d < depth; d++, at += step)
                    score = fma(q_rows[own * ATTENTION_DEPTH + d], keys(at), score);
                if (MASKED)
                    score += mask(mask_at + key * p.mask_column);
            }
            scores[own * TILE + j * SIDE + lane] = score;
        }
        barrier();
        float before = largest;
        for (uint k = 0; k < TILE; k++)
            largest = max(largest, scores[own * TILE + k]);
        // If all scores so far are -infinity, subtract 0, so that their exponentials are 0.
        float base = largest == -INFINITY ? 0.0 : largest;
        float factor = exp_of(before - base);
        barrier();
        [[unroll]] for (uint j = 0; j < KEYS; j++) {
            uint at = own * TILE + j * SIDE + lane;
            scores[at] = exp_of(scores[at] - base);
        }
        barrier();
        total *= factor;
        [[unroll]] for (uint j = 0; j < COLUMNS; j++)
            result[j] *= factor;
        uint end = min(TILE, count - start);
        for (uint k = 0; k < end; k++) {
            float weight = scores[own * TILE + k];
            uint at = values_at + (start + k) * width + lane;
            total += weight;
            [[unroll]] for (uint j = 0; j < COLUMNS; j++)
                if (lane + j * SIDE < width)
                    result[j] = fma(weight, values(at + j * SIDE), result[j]);
        }
        barrier();
    }
    if (first + own >= p.rows)
        return;
    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
        if (lane + j * SIDE < width)
            put_y((product * p.rows + row) * width + lane + j * SIDE, result[j] / total);
}
