// SPDX-License-Identifier: Apache-2.0
// Convolutions of bytes, and products of bytes with a constant matrix, which are convolutions with
// one tap. Results are those of `ref`, bit by bit, on devices that round floats to nearest.
#include "backends/vulkan/ops/conv_strips.h"
#include "backends/vulkan/ops/ops.h"
#include "backends/vulkan/ops/qproduct.h"

// The most pixels of an invocation.
#define PIXELS_MAX 8u

static uint32_t strip_pixels(const struct vk_lowering *lowering, const struct vk_window *window)
{
    return INF_MIN(vk_strip_pixels(lowering, window->out_w), PIXELS_MAX);
}

// --- qconv.comp ---

// Writes words of four weights that follow each other along the input channels, in the layout
// [tap][four input channels][block of four output channels][output channel].
static void fill_words(void *bytes, const void *context)
{
    const struct vk_qproduct *product = context;
    const struct vk_conv_weights *layout = &product->conv.weights;
    size_t row = (size_t)layout->groups * layout->group_blocks * 4;
    size_t steps = (layout->group_in + 3) / 4;
    for (uint32_t tap = 0; tap < layout->taps; tap++) {
        for (uint32_t in = 0; in < layout->group_in; in++) {
            int8_t *to = (int8_t *)bytes + (tap * steps + in / 4) * row * 4 + in % 4;
            for (uint32_t out = 0; out < layout->groups * layout->group_out; out++) {
                size_t at = (size_t)(out / layout->group_out) * layout->group_blocks * 4 +
                            out % layout->group_out;
                to[at * 4] = (int8_t)vk_qproduct_weight(product, tap, in, out);
            }
        }
    }
}

// Returns the iterations of loops with which an invocation loads the channels of `pixels` pixels
// that it multiplies together: `bytes` bytes of each pixel, or a word if `vectors` is true.
static struct vk_loops count_loads(uint32_t pixels, uint32_t bytes, bool vectors)
{
    return vectors ? VK_NO_LOOPS : vk_loop(pixels, vk_loop(bytes, VK_NO_LOOPS));
}

static enum inf_code emit_conv(struct vk_lowering *lowering, struct vk_qproduct *product,
                               struct inf_error *err)
{
    struct vk_conv *conv = &product->conv;
    struct vk_conv_weights *layout = &conv->weights;
    struct vk_window *window = &conv->window;
    vk_conv_flatten(conv);
    window->group_in = layout->group_in;
    window->group_out = layout->group_out;
    layout->group_blocks = (layout->group_out + 3) / 4;
    uint32_t pixels = strip_pixels(lowering, window);
    struct vk_dispatch dispatch = {
        .variant = {lowering->gpu->byte_products ? INF_SHADER_QCONV_DOT : INF_SHADER_QCONV,
                    {pixels, layout->group_in % 4 == 0 && window->in_c % 4 == 0,
                     layout->group_out % 4 == 0 && window->out_c % 4 == 0, conv->one_tap,
                     product->scales == NULL, vk_qproduct_has_w_zeros(product)}}};
    size_t words = (size_t)layout->taps * ((layout->group_in + 3) / 4) * layout->groups *
                   layout->group_blocks * 4;
    INF_TRY(vk_qproduct_bind(lowering, &dispatch, product, words * 4, fill_words, true, err));
    struct vk_loops loads =
        count_loads(pixels, INF_MIN(layout->group_in, 4u), dispatch.variant.constants[1] != 0);
    struct vk_loops tap = vk_loop((layout->group_in + 3) / 4, loads);
    return vk_qproduct_emit(lowering, &dispatch, product, pixels, tap, err);
}

// --- qdepthwise.comp ---

// Writes weights minus their zero points, in the layout [tap][block of four output channels].
static void fill_integers(void *bytes, const void *context)
{
    const struct vk_qproduct *product = context;
    const struct vk_conv_weights *layout = &product->conv.weights;
    for (uint32_t tap = 0; tap < layout->taps; tap++) {
        int32_t *to = (int32_t *)bytes + (size_t)tap * layout->group_blocks * 4;
        for (uint32_t out = 0; out < layout->group_out; out++)
            to[out] = vk_qproduct_weight(product, tap, 0, out) - vk_qproduct_w_zero(product, out);
    }
}

static enum inf_code emit_depthwise(struct vk_lowering *lowering, struct vk_qproduct *product,
                                    struct inf_error *err)
{
    struct vk_conv_weights *layout = &product->conv.weights;
    struct vk_window *window = &product->conv.window;
    uint32_t pixels = strip_pixels(lowering, window);
    window->group_in = 1;
    window->group_out = window->out_c / window->in_c;
    // As for depthwise convolutions of floats, the blocks of four channels ignore groups.
    layout->groups = 1;
    layout->group_out = window->out_c;
    layout->group_blocks = (window->out_c + 3) / 4;
    bool vectors = window->out_c % 4 == 0;
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_QDEPTHWISE,
                                               {pixels, vectors && window->group_out == 1, vectors,
                                                0, product->scales == NULL}}};
    size_t bytes = (size_t)layout->taps * layout->group_blocks * 16;
    INF_TRY(vk_qproduct_bind(lowering, &dispatch, product, bytes, fill_integers, false, err));
    struct vk_loops tap = count_loads(pixels, 4, dispatch.variant.constants[1] != 0);
    return vk_qproduct_emit(lowering, &dispatch, product, pixels, tap, err);
}

// --- operators ---

enum inf_code vk_lower_qconv2d(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_qconv2d *attrs = &lowering->node->attrs.qconv2d;
    struct vk_qproduct product;
    INF_TRY(vk_qproduct_init(&product, lowering, attrs->min, attrs->max, err));
    vk_conv_init_filter(&product.conv, lowering, (uint32_t)attrs->groups);
    if (product.conv.weights.groups > 1 && product.conv.weights.group_in == 1)
        return emit_depthwise(lowering, &product, err);
    return emit_conv(lowering, &product, err);
}

enum inf_code vk_lower_qmatmul(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_qmatmul *attrs = &lowering->node->attrs.qmatmul;
    const struct inf_shape *a = vk_input_shape(lowering, 0), *b = vk_input_shape(lowering, 1);
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    struct vk_qproduct product;
    INF_TRY(vk_qproduct_init(&product, lowering, attrs->min, attrs->max, err));
    uint32_t k = (uint32_t)a->dims[a->rank - 1], n = (uint32_t)y->dims[y->rank - 1];
    if (inf_shape_elements(b) != (size_t)k * n)
        return vk_decline(lowering, err, "several matrices b are not built");
    vk_conv_init_rows(&product.conv, vk_dims_product(y, 0, y->rank - 1), k, n, attrs->transpose_b);
    return emit_conv(lowering, &product, err);
}
