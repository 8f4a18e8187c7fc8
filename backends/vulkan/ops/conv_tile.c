// SPDX-License-Identifier: Apache-2.0
// Convolutions with the shader conv_tile.comp.
//
// The idea: an invocation computes a tile of pixels times output channels with all sums in
// registers. In a subgroup of eight invocations each invocation loads one vector of weights, and
// all eight read it by a shuffle, so that eight loads of pixels share eight loads of weights:
//
//     invocation 0: pixels  0..3   x  channels 0..15       weights w0 w1 .. w7 are loaded once,
//     invocation 1: pixels  4..7   x  channels 0..15       one by each invocation of the subgroup
//     ...
#include "backends/vulkan/ops/conv.h"

#define LANES 8
_Static_assert(VK_TILE_SPARE_BYTES == LANES * 16, "a vector for each invocation");

// The tile that an invocation computes: a number of pixels, and a number of vectors of four
// channels. 64 sums in total were fastest on llvmpipe; more do not fit into registers.
#define PIXELS  4
#define VECTORS (VK_TILE_CHANNELS / 4)

// An image with fewer pixels is not computed in tiles, because most pixels of a tile would be
// computed in vain.
#define PIXELS_MIN 4

static uint32_t count_pixels(const struct vk_conv *conv)
{
    return conv->images * conv->window.out_h * conv->window.out_w;
}

bool vk_conv_is_tiled(const struct vk_lowering *lowering, const struct vk_conv *conv)
{
    return lowering->gpu->subgroup_tiles && conv->weights.groups == 1 &&
           count_pixels(conv) >= PIXELS_MIN;
}

// Returns the number of pixels that an invocation computes. It is smaller if many pixels of the
// last tile would be computed in vain.
static uint32_t choose_pixels(uint32_t pixels)
{
    uint32_t each = PIXELS;
    while (each > 1 &&
           vk_round_up(pixels, each * LANES) >= 2 * vk_round_up(pixels, each / 2 * LANES))
        each /= 2;
    return each;
}

// The context of fill_tiles(), which writes the packed weights of a convolution.
struct tiles {
    const struct vk_conv_weights *weights;
    uint32_t across; // number of channels in a tile
};

// Writes weights in the layout [tile][tap][input channel][output channel of the tile].
static void fill_tiles(void *bytes, const void *context)
{
    const struct tiles *tiles = context;
    const struct vk_conv_weights *weights = tiles->weights;
    uint32_t across = tiles->across;
    for (uint32_t out = 0; out < weights->group_out; out++) {
        float *to = (float *)bytes +
                    (size_t)(out / across) * weights->taps * weights->group_in * across +
                    out % across;
        const float *from = weights->from + out * weights->out_stride;
        for (uint32_t tap = 0; tap < weights->taps; tap++)
            for (uint32_t in = 0; in < weights->group_in; in++, to += across)
                *to = from[tap * weights->tap_stride + in * weights->in_stride];
    }
}

uint64_t vk_tile_iterations(uint32_t taps, uint32_t channels, uint32_t step)
{
    // Subgroups load a step's weights in a loop, which the compiler does not always unroll.
    uint32_t loads = (step * VECTORS + LANES - 1) / LANES;
    struct vk_loops weights = step == 4 ? VK_NO_LOOPS : vk_loop(loads, VK_NO_LOOPS);
    return vk_loop((uint64_t)taps * (channels / step), weights).run;
}

static enum inf_code bind_operands(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                   struct vk_conv *conv, uint32_t tile_count, struct inf_error *err)
{
    const struct tiles tiles = {&conv->weights, VK_TILE_CHANNELS};
    // A subgroup loads whole vectors of weights, so reserve extra memory after the last weights.
    size_t size_bytes =
        (size_t)tile_count * conv->weights.taps * conv->weights.group_in * VECTORS * 16 +
        VK_TILE_SPARE_BYTES;
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, dispatch, 0, dispatch->variant.constants[2] == 4);
    if (dispatch->variant.constants[2] == 3)
        dispatch->operands[0].texel = VK_TEXEL_TRIPLE;
    if (conv->weights.in_scratch)
        INF_TRY(vk_bind_scratch(lowering, dispatch, 0, size_bytes, err));
    else
        INF_TRY(vk_bind_weights(lowering, dispatch, size_bytes, fill_tiles, &tiles, err));
    vk_read_through_view(lowering, dispatch, 1, true);
    INF_TRY(vk_conv_bind_channels(lowering, dispatch, conv, tile_count * VECTORS, err));
    INF_TRY(vk_conv_bind_added(lowering, dispatch, conv, err));
    return vk_bind_value(lowering, dispatch, conv->y, err);
}

// Returns how many input channels the shader reads in one step: the size of the largest texel that
// divides the number of channels.
static uint32_t channel_step(const struct vk_lowering *lowering, uint32_t channels)
{
    if (channels % 4 == 0)
        return 4;
    return channels % 3 == 0 && lowering->gpu->texel_triples ? 3 : 1;
}

enum inf_code vk_emit_tiles(struct vk_lowering *lowering, struct vk_conv *conv, bool *out_built,
                            struct inf_error *err)
{
    struct vk_window window = conv->window;
    uint32_t pixels = count_pixels(conv), each = choose_pixels(pixels);
    uint32_t tile_count = (window.group_out + VK_TILE_CHANNELS - 1) / VK_TILE_CHANNELS;
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_CONV_TILE,
                    {conv->activation.function, each, channel_step(lowering, window.group_in),
                     window.out_c % 4 == 0, conv->transposed, conv->activation.prelu, conv->one_tap,
                     vk_conv_added_mode(conv), VECTORS}},
        .invocations = tile_count * (vk_round_up(pixels, each * LANES) / each),
        .cost = vk_conv_macs(conv)};
    INF_TRY(bind_operands(lowering, &dispatch, conv, tile_count, err));
    *out_built = vk_can_build(lowering, &dispatch);
    if (!*out_built)
        return INF_OK;
    window.group_blocks = tile_count;
    window.blocks = (window.out_c + 3) / 4;
    window.strips = pixels;
    window.low = conv->activation.low;
    window.high = conv->activation.high;
    vk_set_push_constants(&dispatch, &window, sizeof(window));
    uint64_t iterations =
        vk_tile_iterations(conv->weights.taps, window.group_in, dispatch.variant.constants[2]);
    return vk_emit_dispatch(lowering, &dispatch, iterations, err);
}
