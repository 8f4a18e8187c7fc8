// SPDX-License-Identifier: Apache-2.0
// Finds which pixels lie under the windows of convolutions over up to three axes. Nodes with fewer
// axes get leading axes of size 1, so that there is one case only.
#include "backends/cpu/native/window_nd.h"

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
    window->runs = (size_t)along->kernel / window->run_taps;
    for (int i = 0; i < INF_WINDOW_ND_AXES - 1; i++)
        window->runs *= (size_t)window->axes[i].kernel;
    return INF_OK;
}

bool inf_window_nd_find_run(const struct inf_window_nd *window, size_t small, size_t run,
                            struct inf_window_nd_run *found)
{
    const struct inf_window *along = &window->axes[INF_WINDOW_ND_AXES - 1];
    size_t row_runs = (size_t)along->kernel / window->run_taps;
    int64_t row = 0;
    int64_t size = 1; // rows of `big` between neighbours along the axis
    int64_t column = (int64_t)(small % (size_t)along->output) * along->stride - along->pad_before +
                     (int64_t)(run % row_runs) * along->dilation;
    small /= (size_t)along->output;
    run /= row_runs;
    for (int i = INF_WINDOW_ND_AXES - 2; i >= 0; i--) {
        const struct inf_window *axis = &window->axes[i];
        int64_t place = (int64_t)(small % (size_t)axis->output) * axis->stride - axis->pad_before +
                        (int64_t)(run % (size_t)axis->kernel) * axis->dilation;
        if (place < 0 || place >= axis->input)
            return false;
        row += place * size;
        size *= axis->input;
        small /= (size_t)axis->output;
        run /= (size_t)axis->kernel;
    }
    int64_t first = INF_MAX(-column, 0);
    int64_t end = INF_MIN((int64_t)window->run_taps, along->input - column);
    if (first >= end)
        return false;
    *found = (struct inf_window_nd_run){(size_t)first, (size_t)(end - first),
                                        (size_t)(row * along->input + column + first)};
    return true;
}
