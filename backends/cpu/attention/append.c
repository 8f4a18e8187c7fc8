// SPDX-License-Identifier: Apache-2.0
// Operator append: writes rows over a part of a tensor. In a decoding session x is the memory of
// the keys or values so far, and y is the same memory: then only the new rows are written.
#include <inttypes.h>
#include <string.h>

#include "backends/cpu/native/work.h"

// The smallest number of bytes that one task moves.
#define TILE_BYTES ((size_t)64 << 10)

// Sizes of x [outer][room] and of the new rows [outer][count]. The axes before that of the
// positions are merged to `outer`, and those behind it to a row of `row_bytes`.
struct append {
    size_t outer, items;           // items: number of positions; it divides `outer`
    size_t row_bytes, room, count; // bytes of a row; number of rows of x, and of new rows
    bool wide;                     // true: positions are i64; false: i32
    bool ring;                     // row 0 follows the last row
};

struct append_task {
    const struct append *append;
    const uint32_t *positions;
    const char *x, *rows;
    char *y;
};

static enum inf_code append_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    int32_t axis = node->attrs.append.axis;
    int64_t room = x->dims[axis < 0 ? axis + x->rank : axis];
    if (room > (int64_t)UINT32_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: append: %" PRId64 " rows are too many", room);
    return INF_OK;
}

// Reads each position once, because a client may be able to write to them during the run.
static enum inf_code check_positions(const struct inf_cpu_step *step, struct inf_error *err)
{
    const struct append *append = step->state;
    uint32_t *checked = (uint32_t *)(void *)step->scratch;
    int64_t room = (int64_t)append->room;
    for (size_t i = 0; i < append->items; i++) {
        int64_t position = inf_cpu_read_index(step, 1, append->wide, i);
        if (append->ring)
            position = (position % room + room) % room;
        else if (position < 0 || (uint64_t)position > append->room - append->count)
            return inf_fail(err, INF_INVALID, "%zu rows at %" PRId64 " do not fit the %zu of x",
                            append->count, position, append->room);
        checked[i] = (uint32_t)position;
    }
    return INF_OK;
}

static void append_part(const void *context, size_t first, size_t count)
{
    const struct append_task *task = context;
    const struct append *append = task->append;
    size_t part_bytes = append->room * append->row_bytes;
    size_t rows_bytes = append->count * append->row_bytes;
    for (size_t part = first; part < first + count; part++) {
        size_t position = task->positions[part / (append->outer / append->items)];
        char *y = task->y + part * part_bytes;
        if (task->x != task->y)
            memcpy(y, task->x + part * part_bytes, part_bytes);
        // Rows that do not fit behind the position go to the beginning of the ring.
        size_t behind = INF_MIN(append->count, append->room - position) * append->row_bytes;
        const char *rows = task->rows + part * rows_bytes;
        memcpy(y + position * append->row_bytes, rows, behind);
        memcpy(y, rows + behind, rows_bytes - behind);
    }
}

static void append_run(const struct inf_cpu_step *step)
{
    const struct append *append = step->state;
    struct append_task task = {append, (const uint32_t *)(const void *)step->scratch,
                               step->inputs[0], step->inputs[2], step->output};
    size_t moved = append->row_bytes * (task.x == task.y ? append->count : append->room);
    inf_native_run_range(step, &(struct inf_native_range){append_part, &task, append->outer,
                                                          TILE_BYTES / moved + 1});
}

static enum inf_code append_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    const struct inf_value *x = &step->graph->values[node->inputs[0]];
    const struct inf_value *at = &step->graph->values[node->inputs[1]];
    int32_t axis = node->attrs.append.axis;
    axis = axis < 0 ? axis + x->shape.rank : axis;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct append), err));
    struct append *append = step->state;
    append->outer = 1;
    for (int32_t i = 0; i < axis; i++)
        append->outer *= (size_t)x->shape.dims[i];
    append->items = inf_shape_elements(&at->shape);
    append->room = (size_t)x->shape.dims[axis];
    append->count = (size_t)step->graph->values[node->inputs[2]].shape.dims[axis];
    append->row_bytes =
        inf_shape_elements(&x->shape) / append->outer / append->room * inf_dtype_size(x->dtype);
    append->wide = at->dtype == INF_DTYPE_I64;
    append->ring = node->attrs.append.ring;
    inf_native_need_scratch(step, append->items);
    step->prepare = check_positions;
    step->run = append_run;
    step->kernel = "append";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_append_kernels[] = {
    {INF_OP_APPEND, append_supports, append_create},
    {0},
};
