// SPDX-License-Identifier: Apache-2.0
// Convolutions: lists the shaders that can compute one, and lets the chosen one do it.
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/ops.h"
#include "backends/vulkan/ops/residual.h"
#include "backends/vulkan/ops/winograd.h"

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

enum inf_code vk_conv_check_activation(const struct vk_lowering *lowering, struct vk_conv *conv,
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
    conv->slopes = vk_const_data(lowering, conv->bias_index + 1);
    return INF_OK;
}

// The sizes of conv_block.comp among which a race chooses: pixels and vectors of an invocation.
static const struct vk_shader_choice block_sizes[] = {
    {VK_BY_BLOCKS, 4, 1}, {VK_BY_BLOCKS, 8, 1}, {VK_BY_BLOCKS, 4, 2},
    {VK_BY_BLOCKS, 8, 2}, {VK_BY_BLOCKS, 2, 4}, {VK_BY_BLOCKS, 4, 4},
};

// The sizes of the form in 16 bits, which needs fewer registers.
static const struct vk_shader_choice block_sizes_f16[] = {{VK_BY_BLOCKS_F16, 4, 1},
                                                          {VK_BY_BLOCKS_F16, 4, 2},
                                                          {VK_BY_BLOCKS_F16, 8, 2},
                                                          {VK_BY_BLOCKS_F16, 4, 4}};

// The sizes of conv_matrix.comp: rows and columns of matrices of a subgroup.
static const struct vk_shader_choice matrix_sizes[] = {
    {VK_BY_MATRICES, 1, 1}, {VK_BY_MATRICES, 2, 1}, {VK_BY_MATRICES, 2, 2}, {VK_BY_MATRICES, 2, 4}};

// The sizes of Winograd's algorithm among which a race chooses.
static const struct vk_shader_choice winograd_sizes[] = {
    {VK_BY_WINOGRAD_2, 2, 2},         {VK_BY_WINOGRAD_2, 4, 2},     {VK_BY_WINOGRAD_2, 8, 2},
    {VK_BY_WINOGRAD_4, 2, 2},         {VK_BY_WINOGRAD_4, 4, 2},     {VK_BY_WINOGRAD_4, 8, 2},
    {VK_BY_WINOGRAD_2_F16, 2, 2},     {VK_BY_WINOGRAD_2_F16, 4, 2}, {VK_BY_WINOGRAD_2_F16, 8, 2},
    {VK_BY_WINOGRAD_2_MATRICES, 2, 2}};

// Blocks are no candidates for a convolution with fewer pixels or channels than this, of which most
// of a block would be computed in vain.
#define BLOCK_PIXELS_MIN   16u
#define BLOCK_CHANNELS_MIN 16u

static uint64_t count_pixels(const struct vk_conv *conv)
{
    return (uint64_t)conv->images * conv->window.out_h * conv->window.out_w;
}

static bool can_use_blocks(const struct vk_conv *conv)
{
    const struct vk_window *window = &conv->window;
    return conv->weights.groups == 1 && window->out_c >= BLOCK_CHANNELS_MIN &&
           count_pixels(conv) >= BLOCK_PIXELS_MIN;
}

// The sizes of conv_block.comp if the sums of a block are shared by several work groups. The last
// one is in 16 bits.
static const struct vk_shader_choice shared_sizes[] = {
    {VK_BY_BLOCKS, 4, 2, 4}, {VK_BY_BLOCKS, 4, 2, 8}, {VK_BY_BLOCKS_F16, 4, 2, 4}};

// Work groups share the sums of a block only if there are fewer blocks than this, because so few do
// not keep a GPU busy, and if each sum has at least this many terms. Both numbers are guesses.
#define SHARED_BLOCKS_MAX 128u
#define SHARED_TERMS_MIN  256u

static bool can_share_sums(const struct vk_conv *conv)
{
    uint64_t down = (count_pixels(conv) + BLOCK_SIDE * 4 - 1) / (BLOCK_SIDE * 4);
    uint64_t across = (conv->window.out_c + BLOCK_SIDE * 8 - 1) / (BLOCK_SIDE * 8);
    return can_use_blocks(conv) && down * across < SHARED_BLOCKS_MAX &&
           conv->weights.taps * conv->weights.group_in >= SHARED_TERMS_MIN;
}

// The sizes of conv_split.comp among which a race chooses: pixels of an invocation, and invocations
// that add a sum. The first one is the rule's.
static const struct vk_shader_choice split_sizes[] = {
    {VK_BY_SPLIT, 1, 16}, {VK_BY_SPLIT, 1, 8}, {VK_BY_SPLIT, 4, 16}, {VK_BY_SPLIT, 4, 8}};

// Sums are split if there are few vectors of results and each sum is long. With more results, one
// invocation for each keeps a GPU busy.
#define SPLIT_VECTORS_MAX 16384u
#define SPLIT_TERMS_MIN   64u
// By the rule, GPUs split the sums of at most this many pixels, such as a dense layer of one row.
#define SPLIT_RULE_PIXELS 4u

static bool can_use_split(const struct vk_conv *conv)
{
    return conv->weights.groups == 1 &&
           count_pixels(conv) * ((conv->window.out_c + 3) / 4) <= SPLIT_VECTORS_MAX &&
           conv->weights.taps * conv->weights.group_in >= SPLIT_TERMS_MIN;
}

_Static_assert(4 + INF_ARRAY_LENGTH(block_sizes) + INF_ARRAY_LENGTH(winograd_sizes) +
                       INF_ARRAY_LENGTH(shared_sizes) + INF_ARRAY_LENGTH(block_sizes_f16) +
                       INF_ARRAY_LENGTH(matrix_sizes) + INF_ARRAY_LENGTH(split_sizes) <=
                   VK_SHADER_CANDIDATES,
               "choose_method() lists all of them, and up to four by the rule");

// Chooses the shader. By the rule it is the first that the device was measured to be fastest with:
// Winograd, tiles, strips. No GPU was measured; there few pixels are split first.
static struct vk_shader_choice choose_method(const struct vk_lowering *lowering,
                                             const struct vk_conv *conv)
{
    uint32_t strip = vk_strip_pixels(lowering, conv->window.out_w), count = 0;
    struct vk_shader_choice list[VK_SHADER_CANDIDATES];
    bool split = can_use_split(conv),
         software = lowering->gpu->base.info.kind == INF_DEVICE_SOFTWARE;
    if (split && !software && count_pixels(conv) <= SPLIT_RULE_PIXELS)
        list[count++] = split_sizes[0];
    if (vk_winograd_is_rule(lowering, conv))
        list[count++] = (struct vk_shader_choice){VK_BY_WINOGRAD, 0, 0};
    if (vk_conv_is_tiled(lowering, conv))
        list[count++] = (struct vk_shader_choice){VK_BY_TILES, 0, 0};
    list[count++] = (struct vk_shader_choice){VK_BY_STRIPS, strip, 0};
    for (uint32_t i = 0; can_use_blocks(conv) && i < INF_ARRAY_LENGTH(block_sizes); i++)
        list[count++] = block_sizes[i];
    for (uint32_t i = 0; can_use_blocks(conv) && i < INF_ARRAY_LENGTH(winograd_sizes); i++)
        if (vk_can_use_winograd(lowering, conv, &winograd_sizes[i]))
            list[count++] = winograd_sizes[i];
    bool half = lowering->half_weights && lowering->gpu->half_arithmetic && can_use_blocks(conv);
    for (uint32_t i = 0; half && i < INF_ARRAY_LENGTH(block_sizes_f16); i++)
        list[count++] = block_sizes_f16[i];
    for (uint32_t i = 0; can_share_sums(conv) && i < INF_ARRAY_LENGTH(shared_sizes); i++)
        if (half || shared_sizes[i].method != VK_BY_BLOCKS_F16)
            list[count++] = shared_sizes[i];
    for (uint32_t i = 0; half && i < INF_ARRAY_LENGTH(matrix_sizes); i++)
        if (vk_can_use_matrices(lowering->gpu, &matrix_sizes[i]))
            list[count++] = matrix_sizes[i];
    for (uint32_t i = 0; split && i < INF_ARRAY_LENGTH(split_sizes); i++)
        list[count++] = split_sizes[i];
    for (uint32_t pixels = strip / 2; pixels > 0 && count < VK_SHADER_CANDIDATES; pixels /= 2)
        list[count++] = (struct vk_shader_choice){VK_BY_STRIPS, pixels, 0};
    return vk_conv_choose(lowering, conv, list[0], list, count);
}

enum inf_code vk_emit_conv(struct vk_lowering *lowering, struct vk_conv *conv,
                           struct inf_error *err)
{
    struct vk_window *window = &conv->window;
    INF_TRY(vk_conv_check_activation(lowering, conv, err));
    vk_conv_flatten(conv);
    window->group_in = conv->weights.group_in;
    window->group_out = conv->weights.group_out;
    struct vk_shader_choice choice = choose_method(lowering, conv);
    bool built = false;
    if (choice.method == VK_BY_BLOCKS || choice.method == VK_BY_BLOCKS_F16)
        INF_TRY(vk_emit_blocks(lowering, conv, &choice, &built, err));
    if (choice.method == VK_BY_MATRICES)
        INF_TRY(vk_emit_matrices(lowering, conv, &choice, &built, err));
    if (choice.method == VK_BY_SPLIT)
        INF_TRY(vk_emit_split(lowering, conv, &choice, &built, err));
    if (vk_is_winograd(choice.method))
        INF_TRY(vk_emit_winograd(lowering, conv, &choice, &built, err));
    if (!built && (vk_is_winograd(choice.method) || choice.method == VK_BY_TILES) &&
        vk_conv_is_tiled(lowering, conv))
        INF_TRY(vk_emit_tiles(lowering, conv, &built, err));
    if (built)
        return INF_OK;
    uint32_t pixels =
        choice.method == VK_BY_STRIPS ? choice.pixels : vk_strip_pixels(lowering, window->out_w);
    return vk_emit_strips(lowering, conv, pixels, err);
}

enum inf_code vk_lower_conv2d(struct vk_lowering *lowering, struct inf_error *err)
{
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(vk_input_shape(lowering, 1)), err));
    struct vk_conv conv = {.activation = vk_node_activation(lowering->node), .bias_index = 2};
    vk_conv_init_filter(&conv, lowering, (uint32_t)lowering->node->attrs.conv2d.groups);
    conv.weights.from = vk_const_data(lowering, 1);
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
        .from = vk_const_data(lowering, 1),
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
