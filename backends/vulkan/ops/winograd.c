// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 by Winograd's algorithm, in the forms F(2) and F(4) of
// backends/base/winograd.h.
//
// The problem: a tile of 4x4 results of a 3x3 convolution takes 16 * 9 = 144 multiply-adds for each
// pair of channels.
//
// The idea: transform the 6x6 inputs d of the tile, and the weights g, multiply element by element,
// and transform back: Y = A' [(G g G') * (B' d B)] A, where ' is the transpose. This takes 36
// multiply-adds. The element-wise product of all tiles and channels is 36 matrix products:
//
//     dispatch 1 (winograd_in):   x  -> 36 matrices [tiles][input channels]
//     dispatch 2:                 36 products with G g G', computed when the program is compiled
//     dispatch 3 (winograd_out):  36 matrices [tiles][output channels] -> y
//
// F(2) computes a tile of 2x2 results from 4x4 inputs by 16 products instead of 36. It transforms
// and stores more numbers for each result, and its rounding errors are smaller.
//
// The products are computed by conv_tile.comp on devices with subgroups of eight, or by a shader
// for products of two tensors. The matrices of the latter have rows of whole vectors: channels are
// padded with zeros to a multiple of four.
//
// The matrices are larger than x and y. Therefore the three dispatches repeat for parts of the
// tiles, so that the matrices of a part stay in the cache.
//
// Rounding errors of F(4) grow by about an order of magnitude, so its matrices and weights are
// never in 16 bits. Those of F(2) may be. Its transform of x adds four numbers, so pixels beyond a
// quarter of the range of 16 bits may overflow, which the shaders report.
#include "backends/vulkan/ops/winograd.h"

#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/winograd_weights.h"

// Parameters of conv_tile.comp: LANES invocations in a work group, each of which computes ELEMENTS
// pixels of VECTORS vectors of four channels.
#define LANES    8u
#define ELEMENTS 4u
#define VECTORS  (VK_TILE_CHANNELS / 4)
// The number of Winograd tiles that one work group of conv_tile.comp computes. All of them belong
// to the same one of the matrices.
#define UNIT (LANES * ELEMENTS)

// The most bytes of intermediate matrices that one repetition of the three dispatches writes, on
// software devices and on GPUs. The number for GPUs is a guess: a part of what their caches hold.
#define BETWEEN_BYTES_SOFTWARE ((size_t)6 << 20)
#define BETWEEN_BYTES          ((size_t)32 << 20)

// By the rule, Winograd's algorithm is used only for images with at least this many pixels and
// convolutions with at least this many channels, because it was measured to be slower for smaller
// ones: docs/measurements/vulkan.md.
#define RULE_PICTURE_MIN  (28u * 28)
#define RULE_CHANNELS_MIN 24u

// Winograd's algorithm does not race if there are fewer pairs of an input and an output channel
// than this: the transforms then take longer than the products.
#define PAIRS_MIN 256u

// The fewest pixels of an invocation of conv_block.comp. Larger blocks do not race if half of their
// rows or more would be computed in vain.
#define BLOCK_PIXELS_MIN 2u

// A method of this file: its form, and the method that computes the products.
static const struct kind {
    struct inf_winograd_form form; // the shaders use the same points
    enum vk_shader_method product;
    bool half; // the matrices and the transformed weights are stored in 16 bits
} kinds[VK_METHODS] = {
    [VK_BY_WINOGRAD] = {{2, {1, 2}}, VK_BY_TILES, false},
    [VK_BY_WINOGRAD_2] = {{1, {1}}, VK_BY_BLOCKS, false},
    [VK_BY_WINOGRAD_4] = {{2, {1, 2}}, VK_BY_BLOCKS, false},
    [VK_BY_WINOGRAD_2_F16] = {{1, {1}}, VK_BY_BLOCKS_F16, true},
    [VK_BY_WINOGRAD_2_MATRICES] = {{1, {1}}, VK_BY_MATRICES, true},
};

// The push constants of lib/winograd.glsl.
struct tiles {
    uint32_t count, first, stride;
    uint32_t tiles_h, tiles_w;
    uint32_t in_h, in_w, out_h, out_w;
    uint32_t channels;
    int32_t pad_top, pad_left;
    float low, high;
    uint32_t added;
};

// The three dispatches of the algorithm (transform, multiply, transform back), and the sizes of the
// matrices between them.
struct winograd {
    const struct kind *kind;
    uint32_t pixels, matrices; // of a tile: pixels of a row of results, and number of matrices
    uint32_t in_c, out_c;      // channels, rounded up to a multiple of four
    uint32_t total, part;      // number of tiles of the convolution and of a repetition
    // Sizes of the weights in 32 bits, and of the matrices before and after the products, in bytes.
    size_t weight_bytes, in_bytes, out_bytes;
    struct tiles tiles;
    struct vk_dispatch in, product, out;
    struct vk_shader_choice multiply; // the shader of the products, with its sizes
    struct vk_product pair;           // for shaders for products of two tensors
};

bool vk_is_winograd(enum vk_shader_method method)
{
    return kinds[method].form.pairs != 0;
}

// Chooses how many tiles each repetition computes. The parts are nearly equal, so that no
// repetition is much smaller than the others.
static void choose_parts(struct winograd *winograd, bool software)
{
    bool tiled = winograd->kind->product == VK_BY_TILES;
    uint32_t unit = tiled ? UNIT : 1;
    size_t element = winograd->matrices * (winograd->kind->half ? sizeof(uint16_t) : sizeof(float));
    size_t tile_bytes = element * (winograd->in_c + (size_t)winograd->out_c);
    size_t between = software ? BETWEEN_BYTES_SOFTWARE : BETWEEN_BYTES;
    uint32_t most = (uint32_t)INF_MAX(between / tile_bytes, (size_t)UNIT);
    uint32_t parts = (winograd->total + most - 1) / most;
    winograd->part = vk_round_up((winograd->total + parts - 1) / parts, unit);
    // The matrices after the products begin behind the others, at an offset that any device can
    // bind.
    winograd->in_bytes = (element * winograd->part * winograd->in_c + VK_SPAN_ALIGNMENT - 1) /
                         VK_SPAN_ALIGNMENT * VK_SPAN_ALIGNMENT;
    winograd->out_bytes = element * winograd->part * winograd->out_c;
    // A subgroup loads whole vectors of weights, so memory is reserved after the last ones.
    size_t columns = tiled ? vk_round_up(winograd->out_c, VK_TILE_CHANNELS) : winograd->out_c;
    winograd->weight_bytes = winograd->matrices * winograd->in_c * columns * sizeof(float) +
                             (tiled ? VK_TILE_SPARE_BYTES : 0);
}

// Describes the convolution by the choice. Leaves the dispatches empty.
static void init_winograd(struct winograd *winograd, const struct vk_lowering *lowering,
                          const struct vk_conv *conv, const struct vk_shader_choice *choice)
{
    const struct vk_window *window = &conv->window;
    const struct kind *kind = &kinds[choice->method];
    uint32_t pixels = inf_winograd_tile(&kind->form), side = inf_winograd_side(&kind->form);
    *winograd = (struct winograd){.kind = kind,
                                  .pixels = pixels,
                                  .matrices = side * side,
                                  .in_c = vk_round_up(window->in_c, 4),
                                  .out_c = vk_round_up(window->out_c, 4),
                                  .tiles = {.tiles_h = (window->out_h + pixels - 1) / pixels,
                                            .tiles_w = (window->out_w + pixels - 1) / pixels,
                                            .in_h = window->in_h,
                                            .in_w = window->in_w,
                                            .out_h = window->out_h,
                                            .out_w = window->out_w,
                                            .pad_top = window->pad_top,
                                            .pad_left = window->pad_left,
                                            .low = conv->activation.low,
                                            .high = conv->activation.high,
                                            .added = window->added},
                                  .multiply = {kind->product, choice->pixels, choice->vectors}};
    winograd->total = conv->images * winograd->tiles.tiles_h * winograd->tiles.tiles_w;
    choose_parts(winograd, lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE);
}

static bool is_simple_window(const struct vk_conv *conv)
{
    const struct vk_window *window = &conv->window;
    return conv->weights.groups == 1 && !conv->transposed && window->kernel_h == 3 &&
           window->kernel_w == 3 && window->stride_h == 1 && window->stride_w == 1 &&
           window->dilation_h == 1 && window->dilation_w == 1;
}

// Returns true if the device and the precision allow the shader of the products, and its blocks are
// not too large.
static bool can_multiply(const struct winograd *winograd, const struct vk_lowering *lowering,
                         const struct vk_conv *conv)
{
    const struct vk_gpu *gpu = lowering->gpu;
    if (winograd->kind->half && (!lowering->half_weights || !gpu->half_arithmetic))
        return false;
    switch (winograd->kind->product) {
    case VK_BY_TILES:
        return gpu->subgroup_tiles && conv->window.in_c % 4 == 0 && conv->window.out_c % 4 == 0;
    case VK_BY_MATRICES:
        return vk_can_use_matrices(gpu, &winograd->multiply);
    default:
        return winograd->multiply.pixels == BLOCK_PIXELS_MIN ||
               winograd->multiply.pixels * BLOCK_SIDE < 2 * winograd->total;
    }
}

bool vk_can_use_winograd(const struct vk_lowering *lowering, const struct vk_conv *conv,
                         const struct vk_shader_choice *choice)
{
    uint32_t most = lowering->gpu->properties.limits.maxStorageBufferRange;
    struct winograd winograd;
    if (!is_simple_window(conv) || (uint64_t)conv->window.in_c * conv->window.out_c < PAIRS_MIN)
        return false;
    init_winograd(&winograd, lowering, conv, choice);
    return can_multiply(&winograd, lowering, conv) && winograd.weight_bytes <= most &&
           winograd.in_bytes <= most && winograd.out_bytes <= most;
}

bool vk_winograd_is_rule(const struct vk_lowering *lowering, const struct vk_conv *conv)
{
    static const struct vk_shader_choice choice = {VK_BY_WINOGRAD, 0, 0};
    const struct vk_window *window = &conv->window;
    return !lowering->half_weights && INF_MIN(window->in_c, window->out_c) >= RULE_CHANNELS_MIN &&
           window->out_h * window->out_w >= RULE_PICTURE_MIN &&
           vk_can_use_winograd(lowering, conv, &choice);
}

// --- the products ---

static enum inf_code bind_weights(struct vk_lowering *lowering, struct winograd *winograd,
                                  const struct vk_conv *conv, struct inf_error *err)
{
    bool tiled = winograd->kind->product == VK_BY_TILES;
    const struct vk_winograd_packing packing = {.weights = &conv->weights,
                                                .form = &winograd->kind->form,
                                                .rows = winograd->in_c,
                                                .across =
                                                    tiled ? VK_TILE_CHANNELS : winograd->out_c};
    struct vk_dispatch *product = &winograd->product;
    size_t size_bytes = winograd->weight_bytes;
    if (winograd->kind->half)
        INF_TRY(vk_bind_weights(lowering, product, size_bytes, vk_winograd_pack, &packing, err));
    else
        INF_TRY(vk_bind_packed(lowering, product, size_bytes, vk_winograd_pack, &packing, err));
    vk_read_through_view(lowering, product, product->operand_count - 1, true);
    return INF_OK;
}

static void fill_zeros(void *bytes, const void *context)
{
    (void)bytes;
    (void)context;
}

// Binds the matrices before or after the products as the next operand, which is read or written in
// vectors.
static enum inf_code bind_matrices(struct vk_lowering *lowering, const struct winograd *winograd,
                                   struct vk_dispatch *dispatch, bool after, bool reads,
                                   struct inf_error *err)
{
    INF_TRY(vk_bind_scratch(lowering, dispatch, after ? winograd->in_bytes : 0,
                            after ? winograd->out_bytes : winograd->in_bytes, err));
    dispatch->operands[dispatch->operand_count - 1].half = winograd->kind->half;
    if (reads)
        vk_read_through_view(lowering, dispatch, dispatch->operand_count - 1, true);
    return INF_OK;
}

// Describes the products as a convolution with one tap, of which each row has its own weights.
static enum inf_code bind_tiles(struct vk_lowering *lowering, struct winograd *winograd,
                                const struct vk_conv *conv, struct inf_error *err)
{
    struct vk_dispatch *product = &winograd->product;
    uint32_t part = winograd->part, matrices = winograd->matrices;
    uint32_t blocks = vk_round_up(winograd->out_c, VK_TILE_CHANNELS) / VK_TILE_CHANNELS;
    *product = (struct vk_dispatch){
        .variant = {INF_SHADER_CONV_TILE,
                    {FN_NONE, ELEMENTS, 4, true, false, false, true, ADDED_NOTHING, VECTORS, true}},
        .invocations = blocks * (matrices * part / ELEMENTS),
        .cost = (uint64_t)matrices * part * winograd->in_c * winograd->out_c};
    INF_TRY(bind_matrices(lowering, winograd, product, false, true, err));
    INF_TRY(bind_weights(lowering, winograd, conv, err));
    INF_TRY(vk_bind_packed(lowering, product, (size_t)blocks * VK_TILE_CHANNELS * sizeof(float),
                           fill_zeros, NULL, err));
    // The product adds no residual, but its binding must not be empty, so bind scratch memory.
    INF_TRY(bind_matrices(lowering, winograd, product, false, true, err));
    const struct vk_window window = {.in_h = matrices,
                                     .in_w = part,
                                     .in_c = winograd->in_c,
                                     .out_h = matrices,
                                     .out_w = part,
                                     .out_c = winograd->out_c,
                                     .kernel_h = 1,
                                     .kernel_w = 1,
                                     .stride_h = 1,
                                     .stride_w = 1,
                                     .dilation_h = 1,
                                     .dilation_w = 1,
                                     .strips = matrices * part,
                                     .blocks = winograd->out_c / 4,
                                     .group_blocks = blocks,
                                     .group_in = winograd->in_c,
                                     .group_out = winograd->out_c};
    vk_set_push_constants(product, &window, sizeof(window));
    return INF_OK;
}

// Describes the products as a batch of products of two tensors.
static enum inf_code bind_pair(struct vk_lowering *lowering, struct winograd *winograd,
                               const struct vk_conv *conv, struct inf_error *err)
{
    struct vk_dispatch *product = &winograd->product;
    uint32_t in_c = winograd->in_c, out_c = winograd->out_c;
    winograd->pair = (struct vk_product){.push = {.n = out_c,
                                                  .k = in_c,
                                                  .a_row = in_c,
                                                  .a_column = 1,
                                                  .b_row = out_c,
                                                  .b_column = 1,
                                                  .batch_axes = 1,
                                                  .batch_dims = {winograd->matrices},
                                                  .b_batch = {in_c * out_c}},
                                         .batch = winograd->matrices,
                                         .function = FN_NONE};
    *product = (struct vk_dispatch){
        .variant = vk_pair_variant(lowering->gpu, &winograd->pair, &winograd->multiply)};
    INF_TRY(bind_matrices(lowering, winograd, product, false, true, err));
    INF_TRY(bind_weights(lowering, winograd, conv, err));
    // The product has no bias, but its binding must not be empty, so bind scratch memory.
    return bind_matrices(lowering, winograd, product, false, true, err);
}

static enum inf_code bind_product(struct vk_lowering *lowering, struct winograd *winograd,
                                  const struct vk_conv *conv, struct inf_error *err)
{
    if (winograd->kind->product == VK_BY_TILES)
        INF_TRY(bind_tiles(lowering, winograd, conv, err));
    else
        INF_TRY(bind_pair(lowering, winograd, conv, err));
    return bind_matrices(lowering, winograd, &winograd->product, true, false, err);
}

// Emits the products of `count` tiles. conv_tile.comp computes those of a whole part, because its
// work groups end where a matrix does.
static enum inf_code emit_product(struct vk_lowering *lowering, struct winograd *winograd,
                                  uint32_t count, struct inf_error *err)
{
    if (winograd->kind->product == VK_BY_TILES)
        return vk_emit_dispatch(lowering, &winograd->product,
                                vk_tile_iterations(1, winograd->in_c, 4), err);
    winograd->pair.push.m = count;
    winograd->pair.push.a_batch[0] = count * winograd->in_c;
    vk_pair_set_size(&winograd->product, lowering->gpu, &winograd->pair, &winograd->multiply);
    return vk_emit_dispatch(lowering, &winograd->product,
                            vk_pair_iterations(lowering->gpu, &winograd->pair, &winograd->multiply),
                            err);
}

// --- the transforms ---

static enum inf_code bind_transforms(struct vk_lowering *lowering, struct winograd *winograd,
                                     const struct vk_conv *conv, struct inf_error *err)
{
    struct vk_dispatch *in = &winograd->in, *out = &winograd->out;
    bool x_vector = conv->window.in_c % 4 == 0, y_vector = conv->window.out_c % 4 == 0;
    *in = (struct vk_dispatch){.variant = {INF_SHADER_WINOGRAD_IN, {winograd->pixels, x_vector}}};
    INF_TRY(vk_bind_value(lowering, in, lowering->node->inputs[0], err));
    vk_read_through_view(lowering, in, 0, x_vector);
    INF_TRY(bind_matrices(lowering, winograd, in, false, false, err));
    *out = (struct vk_dispatch){.variant = {INF_SHADER_WINOGRAD_OUT,
                                            {winograd->pixels, y_vector, conv->activation.function,
                                             conv->activation.prelu, vk_conv_added_mode(conv)}}};
    INF_TRY(bind_matrices(lowering, winograd, out, true, true, err));
    INF_TRY(vk_conv_bind_channels(lowering, out, conv, winograd->out_c / 4, err));
    INF_TRY(vk_conv_bind_added(lowering, out, conv, err));
    return vk_bind_value(lowering, out, conv->y, err);
}

// Emits the transformation of the input or of the output, for `count` tiles from `first` on.
static enum inf_code emit_transform(struct vk_lowering *lowering, const struct winograd *winograd,
                                    struct vk_dispatch *dispatch, uint32_t first, uint32_t count,
                                    uint32_t channels, struct inf_error *err)
{
    struct tiles tiles = winograd->tiles;
    tiles.first = first;
    tiles.stride = winograd->kind->product == VK_BY_TILES ? winograd->part : count;
    tiles.channels = channels;
    tiles.count = count * ((channels + 3) / 4);
    dispatch->invocations = tiles.count;
    dispatch->cost = (uint64_t)tiles.count * winograd->matrices * 4;
    vk_set_push_constants(dispatch, &tiles, sizeof(tiles));
    return vk_emit_dispatch(lowering, dispatch, VK_FEW_ITERATIONS, err);
}

enum inf_code vk_emit_winograd(struct vk_lowering *lowering, const struct vk_conv *conv,
                               const struct vk_shader_choice *choice, bool *out_built,
                               struct inf_error *err)
{
    struct winograd winograd;
    *out_built = false;
    init_winograd(&winograd, lowering, conv, choice);
    INF_TRY(bind_product(lowering, &winograd, conv, err));
    INF_TRY(bind_transforms(lowering, &winograd, conv, err));
    if (!vk_can_build(lowering, &winograd.in) || !vk_can_build(lowering, &winograd.product) ||
        !vk_can_build(lowering, &winograd.out))
        return INF_OK;
    for (uint32_t first = 0; first < winograd.total; first += winograd.part) {
        uint32_t count = INF_MIN(winograd.total - first, winograd.part);
        INF_TRY(emit_transform(lowering, &winograd, &winograd.in, first, count, conv->window.in_c,
                               err));
        INF_TRY(emit_product(lowering, &winograd, count, err));
        INF_TRY(emit_transform(lowering, &winograd, &winograd.out, first, count, conv->window.out_c,
                               err));
    }
    *out_built = true;
    return INF_OK;
}
