// SPDX-License-Identifier: Apache-2.0
// Max pooling on XNNPACK, of floats and of bytes.
#include <inttypes.h>
#include <math.h>

#include "backends/cpu/xnnpack/library.h"
#include "backends/graph/shape/infer.h"

struct pool {
    struct inf_window height, width;
    size_t batch, channels;
    enum inf_dtype dtype;
};

static struct pool pool_describe(const struct inf_graph *graph, const struct inf_node *node)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    struct pool pool = {.batch = (size_t)x->dims[0],
                        .channels = (size_t)x->dims[3],
                        .dtype = graph->values[node->inputs[0]].dtype};
    inf_node_windows(graph, node, &pool.height, &pool.width);
    return pool;
}

// Returns true if XNNPACK computes the same output size as the graph, and every window has an
// element inside x. The second condition is needed because XNNPACK replaces elements outside x by
// elements at the edge of x.
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
    enum inf_dtype dtype = graph->values[node->inputs[0]].dtype;
    if (dtype != INF_DTYPE_U8 && dtype != INF_DTYPE_I8)
        INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    struct pool pool = pool_describe(graph, node);
    if (node->attrs.pool2d.kind != INF_POOL_MAX)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: pool2d: only the largest is built here");
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

#define SETUP(type)                                                                                \
    xnn_setup_max_pooling2d_nhwc_##type(step->op, pool->batch, (size_t)pool->height.input,         \
                                        (size_t)pool->width.input, step->inputs[0], step->output,  \
                                        step->pool)

static enum xnn_status max_setup(struct inf_cpu_step *step)
{
    const struct pool *pool = step->state;
    return pool->dtype == INF_DTYPE_U8   ? SETUP(u8)
           : pool->dtype == INF_DTYPE_I8 ? SETUP(s8)
                                         : SETUP(f32);
}

#define CREATE(type, least, most)                                                                  \
    xnn_create_max_pooling2d_nhwc_##type(                                                          \
        (uint32_t)h->pad_before, (uint32_t)w->pad_after, (uint32_t)h->pad_after,                   \
        (uint32_t)w->pad_before, (uint32_t)h->kernel, (uint32_t)w->kernel, (uint32_t)h->stride,    \
        (uint32_t)w->stride, 1, 1, pool->channels, pool->channels, pool->channels, (least),        \
        (most), INF_XNN_FLAGS, &step->op)

static enum inf_code pool_create(struct inf_cpu_step *step, struct inf_error *err)
{
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct pool), err));
    struct pool *pool = step->state;
    *pool = pool_describe(step->graph, step->node);
    const struct inf_window *h = &pool->height;
    const struct inf_window *w = &pool->width;
    step->kernel = "xnn_max_pooling2d";
    step->setup = max_setup;
    enum xnn_status status = pool->dtype == INF_DTYPE_U8   ? CREATE(u8, 0, UINT8_MAX)
                             : pool->dtype == INF_DTYPE_I8 ? CREATE(s8, INT8_MIN, INT8_MAX)
                                                           : CREATE(f32, -INFINITY, INFINITY);
    return inf_xnn_check(status, step->node, step->kernel, err);
}

const struct inf_cpu_kernel inf_cpu_max_pool_kernels[] = {
    {INF_OP_POOL2D, pool_supports, pool_create},
    {0},
};
