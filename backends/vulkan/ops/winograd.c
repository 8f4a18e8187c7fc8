// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 by Winograd's algorithm, in the form F(4) of backends/base/winograd.h.
//
// The problem: a tile of 4x4 results of a 3x3 convolution takes 16 * 9 = 144 multiply-adds for each
// pair of channels.
//
// The idea: transform the 6x6 inputs d of the tile, and the weights g, multiply element by element,
// and transform back: Y = A' [(G g G') * (B' d B)] A, where ' is the transpose. This takes 36
// multiply-adds. The element-wise product of all tiles and channels is 36 matrix products:
//
//     dispatch 1 (winograd_in):   x  -> 36 matrices [tiles][input channels]
//     dispatch 2 (conv_tile):     36 products with G g G', computed when the program is compiled
//     dispatch 3 (winograd_out):  36 matrices [tiles][output channels] -> y
//
// The matrices are larger than x and y. Therefore the three dispatches repeat for parts of the
// tiles; the matrices of a part fit into BETWEEN_BYTES, which stays in the cache.
//
// Rounding errors grow by about an order of magnitude, so weights in 16 bits are excluded.
#include "backends/base/winograd.h"
#include "backends/vulkan/ops/conv.h"

// A tile of results has PIXELS x PIXELS pixels. Its transformed inputs have SIDE x SIDE numbers,
// one in each of the MATRICES matrices.
#define SIDE     6u
#define MATRICES (SIDE * SIDE)
#define PIXELS   4u

// Parameters of conv_tile.comp: LANES invocations in a work group, each of which computes ELEMENTS
// pixels of VECTORS vectors of four channels.
#define LANES    8u
#define ELEMENTS 4u
#define VECTORS  4u
#define ACROSS   (VECTORS * 4)
// The number of Winograd tiles that one work group of conv_tile.comp computes. All of them belong
// to the same one of the 36 matrices.
#define UNIT (LANES * ELEMENTS)

// The most bytes of intermediate matrices that one repetition of the three dispatches writes.
#define BETWEEN_BYTES ((size_t)6 << 20)

// Winograd's algorithm is used only for images with at least this many pixels and convolutions with
// at least this many channels, because it was measured to be slower for smaller ones:
// docs/explanation/vulkan.md.
#define PICTURE_MIN  (28u * 28)
#define CHANNELS_MIN 24u

// The push constants of lib/winograd.glsl.
struct tiles {
    uint32_t count, first, stride;
    uint32_t tiles_h, tiles_w;
    uint32_t in_h, in_w, out_h, out_w;
    uint32_t blocks;
    int32_t pad_top, pad_left;
    float low, high;
    uint32_t added;
};

// The three dispatches of the algorithm (transform, multiply, transform back), and the sizes of the
// matrices between them.
struct winograd {
    struct vk_dispatch in, product, out;
    struct tiles tiles;
    uint32_t total; // number of tiles
    // Size of the input matrices, and of the input and output matrices together.
    size_t in_bytes, bytes;
    uint32_t in_c, out_c;
};

bool vk_conv_is_winograd(const struct vk_lowering *lowering, const struct vk_conv *conv)
{
    const struct vk_window *window = &conv->window;
    return lowering->gpu->subgroup_tiles && conv->weights.groups == 1 && !conv->transposed &&
           !lowering->half_weights && window->kernel_h == 3 && window->kernel_w == 3 &&
           window->stride_h == 1 && window->stride_w == 1 && window->dilation_h == 1 &&
           window->dilation_w == 1 && window->in_c % 4 == 0 && window->out_c % 4 == 0 &&
           INF_MIN(window->in_c, window->out_c) >= CHANNELS_MIN &&
           window->out_h * window->out_w >= PICTURE_MIN;
}

// Writes weights in the layout [matrix][block of 16 output channels][input channel][output channel
// of the block].
static void fill_matrices(void *bytes, const void *context)
{
    // The transforms in shaders/winograd_in.comp and winograd_out.comp use the same points.
    static const struct inf_winograd_form form = {2, {1, 2}};
    double transform[INF_WINOGRAD_SIDE_MAX][3];
    const struct vk_conv_weights *weights = context;
    size_t blocks = (weights->group_out + ACROSS - 1) / ACROSS;
    inf_winograd_weight_matrix(&form, transform);
    for (uint32_t out = 0; out < weights->group_out; out++) {
        for (uint32_t in = 0; in < weights->group_in; in++) {
            const float *from = weights->from + out * weights->out_stride + in * weights->in_stride;
            float *to = (float *)bytes + (out / ACROSS * (size_t)weights->group_in + in) * ACROSS +
                        out % ACROSS;
            for (uint32_t m = 0; m < MATRICES; m++, to += blocks * weights->group_in * ACROSS) {
                double sum = 0;
                for (uint32_t tap = 0; tap < 9; tap++)
                    sum += transform[m / SIDE][tap / 3] * transform[m % SIDE][tap % 3] *
                           (double)from[tap * weights->tap_stride];
                *to = (float)sum;
            }
        }
    }
}

static void fill_zeros(void *bytes, const void *context)
{
    (void)bytes;
    (void)context;
}

// Chooses how many tiles each repetition computes. The parts are nearly equal, so that no
// repetition is much smaller than the others.
static void choose_parts(struct winograd *winograd, const struct vk_conv *conv)
{
    const struct vk_window *window = &conv->window;
    struct tiles *tiles = &winograd->tiles;
    *tiles = (struct tiles){.tiles_h = (window->out_h + PIXELS - 1) / PIXELS,
                            .tiles_w = (window->out_w + PIXELS - 1) / PIXELS,
                            .in_h = window->in_h,
                            .in_w = window->in_w,
                            .out_h = window->out_h,
                            .out_w = window->out_w,
                            .pad_top = window->pad_top,
                            .pad_left = window->pad_left,
                            .low = conv->activation.low,
                            .high = conv->activation.high,
                            .added = window->added};
    winograd->in_c = window->in_c;
    winograd->out_c = window->out_c;
    winograd->total = conv->images * tiles->tiles_h * tiles->tiles_w;
    size_t tile_bytes = MATRICES * sizeof(float) * ((size_t)window->in_c + window->out_c);
    uint32_t most = (uint32_t)INF_MAX(BETWEEN_BYTES / tile_bytes, (size_t)UNIT);
    uint32_t parts = (winograd->total + most - 1) / most;
    tiles->stride = ((winograd->total + parts - 1) / parts + UNIT - 1) / UNIT * UNIT;
    winograd->in_bytes = MATRICES * sizeof(float) * tiles->stride * window->in_c;
    winograd->bytes = tile_bytes * tiles->stride;
}

static enum inf_code bind_product(struct vk_lowering *lowering, struct winograd *winograd,
                                  const struct vk_conv *conv, struct inf_error *err)
{
    struct vk_dispatch *product = &winograd->product;
    uint32_t stride = winograd->tiles.stride, blocks = (winograd->out_c + ACROSS - 1) / ACROSS;
    // A subgroup loads whole vectors of weights, so memory is reserved after the last ones.
    size_t size_bytes =
        MATRICES * (size_t)blocks * winograd->in_c * ACROSS * sizeof(float) + LANES * 16;
    *product = (struct vk_dispatch){
        .variant = {INF_SHADER_CONV_TILE,
                    {FN_NONE, ELEMENTS, 4, true, false, false, true, ADDED_NOTHING, VECTORS, true}},
        .invocations = blocks * (MATRICES * stride / ELEMENTS),
        .cost = (uint64_t)MATRICES * stride * winograd->in_c * winograd->out_c};
    INF_TRY(vk_bind_scratch(lowering, product, 0, winograd->in_bytes, err));
    vk_read_through_view(lowering, product, 0, true);
    INF_TRY(vk_bind_packed(lowering, product, size_bytes, fill_matrices, &conv->weights, err));
    vk_read_through_view(lowering, product, 1, true);
    INF_TRY(vk_bind_packed(lowering, product, (size_t)blocks * ACROSS * sizeof(float), fill_zeros,
                           NULL, err));
    // The product adds no residual, but its binding must not be empty, so bind scratch memory.
    INF_TRY(vk_bind_scratch(lowering, product, 0, winograd->in_bytes, err));
    vk_read_through_view(lowering, product, 3, true);
    const struct vk_window window = {.in_h = MATRICES,
                                     .in_w = stride,
                                     .in_c = winograd->in_c,
                                     .out_h = MATRICES,
                                     .out_w = stride,
                                     .out_c = winograd->out_c,
                                     .kernel_h = 1,
                                     .kernel_w = 1,
                                     .stride_h = 1,
                                     .stride_w = 1,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .strips = MATRICES * stride,
                                     .blocks = winograd->out_c / 4,
                                     .group_blocks = blocks,
                                     .group_in = winograd->in_c,
                                     .group_out = winograd->out_c};
    vk_set_push_constants(product, &window, sizeof(window));
    return vk_bind_scratch(lowering, product, winograd->in_bytes,
                           winograd->bytes - winograd->in_bytes, err);
}

static enum inf_code bind_transforms(struct vk_lowering *lowering, struct winograd *winograd,
                                     const struct vk_conv *conv, struct inf_error *err)
{
    struct vk_dispatch *in = &winograd->in, *out = &winograd->out;
    *in = (struct vk_dispatch){.variant = {INF_SHADER_WINOGRAD_IN, {0}}};
    INF_TRY(vk_bind_value(lowering, in, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, in, 0, true);
    INF_TRY(vk_bind_scratch(lowering, in, 0, winograd->in_bytes, err));
    *out = (struct vk_dispatch){
        .variant = {INF_SHADER_WINOGRAD_OUT,
                    {conv->activation.function, conv->activation.prelu, vk_conv_added_mode(conv)}}};
    INF_TRY(vk_bind_scratch(lowering, out, winograd->in_bytes, winograd->bytes - winograd->in_bytes,
                            err));
    vk_read_through_view(lowering, out, 0, true);
    INF_TRY(vk_conv_bind_channels(lowering, out, conv, winograd->out_c / 4, err));
    INF_TRY(vk_conv_bind_added(lowering, out, conv, err));
    return vk_bind_value(lowering, out, conv->y, err);
}

// Emits the transformation of the input or of the output, for the Winograd tiles from `first` on.
static enum inf_code emit_transform(struct vk_lowering *lowering, const struct winograd *winograd,
                                    struct vk_dispatch *dispatch, uint32_t first, uint32_t channels,
                                    struct inf_error *err)
{
    struct tiles tiles = winograd->tiles;
    tiles.first = first;
    tiles.blocks = channels / 4;
    tiles.count = INF_MIN(winograd->total - first, tiles.stride) * tiles.blocks;
    dispatch->invocations = tiles.count;
    dispatch->cost = (uint64_t)tiles.count * MATRICES * 4;
    vk_set_push_constants(dispatch, &tiles, sizeof(tiles));
    return vk_emit_dispatch(lowering, dispatch, err);
}

enum inf_code vk_emit_winograd(struct vk_lowering *lowering, const struct vk_conv *conv,
                               bool *out_built, struct inf_error *err)
{
    struct winograd winograd;
    *out_built = false;
    choose_parts(&winograd, conv);
    if (winograd.bytes > lowering->gpu->properties.limits.maxStorageBufferRange)
        return INF_OK;
    INF_TRY(bind_product(lowering, &winograd, conv, err));
    INF_TRY(bind_transforms(lowering, &winograd, conv, err));
    if (!vk_can_build(lowering, &winograd.in) || !vk_can_build(lowering, &winograd.product) ||
        !vk_can_build(lowering, &winograd.out))
        return INF_OK;
    for (uint32_t first = 0; first < winograd.total; first += winograd.tiles.stride) {
        INF_TRY(emit_transform(lowering, &winograd, &winograd.in, first, winograd.in_c, err));
        INF_TRY(vk_emit_dispatch(lowering, &winograd.product, err));
        INF_TRY(emit_transform(lowering, &winograd, &winograd.out, first, winograd.out_c, err));
    }
    *out_built = true;
    return INF_OK;
}
