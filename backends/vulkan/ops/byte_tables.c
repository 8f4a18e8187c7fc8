// SPDX-License-Identifier: Apache-2.0
// Operators between bytes and floats, element by element: lookup, quantize, dequantize, qbinary.
// All are computed by tables, which the host fills as `ref` computes, because GLSL promises neither
// exactly rounded divisions nor which products and sums are fused.
#include <assert.h>
#include <math.h>
#include <string.h>

#include "backends/graph/shape/infer.h"
#include "backends/vulkan/ops/broadcast.h"
#include "backends/vulkan/ops/bytes.h"
#include "backends/vulkan/ops/ops.h"

#define BYTES 256

// --- reading operands ---

// Returns INF_UNSUPPORTED unless each operand from index `first` on is absent or one constant
// number.
static enum inf_code need_numbers(const struct vk_lowering *lowering, uint32_t first,
                                  struct inf_error *err)
{
    for (uint32_t i = first; i < lowering->node->input_count; i++)
        if (vk_has_input(lowering, i) &&
            (!inf_graph_is_const(lowering->graph, lowering->node->inputs[i]) ||
             inf_shape_elements(vk_input_shape(lowering, i)) != 1))
            return vk_decline(lowering, err, "input %u is not one constant number", i);
    return INF_OK;
}

static float scale_at(const struct vk_lowering *lowering, uint32_t index)
{
    return *(const float *)vk_const_data(lowering, index);
}

// --- lookup and dequantize ---

static enum inf_code emit_lookup(struct vk_lowering *lowering, vk_fill_fn *fill,
                                 const void *context, struct inf_error *err)
{
    uint32_t count = vk_vector_count(vk_output_shape(lowering, 0));
    bool to_bytes = inf_dtype_size(vk_output_dtype(lowering, 0)) == 1;
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_LOOKUP, {to_bytes}},
                                   .invocations = count};
    vk_set_push_constants(&dispatch, &count, sizeof(count));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_packed(lowering, &dispatch, BYTES * sizeof(uint32_t), fill, context, err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

// The table of a lookup node.
struct table {
    const void *elements;
    size_t element_bytes; // 1 or 4
};

static void fill_table(void *bytes, const void *context)
{
    const struct table *table = context;
    for (size_t i = 0; i < BYTES; i++)
        memcpy((uint32_t *)bytes + i, (const char *)table->elements + i * table->element_bytes,
               table->element_bytes);
}

enum inf_code vk_lower_lookup(struct vk_lowering *lowering, struct inf_error *err)
{
    struct table table = {.element_bytes = inf_dtype_size(vk_output_dtype(lowering, 0))};
    INF_TRY(vk_need_byte_storage(lowering, err));
    if (!vk_is_byte(vk_input_dtype(lowering, 0)) ||
        (table.element_bytes != 1 && table.element_bytes != 4))
        return vk_decline(lowering, err, "%s is not built",
                          inf_dtype_name(vk_output_dtype(lowering, 0)));
    if (!inf_graph_is_const(lowering->graph, lowering->node->inputs[1]))
        return vk_decline(lowering, err, "its table is not constant");
    table.elements = vk_const_data(lowering, 1);
    return emit_lookup(lowering, fill_table, &table, err);
}

static void fill_floats(void *bytes, const void *context)
{
    const struct vk_lowering *lowering = context;
    enum inf_dtype dtype = vk_input_dtype(lowering, 0);
    int32_t zero = vk_zero_point(lowering, 2, dtype);
    double scale = (double)scale_at(lowering, 1);
    for (uint32_t i = 0; i < BYTES; i++)
        ((float *)bytes)[i] = (float)((double)(vk_byte_number((uint8_t)i, dtype) - zero) * scale);
}

enum inf_code vk_lower_dequantize(struct vk_lowering *lowering, struct inf_error *err)
{
    INF_TRY(vk_need_byte_storage(lowering, err));
    if (!vk_is_byte(vk_input_dtype(lowering, 0)) || vk_output_dtype(lowering, 0) != INF_DTYPE_F32 ||
        vk_input_dtype(lowering, 1) != INF_DTYPE_F32)
        return vk_decline(lowering, err, "%s to %s is not built",
                          inf_dtype_name(vk_input_dtype(lowering, 0)),
                          inf_dtype_name(vk_output_dtype(lowering, 0)));
    INF_TRY(need_numbers(lowering, 1, err));
    return emit_lookup(lowering, fill_floats, lowering, err);
}

// --- quantize ---

// With a scale below this, the floats at which results change could be subnormal, which drivers may
// flush to 0.
#define SCALE_MIN 1e-30f

// Returns the result for `x`, counted from the lowest number of the type.
static int32_t quantize_float(float x, float scale, int32_t zero, int32_t lowest)
{
    double value = nearbyint((double)(x / scale)) + zero - lowest;
    return value <= 0 ? 0 : value >= BYTES - 1 ? BYTES - 1 : (int32_t)value;
}

// Converts a float to an integer of the same order. The float is not NaN.
static int32_t order_of(float value)
{
    int32_t bits;
    memcpy(&bits, &value, sizeof(bits));
    return bits >= 0 ? bits : INT32_MIN - bits;
}

static float float_of_order(int32_t order)
{
    int32_t bits = order >= 0 ? order : INT32_MIN - order;
    float value;
    memcpy(&value, &bits, sizeof(value));
    return value;
}

// Returns the least float whose result is at least `wanted`, by bisection: results do not decrease.
static float least_float(float scale, int32_t zero, int32_t lowest, int32_t wanted)
{
    int64_t low = order_of(-INFINITY), high = order_of(INFINITY);
    while (low < high) {
        int64_t middle = low + (high - low) / 2;
        if (quantize_float(float_of_order((int32_t)middle), scale, zero, lowest) >= wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return float_of_order((int32_t)low);
}

static void fill_least(void *bytes, const void *context)
{
    const struct vk_lowering *lowering = context;
    enum inf_dtype dtype = vk_output_dtype(lowering, 0);
    float scale = scale_at(lowering, 1);
    int32_t zero = vk_zero_point(lowering, 2, dtype);
    for (int32_t i = 0; i < BYTES; i++)
        ((float *)bytes)[i] = least_float(scale, zero, vk_byte_lowest(dtype), i);
}

enum inf_code vk_lower_quantize(struct vk_lowering *lowering, struct inf_error *err)
{
    enum inf_dtype to = vk_output_dtype(lowering, 0);
    INF_TRY(vk_need_byte_storage(lowering, err));
    INF_TRY(vk_need_f32(lowering, 0, err));
    INF_TRY(vk_need_f32(lowering, 1, err));
    if (!vk_is_byte(to))
        return vk_decline(lowering, err, "%s is not built", inf_dtype_name(to));
    INF_TRY(need_numbers(lowering, 1, err));
    float scale = scale_at(lowering, 1);
    if (!(scale >= SCALE_MIN && scale <= 1 / SCALE_MIN))
        return vk_decline(lowering, err, "a scale of %g is not built", (double)scale);
    int32_t lowest = vk_byte_lowest(to);
    struct {
        uint32_t vectors;
        float inverse, zero;
        uint32_t lowest;
    } push = {vk_vector_count(vk_output_shape(lowering, 0)), 1 / scale,
              (float)(vk_zero_point(lowering, 2, to) - lowest), (uint32_t)lowest};
    struct vk_dispatch dispatch = {.variant = {INF_SHADER_QUANTIZE, {0}},
                                   .invocations = push.vectors};
    vk_set_push_constants(&dispatch, &push, sizeof(push));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_packed(lowering, &dispatch, BYTES * sizeof(float), fill_least, lowering, err));
    vk_read_through_view(lowering, &dispatch, 0, true);
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}

// --- qbinary ---

// One qbinary node, as ops.def describes it.
struct pairs {
    enum inf_binary_kind kind;
    bool integer; // computed with `factors`, or for products with one scale
    struct inf_qsum_factors factors;
    enum inf_dtype a_dtype, b_dtype;
    float a_scale, b_scale, y_scale;
    int32_t a_zero, b_zero, y_zero;
    int32_t min, max;
};

// Returns the result minus the zero point of y, not clamped to the bounds. a and b are bytes minus
// their zero points.
static int32_t combine_integers(const struct pairs *pairs, int32_t a, int32_t b)
{
    const struct inf_qsum_factors *factors = &pairs->factors;
    if (pairs->kind != INF_BINARY_MUL)
        return (a * factors->a + b * factors->b + (1 << (factors->shift - 1))) >> factors->shift;
    float scaled = (float)(a * b) * (pairs->a_scale * pairs->b_scale / pairs->y_scale);
    return (int32_t)nearbyintf(fminf(fmaxf(scaled, -512), 512));
}

static int32_t combine_floats(const struct pairs *pairs, int32_t a, int32_t b)
{
    // `volatile` prevents the compiler from fusing the products and the sum, because that would
    // skip one rounding.
    volatile float left = (float)a * pairs->a_scale, right = (float)b * pairs->b_scale;
    float value = pairs->kind == INF_BINARY_MUL   ? left * right
                  : pairs->kind == INF_BINARY_SUB ? left - right
                                                  : left + right;
    float low = (float)(pairs->min - pairs->y_zero), high = (float)(pairs->max - pairs->y_zero);
    value /= pairs->y_scale;
    value = value > low ? value : low;
    value = value < high ? value : high;
    return (int32_t)nearbyintf(value);
}

static void fill_pairs(void *bytes, const void *context)
{
    const struct pairs *pairs = context;
    for (uint32_t i = 0; i < BYTES * BYTES; i++) {
        int32_t a = vk_byte_number((uint8_t)(i / BYTES), pairs->a_dtype) - pairs->a_zero;
        int32_t b = vk_byte_number((uint8_t)(i % BYTES), pairs->b_dtype) - pairs->b_zero;
        int32_t value =
            pairs->integer ? combine_integers(pairs, a, b) : combine_floats(pairs, a, b);
        value = INF_MAX(INF_MIN(value + pairs->y_zero, pairs->max), pairs->min);
        ((uint8_t *)bytes)[i] = (uint8_t)value;
    }
}

static struct pairs read_pairs(const struct vk_lowering *lowering)
{
    const struct inf_attrs_qbinary *attrs = &lowering->node->attrs.qbinary;
    enum inf_dtype y = vk_output_dtype(lowering, 0);
    struct pairs pairs = {.kind = attrs->kind,
                          .integer = attrs->integer,
                          .a_dtype = vk_input_dtype(lowering, 0),
                          .b_dtype = vk_input_dtype(lowering, 1),
                          .a_scale = scale_at(lowering, 2),
                          .b_scale = scale_at(lowering, 3),
                          .y_scale = scale_at(lowering, 4),
                          .y_zero = vk_zero_point(lowering, 7, y),
                          .min = attrs->min,
                          .max = attrs->max};
    pairs.a_zero = vk_zero_point(lowering, 5, pairs.a_dtype);
    pairs.b_zero = vk_zero_point(lowering, 6, pairs.b_dtype);
    vk_byte_narrow(&pairs.min, &pairs.max, y);
    if (pairs.integer && pairs.kind != INF_BINARY_MUL)
        pairs.integer = inf_qsum_factors(
            pairs.a_scale, pairs.kind == INF_BINARY_SUB ? -pairs.b_scale : pairs.b_scale,
            pairs.y_scale, &pairs.factors);
    return pairs;
}

enum inf_code vk_lower_qbinary(struct vk_lowering *lowering, struct inf_error *err)
{
    INF_TRY(vk_need_byte_storage(lowering, err));
    INF_TRY(need_numbers(lowering, 2, err));
    struct pairs pairs = read_pairs(lowering);
    struct vk_broadcast shape = {0};
    INF_TRY(vk_broadcast_fill(&shape, lowering, (const uint32_t[]){0, 1}, 2, err));
    struct vk_dispatch dispatch = {
        .variant = {INF_SHADER_QBINARY,
                    {vk_broadcast_mode(&shape, 0), vk_broadcast_mode(&shape, 1)}},
        .invocations = shape.vectors};
    vk_set_push_constants(&dispatch, &shape, sizeof(shape));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[0], err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->inputs[1], err));
    INF_TRY(vk_bind_packed(lowering, &dispatch, BYTES * BYTES, fill_pairs, &pairs, err));
    INF_TRY(vk_bind_value(lowering, &dispatch, lowering->node->outputs[0], err));
    return vk_emit_dispatch(lowering, &dispatch, VK_FEW_ITERATIONS, err);
}
