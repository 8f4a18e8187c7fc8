// SPDX-License-Identifier: Apache-2.0
// Finds which pixels lie under the windows of convolutions over up to three axes. Nodes with fewer
// axes get leading axes of size 1, so that there is one case only.
#include "backends/cpu/spatial/window_nd.h"

// A window of one tap over an axis of size 1.
static const struct inf_window unit = {
    .input = 1, .output = 1, .kernel = 1, .stride = 1, .dilation = 1};

static void read_axes(struct inf_window_nd *window, const struct inf_graph *graph,
                      const struct inf_node *node, int32_t axes)
{
    struct inf_window *last = &window->axes[INF_WINDOW_ND_AXES - axes];
    for (int i = 0; i < INF_WINDOW_ND_AXES; i++)
        window->axes[i] = unit;
    if (node->op == INF_OP_CONV2D_TRANSPOSE)
        inf_node_windows(graph, node, &last[0], &last[1]);
    for (int32_t i = 0; i < axes && node->op != INF_OP_CONV2D_TRANSPOSE; i++)
        inf_node_window_nd(graph, node, i, &last[i]);
}

enum inf_code inf_window_nd_init(struct inf_window_nd *window, const struct inf_graph *graph,
                                 const struct inf_node *node, struct inf_error *err)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    const struct inf_shape *big = node->op == INF_OP_CONV_ND ? x : y;
    const struct inf_shape *small = node->op == INF_OP_CONV_ND ? y : x;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    INF_TRY(inf_cpu_need_f32(graph, node, 1, err));
    int32_t axes = x->rank - 2;
    if (axes > INF_WINDOW_ND_AXES)
        return inf_fail(err, INF_UNSUPPORTED, "cpu: %s: %d spatial axes are not built",
                        inf_op_info(node->op)->name, (int)axes);
    *window = (struct inf_window_nd){.batch = (size_t)x->dims[0],
                                     .big_pixels = inf_cpu_extent(big, 1, axes + 1),
                                     .small_pixels = inf_cpu_extent(small, 1, axes + 1),
                                     .big_channels = (size_t)big->dims[axes + 1],
                                     .small_channels = (size_t)small->dims[axes + 1],
                                     .groups = 1};
    if (node->op == INF_OP_CONV_ND)
        window->groups = (size_t)node->attrs.conv_nd.groups;
    if (node->op == INF_OP_CONV_ND_TRANSPOSE)
        window->groups = (size_t)node->attrs.conv_nd_transpose.groups;
    read_axes(window, graph, node, axes);
    const struct inf_window *along = &window->axes[INF_WINDOW_ND_AXES - 1];
    window->run_taps = along->dilation == 1 ? (size_t)along->kernel : 1;
    window->row_runs = (size_t)along->kernel / window->run_taps;
    return INF_OK;
}

size_t inf_window_nd_taps(const struct inf_window_nd *window)
{
    size_t taps = 1;
    for (int i = 0; i < INF_WINDOW_ND_AXES; i++)
        taps *= (size_t)window->axes[i].kernel;
    return taps;
}

struct inf_window_nd_row inf_window_nd_find_row(const struct inf_window_nd *window, size_t row)
{
    const struct inf_window *axes = window->axes;
    size_t size = (size_t)axes[1].output;
    return (struct inf_window_nd_row){
        {(int64_t)(row / size) * axes[0].stride - axes[0].pad_before,
         (int64_t)(row % size) * axes[1].stride - axes[1].pad_before}};
}
