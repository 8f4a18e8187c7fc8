// SPDX-License-Identifier: Apache-2.0
// Resizing to the nearest pixel: whole pixels are copied.
#include <math.h>
#include <string.h>

#include "backends/cpu/native/work.h"

#define TASK_BYTES ((size_t)32 << 10)

struct nearest {
    size_t batch, height, width, output_height, output_width, pixel_bytes;
    uint32_t *rows, *columns; // indexed by row (column) of y: the row (column) of x that is copied
};

struct nearest_task {
    const struct nearest *nearest;
    const char *x;
    char *y;
};

static enum inf_code nearest_supports(const struct inf_graph *graph, const struct inf_node *node,
                                      struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    if (node->attrs.resize.kind != INF_RESIZE_NEAREST)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: resize: not to the nearest");
    if (x->rank != 4 || x->dims[1] > INT32_MAX || x->dims[2] > INT32_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: resize: too large");
    return INF_OK;
}

static void fill_axis(uint32_t *from, const struct inf_attrs_resize *attrs, size_t input,
                      size_t output)
{
    bool corners = attrs->align_corners && output > 1;
    double ratio = (double)(corners ? input - 1 : input) / (double)(corners ? output - 1 : output);
    for (size_t i = 0; i < output; i++) {
        double at = ratio * ((double)i + (attrs->half_pixel_centers ? 0.5 : 0.0));
        at = floor(attrs->align_corners ? at + 0.5 : at);
        from[i] = (uint32_t)fmin(fmax(at, 0), (double)(input - 1));
    }
}

static inline void copy_pixels(const struct nearest *nearest, size_t size, const char *x, char *y)
{
    for (size_t i = 0; i < nearest->output_width; i++)
        memcpy(y + i * size, x + nearest->columns[i] * size, size);
}

static void copy_row(const struct nearest *nearest, const char *x, char *y)
{
    // Each case passes a constant size, so that the compiler emits plain loads and stores.
    switch (nearest->pixel_bytes) {
    case 4:
        copy_pixels(nearest, 4, x, y);
        break;
    case 96:
        copy_pixels(nearest, 96, x, y);
        break;
    default:
        copy_pixels(nearest, nearest->pixel_bytes, x, y);
        break;
    }
}

static void nearest_tile(const void *context, size_t first, size_t count)
{
    const struct nearest_task *task = context;
    const struct nearest *nearest = task->nearest;
    size_t row_bytes = nearest->output_width * nearest->pixel_bytes;
    for (size_t i = first; i < first + count; i++) {
        size_t row = i % nearest->output_height;
        size_t image = i / nearest->output_height;
        char *y = task->y + i * row_bytes;
        // If the previous row of y is a copy of the same row of x, copy that row of y.
        if (row > 0 && i > first && nearest->rows[row] == nearest->rows[row - 1]) {
            memcpy(y, y - row_bytes, row_bytes);
            continue;
        }
        copy_row(nearest,
                 task->x + (image * nearest->height + nearest->rows[row]) * nearest->width *
                               nearest->pixel_bytes,
                 y);
    }
}

static void nearest_run(const struct inf_cpu_step *step)
{
    const struct nearest *nearest = step->state;
    struct nearest_task task = {nearest, step->inputs[0], step->output};
    size_t row_bytes = nearest->output_width * nearest->pixel_bytes;
    inf_native_run_range(step, &(struct inf_native_range){nearest_tile, &task,
                                                          nearest->batch * nearest->output_height,
                                                          TASK_BYTES / row_bytes + 1});
}

static enum inf_code nearest_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_value *x = &step->graph->values[step->node->inputs[0]];
    const struct inf_shape *y = inf_cpu_output_shape(step->graph, step->node);
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct nearest), err));
    struct nearest *nearest = step->state;
    *nearest = (struct nearest){
        .batch = (size_t)x->shape.dims[0],
        .height = (size_t)x->shape.dims[1],
        .width = (size_t)x->shape.dims[2],
        .output_height = (size_t)y->dims[1],
        .output_width = (size_t)y->dims[2],
        .pixel_bytes = (size_t)x->shape.dims[3] * inf_dtype_size(x->dtype),
    };
    nearest->rows = inf_arena_alloc(step->arena, nearest->output_height * sizeof(uint32_t));
    nearest->columns = inf_arena_alloc(step->arena, nearest->output_width * sizeof(uint32_t));
    if (nearest->rows == NULL || nearest->columns == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory for its pixels", step->node->name);
    const struct inf_attrs_resize *attrs = &step->node->attrs.resize;
    fill_axis(nearest->rows, attrs, nearest->height, nearest->output_height);
    fill_axis(nearest->columns, attrs, nearest->width, nearest->output_width);
    step->run = nearest_run;
    step->kernel = "nearest";
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_nearest_kernels[] = {
    {INF_OP_RESIZE, nearest_supports, nearest_create},
    {0},
};
