// SPDX-License-Identifier: Apache-2.0
// Converts weights of 2, 4 or 8 bits in blocks to floats, for a product with so many rows that the
// conversion takes little of its time. An invocation converts one word. The result has the layout
// of weights of conv.comp for one tap: [input][output channels, up to a multiple of four]. If TILE
// is not 0, it has that of conv_tile.comp: [tile of TILE output channels][input][channel of it].
#version 450
#extension GL_GOOGLE_include_directive : require
#extension GL_EXT_control_flow_attributes : require
#include "constants.h"
#include "lib/storage.glsl"
#include "lib/invocation.glsl"

layout(constant_id = 3) const uint TILE = 0;

WRITES(2, y)
#include "lib/blocks.glsl"

void main()
{
    uint id = invocation(), column = id % p.columns, at = id / p.columns;
    if (at >= p.column_words)
        return;
    Word word = load_word(at, column);
    uint row = TILE == 0 ? (p.columns + 3) / 4 * 4 : TILE;
    uint to = TILE == 0 ? column : column / max(TILE, 1) * p.depth * TILE + column % max(TILE, 1);
    [[unroll]] for (uint i = 0; i < WORD_NUMBERS; i += 4) {
        vec4 weights = four_weights(word, i);
        [[unroll]] for (uint j = 0; j < 4; j++) {
            uint k = at * WORD_NUMBERS + i + j;
            if (k < p.depth)
                put_y(to + k * row, weights[j]);
        }
    }
}
