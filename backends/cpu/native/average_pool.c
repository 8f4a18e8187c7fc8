// SPDX-License-Identifier: Apache-2.0
// Average pooling: the mean over windows. XNNPACK's average pooling is not used, because it clamps
// a NaN to minus infinity.
#include <math.h>
#include <string.h>

#include "backends/cpu/native/work.h"
#include "backends/graph/shape/infer.h"

struct pool {
    struct inf_window height, width;
    size_t batch, channels;
};

static struct pool pool_describe(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    struct pool pool = {.batch = (size_t)x->dims[0], .channels = (size_t)x->dims[3]};
    inf_node_windows(graph, node, &pool.height, &pool.width);
    return pool;
}

static enum inf_code pool_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    if (node->attrs.pool2d.kind != INF_POOL_AVERAGE)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pool2d: only the mean is built here");
    return INF_OK;
}

struct average {
    const struct pool *pool;
    void (*sum_rows)(size_t count, const float *x, size_t rows, size_t stride, float divisor,
                     float *y);
    const float *x;
    float *y;
};

// Returns the first element of window `position` that lies inside x, and sets *count to the number
// of elements of the window inside x.
static int64_t clip_window(const struct inf_window *window, int64_t position, int64_t *count)
{
    int64_t first = position * window->stride - window->pad_before;
    int64_t end = INF_MIN(first + window->kernel, window->input);
    first = INF_MAX(first, (int64_t)0);
    *count = INF_MAX(end - first, (int64_t)0);
    return first;
}

// Writes the mean over `rows` by `columns` pixels of x to y, for each channel. `x` points to the
// first of these pixels.
static void average_window(const struct average *average, const float *x, int64_t rows,
                           int64_t columns, float *y)
{
    size_t channels = average->pool->channels;
    size_t row_size = (size_t)average->pool->width.input * channels;
    float taps = (float)(rows * columns);
    if (rows * columns > 0 &&
        (rows == 1 || columns == average->pool->width.input)) { // the pixels are contiguous in x
        average->sum_rows(channels, x, (size_t)(rows * columns), channels, taps, y);
        return;
    }
    memset(y, 0, channels * sizeof(*y));
    for (int64_t row = 0; row < rows; row++) {
        const float *at = x + (size_t)row * row_size;
        for (int64_t column = 0; column < columns; column++, at += channels)
            for (size_t c = 0; c < channels; c++)
                y[c] += at[c];
    }
    for (size_t c = 0; c < channels; c++)
        y[c] = rows * columns > 0 ? y[c] / taps : NAN;
}

static void average_row(const struct average *average, size_t image, size_t row)
{
    const struct pool *pool = average->pool;
    size_t channels = pool->channels;
    int64_t rows;
    int64_t top = clip_window(&pool->height, (int64_t)row, &rows);
    const float *x = average->x + (image * (size_t)pool->height.input + (size_t)top) *
                                      (size_t)pool->width.input * channels;
    float *y = average->y +
               (image * (size_t)pool->height.output + row) * (size_t)pool->width.output * channels;
    for (int64_t i = 0; i < pool->width.output; i++, y += channels) {
        int64_t columns;
        int64_t left = clip_window(&pool->width, i, &columns);
        average_window(average, rows * columns > 0 ? x + (size_t)left * channels : average->x, rows,
                       columns, y);
    }
}

static void average_rows(const void *context, size_t first, size_t count)
{
    const struct average *average = context;
    size_t height = (size_t)average->pool->height.output;
    for (size_t i = first; i < first + count; i++)
        average_row(average, i / height, i % height);
}

static void average_run(const struct inf_cpu_step *step)
{
    const struct pool *pool = step->state;
    struct average average = {.pool = pool,
                              .sum_rows = step->isa->simd->sum_rows,
                              .x = step->inputs[0],
                              .y = step->output};
    inf_native_run_range(step,
                         &(struct inf_native_range){average_rows, &average,
                                                    pool->batch * (size_t)pool->height.output, 1});
}

static enum inf_code pool_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct pool), err));
    struct pool *pool = step->state;
    *pool = pool_describe(step->graph, step->node);
    step->kernel = "average_pooling2d";
    step->run = average_run;
    return INF_OK;
}

const struct inf_cpu_kernel inf_cpu_average_pool_kernels[] = {
    {INF_OP_POOL2D, pool_supports, pool_create},
    {0},
};
