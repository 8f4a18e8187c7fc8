// SPDX-License-Identifier: Apache-2.0
// The loops of an element-wise function whose operands are broadcast to its result by NumPy's rule.
// Neighbouring axes are merged into one loop if each operand either advances along all of them or
// is repeated along all of them.
#ifndef INF_BACKENDS_CPU_NATIVE_BROADCAST_H
#define INF_BACKENDS_CPU_NATIVE_BROADCAST_H

#include "backends/cpu/core/kernel.h"

#define INF_NATIVE_BROADCAST_OPERANDS 3

struct inf_native_broadcast {
    uint32_t operands;
    size_t row; // number of elements along the innermost axis of y
    // Indexed by operand: elements between neighbours along the innermost axis. 0 if the operand
    // has only one element there, which is repeated, otherwise 1.
    size_t row_step[INF_NATIVE_BROADCAST_OPERANDS];
    int32_t rank;                // number of outer axes
    size_t rows;                 // number of rows: the product of the outer axes
    size_t dims[INF_LIMIT_RANK]; // outer axes, the innermost first
    // Indexed by operand and axis: elements between neighbours along the axis; 0 if the operand is
    // repeated along the axis.
    size_t step[INF_NATIVE_BROADCAST_OPERANDS][INF_LIMIT_RANK];
};

// Describes how the first `operands` operands of the node are broadcast to its first output.
void inf_native_broadcast_init(struct inf_native_broadcast *broadcast,
                               const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t operands);

// The position of a row of y: its offset in each operand, in elements, and its index along each
// axis.
struct inf_native_broadcast_walk {
    size_t at[INF_NATIVE_BROADCAST_OPERANDS];
    size_t index[INF_LIMIT_RANK];
};

// Moves the position to row `row`.
void inf_native_broadcast_start(struct inf_native_broadcast_walk *walk,
                                const struct inf_native_broadcast *broadcast, size_t row);

// Moves the position to the next row of y. After the last row it moves to the first one.
static inline void inf_native_broadcast_next(struct inf_native_broadcast_walk *walk,
                                             const struct inf_native_broadcast *broadcast)
{
    for (int32_t axis = 0; axis < broadcast->rank; axis++) {
        bool stays = ++walk->index[axis] < broadcast->dims[axis];
        for (uint32_t i = 0; i < broadcast->operands; i++) {
            size_t step = broadcast->step[i][axis];
            walk->at[i] += stays ? step : step - step * broadcast->dims[axis];
        }
        if (stays)
            return;
        walk->index[axis] = 0;
    }
}

// How y is cut into tiles. Each tile is a number of whole rows, or a part of one row.
struct inf_native_broadcast_tiles {
    size_t rows, columns; // size of a tile
    size_t across;        // number of tiles side by side in a row
    size_t count;
};

// Cuts y into tiles of about `elements` elements.
struct inf_native_broadcast_tiles
inf_native_broadcast_cut(const struct inf_native_broadcast *broadcast, size_t elements);

// One tile: rows `row` to `end` (exclusive), and `columns` columns from `column` on.
struct inf_native_broadcast_tile {
    size_t row, end, column, columns;
};

// Returns tile number `tile`.
struct inf_native_broadcast_tile
inf_native_broadcast_tile(const struct inf_native_broadcast *broadcast,
                          const struct inf_native_broadcast_tiles *tiles, size_t tile);

#endif
