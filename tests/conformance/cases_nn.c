// SPDX-License-Identifier: Apache-2.0
// Cases of operators with two-dimensional windows, matrix products, and pictures.
#include "tests/conformance/cases.h"

// Returns a number of channels near the block sizes of kernels, which are 4, 8, 16 and 32 channels.
static int64_t draw_channel_count(struct random *random)
{
    if (random_once_in(random, 25) && !random->tame)
        return random_in(random, 60, 130);
    return random_in(random, 1, random->tame ? 9 : 33);
}

// Returns the channel count of the shape in random->wish, or a random count if there is no wish.
static int64_t input_channels(struct random *random)
{
    const struct wish *wish = random->wish;
    int64_t count = draw_channel_count(random);
    bool wished = wish != NULL && !wish->shape_granted && wish->shape.rank == 4;
    return wished && wish->shape.dims[3] > 0 ? wish->shape.dims[3] : count;
}

static struct inf_shape draw_picture_shape(struct random *random, int64_t channel_count)
{
    const struct wish *wish = random->wish;
    int64_t side = random->tame ? 7 : 17;
    struct inf_shape shape = INF_SHAPE(random_in(random, 1, 2), random_in(random, 1, side),
                                       random_in(random, 1, side), channel_count);
    if (random_once_in(random, 40))
        shape.dims[random_in(random, 0, 2)] = 0;
    if (wish != NULL && wish->shape.rank == 4 && wish->shape.dims[3] == channel_count)
        random_wished_shape(random, 4, &shape);
    return shape;
}

static enum inf_padding draw_padding(struct random *random)
{
    return (enum inf_padding)random_in(random, 0, INF_PADDING_COUNT - 1);
}

// Sets the attributes that all operators with windows have under the same names: strides, dilation,
// padding and activation.
#define RANDOM_WINDOW(attrs, random)                                                               \
    do {                                                                                           \
        (attrs)->stride_h = (int32_t)random_in(random, 1, 3);                                      \
        (attrs)->stride_w = random_once_in(random, 4) ? 1 : (attrs)->stride_h;                     \
        (attrs)->padding = draw_padding(random);                                                   \
        if ((attrs)->padding == INF_PADDING_EXPLICIT) {                                            \
            (attrs)->pad_top = (int32_t)random_in(random, 0, 2);                                   \
            (attrs)->pad_bottom = (int32_t)random_in(random, 0, 2);                                \
            (attrs)->pad_left = (int32_t)random_in(random, 0, 2);                                  \
            (attrs)->pad_right = (int32_t)random_in(random, 0, 2);                                 \
        }                                                                                          \
    } while (0)

#define RANDOM_DILATION(attrs, random)                                                             \
    do {                                                                                           \
        if (random_once_in(random, 4)) {                                                           \
            (attrs)->dilation_h = (int32_t)random_in(random, 1, 3);                                \
            (attrs)->dilation_w = (int32_t)random_in(random, 1, 3);                                \
        }                                                                                          \
    } while (0)

#define RANDOM_ACTIVATION(attrs, number)                                                           \
    do {                                                                                           \
        (attrs)->activation = (enum inf_activation)((number) % INF_ACTIVATION_COUNT);              \
        (attrs)->activation_alpha = 0.25f;                                                         \
        (attrs)->activation_min = -0.75f;                                                          \
        (attrs)->activation_max = 1.5f;                                                            \
    } while (0)

// Returns a type that convolutions take, usually FP32.
static enum inf_dtype conv_dtype(struct random *random)
{
    return random_once_in(random, 5) ? random_dtype(random, DTYPES_FLOAT) : INF_DTYPE_F32;
}

// Adds an optional bias and, for prelu, the alpha. Each has one element per channel.
static void add_bias_and_alpha(struct one_node *one, struct random *random,
                               enum inf_activation activation, const struct operand *like)
{
    bool prelu = activation == INF_ACTIVATION_PRELU;
    if (!random_once_in(random, 3))
        add_operand(one, random, like);
    else if (prelu)
        one_node_absent(one);
    if (prelu)
        add_operand(one, random, like);
}

void make_conv2d(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_conv2d *attrs = &one->attrs.conv2d;
    RANDOM_WINDOW(attrs, random);
    RANDOM_DILATION(attrs, random);
    RANDOM_ACTIVATION(attrs, number);
    attrs->groups = random_once_in(random, 4) ? (int32_t)random_in(random, 1, 4) : 1;
    int64_t in = input_channels(random), out = draw_channel_count(random);
    // as many groups as channels, which is equivalent to a depthwise convolution
    if (random_once_in(random, 12))
        attrs->groups = (int32_t)in;
    else if (attrs->groups > 1)
        in = (in + 3) / 4 * attrs->groups;
    out = (out + attrs->groups - 1) / attrs->groups * attrs->groups;
    int64_t kernel_h = random_in(random, 1, 5), kernel_w = random_in(random, 1, 5);
    if (random_once_in(random, 2))
        kernel_h = kernel_w = random_once_in(random, 2) ? 1 : 3;
    enum inf_dtype dtype = conv_dtype(random);
    struct operand x = {.dtype = dtype, .shape = draw_picture_shape(random, in)};
    struct operand filter = {.dtype = dtype,
                             .shape = INF_SHAPE(kernel_h, kernel_w, in / attrs->groups, out),
                             .filling = FILL_UNIT,
                             .constant = !random_once_in(random, 8)};
    struct operand bias = {.dtype = dtype, .shape = INF_SHAPE(out), .constant = filter.constant};
    add_operand(one, random, &x);
    add_operand(one, random, &filter);
    add_bias_and_alpha(one, random, attrs->activation, &bias);
}

void make_depthwise_conv2d(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_depthwise_conv2d *attrs = &one->attrs.depthwise_conv2d;
    RANDOM_WINDOW(attrs, random);
    RANDOM_DILATION(attrs, random);
    RANDOM_ACTIVATION(attrs, number);
    int64_t in = input_channels(random);
    int64_t multiplier = random_once_in(random, 5) ? random_in(random, 1, 3) : 1;
    int64_t kernel_h = random_in(random, 1, 5), kernel_w = random_in(random, 1, 5);
    if (random_once_in(random, 2))
        kernel_h = kernel_w = random_once_in(random, 2) ? 3 : 5;
    enum inf_dtype dtype = conv_dtype(random);
    struct operand x = {.dtype = dtype, .shape = draw_picture_shape(random, in)};
    struct operand filter = {.dtype = dtype,
                             .shape = INF_SHAPE(kernel_h, kernel_w, in, multiplier),
                             .filling = FILL_UNIT,
                             .constant = !random_once_in(random, 8)};
    struct operand bias = {
        .dtype = dtype, .shape = INF_SHAPE(in * multiplier), .constant = filter.constant};
    add_operand(one, random, &x);
    add_operand(one, random, &filter);
    add_bias_and_alpha(one, random, attrs->activation, &bias);
}

// Returns how many windows of a conv2d fit along an axis. Returns 0 if no window fits.
static int64_t count_windows(enum inf_padding mode, int64_t input, int64_t reach, int64_t stride,
                             int64_t pads)
{
    if (mode == INF_PADDING_SAME)
        return (input + stride - 1) / stride;
    int64_t room = input + (mode == INF_PADDING_EXPLICIT ? pads : 0) - reach;
    return room < 0 ? 0 : room / stride + 1;
}

void make_conv2d_transpose(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_conv2d_transpose *attrs = &one->attrs.conv2d_transpose;
    RANDOM_WINDOW(attrs, random);
    RANDOM_DILATION(attrs, random);
    RANDOM_ACTIVATION(attrs, number % INF_ACTIVATION_PRELU);
    int64_t in = input_channels(random), out = draw_channel_count(random);
    int64_t kernel_h = random_in(random, 1, 4), kernel_w = random_in(random, 1, 4);
    // Draws the output size first, and computes the smaller size of x from the output size.
    int64_t big_h = random_in(random, 1, 17), big_w = random_in(random, 1, 17);
    int64_t small_h = count_windows(attrs->padding, big_h, (kernel_h - 1) * attrs->dilation_h + 1,
                                    attrs->stride_h, attrs->pad_top + attrs->pad_bottom);
    int64_t small_w = count_windows(attrs->padding, big_w, (kernel_w - 1) * attrs->dilation_w + 1,
                                    attrs->stride_w, attrs->pad_left + attrs->pad_right);
    int64_t images = random_in(random, 1, 2);
    enum inf_dtype dtype = conv_dtype(random);
    struct operand x = {.dtype = dtype, .shape = INF_SHAPE(images, small_h, small_w, in)};
    struct operand filter = {.dtype = dtype,
                             .shape = INF_SHAPE(kernel_h, kernel_w, out, in),
                             .filling = FILL_UNIT,
                             .constant = !random_once_in(random, 8)};
    struct operand bias = {.dtype = dtype, .shape = INF_SHAPE(out), .constant = filter.constant};
    add_operand(one, random, &x);
    add_operand(one, random, &filter);
    add_list(one, (int32_t[]){(int32_t)images, (int32_t)big_h, (int32_t)big_w, (int32_t)out}, 4);
    if (random_once_in(random, 2))
        add_operand(one, random, &bias);
}

// Returns the shape of a matrix with the leading axes `batch`. If `transposed`, the last two axes
// are swapped.
static struct inf_shape make_matrix_shape(const struct inf_shape *batch, int64_t rows,
                                          int64_t columns, bool transposed)
{
    struct inf_shape shape = *batch;
    shape.dims[shape.rank++] = transposed ? columns : rows;
    shape.dims[shape.rank++] = transposed ? rows : columns;
    return shape;
}

void make_matmul(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_matmul *attrs = &one->attrs.matmul;
    RANDOM_ACTIVATION(attrs, number);
    attrs->transpose_a = random_once_in(random, 4);
    attrs->transpose_b = random_once_in(random, 2);
    int64_t m = random_dim(random), n = draw_channel_count(random), k = random_dim(random);
    enum inf_dtype dtype = conv_dtype(random);
    if (attrs->activation == INF_ACTIVATION_NONE && random_once_in(random, 4))
        dtype = random_dtype(random, DTYPES_NUMBER);
    struct inf_shape batch = {0};
    for (int64_t i = random_in(random, 0, 3); i > 0 && random_once_in(random, 2); i--)
        batch.dims[batch.rank++] = random_in(random, 1, 3);
    struct inf_shape wished;
    if (random->wish != NULL &&
        random_wished_shape(random, INF_MAX(random->wish->shape.rank, 2), &wished)) {
        batch = wished;
        batch.rank -= 2;
        m = wished.dims[batch.rank + attrs->transpose_a];
        k = wished.dims[batch.rank + !attrs->transpose_a];
    }
    struct inf_shape b_batch = batch, none = {0};
    if (random_once_in(random, 2))
        b_batch = random_once_in(random, 2) ? none : random_broadcastable(random, &batch);
    struct operand a = {.dtype = dtype,
                        .shape = make_matrix_shape(&batch, m, k, attrs->transpose_a)};
    struct operand b = {.dtype = dtype,
                        .shape = make_matrix_shape(&b_batch, k, n, attrs->transpose_b),
                        .filling = FILL_UNIT,
                        .constant = !random_once_in(random, 3)};
    struct operand bias = {.dtype = dtype, .shape = INF_SHAPE(n), .constant = b.constant};
    add_operand(one, random, &a);
    add_operand(one, random, &b);
    add_bias_and_alpha(one, random, attrs->activation, &bias);
}

void make_pool2d(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_pool2d *attrs = &one->attrs.pool2d;
    RANDOM_WINDOW(attrs, random);
    attrs->kind = number % INF_POOL_LP;
    attrs->kernel_h = (int32_t)random_in(random, 1, 5);
    attrs->kernel_w = (int32_t)random_in(random, 1, 5);
    bool largest = attrs->kind == INF_POOL_MAX;
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER),
                        .shape = draw_picture_shape(random, input_channels(random)),
                        .extremes = largest && random_once_in(random, 4) ? EXTREME_INFINITE : 0};
    if (random_once_in(random, 10)) { // global pooling: the window covers x
        attrs->kernel_h = (int32_t)INF_MAX(x.shape.dims[1], (int64_t)1);
        attrs->kernel_w = (int32_t)INF_MAX(x.shape.dims[2], (int64_t)1);
        attrs->padding = INF_PADDING_VALID;
    }
    add_operand(one, random, &x);
}

void make_batch_norm(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT),
                        .shape = random_shape(random, random_rank(random, 1, 4))};
    add_operand(one, random, &x);
    for (uint32_t i = 1; i < 5; i++) {
        struct operand channel = {.dtype = x.dtype,
                                  .shape = INF_SHAPE(x.shape.dims[x.shape.rank - 1]),
                                  .filling = i == 4 ? FILL_POSITIVE : FILL_UNIFORM,
                                  .constant = !random_once_in(random, 4)};
        add_operand(one, random, &channel);
    }
}

void make_resize(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_resize *attrs = &one->attrs.resize;
    attrs->kind = number % INF_RESIZE_COUNT;
    int64_t corners = random_in(random, 0, 2);
    attrs->align_corners = corners == 1;
    attrs->half_pixel_centers = corners == 2;
    bool nearest = attrs->kind == INF_RESIZE_NEAREST;
    struct operand x = {.dtype = random_dtype(random, nearest ? DTYPES_NUMBER : DTYPES_FLOAT),
                        .shape = draw_picture_shape(random, input_channels(random))};
    int32_t size[] = {(int32_t)random_in(random, 1, 33), (int32_t)random_in(random, 1, 33)};
    // frequent in networks: the output is twice as large as the input
    if (random_once_in(random, 3)) {
        size[0] = (int32_t)INF_MAX(x.shape.dims[1] * 2, (int64_t)1);
        size[1] = (int32_t)INF_MAX(x.shape.dims[2] * 2, (int64_t)1);
    }
    add_operand(one, random, &x);
    add_list(one, size, 2);
}
