// SPDX-License-Identifier: Apache-2.0
// Convolutions and products with a constant matrix, which are convolutions of one tap.
#include <string.h>

#include "backends/vulkan/vk_join.h"
#include "backends/vulkan/vk_kernel.h"

// How the weights of any of them lie in the graph and in the shader.
struct weights {
    const float *from;
    uint32_t taps;
    uint32_t group_in, group_out, groups;
    uint32_t group_blocks; // of four output channels
    // Elements between neighbours in `from`.
    size_t tap_stride, in_stride, out_stride;
};

// [tap][input channel of the group][block of four], groups one behind the other in a row of blocks.
static void fill_weights(void *bytes, const void *context)
{
    const struct weights *weights = context;
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

// What is added to and what slopes the channels; laid out in blocks as the weights are.
struct channels {
    const float *bias, *slopes; // NULL where there are none
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

// One convolution of conv.comp or depthwise.comp, all but its operands' places.
struct conv {
    struct vk_window window;
    struct weights weights;
    struct vk_activation activation;
    uint32_t bias_index; // of the operand; the slopes of prelu are the next one
    uint32_t images;
    bool transposed, one_tap;
    const float *slopes; // of prelu; NULL: none
    uint32_t added, y;   // values: what is added, INF_VALUE_NONE where nothing is, and what is made
};

// What a join does behind the convolution.
static void use_join(const struct vk_lowering *lowering, struct conv *conv)
{
    const struct vk_join *join = lowering->join;
    const struct inf_graph *graph = lowering->graph;
    conv->y = lowering->node->outputs[0];
    conv->added = INF_VALUE_NONE;
    if (join == NULL)
        return;
    conv->activation = vk_node_activation(&graph->nodes[join->add]);
    conv->added = join->added;
    conv->y = graph->nodes[join->end].outputs[0];
    conv->window.added = (uint32_t)graph->values[join->added].shape.dims[3];
    if (join->prelu == INF_NODE_NONE)
        return;
    conv->activation = (struct vk_activation){FN_LEAKY_RELU, 0, 0, true};
    conv->slopes = graph->values[graph->nodes[join->prelu].inputs[1]].data->data;
}

static enum inf_code check_activation(const struct vk_lowering *lowering, struct conv *conv,
                                      struct inf_error *err)
{
    use_join(lowering, conv);
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

// Pixels that an invocation makes: many, so that weights are loaded seldom, but not many too many.
// Sixteen sums fill the registers of a GPU's invocation; llvmpipe has memory for them.
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

// Fewer pixels an invocation, until the driver can build it; that is a constant of the variant.
static uint32_t settle_pixels(struct vk_lowering *lowering, struct vk_dispatch *dispatch)
{
    uint32_t *pixels = &dispatch->variant.constants[1];
    while (*pixels > 1 && !vk_can_build(lowering, dispatch))
        *pixels /= 2;
    return *pixels;
}

static enum inf_code use_operands(struct vk_lowering *lowering, struct vk_dispatch *dispatch,
                                  struct conv *conv, struct inf_error *err)
{
    struct weights *weights = &conv->weights;
    weights->group_blocks = (weights->group_out + 3) / 4;
    size_t row_bytes = (size_t)weights->groups * weights->group_blocks * 16;
    size_t depth = (size_t)weights->taps * weights->group_in;
    struct channels channels = {
        .bias = vk_const_f32(lowering, conv->bias_index),
        .slopes = conv->slopes,
        .group_out = weights->group_out,
        .groups = weights->groups,
        .group_blocks = weights->group_blocks,
    };
    INF_TRY(vk_use(lowering, dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_pack_weights(lowering, dispatch, depth * row_bytes, fill_weights, weights, err));
    INF_TRY(vk_pack(lowering, dispatch, row_bytes * (conv->activation.prelu ? 2 : 1), fill_channels,
                    &channels, err));
    if (dispatch->variant.shader == INF_SHADER_CONV) {
        // Where nothing is added the binding is there all the same; the shader does not read it.
        bool adds = conv->added != INF_VALUE_NONE;
        INF_TRY(vk_use(lowering, dispatch, adds ? conv->added : lowering->node->inputs[0], err));
    }
    return vk_use(lowering, dispatch, conv->y, err);
}

static void settle(struct conv *conv, uint32_t pixels)
{
    struct vk_window *window = &conv->window;
    window->group_blocks = conv->weights.group_blocks;
    window->blocks = conv->weights.groups * window->group_blocks;
    window->strips = (window->out_w + pixels - 1) / pixels;
    window->count = conv->images * window->out_h * window->strips * window->blocks;
    window->low = conv->activation.low;
    window->high = conv->activation.high;
}

static uint64_t count_macs(const struct conv *conv)
{
    const struct vk_window *window = &conv->window;
    return (uint64_t)conv->images * window->out_h * window->out_w * window->out_c *
           conv->weights.taps * conv->weights.group_in;
}

// Four channels of a strip of pixels an invocation.
static enum inf_code emit_strips(struct vk_lowering *lowering, struct conv *conv,
                                 struct inf_error *err)
{
    struct vk_window *window = &conv->window;
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_CONV,
                    {conv->activation.function, strip_pixels(lowering, window->out_w),
                     window->group_in % 4 == 0 && window->in_c % 4 == 0,
                     window->group_out % 4 == 0 && window->out_c % 4 == 0, conv->transposed,
                     conv->activation.prelu, conv->one_tap, conv->added != INF_VALUE_NONE}}};
    INF_TRY(use_operands(lowering, &dispatch, conv, err));
    vk_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_view(lowering, &dispatch, 1, true);
    vk_view(lowering, &dispatch, 3, true);
    settle(conv, settle_pixels(lowering, &dispatch));
    dispatch.invocations = window->count;
    dispatch.cost = count_macs(conv);
    vk_push(&dispatch, window, sizeof(*window));
    return vk_emit(lowering, &dispatch, err);
}

static enum inf_code emit_conv(struct vk_lowering *lowering, struct conv *conv,
                               struct inf_error *err)
{
    struct vk_window *window = &conv->window;
    INF_TRY(check_activation(lowering, conv, err));
    conv->one_tap = conv->weights.taps == 1 && window->pad_top == 0 && window->pad_left == 0 &&
                    !conv->transposed && (window->out_h - 1) * window->stride_h < window->in_h &&
                    (window->out_w - 1) * window->stride_w < window->in_w;
    if (conv->one_tap && window->stride_h == 1 && window->stride_w == 1 &&
        window->in_w == window->out_w && window->in_h == window->out_h) {
        // Pixels do not know of rows: one long one has no ends to waste.
        window->in_w = window->out_w = conv->images * window->out_h * window->out_w;
        window->in_h = window->out_h = conv->images = 1;
    }
    window->group_in = conv->weights.group_in;
    window->group_out = conv->weights.group_out;
    return emit_strips(lowering, conv, err);
}

enum inf_code vk_lower_conv2d(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1);
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(filter), err));
    struct conv conv = {.activation = vk_node_activation(lowering->node),
                        .bias_index = 2,
                        .images = (uint32_t)x->dims[0]};
    vk_window_init(&conv.window, lowering, x, vk_output_shape(lowering, 0));
    uint32_t groups = (uint32_t)lowering->node->attrs.conv2d.groups;
    uint32_t in = (uint32_t)filter->dims[2], out = (uint32_t)filter->dims[3];
    conv.weights = (struct weights){
        .from = vk_const_f32(lowering, 1),
        .taps = conv.window.kernel_h * conv.window.kernel_w,
        .group_in = in,
        .group_out = out / groups,
        .groups = groups,
        .tap_stride = (size_t)in * out,
        .in_stride = out,
        .out_stride = 1,
    };
    return emit_conv(lowering, &conv, err);
}

enum inf_code vk_lower_conv2d_transpose(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1); // [kh,kw,co,ci]
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(filter), err));
    struct conv conv = {.activation = vk_node_activation(lowering->node),
                        .bias_index = 3,
                        .images = (uint32_t)x->dims[0]};
    vk_window_init(&conv.window, lowering, x, vk_output_shape(lowering, 0));
    uint32_t out = (uint32_t)filter->dims[2], in = (uint32_t)filter->dims[3];
    conv.weights = (struct weights){
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
    return emit_conv(lowering, &conv, err);
}

// Rows of a tile of a depthwise convolution: as many as registers hold, or llvmpipe has memory for.
#define DEPTHWISE_ROWS          2
#define DEPTHWISE_ROWS_SOFTWARE 4

// Whether the window is as the shader knows it by constants.
static bool is_square(const struct vk_window *window)
{
    return window->kernel_h == window->kernel_w && window->stride_h == window->stride_w &&
           window->dilation_h == 1 && window->dilation_w == 1 &&
           (window->kernel_h == 3 || window->kernel_h == 5) && window->stride_h <= 2;
}

enum inf_code vk_lower_depthwise(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_shape *x = vk_input_shape(lowering, 0);
    const struct inf_shape *filter = vk_input_shape(lowering, 1); // [kh,kw,c,m]
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_const(lowering, 1, inf_shape_elements(filter), err));
    struct conv conv = {.activation = vk_node_activation(lowering->node),
                        .bias_index = 2,
                        .images = (uint32_t)x->dims[0]};
    struct vk_window *window = &conv.window;
    vk_window_init(window, lowering, x, vk_output_shape(lowering, 0));
    INF_TRY(check_activation(lowering, &conv, err));
    conv.weights = (struct weights){
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
    // A window that is as wide as high may load each pixel once for a tile of several rows.
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
    INF_TRY(use_operands(lowering, &dispatch, &conv, err));
    vk_view(lowering, &dispatch, 0, dispatch.variant.constants[2] != 0);
    vk_view(lowering, &dispatch, 1, true);
    settle(&conv, settle_pixels(lowering, &dispatch));
    window->count =
        conv.images * ((window->out_h + rows - 1) / rows) * window->strips * window->blocks;
    dispatch.invocations = window->count;
    dispatch.cost = count_macs(&conv);
    vk_push(&dispatch, window, sizeof(*window));
    return vk_emit(lowering, &dispatch, err);
}

// --- products ---

// matmul.comp's push constants.
struct product {
    uint32_t count;
    uint32_t m, n, k;
    uint32_t a_row, a_column, b_row, b_column;
    uint32_t batch_axes;
    uint32_t batch_dims[BATCH_AXES];
    uint32_t a_batch[BATCH_AXES], b_batch[BATCH_AXES];
    float low, high;
};
_Static_assert(sizeof(struct product) == 92, "as matmul.comp");

// The product as a convolution of one tap over the rows of a.
static enum inf_code lower_constant(struct vk_lowering *lowering, uint32_t rows, uint32_t k,
                                    uint32_t n, struct inf_error *err)
{
    bool transposed = lowering->node->attrs.matmul.transpose_b;
    struct conv conv = {
        .activation = vk_node_activation(lowering->node), .bias_index = 2, .images = 1};
    conv.window = (struct vk_window){.in_h = 1,
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
    conv.weights = (struct weights){.from = vk_const_f32(lowering, 1),
                                    .taps = 1,
                                    .group_in = k,
                                    .group_out = n,
                                    .groups = 1,
                                    .in_stride = transposed ? 1 : n,
                                    .out_stride = transposed ? k : 1};
    return emit_conv(lowering, &conv, err);
}

// Dimension `axis` (counted from the last batch axis, 0) of an operand's batch.
static uint32_t batch_dim(const struct inf_shape *shape, int32_t axis)
{
    int32_t own = shape->rank - 3 - axis;
    return own < 0 ? 1 : (uint32_t)shape->dims[own];
}

static enum inf_code fill_batch(const struct vk_lowering *lowering, struct product *product,
                                struct inf_error *err)
{
    const struct inf_shape *a = vk_input_shape(lowering, 0), *b = vk_input_shape(lowering, 1);
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    if (y->rank - 2 > BATCH_AXES)
        return vk_decline(lowering, err, "more than %d batch axes are not built", BATCH_AXES);
    uint32_t a_step = product->m * product->k, b_step = product->k * product->n;
    for (int32_t axis = 0; axis < y->rank - 2; axis++) {
        uint32_t a_dim = batch_dim(a, axis), b_dim = batch_dim(b, axis);
        product->batch_dims[axis] = batch_dim(y, axis);
        product->a_batch[axis] = a_dim == 1 ? 0 : a_step;
        product->b_batch[axis] = b_dim == 1 ? 0 : b_step;
        a_step *= a_dim;
        b_step *= b_dim;
        product->batch_axes++;
    }
    return INF_OK;
}

enum inf_code vk_lower_matmul(struct vk_lowering *lowering, struct inf_error *err)
{
    const struct inf_attrs_matmul *attrs = &lowering->node->attrs.matmul;
    const struct inf_shape *a = vk_input_shape(lowering, 0), *b = vk_input_shape(lowering, 1);
    const struct inf_shape *y = vk_output_shape(lowering, 0);
    INF_TRY(vk_need_f32(lowering, 0, err));
    if (a->rank < 2 || b->rank < 2 || y->rank < 2)
        return vk_decline(lowering, err, "operands of rank 1 are not built");
    struct product product = {.m = (uint32_t)y->dims[y->rank - 2],
                              .n = (uint32_t)y->dims[y->rank - 1],
                              .k = (uint32_t)a->dims[a->rank - (attrs->transpose_a ? 2 : 1)]};
    uint32_t m = product.m, n = product.n, k = product.k;
    if (!attrs->transpose_a && inf_graph_is_const(lowering->graph, lowering->node->inputs[1]) &&
        inf_shape_elements(b) == (size_t)k * n)
        return lower_constant(lowering, vk_extent(y, 0, y->rank - 1), k, n, err);
    struct vk_activation activation = vk_node_activation(lowering->node);
    if (activation.prelu || activation.function == UINT32_MAX)
        return vk_decline(lowering, err, "this activation is not built");
    product.a_row = attrs->transpose_a ? 1 : k;
    product.a_column = attrs->transpose_a ? m : 1;
    product.b_row = attrs->transpose_b ? 1 : n;
    product.b_column = attrs->transpose_b ? k : 1;
    product.low = activation.low;
    product.high = activation.high;
    INF_TRY(fill_batch(lowering, &product, err));
    product.count = vk_extent(y, 0, y->rank - 2) * ((m + 3) / 4) * ((n + 3) / 4);
    bool bias = vk_has_input(lowering, 2);
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_MATMUL, {activation.function, bias}},
                                   .invocations = product.count,
                                   .cost = (uint64_t)vk_extent(y, 0, y->rank) * k};
    vk_push(&dispatch, &product, sizeof(product));
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->inputs[1], err));
    // Without a bias the binding is there all the same; the shader does not read it.
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->inputs[bias ? 2 : 1], err));
    for (uint32_t i = 0; i < 3; i++)
        vk_view(lowering, &dispatch, i, false);
    INF_TRY(vk_use(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit(lowering, &dispatch, err);
}
