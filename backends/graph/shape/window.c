// SPDX-License-Identifier: Apache-2.0
// Sliding windows: the number of windows that fit, and the amount of padding for `same`.
#include <string.h>

#include "backends/graph/shape/rules.h"

#define HEIGHT 0
#define WIDTH  1

// Copies the window attributes that have the same names in all six operators with windows.
#define COMMON_ATTRS(attrs)                                                                        \
    {                                                                                              \
        .padding = (attrs)->padding, .stride = {(attrs)->stride_h, (attrs)->stride_w},             \
        .pad_before = {(attrs)->pad_top, (attrs)->pad_left},                                       \
        .pad_after = {(attrs)->pad_bottom, (attrs)->pad_right},                                    \
    }

struct inf_window_attrs inf_node_window_attrs(const struct inf_node *node)
{
    if (node->op == INF_OP_POOL2D) {
        struct inf_window_attrs pool = COMMON_ATTRS(&node->attrs.pool2d);
        pool.dilation[HEIGHT] = pool.dilation[WIDTH] = 1;
        return pool;
    }
    if (node->op == INF_OP_DEPTHWISE_CONV2D) {
        const struct inf_attrs_depthwise_conv2d *attrs = &node->attrs.depthwise_conv2d;
        struct inf_window_attrs depthwise = COMMON_ATTRS(attrs);
        depthwise.dilation[HEIGHT] = attrs->dilation_h;
        depthwise.dilation[WIDTH] = attrs->dilation_w;
        return depthwise;
    }
    if (node->op == INF_OP_QCONV2D) {
        const struct inf_attrs_qconv2d *attrs = &node->attrs.qconv2d;
        struct inf_window_attrs qconv = COMMON_ATTRS(attrs);
        qconv.dilation[HEIGHT] = attrs->dilation_h;
        qconv.dilation[WIDTH] = attrs->dilation_w;
        return qconv;
    }
    if (node->op == INF_OP_CONV2D_TRANSPOSE) {
        const struct inf_attrs_conv2d_transpose *attrs = &node->attrs.conv2d_transpose;
        struct inf_window_attrs transpose = COMMON_ATTRS(attrs);
        transpose.dilation[HEIGHT] = attrs->dilation_h;
        transpose.dilation[WIDTH] = attrs->dilation_w;
        return transpose;
    }
    if (node->op == INF_OP_DILATION2D) {
        const struct inf_attrs_dilation2d *attrs = &node->attrs.dilation2d;
        struct inf_window_attrs dilation = COMMON_ATTRS(attrs);
        dilation.dilation[HEIGHT] = attrs->dilation_h;
        dilation.dilation[WIDTH] = attrs->dilation_w;
        return dilation;
    }
    const struct inf_attrs_conv2d *attrs = &node->attrs.conv2d;
    struct inf_window_attrs conv = COMMON_ATTRS(attrs);
    conv.dilation[HEIGHT] = attrs->dilation_h;
    conv.dilation[WIDTH] = attrs->dilation_w;
    return conv;
}

bool inf_window_resolve(const struct inf_window_attrs *attrs, int axis, int64_t input,
                        int64_t kernel, struct inf_window *window)
{
    // Number of elements from a window's first tap to its last. Both factors are below 2^31.
    int64_t reach = (kernel - 1) * attrs->dilation[axis] + 1;
    if (kernel < 1 || reach > INT32_MAX)
        return false;
    *window = (struct inf_window){.input = input,
                                  .kernel = (int32_t)kernel,
                                  .stride = attrs->stride[axis],
                                  .dilation = attrs->dilation[axis]};
    if (attrs->padding == INF_PADDING_SAME) {
        window->output = (input + window->stride - 1) / window->stride;
        int64_t missing = (window->output - 1) * window->stride + reach - input;
        window->pad_before = (int32_t)(INF_MAX(missing, 0) / 2);
        window->pad_after = (int32_t)(INF_MAX(missing, 0) - window->pad_before);
        return true;
    }
    if (attrs->padding == INF_PADDING_EXPLICIT) {
        window->pad_before = attrs->pad_before[axis];
        window->pad_after = attrs->pad_after[axis];
    }
    int64_t room = input + window->pad_before + window->pad_after - reach;
    if (room < 0)
        return false;
    window->output = room / window->stride + 1;
    return true;
}

void inf_node_windows(const struct inf_graph *graph, const struct inf_node *node,
                      struct inf_window *height, struct inf_window *width)
{
    struct inf_window_attrs attrs = inf_node_window_attrs(node);
    // For a transposed convolution, the image over which the window slides is the node's output.
    uint32_t big = node->op == INF_OP_CONV2D_TRANSPOSE ? node->outputs[0] : node->inputs[0];
    const struct inf_shape *input = &graph->values[big].shape;
    const struct inf_attrs_pool2d *pool = &node->attrs.pool2d;
    int64_t kernel[] = {pool->kernel_h, pool->kernel_w};
    if (node->op != INF_OP_POOL2D)
        memcpy(kernel, graph->values[node->inputs[1]].shape.dims, sizeof kernel);
    // Inference has already refused windows that cannot be resolved. A zero window is a safeguard:
    // the kernel then reads no element.
    if (!inf_window_resolve(&attrs, HEIGHT, input->dims[1], kernel[HEIGHT], height))
        *height = (struct inf_window){.stride = 1, .dilation = 1};
    if (!inf_window_resolve(&attrs, WIDTH, input->dims[2], kernel[WIDTH], width))
        *width = (struct inf_window){.stride = 1, .dilation = 1};
}
