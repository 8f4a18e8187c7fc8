// SPDX-License-Identifier: Apache-2.0
// Makes nodes on quantised numbers: all byte values, all zero points, and some results that
// saturate.
#include <criterion/criterion.h>
#include <math.h>

#include "tests/conformance/cases.h"

static enum inf_dtype byte_dtype(struct random *random)
{
    return random_once_in(random, 2) ? INF_DTYPE_U8 : INF_DTYPE_I8;
}

// Adds an operand of random bytes, which are often extreme values.
static void add_bytes(struct one_node *one, struct random *random, const struct operand *operand)
{
    static const uint8_t extremes[] = {0, 127, 128, 255};
    size_t count = inf_shape_elements(&operand->shape);
    uint8_t bytes[1 << 16];
    bool extreme = random_once_in(random, 4);
    for (size_t i = 0; i < count && i < sizeof(bytes); i++)
        bytes[i] = extreme ? extremes[random_in(random, 0, 3)] : (uint8_t)random_bits(random);
    if (count > sizeof(bytes))
        add_operand(one, random, operand);
    else if (operand->constant)
        one_node_const(one, operand->dtype, operand->shape, bytes);
    else
        one_node_input(one, operand->dtype, operand->shape, bytes);
}

static void add_zero(struct one_node *one, struct random *random, enum inf_dtype dtype,
                     int64_t count, bool constant)
{
    struct operand zero = {.dtype = dtype, .shape = INF_SHAPE(count), .constant = constant};
    if (random_once_in(random, 3))
        one_node_absent(one);
    else
        add_bytes(one, random, &zero);
}

static void add_scale(struct one_node *one, struct random *random, int64_t count, double around,
                      bool constant)
{
    float scales[512];
    for (int64_t i = 0; i < count; i++)
        scales[i] = (float)(around * (double)random_in(random, 1, 1000) / 500);
    if (random_once_in(random, 6)) // results lie halfway between two integers
        for (int64_t i = 0; i < count; i++)
            scales[i] = 0.5f;
    if (constant)
        one_node_const(one, INF_DTYPE_F32, INF_SHAPE(count), scales);
    else
        one_node_input(one, INF_DTYPE_F32, INF_SHAPE(count), scales);
}

static void random_bounds(struct random *random, int32_t *min, int32_t *max)
{
    if (!random_once_in(random, 3))
        return;
    *min = (int32_t)random_in(random, -128, 60);
    *max = (int32_t)random_in(random, 50, 255);
}

// Adds inputs 2 to 6 of a convolution or matrix product whose sums have `depth` terms.
static enum inf_dtype add_parameters(struct one_node *one, struct random *random, int64_t channels,
                                     int64_t depth, bool constant)
{
    enum inf_dtype dtype = random_once_in(random, 5) ? INF_DTYPE_I32 : byte_dtype(random);
    int64_t each = random_once_in(random, 2) ? channels : 1;
    if (random_once_in(random, 3)) {
        one_node_absent(one);
    } else {
        int32_t bias[512];
        for (int64_t i = 0; i < channels; i++)
            bias[i] = (int32_t)random_in(random, -20000, 20000);
        if (random_once_in(random, 10))
            bias[0] = INT32_MIN; // makes the accumulated sums wrap around
        if (constant)
            one_node_const(one, INF_DTYPE_I32, INF_SHAPE(channels), bias);
        else
            one_node_input(one, INF_DTYPE_I32, INF_SHAPE(channels), bias);
    }
    // Models with dynamic quantisation compute the zero point of x.
    bool dynamic = random_once_in(random, 4);
    add_zero(one, random, one->inputs[0].dtype, 1, constant && !dynamic);
    add_zero(one, random, one->inputs[1].dtype, each, constant);
    if (dtype == INF_DTYPE_I32)
        return dtype;
    add_scale(one, random, each, 0.01 / sqrt((double)depth + 1), constant);
    add_zero(one, random, dtype, 1, constant);
    return dtype;
}

static int64_t draw_channel_count(struct random *random)
{
    return random_once_in(random, 12) ? random_in(random, 60, 130) : random_in(random, 1, 33);
}

static void random_window(struct inf_attrs_qconv2d *attrs, struct random *random)
{
    attrs->stride_h = (int32_t)random_in(random, 1, 3);
    attrs->stride_w = random_once_in(random, 4) ? 1 : attrs->stride_h;
    attrs->padding = (enum inf_padding)random_in(random, 0, INF_PADDING_COUNT - 1);
    attrs->pad_top = (int32_t)random_in(random, 0, 2);
    attrs->pad_bottom = (int32_t)random_in(random, 0, 2);
    attrs->pad_left = (int32_t)random_in(random, 0, 2);
    attrs->pad_right = (int32_t)random_in(random, 0, 2);
    if (random_once_in(random, 5)) {
        attrs->dilation_h = (int32_t)random_in(random, 1, 3);
        attrs->dilation_w = (int32_t)random_in(random, 1, 3);
    }
}

void make_qconv2d(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_qconv2d *attrs = &one->attrs.qconv2d;
    random_window(attrs, random);
    random_bounds(random, &attrs->min, &attrs->max);
    int64_t in = draw_channel_count(random), out = draw_channel_count(random);
    int64_t kernel_h = random_in(random, 1, 5), kernel_w = random_in(random, 1, 5);
    if (random_once_in(random, 2))
        kernel_h = kernel_w = random_once_in(random, 2) ? 1 : 3;
    int64_t height = random_in(random, 1, 13), width = random_in(random, 1, 13);
    if (number % 3 == 0) {     // a depthwise convolution
        if (number % 9 == 0) { // more channels than one block of the kernel
            in = random_in(random, 14, 204);
            kernel_h = random_in(random, 2, 6);
            height = random_in(random, 1, 4);
            width = random_in(random, 1, 40);
        }
        attrs->groups = (int32_t)in;
        out = in * (random_once_in(random, 8) ? 2 : 1);
    } else if (random_once_in(random, 5)) {
        attrs->groups = (int32_t)random_in(random, 1, 4);
        in = (in + 3) / 4 * attrs->groups;
        out = (out + 3) / 4 * attrs->groups;
    }
    bool constant = !random_once_in(random, 12);
    struct operand x = {.dtype = byte_dtype(random),
                        .shape = INF_SHAPE(random_in(random, 1, 2), height, width, in)};
    struct operand filter = {.dtype = byte_dtype(random),
                             .shape = INF_SHAPE(kernel_h, kernel_w, in / attrs->groups, out),
                             .constant = constant};
    add_bytes(one, random, &x);
    add_bytes(one, random, &filter);
    attrs->dtype =
        add_parameters(one, random, out, kernel_h * kernel_w * in / attrs->groups, constant);
}

void make_qmatmul(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_qmatmul *attrs = &one->attrs.qmatmul;
    attrs->transpose_b = number % 2 == 0;
    random_bounds(random, &attrs->min, &attrs->max);
    int64_t m = random_dim(random), n = draw_channel_count(random), k = random_dim(random);
    if (random_once_in(random, 10))
        k = random_in(random, 100, 700);
    struct inf_shape shape = INF_SHAPE(m, k);
    if (random_once_in(random, 3))
        shape = INF_SHAPE(random_in(random, 1, 3), m, k);
    bool constant = !random_once_in(random, 12);
    struct operand a = {.dtype = byte_dtype(random), .shape = shape};
    struct operand b = {.dtype = byte_dtype(random),
                        .shape = attrs->transpose_b ? INF_SHAPE(n, k) : INF_SHAPE(k, n),
                        .constant = constant};
    if (shape.rank == 3 && random_once_in(random, 6)) {
        b.shape.rank = 3;
        for (int32_t i = 2; i > 0; i--)
            b.shape.dims[i] = b.shape.dims[i - 1];
        b.shape.dims[0] = shape.dims[0];
    }
    add_bytes(one, random, &a);
    add_bytes(one, random, &b);
    attrs->dtype = add_parameters(one, random, n, k, constant);
}

// Adds scales or zero points: `count` FP32 numbers.
static void add_block_numbers(struct one_node *one, struct random *random, int64_t count,
                              double around)
{
    float numbers[4096];
    cr_assert_leq((size_t)count, sizeof(numbers) / sizeof(numbers[0]));
    for (int64_t i = 0; i < count; i++)
        numbers[i] = (float)(around * (double)random_in(random, 1, 1000) / 500);
    one_node_const(one, INF_DTYPE_F32, INF_SHAPE(count), numbers);
}

void make_matmul_blocks(struct one_node *one, struct random *random, uint32_t number)
{
    struct inf_attrs_matmul_blocks *attrs = &one->attrs.matmul_blocks;
    attrs->bits = 2 << number % 3;
    attrs->block = 16 << random_in(random, 0, 2);
    int64_t k = random_in(random, 1, 200), m = random_once_in(random, 2) ? 1 : random_dim(random);
    int64_t n = random_once_in(random, 3) ? random_in(random, 1, 100) : draw_channel_count(random);
    if (random_once_in(random, 20)) // several parts of a panel
        k = random_in(random, 2000, 2200), n = random_in(random, 1, 5);
    int64_t blocks = (k + attrs->block - 1) / attrs->block;
    struct inf_shape shape = INF_SHAPE(m, k);
    if (random_once_in(random, 3))
        shape = INF_SHAPE(random_in(random, 1, 3), m, k);
    else if (random_once_in(random, 6))
        shape = INF_SHAPE(k);
    add_operand(one, random, &(struct operand){.dtype = INF_DTYPE_F32, .shape = shape});
    struct operand w = {.dtype = INF_DTYPE_U8,
                        .shape = INF_SHAPE(n, blocks, attrs->block / 8 * attrs->bits),
                        .constant = !random_once_in(random, 12)};
    add_bytes(one, random, &w);
    add_block_numbers(one, random, n * blocks, 0.1);
    struct operand zeros = {
        .dtype = INF_DTYPE_U8, .shape = INF_SHAPE(n, (blocks + 3) / 4 * 4), .constant = true};
    if (random_once_in(random, 3))
        one_node_absent(one);
    else if (random_once_in(random, 2))
        add_bytes(one, random, &zeros);
    else
        add_block_numbers(one, random, n * blocks, 1 << (attrs->bits - 1));
    if (random_once_in(random, 2))
        add_operand(one, random,
                    &(struct operand){.dtype = INF_DTYPE_F32,
                                      .shape = INF_SHAPE(n),
                                      .constant = random_once_in(random, 2)});
    attrs->rounds_x = random_once_in(random, 2);
}

void make_qbinary(struct one_node *one, struct random *random, uint32_t number)
{
    static const enum inf_binary_kind kinds[] = {INF_BINARY_ADD, INF_BINARY_SUB, INF_BINARY_MUL};
    struct inf_attrs_qbinary *attrs = &one->attrs.qbinary;
    attrs->kind = kinds[number % 3];
    attrs->integer = random_once_in(random, 2);
    attrs->dtype = byte_dtype(random);
    random_bounds(random, &attrs->min, &attrs->max);
    bool constant = !random_once_in(random, 12);
    struct inf_shape shape = random_shape(random, (int32_t)random_in(random, 1, 4));
    for (int i = 0; i < 2; i++) {
        struct operand x = {.dtype = byte_dtype(random), .shape = shape};
        if (i == 1 && random_once_in(random, 3))
            x.shape = random_broadcastable(random, &shape);
        add_bytes(one, random, &x);
    }
    for (int i = 0; i < 3; i++)
        add_scale(one, random, 1, 0.1, constant);
    add_zero(one, random, one->inputs[0].dtype, 1, constant);
    add_zero(one, random, one->inputs[1].dtype, 1, constant);
    add_zero(one, random, attrs->dtype, 1, constant);
}

void make_lookup(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = number % 2 == 0 ? INF_DTYPE_U8 : INF_DTYPE_I8,
                        .shape = random_shape(random, (int32_t)random_in(random, 1, 4))};
    struct operand table = {.dtype = random_once_in(random, 2) ? byte_dtype(random)
                                                               : random_dtype(random, DTYPES_ANY),
                            .shape = INF_SHAPE(256),
                            .constant = !random_once_in(random, 4)};
    add_bytes(one, random, &x);
    add_operand(one, random, &table);
}
