// SPDX-License-Identifier: Apache-2.0
// Makes random numbers, shapes, types and elements for the cases of all operators. Also has the
// table of case families.
#include "tests/conformance/cases.h"

#include <criterion/criterion.h>
#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/half.h"

const struct case_family case_families[INF_OP_COUNT] = {
    [INF_OP_UNARY] = {make_unary, INF_UNARY_COUNT * 70},
    [INF_OP_BINARY] = {make_binary, INF_BINARY_COUNT * 200},
    [INF_OP_COMPARE] = {make_compare, INF_COMPARE_COUNT * 125},
    [INF_OP_SELECT] = {make_select, 750},
    [INF_OP_CLIP] = {make_clip, 600},
    [INF_OP_PRELU] = {make_prelu, 750},
    [INF_OP_CAST] = {make_cast, 750},
    [INF_OP_BITCAST] = {make_bitcast, 120},
    [INF_OP_REDUCE] = {make_reduce, INF_REDUCE_COUNT * 200},
    [INF_OP_ARG] = {make_arg, 750},
    [INF_OP_SOFTMAX] = {make_softmax, 750},
    [INF_OP_CONV2D] = {make_conv2d, INF_ACTIVATION_COUNT * 250},
    [INF_OP_DEPTHWISE_CONV2D] = {make_depthwise_conv2d, INF_ACTIVATION_COUNT * 200},
    [INF_OP_CONV2D_TRANSPOSE] = {make_conv2d_transpose, INF_ACTIVATION_COUNT * 150},
    [INF_OP_MATMUL] = {make_matmul, INF_ACTIVATION_COUNT * 150},
    [INF_OP_POOL2D] = {make_pool2d, 1500},
    [INF_OP_BATCH_NORM] = {make_batch_norm, 500},
    [INF_OP_RESIZE] = {make_resize, 1250},
    [INF_OP_IDENTITY] = {make_identity, 150},
    [INF_OP_RESHAPE] = {make_reshape, 300},
    [INF_OP_EXPAND_DIMS] = {make_expand_dims, 200},
    [INF_OP_SQUEEZE] = {make_squeeze, 200},
    [INF_OP_TRANSPOSE] = {make_transpose, 1250},
    [INF_OP_CONCAT] = {make_concat, 1000},
    [INF_OP_SPLIT] = {make_split, 750},
    [INF_OP_SLICE] = {make_slice, 1500},
    [INF_OP_PAD] = {make_pad, 1000},
    [INF_OP_TILE] = {make_tile, 500},
    [INF_OP_BROADCAST] = {make_broadcast, 600},
    [INF_OP_GATHER] = {make_gather, 1000},
    [INF_OP_SPACE_TO_DEPTH] = {make_space_to_depth, 400},
    [INF_OP_DEPTH_TO_SPACE] = {make_depth_to_space, 400},
    [INF_OP_SHAPE] = {make_shape, 100},
    [INF_OP_FILL] = {make_fill, 250},
    [INF_OP_RANGE] = {make_range, 300},
    [INF_OP_RANDOM] = {make_random, 60},
    [INF_OP_REVERSE] = {make_reverse, 200},
    [INF_OP_REVERSE_SEQUENCE] = {make_reverse_sequence, 200},
    [INF_OP_CUMULATE] = {make_cumulate, 200},
    [INF_OP_TOPK] = {make_topk, 600},
    [INF_OP_SEARCH_SORTED] = {make_search_sorted, 200},
    [INF_OP_NMS] = {make_nms, 300},
    [INF_OP_PAIR_COUPLING] = {make_pair_coupling, 100},
    [INF_OP_BINCOUNT] = {make_bincount, 200},
    [INF_OP_ONE_HOT] = {make_one_hot, 200},
    [INF_OP_BAND] = {make_band, 200},
    [INF_OP_GATHER_ND] = {make_gather_nd, 200},
    [INF_OP_APPEND] = {make_append, 300},
    [INF_OP_SCATTER_ND] = {make_scatter_nd, 200},
    [INF_OP_GATHER_ELEMENTS] = {make_gather_elements, 200},
    [INF_OP_SCATTER_ELEMENTS] = {make_scatter_elements, 200},
    [INF_OP_SPACE_TO_BATCH] = {make_space_to_batch, 200},
    [INF_OP_BATCH_TO_SPACE] = {make_batch_to_space, 200},
    [INF_OP_CONV_ND] = {make_conv_nd, 200},
    [INF_OP_CONV_ND_TRANSPOSE] = {make_conv_nd_transpose, 200},
    [INF_OP_POOL_ND] = {make_pool_nd, 200},
    [INF_OP_DILATION2D] = {make_dilation2d, 200},
    [INF_OP_LRN] = {make_lrn, 200},
    [INF_OP_NORMALIZE] = {make_normalize, 600},
    [INF_OP_RESAMPLE] = {make_resample, 200},
    [INF_OP_CROP_AND_RESIZE] = {make_crop_and_resize, 200},
    [INF_OP_ROI_ALIGN] = {make_roi_align, 200},
    [INF_OP_GRID_SAMPLE] = {make_grid_sample, 200},
    [INF_OP_IMAGE_TRANSFORM] = {make_image_transform, 200},
    [INF_OP_QUANTIZE] = {make_quantize, 200},
    [INF_OP_DEQUANTIZE] = {make_dequantize, 200},
    [INF_OP_QCONV2D] = {make_qconv2d, 3000},
    [INF_OP_QMATMUL] = {make_qmatmul, 1000},
    [INF_OP_MATMUL_BLOCKS] = {make_matmul_blocks, 600},
    [INF_OP_QBINARY] = {make_qbinary, 1000},
    [INF_OP_LOOKUP] = {make_lookup, 300},
    [INF_OP_RNN] = {make_rnn, 600},
};

// --- the generator of random numbers, and shapes and types drawn from it ---

uint64_t random_bits(struct random *random)
{
    // Two multiplications mix the bits of the counter, so that neighbouring seeds give unrelated
    // numbers.
    uint64_t bits = random->state += UINT64_C(0x9e3779b97f4a7c15);
    bits = (bits ^ (bits >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    bits = (bits ^ (bits >> 27)) * UINT64_C(0x94d049bb133111eb);
    return bits ^ (bits >> 31);
}

int64_t random_in(struct random *random, int64_t low, int64_t high)
{
    return low + (int64_t)(random_bits(random) % (uint64_t)(high - low + 1));
}

bool random_once_in(struct random *random, int64_t times)
{
    return random_in(random, 1, times) == 1;
}

static double draw_uniform(struct random *random, double low, double high)
{
    return low + (high - low) * ((double)(random_bits(random) >> 11) / 9007199254740992.0);
}

int64_t random_dim(struct random *random)
{
    static const int64_t dims[] = {1, 1, 1, 2, 3, 3, 4, 5, 7, 8, 9, 11, 13, 15, 16, 17, 31, 32, 33};
    if (random_once_in(random, 60))
        return 0;
    return dims[random_in(random, 0, (int64_t)INF_ARRAY_LENGTH(dims) - 1)];
}

int32_t random_rank(struct random *random, int32_t low, int32_t high)
{
    const struct wish *wish = random->wish;
    int32_t rank = (int32_t)random_in(random, low, high);
    // The function that makes the case accepts rank 5, which means that it accepts every rank. So a
    // wished shape of any rank can be used.
    if (wish != NULL && !wish->shape_granted && wish->shape.rank >= low &&
        (wish->shape.rank <= high || high >= 5))
        rank = wish->shape.rank;
    return rank;
}

bool random_wished_shape(struct random *random, int32_t rank, struct inf_shape *shape)
{
    struct wish *wish = random->wish;
    if (wish == NULL || wish->shape_granted || wish->shape.rank != rank)
        return false;
    wish->shape_granted = true;
    *shape = wish->shape;
    return true;
}

struct inf_shape random_shape(struct random *random, int32_t rank)
{
    struct inf_shape shape = {.rank = rank};
    if (random_wished_shape(random, rank, &shape))
        return shape;
    int64_t elements = 1;
    for (int32_t i = 0; i < rank; i++) {
        shape.dims[i] = random_dim(random);
        if (shape.dims[i] * elements > CASE_ELEMENTS_MAX)
            shape.dims[i] = 1;
        elements *= shape.dims[i] != 0 ? shape.dims[i] : 1;
    }
    return shape;
}

struct inf_shape random_broadcastable(struct random *random, const struct inf_shape *shape)
{
    int32_t left_out = (int32_t)random_in(random, 0, shape->rank);
    if (random_once_in(random, 2))
        left_out = 0;
    struct inf_shape result = {.rank = shape->rank - left_out};
    for (int32_t i = 0; i < result.rank; i++)
        result.dims[i] = random_once_in(random, 3) ? 1 : shape->dims[i + left_out];
    return result;
}

enum inf_dtype random_dtype(struct random *random, unsigned mask)
{
    struct wish *wish = random->wish;
    if (wish != NULL && wish->dtype != INF_DTYPE_NONE && (mask >> wish->dtype & 1) != 0) {
        enum inf_dtype dtype = wish->dtype;
        wish->dtype = INF_DTYPE_NONE;
        return dtype;
    }
    if ((mask & DTYPE(F32)) != 0 && !random_once_in(random, 4))
        return INF_DTYPE_F32;
    for (;;) {
        int64_t dtype = random_in(random, INF_DTYPE_NONE + 1, INF_DTYPE_COUNT - 1);
        if ((mask >> dtype & 1) != 0)
            return (enum inf_dtype)dtype;
    }
}

// --- making the elements of operands ---

static double draw_filling(struct random *random, enum filling filling)
{
    switch (filling) {
    case FILL_POSITIVE:
        return draw_uniform(random, 0.1, 4);
    case FILL_UNIT:
        return draw_uniform(random, -0.95, 0.95);
    case FILL_QUARTERS:
        return (double)random_in(random, -32, 32) / 4;
    case FILL_POWERS:
        return ldexp(random_once_in(random, 2) ? 1 : -1, (int)random_in(random, -2, 2));
    default:
        return draw_uniform(random, -2, 2);
    }
}

static double draw_extreme(struct random *random, unsigned extremes)
{
    static const struct {
        unsigned kind;
        float value;
    } table[] = {{EXTREME_ZERO, 0.0f},
                 {EXTREME_ZERO, -0.0f},
                 {EXTREME_INFINITE, INFINITY},
                 {EXTREME_INFINITE, -INFINITY},
                 {EXTREME_NAN, NAN},
                 {EXTREME_LARGE, FLT_MAX},
                 {EXTREME_LARGE, -FLT_MAX},
                 {EXTREME_LARGE, 1e30f},
                 {EXTREME_LARGE, 8388609.0f},
                 {EXTREME_DENORM, 1e-40f},
                 {EXTREME_DENORM, -FLT_TRUE_MIN}};
    for (;;) {
        size_t i = (size_t)random_in(random, 0, (int64_t)INF_ARRAY_LENGTH(table) - 1);
        if ((table[i].kind & extremes) != 0)
            return (double)table[i].value;
    }
}

static double float_element(struct random *random, const struct operand *operand)
{
    if (operand->extremes != 0 && !random->tame && random_once_in(random, 5))
        return draw_extreme(random, operand->extremes);
    return draw_filling(random, operand->filling);
}

// Draws small integers, so that products and short sums stay exact. A divisor is never 0.
static int64_t integer_element(struct random *random, const struct operand *operand)
{
    bool is_signed = operand->dtype >= INF_DTYPE_I8 && operand->dtype <= INF_DTYPE_I64;
    if (operand->dtype == INF_DTYPE_BOOL)
        return random_in(random, 0, 1);
    if (operand->filling == FILL_POWERS)
        return random_in(random, 1, 5) * (is_signed && random_once_in(random, 2) ? -1 : 1);
    return random_in(random, is_signed ? -11 : 0, 11);
}

static void set_element(void *data, size_t i, struct random *random, const struct operand *operand)
{
    int64_t integer = 0;
    switch (operand->dtype) {
    case INF_DTYPE_F32:
        ((float *)data)[i] = (float)float_element(random, operand);
        return;
    case INF_DTYPE_F64:
        ((double *)data)[i] = float_element(random, operand);
        return;
    case INF_DTYPE_F16:
        ((uint16_t *)data)[i] = inf_half_from_float((float)float_element(random, operand));
        return;
    case INF_DTYPE_BF16:
        ((uint16_t *)data)[i] = inf_bf16_from_float((float)float_element(random, operand));
        return;
    default:
        // Integers are stored little-endian, so a 64-bit integer begins with its low 32 bits.
        integer = integer_element(random, operand);
        size_t size = inf_dtype_size(operand->dtype);
        memcpy((char *)data + i * size, &integer, size);
        return;
    }
}

void add_operand(struct one_node *one, struct random *random, const struct operand *operand)
{
    size_t count = inf_shape_elements(&operand->shape);
    void *data = calloc(count + 1, sizeof(uint64_t));
    cr_assert_not_null(data);
    for (size_t i = 0; i < count; i++)
        set_element(data, i, random, operand);
    if (operand->constant)
        one_node_const(one, operand->dtype, operand->shape, data);
    else
        one_node_input(one, operand->dtype, operand->shape, data);
    free(data);
}

void add_list(struct one_node *one, const int32_t *elements, int64_t count)
{
    one_node_const(one, INF_DTYPE_I32, INF_SHAPE(count), elements);
}
