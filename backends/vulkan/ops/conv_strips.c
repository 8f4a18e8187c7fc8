// SPDX-License-Identifier: Apache-2.0
// Convolutions with the shader conv.comp, and the operands of all shaders whose weights are in
// blocks of four output channels.
#include "backends/vulkan/ops/conv_strips.h"

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

// On a GPU sixteen sums fill the registers of an invocation; llvmpipe keeps the sums in memory.
uint32_t vk_strip_pixels(const struct vk_lowering *lowering, uint32_t width)
{
    bool software = lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE;
    for (uint32_t pixels = software ? 16 : 8; pixels > 1; pixels /= 2) {
        uint32_t made = (width + pixels - 1) / pixels * pixels;
        if (made - width <= width / 7)
            return pixels;
    }
    return 1;
}

uint32_t vk_reduce_pixels(struct vk_lowering *lowering, struct vk_dispatch *dispatch)
{
    uint32_t *pixels = &dispatch->variant.constants[1];
    while (*pixels > 1 && !vk_can_build(lowering, dispatch))
        *pixels /= 2;
    return *pixels;
}

enum inf_code vk_conv_bind_operands(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                    struct vk_conv *conv, struct inf_error *err)
{
    struct vk_conv_weights *weights = &conv->weights;
    weights->group_blocks = (weights->group_out + 3) / 4;
    size_t row_bytes = (size_t)weights->groups * weights->group_blocks * 16;
    size_t depth = (size_t)weights->taps * weights->group_in;
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->inputs[0], err));
    if (weights->in_scratch)
        INF_TRY(vk_bind_scratch(lowering, dispatch, 0, depth * row_bytes, err));
    else
        INF_TRY(vk_bind_weights(lowering, dispatch, depth * row_bytes, fill_weights, weights, err));
    INF_TRY(vk_conv_bind_channels(lowering, dispatch, conv, weights->group_blocks, err));
    if (dispatch->variant.shader != INF_SHADER_DEPTHWISE)
        INF_TRY(vk_conv_bind_added(lowering, dispatch, conv, err));
    return vk_bind_value(lowering, dispatch, conv->y, err);
}

void vk_conv_finish_window(struct vk_conv *conv, uint32_t pixels)
{
    struct vk_window *window = &conv->window;
    window->group_blocks = conv->weights.group_blocks;
    window->blocks = conv->weights.groups * window->group_blocks;
    window->strips = (window->out_w + pixels - 1) / pixels;
    window->count = conv->images * window->out_h * window->strips * window->blocks;
    window->low = conv->activation.low;
    window->high = conv->activation.high;
}

enum inf_code vk_emit_strips(struct vk_lowering *lowering, struct vk_conv *conv, uint32_t pixels,
                             struct inf_error *err)
{
    struct vk_window *window = &conv->window;
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_CONV,
                    {conv->activation.function, pixels,
                     window->group_in % 4 == 0 && window->in_c % 4 == 0,
                     window->group_out % 4 == 0 && window->out_c % 4 == 0, conv->transposed,
                     conv->activation.prelu, conv->one_tap, vk_conv_added_mode(conv)}}};
    INF_TRY(vk_conv_bind_operands(lowering, &dispatch, conv, err));
    vk_read_through_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_read_through_view(lowering, &dispatch, 1, true);
    vk_conv_finish_window(conv, vk_reduce_pixels(lowering, &dispatch));
    dispatch.invocations = window->count;
    dispatch.cost = vk_conv_macs(conv);
    vk_set_push_constants(&dispatch, window, sizeof(*window));
    uint32_t step = dispatch.variant.constants[2] != 0 ? 4 : 1; // channels of an iteration
    struct vk_loops channels = vk_loop((window->group_in + step - 1) / step, VK_NO_LOOPS);
    return vk_emit_dispatch(lowering, &dispatch, vk_window_loops(window, channels).run, err);
}
