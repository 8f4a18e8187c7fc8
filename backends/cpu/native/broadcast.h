// SPDX-License-Identifier: Apache-2.0
// The loops of an element-wise function whose operands are broadcast to its result by NumPy's rule.
// Neighbouring axes along which all operands move in the same way are merged.
#ifndef INF_BACKENDS_CPU_NATIVE_BROADCAST_H
#define INF_BACKENDS_CPU_NATIVE_BROADCAST_H

#include "backends/cpu/core/kernel.h"

#define INF_NATIVE_BROADCAST_OPERANDS 3

struct inf_native_broadcast {
    uint32_t operands;
    size_t row; // number of elements along the innermost axis of y
    // By operand: 0 if the operand has one element along the innermost axis, otherwise 1.
    size_t row_step[INF_NATIVE_BROADCAST_OPERANDS];
    int32_t rank;                // number of outer axes
    size_t rows;                 // product of the outer axes
    size_t dims[INF_LIMIT_RANK]; // outer axes, the innermost first
    // By operand and axis: elements to the next index; 0 if the operand is broadcast along the
    // axis.
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

// Moves the position to the next row. After the last row comes the first.
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
    size_t across;        // number of tiles in a row
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
