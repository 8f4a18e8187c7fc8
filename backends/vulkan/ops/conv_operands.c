// SPDX-License-Identifier: Apache-2.0
// Describes convolutions, and products with a constant matrix as convolutions, and binds the
// operands that all convolution shaders share.
#include "backends/vulkan/ops/conv.h"

// The bias and slopes of the output channels, which are packed in blocks of four like the weights.
struct channels {
    const float *bias, *slopes; // NULL: the convolution has none
    uint32_t group_out, groups, group_blocks;
};

static void fill_channels(void *bytes, const void *context)
{
    const struct channels *channels = context;
    float *bias = bytes, *slopes = bias + (size_t)channels->groups * channels->group_blocks * 4;
    for (uint32_t out = 0; out < channels->groups * channels->group_out; out++) {
        uint32_t at =
            out / channels->group_out * channels->group_blocks * 4 + out % channels->group_out;
        if (channels->bias != NULL)
            bias[at] = channels->bias[out];
        if (channels->slopes != NULL)
            slopes[at] = channels->slopes[out];
    }
}

enum inf_code vk_conv_bind_channels(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                    const struct vk_conv *conv, uint32_t group_blocks,
                                    struct inf_error *err)
{
    struct channels channels = {
        .bias = vk_const_data(lowering, conv->bias_index),
        .slopes = conv->slopes,
        .group_out = conv->weights.group_out,
        .groups = conv->weights.groups,
        .group_blocks = group_blocks,
    };
    size_t row_bytes = (size_t)conv->weights.groups * group_blocks * 16;
    return vk_bind_packed(lowering, dispatch, row_bytes * (conv->activation.prelu ? 2 : 1),
                          fill_channels, &channels, err);
}

uint32_t vk_conv_added_mode(const struct vk_conv *conv)
{
    if (conv->added == INF_VALUE_NONE)
        return ADDED_NOTHING;
    return conv->window.added % 4 == 0 ? ADDED_VECTORS : ADDED_NUMBERS;
}

enum inf_code vk_conv_bind_added(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                 const struct vk_conv *conv, struct inf_error *err)
{
    bool adds = conv->added != INF_VALUE_NONE;
    uint32_t index = dispatch->operand_count;
    INF_TRY(vk_bind_value(lowering, dispatch, adds ? conv->added : lowering->node->inputs[0], err));
    vk_read_through_view(lowering, dispatch, index, vk_conv_added_mode(conv) != ADDED_NUMBERS);
    return INF_OK;
}

uint64_t vk_conv_macs(const struct vk_conv *conv)
{
    const struct vk_window *window = &conv->window;
    return (uint64_t)conv->images * window->out_h * window->out_w * window->out_c *
           conv->weights.taps * conv->weights.group_in;
}

void vk_conv_flatten(struct vk_conv *conv)
{
    struct vk_window *window = &conv->window;
    conv->one_tap = conv->weights.taps == 1 && window->pad_top == 0 && window->pad_left == 0 &&
                    !conv->transposed && (window->out_h - 1) * window->stride_h < window->in_h &&
                    (window->out_w - 1) * window->stride_w < window->in_w;
    if (!conv->one_tap || window->stride_h != 1 || window->stride_w != 1 ||
        window->in_w != window->out_w || window->in_h != window->out_h)
        return;
    window->in_w = window->out_w = conv->images * window->out_h * window->out_w;
    window->in_h = window->out_h = conv->images = 1;
}

void vk_conv_init_filter(struct vk_conv *conv, const struct vk_lowering *lowering, uint32_t groups)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1);
    uint32_t in = (uint32_t)filter->dims[2], out = (uint32_t)filter->dims[3];
    conv->images = (uint32_t)x->dims[0];
    vk_window_init(&conv->window, lowering, x, vk_output_shape(lowering, 0));
    conv->weights = (struct vk_conv_weights){.taps = conv->window.kernel_h * conv->window.kernel_w,
                                             .group_in = in,
                                             .group_out = out / groups,
                                             .groups = groups,
                                             .tap_stride = (size_t)in * out,
                                             .in_stride = out,
                                             .out_stride = 1};
}

void vk_conv_init_rows(struct vk_conv *conv, uint32_t rows, uint32_t k, uint32_t n, bool transposed)
{
    conv->images = 1;
    conv->window = (struct vk_window){.in_h = 1,
                                      .in_w = rows,
                                      .in_c = k,
                                      .out_h = 1,
                                      .out_w = rows,
                                      .out_c = n,
                                      .kernel_h = 1,
                                      .kernel_w = 1,
                                      .stride_h = 1,
                                      .stride_w = 1,
                                      .dilation_h = 1,
                                      .dilation_w = 1};
    conv->weights = (struct vk_conv_weights){.taps = 1,
                                             .group_in = k,
                                             .group_out = n,
                                             .groups = 1,
                                             .in_stride = transposed ? 1 : n,
                                             .out_stride = transposed ? k : 1};
}
