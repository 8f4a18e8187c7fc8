// SPDX-License-Identifier: Apache-2.0
// Describes broadcasting as nested loops. Neighbouring axes become one loop if each operand either
// advances along all of them or is repeated along all of them.
#include "backends/cpu/native/broadcast.h"

#include "proto/core/span.h"

// Returns the size of an operand along axis `axis` of the result y. The shapes are aligned at their
// last axes; an axis that the operand lacks has size 1.
static size_t operand_dim(const struct inf_shape *operand, const struct inf_shape *y, int32_t axis)
{
    int32_t own = axis - (y->rank - operand->rank);
    return own < 0 ? 1 : (size_t)operand->dims[own];
}

// Returns true if the next outer axis, along which the operands have the strides `next`, can be
// merged with the outermost axis found so far.
static bool can_merge(const struct inf_native_broadcast *broadcast,
                      const size_t next[INF_NATIVE_BROADCAST_OPERANDS])
{
    int32_t last = broadcast->rank - 1;
    for (uint32_t i = 0; i < broadcast->operands; i++)
        if (last < 0 || (next[i] == 0) != (broadcast->step[i][last] == 0))
            return false;
    return true;
}

// Fills dims and steps with the merged axes of y, the innermost at index 0.
static void find_axes(struct inf_native_broadcast *broadcast, const struct inf_graph *graph,
                      const struct inf_node *node)
{
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    size_t step[INF_NATIVE_BROADCAST_OPERANDS] = {1, 1, 1};
    for (int32_t axis = y->rank - 1; axis >= 0; axis--) {
        size_t dim = (size_t)y->dims[axis];
        size_t next[INF_NATIVE_BROADCAST_OPERANDS];
        if (dim == 1)
            continue;
        for (uint32_t i = 0; i < broadcast->operands; i++) {
            size_t own = operand_dim(inf_cpu_input_shape(graph, node, i), y, axis);
            next[i] = own == 1 ? 0 : step[i];
            step[i] *= own;
        }
        if (can_merge(broadcast, next)) {
            broadcast->dims[broadcast->rank - 1] *= dim;
            continue;
        }
        broadcast->dims[broadcast->rank] = dim;
        for (uint32_t i = 0; i < broadcast->operands; i++)
            broadcast->step[i][broadcast->rank] = next[i];
        broadcast->rank++;
    }
}

void inf_native_broadcast_init(struct inf_native_broadcast *broadcast,
                               const struct inf_graph *graph, const struct inf_node *node,
                               uint32_t operands)
{
    *broadcast = (struct inf_native_broadcast){.operands = operands, .row = 1};
    find_axes(broadcast, graph, node);
    if (broadcast->rank > 0) {
        broadcast->row = broadcast->dims[0];
        broadcast->rank--;
        for (uint32_t i = 0; i < operands; i++) {
            broadcast->row_step[i] = broadcast->step[i][0];
            for (int32_t axis = 0; axis < broadcast->rank; axis++)
                broadcast->step[i][axis] = broadcast->step[i][axis + 1];
        }
        for (int32_t axis = 0; axis < broadcast->rank; axis++)
            broadcast->dims[axis] = broadcast->dims[axis + 1];
    }
    broadcast->rows = inf_shape_elements(inf_cpu_output_shape(graph, node)) / broadcast->row;
}

void inf_native_broadcast_start(struct inf_native_broadcast_walk *walk,
                                const struct inf_native_broadcast *broadcast, size_t row)
{
    *walk = (struct inf_native_broadcast_walk){0};
    for (int32_t axis = 0; axis < broadcast->rank; axis++) {
        walk->index[axis] = row % broadcast->dims[axis];
        row /= broadcast->dims[axis];
        for (uint32_t i = 0; i < broadcast->operands; i++)
            walk->at[i] += walk->index[axis] * broadcast->step[i][axis];
    }
}

struct inf_native_broadcast_tiles
inf_native_broadcast_cut(const struct inf_native_broadcast *broadcast, size_t elements)
{
    struct inf_native_broadcast_tiles tiles;
    tiles.columns = INF_MIN(broadcast->row, elements);
    tiles.rows = INF_MIN(broadcast->rows, elements / tiles.columns);
    tiles.across = (broadcast->row + tiles.columns - 1) / tiles.columns;
    tiles.count = (broadcast->rows + tiles.rows - 1) / tiles.rows * tiles.across;
    return tiles;
}

struct inf_native_broadcast_tile
inf_native_broadcast_tile(const struct inf_native_broadcast *broadcast,
                          const struct inf_native_broadcast_tiles *tiles, size_t tile)
{
    size_t column = tile % tiles->across * tiles->columns;
    size_t row = tile / tiles->across * tiles->rows;
    return (struct inf_native_broadcast_tile){
        .row = row,
        .end = INF_MIN(row + tiles->rows, broadcast->rows),
        .column = column,
        .columns = INF_MIN(tiles->columns, broadcast->row - column),
    };
}
