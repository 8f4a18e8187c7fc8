// SPDX-License-Identifier: Apache-2.0
// Convolutions and quantised products. ONNX has channels first and the graph has channels last, so
// every convolution is surrounded by transposes. The layout pass removes most of them.

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/block_weights.h"
#include "backends/import/onnx/window.h"

// A convolution over two spatial axes. x is [n, h, w, c]; the filter is ONNX's [m, c / groups, kh,
// kw].
struct flat_conv {
    uint32_t x, filter, bias;
    int64_t groups;
    const struct inf_onnx_window *window;
    int32_t first; // index of the height in `window`, which may have three axes; the width follows
    const struct quantization *quantization; // NULL if x and filter are not quantised
};

// Scales and zero points of a product of 8-bit numbers, as operands of qconv2d and qmatmul;
// INF_VALUE_NONE for absent ones. Without a scale the result is the integer sums.
struct quantization {
    uint32_t a_zero, b_zero, scale, y_zero;
};

#define SET_WINDOW(attrs, conv)                                                                    \
    do {                                                                                           \
        const struct inf_onnx_window *window_ = (conv)->window;                                    \
        int32_t h_ = (conv)->first, w_ = h_ + 1;                                                   \
        (attrs)->stride_h = (int32_t)window_->stride[h_];                                          \
        (attrs)->stride_w = (int32_t)window_->stride[w_];                                          \
        (attrs)->dilation_h = (int32_t)window_->dilation[h_];                                      \
        (attrs)->dilation_w = (int32_t)window_->dilation[w_];                                      \
        (attrs)->padding = window_->same ? INF_PADDING_SAME : INF_PADDING_EXPLICIT;                \
        (attrs)->pad_top = (int32_t)window_->before[h_];                                           \
        (attrs)->pad_bottom = (int32_t)window_->after[h_];                                         \
        (attrs)->pad_left = (int32_t)window_->before[w_];                                          \
        (attrs)->pad_right = (int32_t)window_->after[w_];                                          \
    } while (0)

// Adds a convolution with one filter for each channel, using the graph's depthwise operator.
static uint32_t emit_depthwise(struct inf_onnx_scope *s, const struct flat_conv *conv)
{
    int64_t dims[] = {conv->groups, inf_build_known_dim(&s->b, conv->filter, 0) / conv->groups,
                      inf_build_known_dim(&s->b, conv->filter, 2),
                      inf_build_known_dim(&s->b, conv->filter, 3)};
    uint32_t filter = inf_build_reshape(&s->b, conv->filter, dims, 4);
    filter = inf_build_transpose(&s->b, filter, (int64_t[]){2, 3, 0, 1}, 4);
    struct inf_build_node node =
        inf_build_describe(INF_OP_DEPTHWISE_CONV2D, conv->x, filter, conv->bias);
    SET_WINDOW(&node.attrs.depthwise_conv2d, conv);
    return inf_build_value(&s->b, &node);
}

// Adds a node of the graph's quantised operators qconv2d (convolution) or qmatmul (matrix product).
static uint32_t emit_quantized(struct inf_onnx_scope *s, struct inf_build_node *node, uint32_t bias,
                               const struct quantization *quantization)
{
    const uint32_t inputs[] = {node->inputs[0],      node->inputs[1],      bias,
                               quantization->a_zero, quantization->b_zero, quantization->scale,
                               quantization->y_zero};
    enum inf_dtype dtype = quantization->y_zero != INF_VALUE_NONE
                               ? inf_build_dtype(&s->b, quantization->y_zero)
                               : INF_DTYPE_I32;
    node->list = inputs;
    node->input_count = quantization->scale != INF_VALUE_NONE ? 7 : 5;
    if (node->op == INF_OP_QMATMUL)
        node->attrs.qmatmul.dtype = dtype;
    else
        node->attrs.qconv2d.dtype = dtype;
    return inf_build_value(&s->b, node);
}

static uint32_t emit_qconv(struct inf_onnx_scope *s, const struct flat_conv *conv)
{
    uint32_t filter = inf_build_transpose(&s->b, conv->filter, (int64_t[]){2, 3, 1, 0}, 4);
    struct inf_build_node node =
        inf_build_describe(INF_OP_QCONV2D, conv->x, filter, INF_VALUE_NONE);
    SET_WINDOW(&node.attrs.qconv2d, conv);
    node.attrs.qconv2d.groups = (int32_t)conv->groups;
    return emit_quantized(s, &node, conv->bias, conv->quantization);
}

static uint32_t emit_conv(struct inf_onnx_scope *s, const struct flat_conv *conv)
{
    if (conv->quantization != NULL)
        return emit_qconv(s, conv);
    bool depthwise = conv->groups > 1 && inf_build_dim(&s->b, conv->filter, 1) == 1 &&
                     inf_build_known_dim(&s->b, conv->filter, 0) % conv->groups == 0;
    if (depthwise)
        return emit_depthwise(s, conv);
    uint32_t filter = inf_build_transpose(&s->b, conv->filter, (int64_t[]){2, 3, 1, 0}, 4);
    struct inf_build_node node = inf_build_describe(INF_OP_CONV2D, conv->x, filter, conv->bias);
    SET_WINDOW(&node.attrs.conv2d, conv);
    node.attrs.conv2d.groups = (int32_t)conv->groups;
    return inf_build_value(&s->b, &node);
}

// Adds a reshape of x to the sizes first[0], first[1] (if `count` is 2) and those of the last three
// axes of `like`.
static uint32_t reshape_slices(struct inf_onnx_scope *s, uint32_t x, const uint32_t *first,
                               uint32_t count, uint32_t like)
{
    uint32_t dims[5];
    for (uint32_t i = 0; i < count; i++)
        dims[i] = first[i];
    for (int32_t axis = -3; axis < 0; axis++)
        dims[count++] = inf_build_dim_value(&s->b, like, axis);
    return inf_build_reshape_to(&s->b, x, inf_build_concat(&s->b, dims, count, 0));
}

// Adds a convolution over three spatial axes: the sum over all taps along the depth, each a 2-D
// convolution of all slices.
static uint32_t emit_deep_conv(struct inf_onnx_scope *s, struct flat_conv *conv)
{
    const struct inf_onnx_window *window = conv->window;
    uint32_t x = inf_build_channels_last(&s->b, conv->x), sum = INF_VALUE_NONE;
    int64_t pads[10] = {[2] = window->before[0], [3] = window->after[0]};
    x = inf_build_pad(&s->b, x, pads, 5, INF_PAD_CONSTANT, INF_VALUE_NONE);
    int64_t reach = inf_onnx_window_reach(window, 0), depth = inf_build_dim(&s->b, x, 1);
    uint32_t filter = conv->filter, bias = conv->bias;
    if (inf_build_ok(&s->b) &&
        ((depth != INF_DIM_UNKNOWN && depth < reach) || window->kernel[0] > 64))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "%lld taps along a depth of %lld",
                       (long long)window->kernel[0], (long long)depth);
    const uint32_t first[] = {inf_build_dim_value(&s->b, x, 0),
                              inf_build_list(&s->b, (int64_t[]){-1}, 1)};
    conv->first = 1;
    conv->bias = INF_VALUE_NONE;
    for (int64_t tap = 0; inf_build_ok(&s->b) && tap < window->kernel[0]; tap++) {
        int64_t begin = tap * window->dilation[0];
        // The last tap of the last window is the last slice at most.
        int64_t left = reach - 1 - begin;
        uint32_t part =
            inf_build_slice(&s->b, x, 1, begin, left == 0 ? INT64_MAX : -left, window->stride[0]);
        conv->x = reshape_slices(s, part, &first[1], 1, part);
        part = inf_build_slice(&s->b, filter, 2, tap, tap + 1, 1);
        conv->filter = inf_build_squeeze(&s->b, part, (int64_t[]){2}, 1);
        part = emit_conv(s, conv);
        sum = tap == 0 ? part : inf_build_add(&s->b, sum, part);
    }
    if (bias != INF_VALUE_NONE)
        sum = inf_build_add(&s->b, sum, bias);
    return inf_build_channels_first(&s->b, reshape_slices(s, sum, first, 2, sum));
}

// Returns the scalar with which x is padded: its zero point, or INF_VALUE_NONE if that is 0.
static uint32_t read_padding_value(struct inf_onnx_scope *s,
                                   const struct quantization *quantization)
{
    if (quantization == NULL || quantization->a_zero == INF_VALUE_NONE)
        return INF_VALUE_NONE;
    return inf_build_reshape(&s->b, quantization->a_zero, NULL, 0);
}

// Adds a convolution of any rank; quantised ones have rank 3 or 4.
static uint32_t add_convolution(struct inf_onnx_scope *s, uint32_t x, uint32_t filter,
                                uint32_t bias, const struct quantization *quantization)
{
    struct inf_onnx_window window;
    int64_t kernel[INF_ONNX_WINDOW_AXES] = {1, 1, 1};
    int64_t groups = inf_onnx_attr_int(s, "group", 1);
    int32_t rank = inf_build_rank(&s->b, x);
    inf_onnx_window_read_filter(s, filter, kernel);
    inf_onnx_window_read(s, &window, x, kernel);
    if (rank != inf_build_rank(&s->b, filter))
        inf_build_fail(&s->b, INF_INVALID, "x has rank %d, the filter %d", rank,
                       inf_build_rank(&s->b, filter));
    if (groups < 1 || groups > 1 << 24)
        inf_build_fail(&s->b, INF_INVALID, "group is %lld", (long long)groups);
    // If each group has one channel, the number of groups must match the channels of x.
    if (inf_build_ok(&s->b) && groups > 1 && inf_build_dim(&s->b, filter, 1) == 1 &&
        inf_build_dim(&s->b, x, 1) >= 0 && inf_build_dim(&s->b, x, 1) != groups)
        inf_build_fail(&s->b, INF_INVALID, "group is %lld, x has %lld channels", (long long)groups,
                       (long long)inf_build_dim(&s->b, x, 1));
    if (!inf_build_ok(&s->b))
        return INF_VALUE_NONE;
    if (rank == 5 || window.lower)
        x = inf_onnx_window_resolve(s, &window, x, read_padding_value(s, quantization));
    struct flat_conv conv = {.x = x,
                             .filter = filter,
                             .bias = bias,
                             .groups = groups,
                             .window = &window,
                             .quantization = quantization};
    if (rank == 5)
        return emit_deep_conv(s, &conv);
    if (rank == 3) {
        conv.x = inf_build_expand_dims(&s->b, x, (int64_t[]){2}, 1);
        conv.filter = inf_build_expand_dims(&s->b, filter, (int64_t[]){2}, 1);
        inf_onnx_window_widen(&window);
    }
    conv.x = inf_build_channels_last(&s->b, conv.x);
    uint32_t y = inf_build_channels_first(&s->b, emit_conv(s, &conv));
    return rank == 3 ? inf_build_squeeze(&s->b, y, (int64_t[]){2}, 1) : y;
}

// Adds a convolution whose filter is a matrix in blocks, as a product of each pixel. Returns
// INF_VALUE_NONE, without adding anything, if it is no such convolution.
static uint32_t add_block_conv(struct inf_onnx_scope *s, uint32_t x, uint32_t filter, uint32_t bias)
{
    struct inf_onnx_window window;
    int64_t kernel[INF_ONNX_WINDOW_AXES] = {1, 1, 1};
    int32_t rank = inf_build_rank(&s->b, x);
    if (!inf_build_ok(&s->b) || !inf_onnx_blocks_known(s, filter) || rank < 3 ||
        rank != inf_build_rank(&s->b, filter) || inf_onnx_attr_int(s, "group", 1) != 1 ||
        inf_build_dim(&s->b, x, 1) != inf_build_dim(&s->b, filter, 1))
        return INF_VALUE_NONE;
    inf_onnx_window_read(s, &window, x, kernel);
    for (int32_t i = 0; inf_build_ok(&s->b) && i < rank - 2; i++)
        if (window.kernel[i] != 1 || window.stride[i] != 1 || window.before[i] != 0 ||
            window.after[i] != 0 || inf_build_dim(&s->b, filter, i + 2) != 1)
            return INF_VALUE_NONE;
    uint32_t y = inf_onnx_blocks_multiply(s, inf_build_channels_last(&s->b, x), filter, true);
    if (y == INF_VALUE_NONE)
        return y;
    y = bias != INF_VALUE_NONE ? inf_build_add(&s->b, y, bias) : y;
    return inf_build_channels_first(&s->b, y);
}

static void lower_conv(struct inf_onnx_scope *s)
{
    uint32_t y = add_block_conv(s, s->inputs[0], s->inputs[1], inf_onnx_input(s, 2));
    s->outputs[0] = y != INF_VALUE_NONE ? y
                                        : add_convolution(s, s->inputs[0], s->inputs[1],
                                                          inf_onnx_input(s, 2), NULL);
}

// Adds x minus its zero point in f64, because sums of up to 2^37 products of 8-bit numbers are
// exact in f64. A negative axis means one zero point for all elements.
static uint32_t subtract_zero_point(struct inf_onnx_scope *s, uint32_t x, uint32_t zero,
                                    bool by_row)
{
    uint32_t y = inf_build_cast(&s->b, x, INF_DTYPE_F64);
    if (zero == INF_VALUE_NONE)
        return y;
    zero = inf_build_cast(&s->b, zero, INF_DTYPE_F64);
    if (inf_build_rank(&s->b, zero) == 1 && inf_build_dim(&s->b, zero, 0) != 1 && by_row)
        zero = inf_build_expand_dims(&s->b, zero, (int64_t[]){1, 2, 3, 4, 5, 6, 7},
                                     inf_build_rank(&s->b, x) - 1);
    return inf_build_sub(&s->b, y, zero);
}

static bool is_byte(const struct inf_onnx_scope *s, uint32_t value)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, value);
    return dtype == INF_DTYPE_U8 || dtype == INF_DTYPE_I8;
}

// Returns true if a scale or zero point is absent or has one element.
static bool is_single(struct inf_onnx_scope *s, uint32_t value)
{
    return value == INF_VALUE_NONE || inf_build_rank(&s->b, value) == 0 ||
           (inf_build_rank(&s->b, value) == 1 && inf_build_dim(&s->b, value, 0) == 1);
}

// Returns true if qconv2d or qmatmul can compute this product. Ranks must be at most `rank_max`, a
// must have one zero point, b must have one or one for each column, and the scale must be f32.
static bool can_quantize(struct inf_onnx_scope *s, uint32_t a, uint32_t b, int32_t rank_max,
                         const struct quantization *quantization)
{
    uint32_t scale = quantization->scale;
    if (!inf_build_ok(&s->b) || inf_build_rank(&s->b, a) < 2 || inf_build_rank(&s->b, b) < 2 ||
        inf_build_rank(&s->b, a) > rank_max || inf_build_rank(&s->b, b) > rank_max ||
        !is_byte(s, a) || !is_byte(s, b) || !is_single(s, quantization->a_zero) ||
        (quantization->b_zero != INF_VALUE_NONE && inf_build_rank(&s->b, quantization->b_zero) > 1))
        return false;
    return scale == INF_VALUE_NONE ||
           (inf_build_dtype(&s->b, scale) == INF_DTYPE_F32 && inf_build_rank(&s->b, scale) <= 1 &&
            is_byte(s, quantization->y_zero) && is_single(s, quantization->y_zero));
}

static void lower_conv_integer(struct inf_onnx_scope *s)
{
    struct quantization quantization = {inf_onnx_input(s, 2), inf_onnx_input(s, 3), INF_VALUE_NONE,
                                        INF_VALUE_NONE};
    if (inf_build_rank(&s->b, s->inputs[0]) < 5 &&
        can_quantize(s, s->inputs[0], s->inputs[1], 4, &quantization)) {
        s->outputs[0] =
            add_convolution(s, s->inputs[0], s->inputs[1], INF_VALUE_NONE, &quantization);
        return;
    }
    uint32_t x = subtract_zero_point(s, s->inputs[0], inf_onnx_input(s, 2), false);
    uint32_t filter = subtract_zero_point(s, s->inputs[1], inf_onnx_input(s, 3), true);
    s->outputs[0] =
        inf_build_cast(&s->b, add_convolution(s, x, filter, INF_VALUE_NONE, NULL), INF_DTYPE_I32);
}

static uint32_t emit_qmatmul(struct inf_onnx_scope *s, uint32_t a, uint32_t b,
                             const struct quantization *quantization)
{
    struct inf_build_node node = inf_build_describe(INF_OP_QMATMUL, a, b, INF_VALUE_NONE);
    return emit_quantized(s, &node, INF_VALUE_NONE, quantization);
}

static void lower_matmul_integer(struct inf_onnx_scope *s)
{
    struct quantization quantization = {inf_onnx_input(s, 2), inf_onnx_input(s, 3), INF_VALUE_NONE,
                                        INF_VALUE_NONE};
    if (can_quantize(s, s->inputs[0], s->inputs[1], INF_LIMIT_RANK, &quantization)) {
        s->outputs[0] = emit_qmatmul(s, s->inputs[0], s->inputs[1], &quantization);
        return;
    }
    // a has one zero point for each row, b one for each column.
    uint32_t a = inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_F64), zero = inf_onnx_input(s, 2);
    if (zero != INF_VALUE_NONE && inf_build_rank(&s->b, zero) == 1 &&
        inf_build_dim(&s->b, zero, 0) != 1)
        zero = inf_build_expand_dims(&s->b, zero, (int64_t[]){1}, 1);
    if (zero != INF_VALUE_NONE)
        a = inf_build_sub(&s->b, a, inf_build_cast(&s->b, zero, INF_DTYPE_F64));
    uint32_t b = subtract_zero_point(s, s->inputs[1], inf_onnx_input(s, 3), false);
    s->outputs[0] = inf_build_cast(&s->b, inf_build_matmul(&s->b, a, b), INF_DTYPE_I32);
}

// Converts an exact sum to the quantisation of y: scaled, rounded, shifted by the zero point,
// saturated.
static uint32_t add_requantization(struct inf_onnx_scope *s, uint32_t sum, uint32_t scale,
                                   uint32_t zero)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, zero);
    bool is_signed = dtype == INF_DTYPE_I8;
    if (dtype != INF_DTYPE_I8 && dtype != INF_DTYPE_U8)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "y is %s", inf_dtype_name(dtype));
    uint32_t y = inf_build_unary(&s->b, INF_UNARY_ROUND, inf_build_mul(&s->b, sum, scale));
    y = inf_build_add(&s->b, y, inf_build_cast(&s->b, zero, INF_DTYPE_F64));
    return inf_build_cast(
        &s->b, inf_build_clip(&s->b, y, is_signed ? -128 : 0, is_signed ? 127 : 255), dtype);
}

// Adds x_scale * w_scale / y_scale in f64.
static uint32_t add_joint_scale(struct inf_onnx_scope *s, uint32_t x, uint32_t w, uint32_t y)
{
    uint32_t scale = inf_build_mul(&s->b, inf_build_cast(&s->b, x, INF_DTYPE_F64),
                                   inf_build_cast(&s->b, w, INF_DTYPE_F64));
    return inf_build_div(&s->b, scale, inf_build_cast(&s->b, y, INF_DTYPE_F64));
}

// Adds x_scale * w_scale / y_scale in the type of the scales, not in f64.
static uint32_t add_typed_scale(struct inf_onnx_scope *s, uint32_t x, uint32_t w, uint32_t y)
{
    return inf_build_div(&s->b, inf_build_mul(&s->b, x, w), y);
}

// Lowers a node with the inputs x, x_scale, x_zero, w, w_scale, w_zero, y_scale, y_zero, bias.
static void lower_qlinear_conv(struct inf_onnx_scope *s)
{
    const uint32_t *in = s->inputs;
    struct quantization quantization = {in[2], in[5], INF_VALUE_NONE, in[7]};
    if (is_single(s, in[1]) && is_single(s, in[6])) {
        quantization.scale = add_typed_scale(s, in[1], in[4], in[6]);
        if (can_quantize(s, in[0], in[3], 4, &quantization)) {
            s->outputs[0] = add_convolution(s, in[0], in[3], inf_onnx_input(s, 8), &quantization);
            return;
        }
    }
    uint32_t x = subtract_zero_point(s, in[0], in[2], false),
             filter = subtract_zero_point(s, in[3], in[5], true);
    uint32_t bias = inf_onnx_input(s, 8), w_scale = in[4];
    if (bias != INF_VALUE_NONE)
        bias = inf_build_cast(&s->b, bias, INF_DTYPE_F64);
    uint32_t sum = add_convolution(s, x, filter, bias, NULL);
    if (inf_build_ok(&s->b) && inf_build_rank(&s->b, w_scale) == 1 &&
        inf_build_dim(&s->b, w_scale, 0) != 1)
        w_scale = inf_build_expand_dims(&s->b, w_scale, (int64_t[]){1, 2, 3, 4, 5, 6, 7},
                                        inf_build_rank(&s->b, sum) - 2);
    s->outputs[0] = add_requantization(s, sum, add_joint_scale(s, in[1], w_scale, in[6]), in[7]);
}

// Lowers a node with the inputs a, a_scale, a_zero, b, b_scale, b_zero, y_scale, y_zero.
static void lower_qlinear_matmul(struct inf_onnx_scope *s)
{
    const uint32_t *in = s->inputs;
    uint32_t a_scale = in[1], a_zero = in[2];
    struct quantization quantization = {a_zero, in[5], INF_VALUE_NONE, in[7]};
    if (is_single(s, a_scale) && is_single(s, in[6])) {
        quantization.scale = add_typed_scale(s, a_scale, in[4], in[6]);
        if (can_quantize(s, in[0], in[3], INF_LIMIT_RANK, &quantization)) {
            s->outputs[0] = emit_qmatmul(s, in[0], in[3], &quantization);
            return;
        }
    }
    if (inf_build_rank(&s->b, a_scale) == 1 && inf_build_dim(&s->b, a_scale, 0) != 1)
        a_scale = inf_build_expand_dims(&s->b, a_scale, (int64_t[]){1}, 1);
    if (inf_build_rank(&s->b, a_zero) == 1 && inf_build_dim(&s->b, a_zero, 0) != 1)
        a_zero = inf_build_expand_dims(&s->b, a_zero, (int64_t[]){1}, 1);
    uint32_t sum = inf_build_matmul(&s->b, subtract_zero_point(s, in[0], a_zero, false),
                                    subtract_zero_point(s, in[3], in[5], false));
    s->outputs[0] = add_requantization(s, sum, add_joint_scale(s, a_scale, in[4], in[6]), in[7]);
}

static const struct inf_onnx_op ops[] = {
    {"Conv", lower_conv, 2, 3, 1, 0},
    {"ConvInteger", lower_conv_integer, 2, 4, 1, 0},
    {"MatMulInteger", lower_matmul_integer, 2, 4, 1, 0},
    {"QLinearConv", lower_qlinear_conv, 8, 9, 1, 0},
    {"QLinearMatMul", lower_qlinear_matmul, 8, 8, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_conv = {ops, INF_ARRAY_LENGTH(ops)};
