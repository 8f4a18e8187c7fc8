// SPDX-License-Identifier: Apache-2.0
// Reads the operands of qconv2d and qmatmul, and packs those that depend on the output channel.
//
// Shaders multiply signed bytes. The product of the graph expands to
//
//     sum (x - x0) * (w - w0)  =  sum x * w  -  w0 * sum x  +  (n * x0 * w0 - x0 * sum w)
//
// where n is the number of terms. The last two terms depend on no x, and are added to the bias.
// Padding counts as x0, so that it adds nothing to the product of the graph. All sums are modulo
// 2^32, as ops.def requires.
#include "backends/vulkan/ops/qproduct.h"

#include "backends/vulkan/ops/bytes.h"
#include "backends/vulkan/ops/conv_strips.h"

// Vectors of the channels before those of the blocks, and vectors of each block.
#define HEADER_VECTORS 1u
#define BLOCK_VECTORS  3u

// --- reading operands ---

// Returns INF_UNSUPPORTED unless operand `index` is absent or constant.
static enum inf_code need_constant(const struct vk_lowering *lowering, uint32_t index,
                                   struct inf_error *err)
{
    if (!vk_has_input(lowering, index) ||
        inf_graph_is_const(lowering->graph, lowering->node->inputs[index]))
        return INF_OK;
    return vk_decline(lowering, err, "input %u is not constant", index);
}

static size_t count_of(const struct vk_lowering *lowering, uint32_t index)
{
    return vk_has_input(lowering, index) ? inf_shape_elements(vk_input_shape(lowering, index)) : 0;
}

// Returns what converts bytes of this type to signed ones by XOR.
static uint8_t flip_of(enum inf_dtype dtype)
{
    return dtype == INF_DTYPE_U8 ? 0x80 : 0;
}

static void set_bounds(struct vk_qproduct *product, enum inf_dtype dtype, int32_t min, int32_t max)
{
    vk_byte_narrow(&min, &max, dtype);
    product->conv.activation = (struct vk_activation){FN_CLIP, (float)(min - product->y_zero),
                                                      (float)(max - product->y_zero), false};
}

enum inf_code vk_qproduct_init(struct vk_qproduct *product, const struct vk_lowering *lowering,
                               int32_t min, int32_t max, struct inf_error *err)
{
    enum inf_dtype x = vk_input_dtype(lowering, 0), w = vk_input_dtype(lowering, 1);
    enum inf_dtype y = vk_output_dtype(lowering, 0);
    INF_TRY(vk_need_byte_storage(lowering, err));
    for (uint32_t i = 1; i < 7; i++)
        INF_TRY(need_constant(lowering, i, err));
    *product = (struct vk_qproduct){
        .x_flip = flip_of(x),
        .w_flip = flip_of(w),
        .x_zero = vk_zero_point(lowering, 3, x) - flip_of(x),
        .y_zero = vk_zero_point(lowering, 6, y),
        .weights = vk_const_data(lowering, 1),
        .w_zeros = vk_const_data(lowering, 4),
        .w_zero_count = count_of(lowering, 4),
        .bias = vk_const_data(lowering, 2),
        .scales = vk_const_data(lowering, 5),
        .scale_count = count_of(lowering, 5),
    };
    product->conv.added = INF_VALUE_NONE;
    product->conv.y = lowering->node->outputs[0];
    set_bounds(product, y, min, max);
    return INF_OK;
}

// --- weights and channels ---

int32_t vk_qproduct_w_zero(const struct vk_qproduct *product, uint32_t out)
{
    uint8_t zero = 0;
    if (product->w_zeros != NULL)
        zero = product->w_zeros[product->w_zero_count == 1 ? 0 : out];
    return (int8_t)(zero ^ product->w_flip);
}

bool vk_qproduct_has_w_zeros(const struct vk_qproduct *product)
{
    for (uint32_t out = 0; out < INF_MAX(product->w_zero_count, (size_t)1); out++)
        if (vk_qproduct_w_zero(product, out) != 0)
            return true;
    return false;
}

int32_t vk_qproduct_weight(const struct vk_qproduct *product, uint32_t tap, uint32_t in,
                           uint32_t out)
{
    const struct vk_conv_weights *layout = &product->conv.weights;
    uint8_t byte =
        product
            ->weights[tap * layout->tap_stride + in * layout->in_stride + out * layout->out_stride];
    return (int8_t)(byte ^ product->w_flip);
}

// The product, and whether the starts of its sums include the terms that depend on no x.
struct channels {
    const struct vk_qproduct *product;
    bool expands;
};

static uint32_t start_of(const struct channels *channels, uint32_t out)
{
    const struct vk_qproduct *product = channels->product;
    const struct vk_conv_weights *layout = &product->conv.weights;
    uint32_t start = product->bias != NULL ? (uint32_t)product->bias[out] : 0;
    if (!channels->expands)
        return start;
    uint32_t sum = 0;
    for (uint32_t tap = 0; tap < layout->taps; tap++)
        for (uint32_t in = 0; in < layout->group_in; in++)
            sum += (uint32_t)vk_qproduct_weight(product, tap, in, out);
    uint32_t depth = layout->taps * layout->group_in, x_zero = (uint32_t)product->x_zero;
    return start + x_zero * (depth * (uint32_t)vk_qproduct_w_zero(product, out) - sum);
}

static void fill_channels(void *bytes, const void *context)
{
    const struct channels *channels = context;
    const struct vk_qproduct *product = channels->product;
    const struct vk_conv_weights *layout = &product->conv.weights;
    uint32_t *words = bytes;
    words[0] = (uint32_t)(uint8_t)product->x_zero * 0x01010101u;
    words[1] = product->x_flip * 0x01010101u;
    words[2] = (uint32_t)product->y_zero;
    uint32_t padded = layout->groups * layout->group_blocks * 4;
    uint32_t *starts = words + (size_t)HEADER_VECTORS * 4, *zeros = starts + 2 * (size_t)padded;
    float *scales = (float *)(starts + padded);
    for (uint32_t out = 0; out < layout->groups * layout->group_out; out++) {
        uint32_t at = out / layout->group_out * layout->group_blocks * 4 + out % layout->group_out;
        starts[at] = start_of(channels, out);
        if (product->scales != NULL)
            scales[at] = product->scales[product->scale_count == 1 ? 0 : out];
        zeros[at] = (uint32_t)vk_qproduct_w_zero(product, out);
    }
}

enum inf_code vk_qproduct_bind(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                               const struct vk_qproduct *product, size_t weight_bytes,
                               vk_fill_fn *fill, bool expands, struct inf_error *err)
{
    const struct vk_conv_weights *layout = &product->conv.weights;
    struct channels channels = {product, expands};
    size_t vectors = HEADER_VECTORS + (size_t)layout->groups * layout->group_blocks * BLOCK_VECTORS;
    INF_TRY(vk_bind_value(lowering, dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_packed(lowering, dispatch, weight_bytes, fill, product, err));
    INF_TRY(vk_bind_packed(lowering, dispatch, vectors * 16, fill_channels, &channels, err));
    return vk_bind_value(lowering, dispatch, product->conv.y, err);
}

enum inf_code vk_qproduct_emit(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                               struct vk_qproduct *product, uint32_t pixels, struct vk_loops tap,
                               struct inf_error *err)
{
    vk_conv_finish_window(&product->conv, pixels);
    dispatch->invocations = product->conv.window.count;
    dispatch->cost = vk_conv_macs(&product->conv);
    vk_set_push_constants(dispatch, &product->conv.window, sizeof(product->conv.window));
    uint64_t iterations = vk_window_loops(&product->conv.window, tap).run;
    return vk_emit_dispatch(lowering, dispatch, iterations, err);
}
