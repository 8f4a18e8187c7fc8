// SPDX-License-Identifier: Apache-2.0
// Convolutions: chooses the shader (Winograd, tiles, or strips of pixels) and binds its operands.
#include "backends/vulkan/ops/conv.h"
#include "backends/vulkan/ops/ops.h"
#include "backends/vulkan/ops/residual.h"

// Writes weights in the layout [tap][input channel of the group][block of four output channels].
// For each tap and input channel, the blocks of all groups follow each other.
static void fill_weights(void *bytes, const void *context)
{
    const struct vk_conv_weights *weights = context;
    size_t row = (size_t)weights->groups * weights->group_blocks * 4;
    for (uint32_t tap = 0; tap < weights->taps; tap++) {
        for (uint32_t in = 0; in < weights->group_in; in++) {
            float *to = (float *)bytes + ((size_t)tap * weights->group_in + in) * row;
            const float *from = weights->from + tap * weights->tap_stride + in * weights->in_stride;
            for (uint32_t out = 0; out < weights->groups * weights->group_out; out++) {
                uint32_t group = out / weights->group_out;
                to[group * weights->group_blocks * 4 + out % weights->group_out] =
                    from[out * weights->out_stride];
            }
        }
    }
}

// Adds the residual from the lowering context to the convolution, and replaces the convolution's
// activation by the one that follows the addition.
static void apply_residual(const struct vk_lowering *lowering, struct vk_conv *conv)
{
    const struct vk_residual *residual = lowering->residual;
    const struct inf_graph *graph = lowering->graph;
    conv->y = lowering->node->outputs[0];
    conv->added = INF_VALUE_NONE;
    if (residual == NULL)
        return;
    conv->activation = vk_node_activation(&graph->nodes[residual->add]);
    conv->added = residual->added;
    conv->y = graph->nodes[residual->end].outputs[0];
    conv->window.added = (uint32_t)graph->values[residual->added].shape.dims[3];
    if (residual->prelu == INF_NODE_NONE)
        return;
    conv->activation = (struct vk_activation){FN_LEAKY_RELU, 0, 0, true};
    conv->slopes = graph->values[graph->nodes[residual->prelu].inputs[1]].data->data;
}

static enum inf_code check_activation(const struct vk_lowering *lowering, struct vk_conv *conv,
                                      struct inf_error *err)
{
    apply_residual(lowering, conv);
    size_t channels = conv->window.out_c;
    INF_TRY(vk_need_const(lowering, conv->bias_index, channels, err));
    if (conv->activation.function == UINT32_MAX)
        return vk_decline(lowering, err, "its activation is not built");
    if (!conv->activation.prelu || conv->slopes != NULL)
        return INF_OK;
    if (!vk_has_input(lowering, conv->bias_index + 1))
        return vk_decline(lowering, err, "prelu has no slopes");
    INF_TRY(vk_need_const(lowering, conv->bias_index + 1, channels, err));
    conv->slopes = vk_const_f32(lowering, conv->bias_index + 1);
    return INF_OK;
}

// Returns the number of pixels that one shader invocation computes. With more pixels each loaded
// weight is used more often, but more pixels beyond the end of a row are computed in vain. On a GPU
// sixteen sums fill the registers of an invocation; llvmpipe keeps the sums in memory.
static uint32_t strip_pixels(const struct vk_lowering *lowering, uint32_t width)
{
    bool software = lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE;
    for (uint32_t pixels = software ? 16 : 8; pixels > 1; pixels /= 2) {
        uint32_t made = (width + pixels - 1) / pixels * pixels;
        if (made - width <= width / 7)
            return pixels;
    }
    return 1;
}

// Halves the number of pixels of an invocation until the driver can build the shader variant, which
// has this number as a specialisation constant.
static uint32_t reduce_pixels(struct vk_lowering *lowering, struct vk_dispatch *dispatch)
{
    uint32_t *pixels = &dispatch->variant.constants[1];
    while (*pixels > 1 && !vk_can_build(lowering, dispatch))
        *pixels /= 2;
    return *pixels;
}

static enum inf_code bind_operands(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                   struct vk_conv *conv, struct inf_error *err)
{
    struct vk_conv_weights *weights = &conv->weights;
    weights->group_blocks = (weights->group_out + 3) / 4;
    size_t row_bytes = (size_t)weights->groups * weights->group_blocks * 16;
    size_t depth = (size_t)weights->taps * weights->group_in;
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_weights(lowering, dispatch, depth * row_bytes, fill_weights, weights, err));
    INF_TRY(vk_conv_bind_channels(lowering, dispatch, conv, weights->group_blocks, err));
    if (dispatch->variant.shader == INF_SHADER_CONV)
        INF_TRY(vk_conv_bind_added(lowering, dispatch, conv, err));
    return vk_bind_value(lowering, dispatch, conv->y, err);
}

static void finish_window(struct vk_conv *conv, uint32_t pixels)
{
    struct vk_window *window = &conv->window;
    window->group_blocks = conv->weights.group_blocks;
    window->blocks = conv->weights.groups * window->group_blocks;
    window->strips = (window->out_w + pixels - 1) / pixels;
    window->count = conv->images * window->out_h * window->strips * window->blocks;
    window->low = conv->activation.low;
    window->high = conv->activation.high;
}

// Emits conv.comp. An invocation computes four channels of a strip of pixels.
static enum inf_code emit_strips(struct vk_lowering *lowering, struct vk_conv *conv,
                                 struct inf_error *err)
{
    struct vk_window *window = &conv->window;
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_CONV,
                    {conv->activation.function, strip_pixels(lowering, window->out_w),
                     window->group_in % 4 == 0 && window->in_c % 4 == 0,
                     window->group_out % 4 == 0 && window->out_c % 4 == 0, conv->transposed,
                     conv->activation.prelu, conv->one_tap, vk_conv_added_mode(conv)}}};
    INF_TRY(bind_operands(lowering, &dispatch, conv, err));
    vk_read_through_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_read_through_view(lowering, &dispatch, 1, true);
    finish_window(conv, reduce_pixels(lowering, &dispatch));
    dispatch.invocations = window->count;
    dispatch.cost = vk_conv_macs(conv);
    vk_set_push_constants(&dispatch, window, sizeof(*window));
    return vk_emit_dispatch(lowering, &dispatch, err);
}

enum inf_code vk_emit_conv(struct vk_lowering *lowering, struct vk_conv *conv,
                           struct inf_error *err)
{
    struct vk_window *window = &conv->window;
    INF_TRY(check_activation(lowering, conv, err));
    conv->one_tap = conv->weights.taps == 1 && window->pad_top == 0 && window->pad_left == 0 &&
                    !conv->transposed && (window->out_h - 1) * window->stride_h < window->in_h &&
                    (window->out_w - 1) * window->stride_w < window->in_w;
    if (conv->one_tap && window->stride_h == 1 && window->stride_w == 1 &&
        window->in_w == window->out_w && window->in_h == window->out_h) {
        // Treat all pixels of a 1x1 convolution as one long row, because its result does not depend
        // on rows. Fewer pixels beyond the end of a row are then computed in vain.
        window->in_w = window->out_w = conv->images * window->out_h * window->out_w;
        window->in_h = window->out_h = conv->images = 1;
    }
    window->group_in = conv->weights.group_in;
    window->group_out = conv->weights.group_out;
    bool built = false;
    if (vk_conv_is_winograd(lowering, conv))
        INF_TRY(vk_emit_winograd(lowering, conv, &built, err));
    if (!built && vk_conv_is_tiled(lowering, conv))
        INF_TRY(vk_emit_tiles(lowering, conv, &built, err));
    if (built)
        return INF_OK;
    return emit_strips(lowering, conv, err);
}

enum inf_code vk_lower_conv2d(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1);
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(filter), err));
    struct vk_conv conv = {.activation = vk_node_activation(lowering->node),
                           .bias_index = 2,
                           .images = (uint32_t)x->dims[0]};
    vk_window_init(&conv.window, lowering, x, vk_output_shape(lowering, 0));
    uint32_t groups = (uint32_t)lowering->node->attrs.conv2d.groups;
    uint32_t in = (uint32_t)filter->dims[2], out = (uint32_t)filter->dims[3];
    conv.weights = (struct vk_conv_weights){
        .from = vk_const_f32(lowering, 1),
        .taps = conv.window.kernel_h * conv.window.kernel_w,
        .group_in = in,
        .group_out = out / groups,
        .groups = groups,
        .tap_stride = (size_t)in * out,
        .in_stride = out,
        .out_stride = 1,
    };
    return vk_emit_conv(lowering, &conv, err);
}

enum inf_code vk_lower_conv2d_transpose(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1); // filter layout: [kh,kw,co,ci]
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(filter), err));
    struct vk_conv conv = {.activation = vk_node_activation(lowering->node),
                           .bias_index = 3,
                           .images = (uint32_t)x->dims[0]};
    vk_window_init(&conv.window, lowering, x, vk_output_shape(lowering, 0));
    uint32_t out = (uint32_t)filter->dims[2], in = (uint32_t)filter->dims[3];
    conv.weights = (struct vk_conv_weights){
        .from = vk_const_f32(lowering, 1),
        .taps = conv.window.kernel_h * conv.window.kernel_w,
        .group_in = in,
        .group_out = out,
        .groups = 1,
        .tap_stride = (size_t)in * out,
        .in_stride = 1,
        .out_stride = in,
    };
    conv.transposed = true;
    return vk_emit_conv(lowering, &conv, err);
}

// The number of rows that an invocation of a depthwise convolution computes. On a GPU the sums of
// these rows must fit into registers; llvmpipe keeps the sums in memory.
#define DEPTHWISE_ROWS          2
#define DEPTHWISE_ROWS_SOFTWARE 4

// Returns true if the window is square and of a common size, so that the shader can have its size
// as one specialisation constant.
static bool is_square(const struct vk_window *window)
{
    return window->kernel_h == window->kernel_w && window->stride_h == window->stride_w &&
           window->dilation_h == 1 && window->dilation_w == 1 &&
           (window->kernel_h == 3 || window->kernel_h == 5) && window->stride_h <= 2;
}

enum inf_code vk_lower_depthwise(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1); // filter layout: [kh,kw,c,m]
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(filter), err));
    struct vk_conv conv = {.activation = vk_node_activation(lowering->node),
                           .bias_index = 2,
                           .images = (uint32_t)x->dims[0]};
    struct vk_window *window = &conv.window;
    vk_window_init(window, lowering, x, vk_output_shape(lowering, 0));
    INF_TRY(check_activation(lowering, &conv, err));
    conv.weights = (struct vk_conv_weights){
        .from = vk_const_f32(lowering, 1),
        .taps = window->kernel_h * window->kernel_w,
        .group_in = 1,
        .group_out = window->out_c,
        .groups = 1,
        .tap_stride = window->out_c,
        .in_stride = 1,
        .out_stride = 1,
    };
    window->group_in = 1;
    window->group_out = (uint32_t)filter->dims[3];
    // For a square window, an invocation computes several rows and loads each pixel once for them.
    bool software = lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE;
    uint32_t kernel =
        is_square(window) && (software || window->kernel_h == 3) ? window->kernel_h : 0;
    uint32_t rows = software ? DEPTHWISE_ROWS_SOFTWARE : DEPTHWISE_ROWS;
    if (kernel == 0 || window->out_h == 1)
        rows = 1;
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_DEPTHWISE,
                    {conv.activation.function,
                     INF_MIN(strip_pixels(lowering, window->out_w), kernel != 0 ? 4u : 8u),
                     window->out_c % 4 == 0 && window->group_out == 1, conv.activation.prelu,
                     kernel, kernel != 0 ? window->stride_h : 1, rows}}};
    INF_TRY(bind_operands(lowering, &dispatch, &conv, err));
    vk_read_through_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_read_through_view(lowering, &dispatch, 1, true);
    finish_window(&conv, reduce_pixels(lowering, &dispatch));
    window->count =
        conv.images * ((window->out_h + rows - 1) / rows) * window->strips * window->blocks;
    dispatch.invocations = window->count;
    dispatch.cost = vk_conv_macs(&conv);
    vk_set_push_constants(&dispatch, window, sizeof(*window));
    return vk_emit_dispatch(lowering, &dispatch, err);
}
