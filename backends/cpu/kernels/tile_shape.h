// SPDX-License-Identifier: Apache-2.0
// How kernels that use tile registers (amx/tile.h) cut a product into steps.
#ifndef INF_BACKENDS_CPU_KERNELS_TILE_SHAPE_H
#define INF_BACKENDS_CPU_KERNELS_TILE_SHAPE_H

#include <stddef.h>

#define INF_TILE_ROWS      16 // pixels of a tile register
#define INF_TILE_CALL_ROWS 32 // most pixels of a kernel call
#define INF_TILE_DEPTH     16 // most 32-bit words of an operand that one step multiplies
// Calls of up to so many pixels use vector registers.
#define INF_TILE_FEW_PIXELS 3
// With steps of fewer words, tile registers are not faster than vector registers.
#define INF_TILE_DEPTH_MIN 4

// Returns the number of words that one step multiplies, of operands of `words` words. All steps
// are equal, because the shapes of tile registers are constant during a product: the result is the
// largest divisor of `words` up to INF_TILE_DEPTH. Returns 0 if it is below INF_TILE_DEPTH_MIN.
static inline size_t inf_tile_depth(size_t words)
{
    for (size_t depth = INF_TILE_DEPTH; depth >= INF_TILE_DEPTH_MIN; depth--)
        if (words % depth == 0)
            return depth;
    return 0;
}

#endif
