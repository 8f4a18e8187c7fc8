// SPDX-License-Identifier: Apache-2.0
// Operators on quantised numbers: qconv2d, qmatmul, matmul_blocks, qbinary, lookup. Kernels with
// integer results round exactly where ops.def says, so that all devices can produce the same bits.
#include <math.h>

#include "backends/graph/shape/infer.h"
#include "backends/ref/kernels.h"

// Parameters for the last step of qconv2d and qmatmul, which converts each sum of integers to an
// element of y.
struct ending {
    // y is the output; bias and scale are NULL if absent
    const struct inf_ref_tensor *y, *bias, *scale;
    int32_t zero; // zero point of y
    int32_t min, max;
};

static int32_t byte_at(const struct inf_ref_tensor *tensor, size_t i)
{
    return tensor->dtype == INF_DTYPE_I8 ? ((const int8_t *)tensor->data)[i]
                                         : ((const uint8_t *)tensor->data)[i];
}

// Returns the zero point for `channel` from input `index`; 0 if that input is absent.
static int32_t zero_at(const struct inf_ref_call *call, uint32_t index, size_t channel)
{
    if (!inf_ref_has_input(call, index))
        return 0;
    const struct inf_ref_tensor *zero = &call->inputs[index];
    return byte_at(zero, zero->count == 1 ? 0 : channel);
}

static void put_byte(const struct inf_ref_tensor *y, size_t at, int32_t value)
{
    if (y->dtype == INF_DTYPE_I8)
        ((int8_t *)y->data)[at] = (int8_t)value;
    else
        ((uint8_t *)y->data)[at] = (uint8_t)value;
}

// Rounds a quotient to an integer, adds the zero point and clamps the result to min..max. NaN
// becomes `min`.
static int32_t round_to_byte(float value, int32_t zero, int32_t min, int32_t max)
{
    float low = (float)(min - zero);
    float high = (float)(max - zero);
    value = value > low ? value : low;
    value = value < high ? value : high;
    return (int32_t)nearbyintf(value) + zero;
}

static void cut_bounds(enum inf_dtype dtype, int32_t *min, int32_t *max)
{
    *min = INF_MAX(*min, dtype == INF_DTYPE_I8 ? -128 : 0);
    *max = INF_MIN(*max, dtype == INF_DTYPE_I8 ? 127 : 255);
    *min = INF_MIN(*min, *max);
}

static struct ending ending_of(const struct inf_ref_call *call, int32_t min, int32_t max)
{
    struct ending ending = {
        .y = &call->outputs[0],
        .bias = inf_ref_has_input(call, 2) ? &call->inputs[2] : NULL,
        .scale = inf_ref_has_input(call, 5) ? &call->inputs[5] : NULL,
        .min = min,
        .max = max,
    };
    if (ending.scale == NULL)
        return ending;
    ending.zero = zero_at(call, 6, 0);
    cut_bounds(ending.y->dtype, &ending.min, &ending.max);
    return ending;
}

// Converts the sum of one element, which was computed modulo 2^32 as ops.def requires, and stores
// the element.
static void finish_element(const struct ending *ending, uint32_t sum, size_t channel, size_t at)
{
    if (ending->bias != NULL)
        sum += (uint32_t)((const int32_t *)ending->bias->data)[channel];
    if (ending->scale == NULL) {
        ((int32_t *)ending->y->data)[at] = (int32_t)sum;
        return;
    }
    float scale = ((const float *)ending->scale->data)[ending->scale->count == 1 ? 0 : channel];
    float value = (float)(int32_t)sum * scale;
    put_byte(ending->y, at, round_to_byte(value, ending->zero, ending->min, ending->max));
}

// --- qconv2d ---

struct conv {
    const struct inf_ref_tensor *x, *filter;
    struct inf_window height, width;
    int32_t x_zero;
    size_t group_in, group_out; // number of input and output channels of one group
};

static uint32_t place_sum(const struct conv *conv, size_t image, const int64_t *place,
                          size_t channel, int32_t filter_zero)
{
    const int64_t *dims = conv->x->shape->dims;
    const struct inf_window *h = &conv->height;
    const struct inf_window *w = &conv->width;
    size_t channels = (size_t)conv->filter->shape->dims[3];
    uint32_t sum = 0;
    for (int32_t ky = 0; ky < h->kernel; ky++) {
        int64_t row = place[0] * h->stride - h->pad_before + (int64_t)ky * h->dilation;
        for (int32_t kx = 0; kx < w->kernel; kx++) {
            int64_t column = place[1] * w->stride - w->pad_before + (int64_t)kx * w->dilation;
            if (row < 0 || row >= h->input || column < 0 || column >= w->input)
                continue;
            size_t x_at =
                ((image * (size_t)dims[1] + (size_t)row) * (size_t)dims[2] + (size_t)column) *
                    (size_t)dims[3] +
                channel / conv->group_out * conv->group_in;
            size_t w_at = (size_t)(ky * w->kernel + kx) * conv->group_in * channels + channel;
            for (size_t c = 0; c < conv->group_in; c++)
                sum += (uint32_t)((byte_at(conv->x, x_at + c) - conv->x_zero) *
                                  (byte_at(conv->filter, w_at + c * channels) - filter_zero));
        }
    }
    return sum;
}

enum inf_code inf_ref_qconv2d(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_qconv2d *attrs = &call->node->attrs.qconv2d;
    const int64_t *dims = call->outputs[0].shape->dims;
    struct ending ending = ending_of(call, attrs->min, attrs->max);
    struct conv conv = {.x = &call->inputs[0],
                        .filter = &call->inputs[1],
                        .x_zero = zero_at(call, 3, 0),
                        .group_in = (size_t)call->inputs[1].shape->dims[2],
                        .group_out = (size_t)(dims[3] / attrs->groups)};
    inf_node_windows(call->graph, call->node, &conv.height, &conv.width);
    size_t channels = (size_t)dims[3];
    for (size_t at = 0; at < ending.y->count; at++) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t channel = at % channels;
        size_t pixel = at / channels;
        const int64_t place[] = {(int64_t)(pixel / (size_t)dims[2] % (size_t)dims[1]),
                                 (int64_t)(pixel % (size_t)dims[2])};
        size_t image = pixel / (size_t)(dims[1] * dims[2]);
        finish_element(&ending, place_sum(&conv, image, place, channel, zero_at(call, 4, channel)),
                       channel, at);
    }
    return INF_OK;
}

// --- qmatmul ---

enum inf_code inf_ref_qmatmul(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_attrs_qmatmul *attrs = &call->node->attrs.qmatmul;
    const struct inf_ref_tensor *a = &call->inputs[0];
    const struct inf_ref_tensor *b = &call->inputs[1];
    struct ending ending = ending_of(call, attrs->min, attrs->max);
    const struct inf_shape *shape = ending.y->shape;
    size_t m = (size_t)shape->dims[shape->rank - 2];
    size_t n = (size_t)shape->dims[shape->rank - 1];
    size_t depth = (size_t)a->shape->dims[a->shape->rank - 1];
    size_t column = attrs->transpose_b ? depth : 1;
    size_t step = attrs->transpose_b ? 1 : n;
    int32_t a_zero = zero_at(call, 3, 0);
    struct inf_ref_walk walk;
    size_t matrices = inf_ref_walk_matrices(&walk, shape, a->shape, b->shape);
    for (size_t i = 0; i < matrices; i++, inf_ref_walk_next(&walk)) {
        for (size_t at = 0; at < m * n; at++) {
            INF_TRY(inf_ref_check_cancelled(call, err));
            size_t a_at = (size_t)walk.offsets[0] * m * depth + at / n * depth;
            size_t b_at = (size_t)walk.offsets[1] * depth * n + at % n * column;
            int32_t b_zero = zero_at(call, 4, at % n);
            uint32_t sum = 0;
            for (size_t k = 0; k < depth; k++)
                sum += (uint32_t)((byte_at(a, a_at + k) - a_zero) *
                                  (byte_at(b, b_at + k * step) - b_zero));
            finish_element(&ending, sum, at % n, i * m * n + at);
        }
    }
    return INF_OK;
}

// --- matmul_blocks ---

// Returns weight `k` of column `column` of a matmul_blocks.
static double block_weight(const struct inf_ref_call *call, size_t column, size_t k)
{
    const struct inf_attrs_matmul_blocks *attrs = &call->node->attrs.matmul_blocks;
    size_t bits = (size_t)attrs->bits, blocks = (size_t)call->inputs[1].shape->dims[1];
    size_t block = k / (size_t)attrs->block;
    size_t at = (column * blocks * (size_t)attrs->block + k) * bits;
    unsigned byte = ((const uint8_t *)call->inputs[1].data)[at / 8];
    double zero = 1 << (bits - 1);
    if (inf_ref_has_input(call, 3)) {
        const struct inf_ref_tensor *zeros = &call->inputs[3];
        size_t step = zeros->dtype == INF_DTYPE_U8 ? (blocks + 3) / 4 * 4 : blocks;
        zero = inf_ref_get(zeros, column * step + block);
    }
    return ((byte >> at % 8 & ((1u << bits) - 1)) - zero) *
           inf_ref_get(&call->inputs[2], column * blocks + block);
}

enum inf_code inf_ref_matmul_blocks(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0], *y = &call->outputs[0];
    size_t depth = (size_t)x->shape->dims[x->shape->rank - 1];
    size_t columns = (size_t)y->shape->dims[y->shape->rank - 1];
    for (size_t at = 0; at < y->count; at++) {
        INF_TRY(inf_ref_check_cancelled(call, err));
        size_t row = at / columns, column = at % columns;
        double sum = inf_ref_has_input(call, 4) ? inf_ref_get(&call->inputs[4], column) : 0;
        for (size_t k = 0; k < depth; k++)
            sum += inf_ref_get(x, row * depth + k) * block_weight(call, column, k);
        inf_ref_put(y, at, sum);
    }
    return INF_OK;
}

// --- qbinary and lookup ---

static float number_at(const struct inf_ref_call *call, uint32_t index, size_t i)
{
    float scale = ((const float *)call->inputs[2 + index].data)[0];
    return (float)(byte_at(&call->inputs[index], i) - zero_at(call, 5 + index, 0)) * scale;
}

// Computes one element in integers, as the attribute `integer` says. a and b are bytes minus their
// zero points. Returns the element minus the zero point of y, before it is clamped.
static int32_t compute_in_integers(const struct inf_ref_call *call,
                                   const struct inf_qsum_factors *factors, int32_t a, int32_t b)
{
    const float *a_scale = call->inputs[2].data;
    const float *b_scale = call->inputs[3].data;
    const float *y_scale = call->inputs[4].data;
    if (call->node->attrs.qbinary.kind != INF_BINARY_MUL)
        return (a * factors->a + b * factors->b + (1 << (factors->shift - 1))) >> factors->shift;
    float scaled = (float)(a * b) * (*a_scale * *b_scale / *y_scale);
    return (int32_t)nearbyintf(fminf(fmaxf(scaled, -512), 512));
}

// Computes the operator with the attribute `integer`. Returns false if the scales do not allow it.
static bool run_in_integers(const struct inf_ref_call *call, int32_t min, int32_t max)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    enum inf_binary_kind kind = call->node->attrs.qbinary.kind;
    float b_scale = ((const float *)call->inputs[3].data)[0];
    struct inf_qsum_factors factors = {0};
    if (kind != INF_BINARY_MUL &&
        !inf_qsum_factors(((const float *)call->inputs[2].data)[0],
                          kind == INF_BINARY_SUB ? -b_scale : b_scale,
                          ((const float *)call->inputs[4].data)[0], &factors))
        return false;
    int32_t zero = zero_at(call, 7, 0);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, call->inputs[0].shape);
    inf_ref_walk_broadcast(&walk, 1, call->inputs[1].shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        int32_t a = byte_at(&call->inputs[0], (size_t)walk.offsets[0]) - zero_at(call, 5, 0);
        int32_t b = byte_at(&call->inputs[1], (size_t)walk.offsets[1]) - zero_at(call, 6, 0);
        int32_t value = compute_in_integers(call, &factors, a, b) + zero;
        put_byte(y, i, INF_MAX(INF_MIN(value, max), min));
    }
    return true;
}

enum inf_code inf_ref_qbinary(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_attrs_qbinary *attrs = &call->node->attrs.qbinary;
    const struct inf_ref_tensor *y = &call->outputs[0];
    float y_scale = ((const float *)call->inputs[4].data)[0];
    int32_t zero = zero_at(call, 7, 0);
    int32_t min = attrs->min;
    int32_t max = attrs->max;
    cut_bounds(y->dtype, &min, &max);
    if (attrs->integer && run_in_integers(call, min, max))
        return INF_OK;
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, call->inputs[0].shape);
    inf_ref_walk_broadcast(&walk, 1, call->inputs[1].shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        // `volatile` prevents the compiler from fusing the product and the sum, because that would
        // skip one rounding.
        volatile float a = number_at(call, 0, (size_t)walk.offsets[0]);
        volatile float b = number_at(call, 1, (size_t)walk.offsets[1]);
        float value = attrs->kind == INF_BINARY_MUL   ? a * b
                      : attrs->kind == INF_BINARY_SUB ? a - b
                                                      : a + b;
        put_byte(y, i, round_to_byte(value / y_scale, zero, min, max));
    }
    return INF_OK;
}

enum inf_code inf_ref_lookup(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *y = &call->outputs[0];
    const uint8_t *x = call->inputs[0].data;
    for (size_t i = 0; i < y->count; i++)
        inf_ref_copy(y, i, &call->inputs[1], x[i], 1);
    return INF_OK;
}
