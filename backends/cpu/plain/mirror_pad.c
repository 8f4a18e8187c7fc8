// SPDX-License-Identifier: Apache-2.0
// Operator pad in every mode and for every element type. For each padded axis a table says which
// element of x each position has, so that a position costs one look-up whatever the mode is. A row
// of y, along the last padded axis, is a copy of a row of x between two mirrored ends. Axes behind
// the last padded one are merged into one element.
#include <string.h>

#include "backends/cpu/core/counted_memory.h"
#include "backends/cpu/native/work.h"

// The smallest number of bytes that one task writes.
#define TILE_BYTES ((size_t)32 << 10)

struct mirror {
    int32_t rank;                                    // axes up to the last padded one
    size_t from[INF_LIMIT_RANK], to[INF_LIMIT_RANK]; // dimensions of x and y
    int32_t *maps[INF_LIMIT_RANK]; // position in y to position in x; -1: the pad value
    size_t before, middle;         // of the last axis: positions before those of x, and size of x
    size_t element;                // bytes of an element, or of the axes that are merged into one
    size_t unit;                   // bytes of an element of the tensor
};

struct mirror_task {
    const struct mirror *mirror;
    const char *x;
    char *y;
    const void *value; // an element of the pad value; NULL: zeros
};

// Returns which of `size` positions `position` shows, which may be outside; -1: the pad value.
static int64_t find_source(enum inf_pad_mode mode, int64_t position, int64_t size)
{
    int64_t period = mode == INF_PAD_REFLECT ? INF_MAX(2 * (size - 1), (int64_t)1) : 2 * size;
    if (position >= 0 && position < size)
        return position;
    if (mode == INF_PAD_CONSTANT)
        return -1;
    if (mode == INF_PAD_EDGE)
        return position < 0 ? 0 : size - 1;
    position = (position % period + period) % period;
    if (position < size)
        return position;
    return mode == INF_PAD_REFLECT ? period - position : period - 1 - position;
}

static void fill_value(const struct mirror_task *task, char *y, size_t bytes)
{
    size_t unit = task->mirror->unit;
    if (task->value == NULL)
        memset(y, 0, bytes);
    for (size_t at = 0; task->value != NULL && at < bytes; at += unit)
        memcpy(y + at, task->value, unit);
}

// Copies the elements `first` to `end` of a row by the table. Elements of usual sizes are copied
// with a constant size, so that the compiler does not call memcpy().
static void copy_mapped(const struct mirror_task *task, const char *x, char *y, size_t first,
                        size_t end)
{
    const struct mirror *mirror = task->mirror;
    const int32_t *map = mirror->maps[mirror->rank - 1];
    size_t element = mirror->element;
    for (size_t i = first; i < end; i++) {
        char *to = y + i * element;
        if (map[i] < 0)
            fill_value(task, to, element);
        else if (element == 4)
            memcpy(to, x + (size_t)map[i] * 4, 4);
        else
            memcpy(to, x + (size_t)map[i] * element, element);
    }
}

static void pad_rows(const void *context, size_t first, size_t count)
{
    const struct mirror_task *task = context;
    const struct mirror *mirror = task->mirror;
    int32_t last = mirror->rank - 1;
    size_t width = mirror->to[last], bytes = width * mirror->element;
    for (size_t row = first; row < first + count; row++) {
        size_t rest = row, at = 0, scale = 1;
        bool is_outside = false;
        for (int32_t axis = last - 1; axis >= 0; axis--) {
            int32_t source = mirror->maps[axis][rest % mirror->to[axis]];
            rest /= mirror->to[axis];
            is_outside |= source < 0;
            at += (size_t)INF_MAX(source, 0) * scale;
            scale *= mirror->from[axis];
        }
        char *y = task->y + row * bytes;
        const char *x = task->x + at * mirror->middle * mirror->element;
        if (is_outside) {
            fill_value(task, y, bytes);
            continue;
        }
        copy_mapped(task, x, y, 0, mirror->before);
        memcpy(y + mirror->before * mirror->element, x, mirror->middle * mirror->element);
        copy_mapped(task, x, y, mirror->before + mirror->middle, width);
    }
}

static void mirror_run(const struct inf_cpu_step *step)
{
    const struct mirror *mirror = step->state;
    struct mirror_task task = {mirror, step->inputs[0], step->output,
                               step->operand_count > 2 ? step->inputs[2] : NULL};
    size_t rows = 1, bytes = mirror->to[mirror->rank - 1] * mirror->element;
    for (int32_t axis = 0; axis + 1 < mirror->rank; axis++)
        rows *= mirror->to[axis];
    inf_native_run_range(step,
                         &(struct inf_native_range){pad_rows, &task, rows, TILE_BYTES / bytes + 1});
}

static enum inf_code mirror_supports(const struct inf_graph *graph, const struct inf_node *node,
                                     struct inf_error *err)
{
    const struct inf_value *x = &graph->values[node->inputs[0]];
    const struct inf_value *pads = &graph->values[node->inputs[1]];
    const int32_t *amounts = pads->data != NULL ? pads->data->data : NULL;
    if (amounts == NULL || pads->dtype != INF_DTYPE_I32 || x->shape.rank == 0)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pad: the amounts are not constant");
    for (int32_t i = 0; i < x->shape.rank; i++)
        if (amounts[2 * i] < 0 || amounts[2 * i + 1] < 0)
            return inf_fail(err, INF_UNSUPPORTED, "cpu: pad: cuts off axis %d", i);
    if (x->dtype == INF_DTYPE_BYTES)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pad of BYTES is not built");
    return INF_OK;
}

static enum inf_code make_map(struct inf_cpu_step *step, struct mirror *mirror, int32_t axis,
                              int64_t before, struct inf_error *err)
{
    int32_t *map = inf_cpu_memory_alloc(&step->memory, mirror->to[axis] * sizeof *map);
    if (map == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory to pad %zu positions", mirror->to[axis]);
    for (size_t i = 0; i < mirror->to[axis]; i++)
        map[i] = (int32_t)find_source(step->node->attrs.pad.mode, (int64_t)i - before,
                                      (int64_t)mirror->from[axis]);
    mirror->maps[axis] = map;
    return INF_OK;
}

static enum inf_code mirror_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_value *x = &step->graph->values[step->node->inputs[0]];
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, step->node);
    const int32_t *amounts = step->graph->values[step->node->inputs[1]].data->data;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct mirror), err));
    struct mirror *mirror = step->state;
    mirror->rank = x->shape.rank;
    mirror->unit = mirror->element = inf_dtype_size(x->dtype);
    while (mirror->rank > 1 && x->shape.dims[mirror->rank - 1] == y->dims[mirror->rank - 1])
        mirror->element *= (size_t)x->shape.dims[--mirror->rank];
    for (int32_t axis = 0; axis < mirror->rank; axis++) {
        mirror->from[axis] = (size_t)x->shape.dims[axis];
        mirror->to[axis] = (size_t)y->dims[axis];
        INF_TRY(make_map(step, mirror, axis, amounts[2 * axis], err));
    }
    mirror->before = (size_t)amounts[2 * (mirror->rank - 1)];
    mirror->middle = mirror->from[mirror->rank - 1];
    step->run = mirror_run;
    step->kernel = "mirror_pad";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_mirror_kernels[] = {
    {INF_OP_PAD, mirror_supports, mirror_create},
    {0},
};
