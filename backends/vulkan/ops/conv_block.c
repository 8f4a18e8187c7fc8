// SPDX-License-Identifier: Apache-2.0
// Convolutions with the shader conv_block.comp, which see it for the algorithm.
#include "backends/vulkan/ops/conv_strips.h"

enum inf_code vk_emit_blocks(struct vk_lowering *lowering, struct vk_conv *conv, uint32_t pixels,
                             uint32_t vectors, bool *out_built, struct inf_error *err)
{
    struct vk_window window = conv->window;
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_CONV_BLOCK,
                    {conv->activation.function, pixels, window.in_c % 4 == 0, window.out_c % 4 == 0,
                     conv->transposed, conv->activation.prelu, conv->one_tap,
                     vk_conv_added_mode(conv), vectors},
                    .group_size = BLOCK_SIDE * BLOCK_SIDE},
        .cost = vk_conv_macs(conv)};
    INF_TRY(vk_conv_bind_operands(lowering, &dispatch, conv, err));
    vk_read_through_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_read_through_view(lowering, &dispatch, 1, true);
    *out_built = vk_can_build(lowering, &dispatch);
    if (!*out_built)
        return INF_OK;
    window.strips = conv->images * window.out_h * window.out_w;
    window.blocks = conv->weights.group_blocks;
    window.low = conv->activation.low;
    window.high = conv->activation.high;
    uint32_t rows = BLOCK_SIDE * pixels, columns = BLOCK_SIDE * vectors;
    uint32_t tiles = (window.blocks + columns - 1) / columns;
    dispatch.invocations = (window.strips + rows - 1) / rows * tiles * dispatch.variant.group_size;
    vk_set_push_constants(&dispatch, &window, sizeof(window));
    return vk_emit_dispatch(lowering, &dispatch, err);
}
