// SPDX-License-Identifier: Apache-2.0
// Convolutions on XNNPACK: conv2d and depthwise_conv2d.
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

#include "backends/base/permute.h"
#include "backends/cpu/core/activation.h"
#include "backends/cpu/xnnpack/library.h"
#include "backends/cpu/xnnpack/unary_operator.h"
#include "backends/graph/shape/infer.h"
#include "proto/core/span.h"

// A common description of conv2d and depthwise_conv2d.
struct conv {
    struct inf_window height, width;
    struct inf_cpu_activation activation;
    uint32_t bias, prelu; // operand indices
    uint32_t groups;
    size_t group_inputs, group_outputs;
    size_t inputs, outputs; // number of channels
    size_t batch, input_height, input_width;
};

#define CONV_ACTIVATION(attrs)                                                                     \
    ((struct inf_cpu_activation){.kind = (attrs)->activation,                                      \
                                 .alpha = (attrs)->activation_alpha,                               \
                                 .min = (attrs)->activation_min,                                   \
                                 .max = (attrs)->activation_max})

static void conv_describe(struct conv *conv, const struct inf_graph *graph,
                          const struct inf_node *node)
{
    const struct inf_shape *x = inf_cpu_input_shape(graph, node, 0);
    const struct inf_shape *y = inf_cpu_output_shape(graph, node);
    *conv = (struct conv){.bias = 2, .prelu = 3, .groups = 1};
    conv->batch = (size_t)x->dims[0];
    conv->input_height = (size_t)x->dims[1];
    conv->input_width = (size_t)x->dims[2];
    conv->inputs = (size_t)x->dims[3];
    conv->outputs = (size_t)y->dims[3];
    inf_node_windows(graph, node, &conv->height, &conv->width);
    if (node->op == INF_OP_CONV2D) {
        conv->groups = (uint32_t)node->attrs.conv2d.groups;
        conv->activation = CONV_ACTIVATION(&node->attrs.conv2d);
    } else {
        conv->groups = (uint32_t)conv->inputs;
        conv->activation = CONV_ACTIVATION(&node->attrs.depthwise_conv2d);
    }
    conv->group_inputs = conv->inputs / conv->groups;
    conv->group_outputs = conv->outputs / conv->groups;
}

static int64_t window_extent(const struct inf_window *window)
{
    return (int64_t)(window->kernel - 1) * window->dilation + 1;
}

// Returns true if XNNPACK computes, from kernel, stride and padding, the same output size as the
// graph.
static bool forward_ok(const struct inf_window *window)
{
    int64_t padded = window->input + window->pad_before + window->pad_after;
    int64_t extent = window_extent(window);
    return window->pad_before >= 0 && window->pad_after >= 0 && padded >= extent &&
           (padded - extent) / window->stride + 1 == window->output;
}

static enum inf_code conv_supports(const struct inf_graph *graph, const struct inf_node *node,
                                   struct inf_error *err)
{
    const char *name = inf_op_info(node->op)->name;
    INF_TRY(inf_cpu_need_f32(graph, node, 0, err));
    struct conv conv;
    conv_describe(&conv, graph, node);
    size_t filter = inf_shape_elements(inf_cpu_input_shape(graph, node, 1));
    INF_TRY(inf_cpu_need_const(graph, node, 1, filter, err));
    INF_TRY(inf_cpu_need_const(graph, node, conv.bias, conv.outputs, err));
    if (!forward_ok(&conv.height) || !forward_ok(&conv.width))
        return inf_fail(err, INF_UNSUPPORTED,
                        "cpu: %s: %" PRId64 "x%" PRId64 " to %" PRId64 "x%" PRId64
                        " with this padding is not built",
                        name, conv.height.input, conv.width.input, conv.height.output,
                        conv.width.output);
    return inf_cpu_activation_check(graph, node, &conv.activation, conv.prelu, conv.outputs, err);
}

// Copies the filter with output channels outermost and input channels innermost. The caller frees
// *out_ohwi.
static enum inf_code filter_to_ohwi(float **out_ohwi, const struct inf_node *node,
                                    const float *filter, const struct conv *conv,
                                    struct inf_error *err)
{
    size_t taps = (size_t)conv->height.kernel * (size_t)conv->width.kernel;
    size_t inputs = conv->group_inputs;
    size_t outputs = conv->outputs;
    size_t count;
    size_t size;
    float *ohwi = NULL;
    if (inf_size_mul(taps * inputs, outputs, &count) && inf_size_mul(count, sizeof(float), &size))
        ohwi = malloc(size);
    if (ohwi == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "node '%s': no memory to reorder the filter", node->name);
    const struct inf_permutation order = {
        .rank = 3, .counts = {outputs, taps, inputs}, .steps = {1, inputs * outputs, outputs}};
    inf_permute_32(&order, ohwi, filter);
    *out_ohwi = ohwi;
    return INF_OK;
}

static enum xnn_status conv_setup(struct inf_cpu_step *step)
{
    const struct conv *conv = step->state;
    return xnn_setup_convolution2d_nhwc_f32(step->op, conv->batch, conv->input_height,
                                            conv->input_width, step->inputs[0], step->output,
                                            step->pool);
}

static enum xnn_status conv_operator(struct inf_cpu_step *step, const struct conv *conv,
                                     const float *kernel, const float *bias)
{
    const struct inf_window *h = &conv->height;
    const struct inf_window *w = &conv->width;
    bool depthwise = step->node->op == INF_OP_DEPTHWISE_CONV2D;
    float min;
    float max;
    inf_cpu_activation_bounds(&conv->activation, &min, &max);
    return xnn_create_convolution2d_nhwc_f32(
        (uint32_t)h->pad_before, (uint32_t)w->pad_after, (uint32_t)h->pad_after,
        (uint32_t)w->pad_before, (uint32_t)h->kernel, (uint32_t)w->kernel, (uint32_t)h->stride,
        (uint32_t)w->stride, (uint32_t)h->dilation, (uint32_t)w->dilation, conv->groups,
        conv->group_inputs, conv->group_outputs, conv->inputs, conv->outputs, kernel, bias, min,
        max, INF_XNN_FLAGS | (depthwise ? XNN_FLAG_DEPTHWISE_CONVOLUTION : 0), &step->op);
}

static const char *conv_name(const struct conv *conv, enum inf_op op)
{
    if (op == INF_OP_DEPTHWISE_CONV2D)
        return "xnn_dwconv2d";
    bool point = conv->height.kernel == 1 && conv->width.kernel == 1;
    return point ? "xnn_conv2d_1x1" : "xnn_conv2d";
}

static enum inf_code conv_create(struct inf_cpu_step *step, struct inf_error *err)
{
    const struct inf_node *node = step->node;
    INF_TRY(inf_cpu_step_alloc_state(step, sizeof(struct conv), err));
    struct conv *conv = step->state;
    conv_describe(conv, step->graph, node);
    step->kernel = conv_name(conv, node->op);
    step->setup = conv_setup;

    const float *filter = inf_cpu_const_f32(step->graph, node, 1);
    const float *bias = inf_cpu_const_f32(step->graph, node, conv->bias);
    enum xnn_status status;
    float *ohwi = NULL;
    if (node->op == INF_OP_DEPTHWISE_CONV2D) {
        // Pass the filter unchanged. XNNPACK expects a depthwise filter [kh, kw, channels *
        // multiplier], which is also the layout in the graph.
        status = conv_operator(step, conv, filter, bias);
    } else {
        INF_TRY(filter_to_ohwi(&ohwi, node, filter, conv, err));
        status = conv_operator(step, conv, ohwi, bias);
    }
    free(ohwi);
    INF_TRY(inf_xnn_check(status, node, step->kernel, err));
    const float *prelu = inf_cpu_const_f32(step->graph, node, conv->prelu);
    return inf_xnn_add_post_op(step, &conv->activation, prelu, conv->outputs, err);
}

const struct inf_cpu_kernel inf_cpu_conv_kernels[] = {
    {INF_OP_CONV2D, conv_supports, conv_create},
    {INF_OP_DEPTHWISE_CONV2D, conv_supports, conv_create},
    {0},
};
