// SPDX-License-Identifier: Apache-2.0
// Pooling: the largest on XNNPACK. The mean is our own: XNNPACK's clamps a NaN to minus infinity.
#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "backends/cpu/core/xnn.h"
#include "backends/cpu/native/native.h"

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

// Whether XNNPACK arrives at the same size, and every window has an element inside x: it takes those
// outside from the edge.
static bool window_ok(const struct inf_window *window)
{
    int64_t padded = window->input + window->pad_before + window->pad_after;
    return window->pad_before >= 0 && window->pad_after >= 0 &&
           window->pad_before < window->kernel && window->pad_after < window->kernel &&
           padded >= window->kernel &&
           (padded - window->kernel) / window->stride + 1 == window->output;
}

static enum inf_code pool_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    struct pool pool = pool_describe(graph, node);
    if (node->attrs.pool2d.kind == INF_POOL_AVERAGE)
        return INF_OK;
    if (pool.height.kernel == 1 && pool.width.kernel == 1)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pool2d: windows of 1x1 are not built");
    if ((int64_t)pool.height.kernel * pool.width.kernel > UINT16_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pool2d: windows of %dx%d are not built",
                        (int)pool.height.kernel, (int)pool.width.kernel);
    if (!window_ok(&pool.height) || !window_ok(&pool.width))
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: pool2d: %" PRId64 "x%" PRId64 " to %" PRId64 "x%" PRId64
                        " with this padding is not built",
                        pool.height.input, pool.width.input, pool.height.output, pool.width.output);
    return INF_OK;
}

static enum xnn_status max_setup(struct inf_cpu_step *step)
{
    const struct pool *pool = step->state;
    return xnn_setup_max_pooling2d_nhwc_f32(step->op, pool->batch, (size_t)pool->height.input,
                                            (size_t)pool->width.input, step->inputs[0],
                                            step->output, step->pool);
}

struct average {
    const struct pool *pool;
    void (*sum_rows)(size_t count, const float *x, size_t rows, size_t stride, float scale,
                     float *y);
    const float *x;
    float *y;
};

// The first element of a window inside x, and how many there are.
static int64_t inside(const struct inf_window *window, int64_t position, int64_t *count)
{
    int64_t first = position * window->stride - window->pad_before;
    int64_t end = INF_MIN(first + window->kernel, window->input);
    first = INF_MAX(first, (int64_t)0);
    *count = INF_MAX(end - first, (int64_t)0);
    return first;
}

// The mean of `rows` by `columns` pixels from `x` on.
static void average_window(const struct average *average, const float *x, int64_t rows,
                           int64_t columns, float *y)
{
    size_t channels = average->pool->channels;
    size_t row_size = (size_t)average->pool->width.input * channels;
    float scale = 1 / (float)(rows * columns);
    if (rows * columns > 0 &&
        (rows == 1 || columns == average->pool->width.input)) { // one stretch of memory
        average->sum_rows(channels, x, (size_t)(rows * columns), channels, scale, y);
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
        y[c] = rows * columns > 0 ? y[c] * scale : NAN;
}

static void average_row(const struct average *average, size_t image, size_t row)
{
    const struct pool *pool = average->pool;
    size_t channels = pool->channels;
    int64_t rows;
    int64_t top = inside(&pool->height, (int64_t)row, &rows);
    const float *x = average->x + (image * (size_t)pool->height.input + (size_t)top) *
                                      (size_t)pool->width.input * channels;
    float *y = average->y +
               (image * (size_t)pool->height.output + row) * (size_t)pool->width.output * channels;
    for (int64_t i = 0; i < pool->width.output; i++, y += channels) {
        int64_t columns;
        int64_t left = inside(&pool->width, i, &columns);
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
    inf_native_split(step,
                     &(struct inf_native_split){average_rows, &average,
                                                pool->batch * (size_t)pool->height.output, 1});
}

static enum inf_code pool_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_state(step, sizeof(struct pool), err));
    struct pool *pool = step->state;
    *pool = pool_describe(step->graph, step->node);
    const struct inf_window *h = &pool->height;
    const struct inf_window *w = &pool->width;
    if (step->node->attrs.pool2d.kind == INF_POOL_AVERAGE) {
        step->kernel = "average_pooling2d";
        step->run = average_run;
        return INF_OK;
    }
    step->kernel = "xnn_max_pooling2d";
    step->setup = max_setup;
    enum xnn_status status = xnn_create_max_pooling2d_nhwc_f32(
        (uint32_t)h->pad_before, (uint32_t)w->pad_after, (uint32_t)h->pad_after,
        (uint32_t)w->pad_before, (uint32_t)h->kernel, (uint32_t)w->kernel, (uint32_t)h->stride,
        (uint32_t)w->stride, 1, 1, pool->channels, pool->channels, pool->channels, -INFINITY,
        INFINITY, INF_XNN_FLAGS, &step->op);
    return inf_xnn_check(status, step->node, step->kernel, err);
}

const struct inf_cpu_kernel inf_cpu_pool_kernels[] = {
    {INF_OP_POOL2D, pool_supports, pool_create},
    {0},
};
