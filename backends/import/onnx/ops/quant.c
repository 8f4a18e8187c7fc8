// SPDX-License-Identifier: Apache-2.0
// Quantising and dequantising, with the graph's operators or with arithmetic on floats and
// integers.

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/narrow.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/block_weights.h"

// Reshapes a scale or zero point so that it aligns with x. It has one number, one for each index of
// an axis, or one for each block.
static uint32_t align_with_input(struct inf_onnx_scope *s, uint32_t value, uint32_t x)
{
    int32_t rank = inf_build_rank(&s->b, x);
    int32_t block = inf_onnx_attr_int(s, "block_size", 0);
    if (inf_build_rank(&s->b, value) == 0)
        return value;
    if (inf_build_rank(&s->b, value) == 1 && inf_build_dim(&s->b, value, 0) == 1 && block == 0)
        return inf_build_squeeze(&s->b, value, (int64_t[]){0}, 1);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 1), rank);
    if (block == 0 && inf_build_rank(&s->b, value) == 1)
        return inf_build_expand_dims(&s->b, value, (int64_t[]){1, 2, 3, 4, 5, 6, 7},
                                     rank - 1 - axis);
    // In blocked mode, each number applies to `block` neighbours along the axis.
    int64_t size = inf_build_dim(&s->b, x, axis);
    if (block < 1 || inf_build_rank(&s->b, value) != rank ||
        (size != INF_DIM_UNKNOWN && inf_build_dim(&s->b, value, axis) != INF_DIM_UNKNOWN &&
         inf_build_dim(&s->b, value, axis) != (size + block - 1) / block))
        inf_build_fail(&s->b, INF_INVALID, "block_size %d does not fit axis %d of %lld", block,
                       axis, (long long)size);
    uint32_t indices =
        inf_build_binary_number(&s->b, INF_BINARY_FLOOR_DIV, inf_onnx_add_range(s, x, axis), block);
    return inf_build_gather(&s->b, value, indices, axis);
}

static bool find_int_range(enum inf_dtype dtype, double *low, double *high)
{
    switch (dtype) {
    case INF_DTYPE_U8:
        *low = 0, *high = 255;
        return true;
    case INF_DTYPE_I8:
        *low = -128, *high = 127;
        return true;
    case INF_DTYPE_U16:
        *low = 0, *high = 65535;
        return true;
    case INF_DTYPE_I16:
        *low = -32768, *high = 32767;
        return true;
    default:
        return false;
    }
}

static enum inf_dtype read_quantized_type(struct inf_onnx_scope *s)
{
    int32_t type = inf_onnx_attr_int(s, "output_dtype", 0);
    uint32_t zero = inf_onnx_input(s, 2);
    if (type != 0 && inf_onnx_dtype(type) == INF_DTYPE_NONE)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "output_dtype is %s", inf_onnx_type_name(type));
    if (zero != INF_VALUE_NONE)
        return inf_build_dtype(&s->b, zero);
    return type != 0 ? inf_onnx_dtype(type) : INF_DTYPE_U8;
}

// Returns true if the graph's quantise operators support this scale and zero point: each is one
// number, or one number for each index of an axis, and not one number for each block.
static bool is_plain(struct inf_onnx_scope *s, uint32_t zero)
{
    if (inf_onnx_attr_int(s, "block_size", 0) != 0 || inf_build_rank(&s->b, s->inputs[1]) > 1)
        return false;
    return zero == INF_VALUE_NONE ||
           inf_build_rank(&s->b, zero) == inf_build_rank(&s->b, s->inputs[1]);
}

// Adds the graph's quantise or dequantise operator `op` on x, scale and zero point.
static uint32_t add_plain_node(struct inf_onnx_scope *s, enum inf_op op, uint32_t x, uint32_t scale,
                               uint32_t zero, enum inf_dtype dtype)
{
    const uint32_t inputs[] = {x, scale, zero};
    struct inf_build_node node =
        inf_build_describe_list(op, inputs, zero != INF_VALUE_NONE ? 3 : 2);
    bool single = inf_build_rank(&s->b, scale) == 0 || inf_build_dim(&s->b, scale, 0) == 1;
    int32_t axis = inf_onnx_attr_int(s, "axis", 1);
    if (!single)
        axis = inf_build_axis(&s->b, axis, inf_build_rank(&s->b, x));
    if (op == INF_OP_QUANTIZE) {
        node.attrs.quantize.dtype = dtype;
        node.attrs.quantize.axis = single ? 0 : axis;
    } else {
        node.attrs.dequantize.axis = single ? 0 : axis;
    }
    return inf_build_value(&s->b, &node);
}

// --- narrow types ---

// Returns the TensorProto.DataType of QuantizeLinear's result if it is narrow, otherwise 0.
static int32_t read_narrow_target(struct inf_onnx_scope *s)
{
    int32_t type = inf_onnx_attr_int(s, "output_dtype", 0);
    uint32_t zero = inf_onnx_input(s, 2);
    if (inf_onnx_is_narrow(zero))
        type = inf_onnx_narrow_type(zero);
    else if (zero != INF_VALUE_NONE)
        return 0;
    return inf_onnx_narrow_dtype(type) != INF_DTYPE_NONE ? type : 0;
}

// Adds x, which is a narrow tensor or integers, as FP32.
static uint32_t add_widened(struct inf_onnx_scope *s, uint32_t x)
{
    return inf_onnx_is_narrow(x) ? inf_onnx_narrow_widen(s, x, INF_DTYPE_F32)
                                 : inf_build_cast(&s->b, x, INF_DTYPE_F32);
}

// Lowers QuantizeLinear to a narrow type.
static void quantize_to_narrow(struct inf_onnx_scope *s, int32_t type)
{
    const struct inf_onnx_rounding rounding = {inf_onnx_attr_int(s, "saturate", 1) != 0, "nearest"};
    uint32_t x = inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_F32), zero = inf_onnx_input(s, 2);
    uint32_t scale = inf_build_cast(&s->b, align_with_input(s, s->inputs[1], x), INF_DTYPE_F32);
    uint32_t y = inf_build_div(&s->b, x, scale);
    double low, high;
    bool is_integer = inf_onnx_narrow_range(type, &low, &high);
    if (is_integer)
        y = inf_build_unary(&s->b, INF_UNARY_ROUND, y);
    if (zero != INF_VALUE_NONE)
        y = inf_build_add(&s->b, y, align_with_input(s, add_widened(s, zero), x));
    if (!is_integer) {
        s->outputs[0] = inf_onnx_narrow_round(s, y, type, &rounding);
        return;
    }
    y = inf_build_cast(&s->b, inf_build_clip(&s->b, y, low, high), inf_onnx_narrow_dtype(type));
    s->outputs[0] = inf_onnx_narrow_wrap(s, y, type);
}

// Lowers DequantizeLinear of narrow floats.
static void dequantize_floats(struct inf_onnx_scope *s, enum inf_dtype dtype)
{
    uint32_t x = add_widened(s, s->inputs[0]), zero = inf_onnx_input(s, 2);
    if (zero != INF_VALUE_NONE)
        x = inf_build_sub(&s->b, x, align_with_input(s, add_widened(s, zero), x));
    uint32_t scale = inf_build_cast(&s->b, align_with_input(s, s->inputs[1], x), INF_DTYPE_F32);
    s->outputs[0] = inf_build_cast(&s->b, inf_build_mul(&s->b, x, scale), dtype);
}

// --- operators QuantizeLinear and DequantizeLinear ---

static void lower_quantize(struct inf_onnx_scope *s)
{
    if (inf_onnx_is_narrow(s->inputs[0]) || inf_onnx_is_narrow(s->inputs[1]))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "x or the scale is of a narrow type");
    int32_t narrow = inf_build_ok(&s->b) ? read_narrow_target(s) : 0;
    if (narrow != 0) {
        (void)inf_onnx_find_attr(s, "axis");      // has no effect if the scale is one number
        (void)inf_onnx_find_attr(s, "precision"); // FP32 is the only one that is built
        quantize_to_narrow(s, narrow);
        return;
    }
    uint32_t x = s->inputs[0], zero = inf_onnx_input(s, 2);
    enum inf_dtype dtype = read_quantized_type(s);
    double low = 0, high = 0;
    (void)inf_onnx_find_attr(s, "axis"); // has no effect if the scale is one number
    // This attribute affects only narrow floats.
    (void)inf_onnx_find_attr(s, "saturate");
    int32_t precision = inf_onnx_attr_int(s, "precision", 0);
    if (!find_int_range(dtype, &low, &high))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "y is %s", inf_dtype_name(dtype));
    if (precision != 0 && inf_onnx_dtype(precision) != INF_DTYPE_F32)
        inf_build_fail(&s->b, INF_UNSUPPORTED, "precision is %s", inf_onnx_type_name(precision));
    x = inf_build_cast(&s->b, x, INF_DTYPE_F32);
    if (is_plain(s, zero)) {
        s->outputs[0] = add_plain_node(
            s, INF_OP_QUANTIZE, x, inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_F32), zero, dtype);
        return;
    }
    uint32_t scale = inf_build_cast(&s->b, align_with_input(s, s->inputs[1], x), INF_DTYPE_F32);
    uint32_t y = inf_build_unary(&s->b, INF_UNARY_ROUND, inf_build_div(&s->b, x, scale));
    if (zero != INF_VALUE_NONE)
        y = inf_build_add(&s->b, y,
                          inf_build_cast(&s->b, align_with_input(s, zero, x), INF_DTYPE_F32));
    s->outputs[0] = inf_build_cast(&s->b, inf_build_clip(&s->b, y, low, high), dtype);
}

// Refuses a zero point of another type than x's, and a narrow scale.
static void check_dequantized(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], zero = inf_onnx_input(s, 2);
    int32_t type = inf_onnx_is_narrow(x) ? inf_onnx_narrow_type(x) : 0;
    int32_t own = inf_onnx_is_narrow(zero) ? inf_onnx_narrow_type(zero) : 0;
    if (inf_onnx_is_narrow(s->inputs[1]))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "the scale is of a narrow type");
    if (zero != INF_VALUE_NONE && own != type)
        inf_build_fail(&s->b, INF_INVALID, "the zero point has another type than x");
}

// Remembers weights in blocks, for products that read them packed.
static void note_blocks(struct inf_onnx_scope *s, int32_t bits, uint32_t zero)
{
    int32_t rank = inf_build_rank(&s->b, s->inputs[0]);
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 1), rank);
    const struct inf_onnx_blocks blocks = {.weights = s->inputs[0],
                                           .scales = s->inputs[1],
                                           .zeros = zero,
                                           .result = s->outputs[0],
                                           .bits = bits,
                                           .block = inf_onnx_attr_int(s, "block_size", 0),
                                           .has_rows = axis == 1};
    if (axis < 2)
        inf_onnx_blocks_note(s, &blocks);
}

static void lower_dequantize(struct inf_onnx_scope *s)
{
    check_dequantized(s);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t zero = inf_onnx_input(s, 2);
    (void)inf_onnx_find_attr(s, "axis"); // has no effect if the scale is one number
    int32_t type = inf_onnx_attr_int(s, "output_dtype", 0);
    enum inf_dtype dtype = type != 0 ? inf_onnx_dtype(type) : inf_build_dtype(&s->b, s->inputs[1]);
    if (!inf_dtype_is_float(dtype))
        inf_build_fail(&s->b, INF_UNSUPPORTED, "output_dtype is %s", inf_onnx_type_name(type));
    double low = 0, high = 255; // of the integers; those that are not narrow have 8 bits or more
    if (inf_onnx_is_narrow(s->inputs[0]) &&
        !inf_onnx_narrow_range(inf_onnx_narrow_type(s->inputs[0]), &low, &high)) {
        dequantize_floats(s, dtype);
        return;
    }
    int32_t bits = high - low == 255 ? 8 : high - low == 15 ? 4 : 2;
    s->inputs[0] = inf_onnx_narrow_value(s->inputs[0]);
    zero = inf_onnx_narrow_value(zero);
    if (is_plain(s, zero)) {
        uint32_t scale = inf_build_cast(&s->b, s->inputs[1], INF_DTYPE_F32);
        uint32_t y =
            add_plain_node(s, INF_OP_DEQUANTIZE, s->inputs[0], scale, zero, INF_DTYPE_NONE);
        s->outputs[0] = inf_build_cast(&s->b, y, dtype);
        return;
    }
    uint32_t x = inf_build_cast(&s->b, s->inputs[0], INF_DTYPE_I32);
    if (zero != INF_VALUE_NONE)
        x = inf_build_sub(&s->b, x,
                          inf_build_cast(&s->b, align_with_input(s, zero, x), INF_DTYPE_I32));
    uint32_t scale = inf_build_cast(&s->b, align_with_input(s, s->inputs[1], x), INF_DTYPE_F32);
    s->outputs[0] = inf_build_cast(
        &s->b, inf_build_mul(&s->b, inf_build_cast(&s->b, x, INF_DTYPE_F32), scale), dtype);
    note_blocks(s, bits, zero);
}

// Quantises x to unsigned 8 bits. The range is that of x, extended to include 0.
static void lower_dynamic_quantize(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0];
    struct inf_ints axes = {.count = inf_build_rank(&s->b, x)};
    for (int32_t i = 0; i < axes.count; i++)
        axes.values[i] = i;
    uint32_t low = inf_build_reduce(&s->b, INF_REDUCE_MIN, x, &axes, false);
    uint32_t high = inf_build_reduce(&s->b, INF_REDUCE_MAX, x, &axes, false);
    low = inf_build_binary_number(&s->b, INF_BINARY_MIN, low, 0);
    high = inf_build_binary_number(&s->b, INF_BINARY_MAX, high, 0);
    uint32_t scale =
        inf_build_binary_number(&s->b, INF_BINARY_DIV, inf_build_sub(&s->b, high, low), 255);
    // If all elements are 0, the range is empty and the scale would be 0. Use 1 instead.
    uint32_t is_empty = inf_build_compare(&s->b, INF_COMPARE_EQUAL, scale,
                                          inf_build_scalar(&s->b, INF_DTYPE_F32, 0));
    scale = inf_build_select(&s->b, is_empty, inf_build_scalar(&s->b, INF_DTYPE_F32, 1), scale);
    uint32_t zero = inf_build_div(&s->b, inf_build_unary(&s->b, INF_UNARY_NEG, low), scale);
    zero = inf_build_unary(&s->b, INF_UNARY_ROUND, inf_build_clip(&s->b, zero, 0, 255));
    zero = inf_build_cast(&s->b, zero, INF_DTYPE_U8);
    struct inf_build_node node = inf_build_describe(INF_OP_QUANTIZE, x, scale, zero);
    node.attrs.quantize.dtype = INF_DTYPE_U8;
    node.attrs.quantize.axis = 0;
    s->outputs[0] = inf_build_value(&s->b, &node);
    if (s->output_count > 1)
        s->outputs[1] = scale;
    if (s->output_count > 2)
        s->outputs[2] = zero;
}

static const struct inf_onnx_op ops[] = {
    {"QuantizeLinear", lower_quantize, 2, 3, 1, 0, .narrow = INF_ONNX_NARROW_HANDLE},
    {"DequantizeLinear", lower_dequantize, 2, 3, 1, 0, .narrow = INF_ONNX_NARROW_HANDLE},
    {"DynamicQuantizeLinear", lower_dynamic_quantize, 1, 1, 3, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_quant = {ops, INF_ARRAY_LENGTH(ops)};
