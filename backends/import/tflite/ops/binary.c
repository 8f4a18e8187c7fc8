// SPDX-License-Identifier: Apache-2.0
// Functions of two tensors, element by element and broadcast: arithmetic, comparisons and logic.
#include "backends/graph/build/operators.h"
#include "backends/import/tflite/op_table.h"
#include "backends/import/tflite/quantize.h"

static uint32_t add_binary(struct inf_tflite_scope *s)
{
    return inf_build_binary(&s->b, (enum inf_binary_kind)s->row->kind, inf_tflite_data(s, 0),
                            inf_tflite_data(s, 1));
}

static void lower_binary(struct inf_tflite_scope *s)
{
    s->outputs[0] = add_binary(s);
}

// Returns true if a tensor has 8 bits and one scale.
static bool is_byte(const struct inf_tflite_tensor *tensor)
{
    enum inf_dtype dtype = inf_tflite_type_info(tensor->type).dtype;
    return (dtype == INF_DTYPE_I8 || dtype == INF_DTYPE_U8) && tensor->quantization.count == 1 &&
           tensor->quantization.scales[0] > 0;
}

// Returns true if ADD, SUB or MUL becomes one operator on bytes.
static bool is_byte_arithmetic(const struct inf_tflite_scope *s)
{
    return s->row->kind != INF_BINARY_DIV && is_byte(inf_tflite_input_tensor(s, 0)) &&
           is_byte(inf_tflite_input_tensor(s, 1)) && is_byte(inf_tflite_output_tensor(s, 0));
}

// Returns input `index` broadcast to the shape of the result if that shape is known, because
// devices have kernels for operands of one shape only.
static uint32_t broadcast_input(struct inf_tflite_scope *s, uint32_t index,
                                const struct inf_shape *shape)
{
    uint32_t x = inf_tflite_stored(s, index);
    int64_t dims[INF_LIMIT_RANK];
    if (!inf_shape_known(shape) || inf_shape_equal(inf_build_shape_of(&s->b, x), shape))
        return x;
    for (int32_t i = 0; i < shape->rank; i++)
        dims[i] = shape->dims[i];
    return inf_build_broadcast(&s->b, x, inf_build_list(&s->b, dims, (uint32_t)shape->rank));
}

// Adds arithmetic on bytes in integers, with the rounding of TFLite's runtime.
static void lower_bytes(struct inf_tflite_scope *s)
{
    const struct inf_tflite_tensor *tensors[] = {inf_tflite_input_tensor(s, 0),
                                                 inf_tflite_input_tensor(s, 1),
                                                 inf_tflite_output_tensor(s, 0)};
    struct inf_shape shape = {.rank = INF_RANK_UNKNOWN};
    uint32_t inputs[8];
    uint32_t x = inf_tflite_stored(s, 0), y = inf_tflite_stored(s, 1);
    float low, high;
    if (!inf_build_ok(&s->b))
        return;
    if (!inf_shape_broadcast(inf_build_shape_of(&s->b, x), inf_build_shape_of(&s->b, y), &shape))
        shape.rank = INF_RANK_UNKNOWN; // the node's own rule names the fault
    inputs[0] = broadcast_input(s, 0, &shape);
    inputs[1] = broadcast_input(s, 1, &shape);
    for (uint32_t i = 0; i < 3; i++)
        inf_tflite_add_scales(&s->b, tensors[i], &inputs[2 + i], &inputs[5 + i]);
    struct inf_build_node node = inf_build_describe_list(INF_OP_QBINARY, inputs, 8);
    struct inf_attrs_qbinary *attrs = &node.attrs.qbinary;
    attrs->kind = (enum inf_binary_kind)s->row->kind;
    attrs->integer = true;
    attrs->dtype = inf_tflite_type_info(tensors[2]->type).dtype;
    inf_tflite_activation_bounds(s, 0, &low, &high);
    inf_tflite_store_bounds(tensors[2], low, high, &attrs->min, &attrs->max);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

// Arithmetic with a fused activation, which is the first option of all these operators.
static void lower_arithmetic(struct inf_tflite_scope *s)
{
    if (is_byte_arithmetic(s))
        lower_bytes(s);
    else
        s->outputs[0] = inf_tflite_activate(s, add_binary(s), 0);
}

static void lower_logic(struct inf_tflite_scope *s)
{
    uint32_t x = inf_tflite_stored(s, 0);
    enum inf_binary_kind kind = (enum inf_binary_kind)s->row->kind;
    if (inf_build_dtype(&s->b, x) != INF_DTYPE_BOOL)
        kind = kind == INF_BINARY_LOGICAL_AND ? INF_BINARY_BITWISE_AND : INF_BINARY_BITWISE_OR;
    s->outputs[0] = inf_build_binary(&s->b, kind, x, inf_tflite_stored(s, 1));
}

// STABLEHLO_COMPARE: the option names the comparison.
static void lower_stablehlo_compare(struct inf_tflite_scope *s)
{
    static const enum inf_compare_kind kinds[] = {INF_COMPARE_EQUAL,         INF_COMPARE_NOT_EQUAL,
                                                  INF_COMPARE_GREATER_EQUAL, INF_COMPARE_GREATER,
                                                  INF_COMPARE_LESS_EQUAL,    INF_COMPARE_LESS};
    int64_t kind = inf_tflite_option_2_int(s, INF_TFLITE_OPTIONS_2_COMPARE, INF_FB_U32, 0,
                                           "comparison_direction");
    if (kind >= (int64_t)INF_ARRAY_LENGTH(kinds)) {
        inf_build_fail(&s->b, INF_INVALID, "option comparison_direction is %lld", (long long)kind);
        return;
    }
    s->outputs[0] =
        inf_build_compare(&s->b, kinds[kind], inf_tflite_data(s, 0), inf_tflite_data(s, 1));
}

static void lower_compare(struct inf_tflite_scope *s)
{
    s->outputs[0] = inf_build_compare(&s->b, (enum inf_compare_kind)s->row->kind,
                                      inf_tflite_data(s, 0), inf_tflite_data(s, 1));
}

static void lower_add_n(struct inf_tflite_scope *s)
{
    uint32_t sum = inf_tflite_data(s, 0);
    for (uint32_t i = 1; i < s->op->inputs.count; i++)
        sum = inf_build_add(&s->b, sum, inf_tflite_data(s, i));
    s->outputs[0] = sum;
}

static void lower_prelu(struct inf_tflite_scope *s)
{
    struct inf_build_node node = inf_build_describe(INF_OP_PRELU, inf_tflite_data(s, 0),
                                                    inf_tflite_data(s, 1), INF_VALUE_NONE);
    s->outputs[0] = inf_build_value(&s->b, &node);
}

#define ARITHMETIC(name, kind)                                                                     \
    {                                                                                              \
        INF_TFLITE_##name, NULL, lower_arithmetic, 2, 2, 1, INF_TFLITE_MODE_REAL,                  \
            INF_TFLITE_OPTIONS_##name, INF_BINARY_##kind                                           \
    }
#define BINARY(name, kind, mode)                                                                   \
    {                                                                                              \
        INF_TFLITE_##name, NULL, lower_binary, 2, 2, 1, INF_TFLITE_MODE_##mode,                    \
            INF_TFLITE_OPTIONS_NONE, INF_BINARY_##kind                                             \
    }
// A logical function of bools, and the function of the bits of integers.
#define LOGIC(name, kind)                                                                          \
    {                                                                                              \
        INF_TFLITE_##name, NULL, lower_logic, 2, 2, 1, INF_TFLITE_MODE_STORED,                     \
            INF_TFLITE_OPTIONS_NONE, INF_BINARY_LOGICAL_##kind                                     \
    }
#define COMPARE(name)                                                                              \
    {                                                                                              \
        INF_TFLITE_##name, NULL, lower_compare, 2, 2, 1, INF_TFLITE_MODE_MOVE,                     \
            INF_TFLITE_OPTIONS_NONE, INF_COMPARE_##name                                            \
    }

static const struct inf_tflite_op ops[] = {
    ARITHMETIC(ADD, ADD),
    ARITHMETIC(SUB, SUB),
    ARITHMETIC(MUL, MUL),
    ARITHMETIC(DIV, DIV),
    BINARY(MAXIMUM, MAX, MOVE),
    BINARY(MINIMUM, MIN, MOVE),
    BINARY(POW, POW, REAL),
    BINARY(FLOOR_DIV, FLOOR_DIV, REAL),
    BINARY(FLOOR_MOD, FLOOR_MOD, REAL),
    BINARY(SQUARED_DIFFERENCE, SQUARED_DIFFERENCE, REAL),
    BINARY(ATAN2, ATAN2, REAL),
    BINARY(LOGICAL_AND, LOGICAL_AND, REAL),
    BINARY(LOGICAL_OR, LOGICAL_OR, REAL),
    BINARY(STABLEHLO_ADD, ADD, REAL),
    BINARY(STABLEHLO_MULTIPLY, MUL, REAL),
    BINARY(STABLEHLO_SUBTRACT, SUB, REAL),
    BINARY(STABLEHLO_DIVIDE, DIV, REAL),
    BINARY(STABLEHLO_POWER, POW, REAL),
    BINARY(STABLEHLO_REMAINDER, MOD, REAL),
    LOGIC(STABLEHLO_AND, AND),
    LOGIC(STABLEHLO_OR, OR),
    BINARY(STABLEHLO_MAXIMUM, MAX, MOVE),
    BINARY(STABLEHLO_MINIMUM, MIN, MOVE),
    BINARY(STABLEHLO_SHIFT_LEFT, SHIFT_LEFT, STORED),
    BINARY(BITWISE_XOR, BITWISE_XOR, STORED),
    BINARY(RIGHT_SHIFT, SHIFT_RIGHT, STORED),
    COMPARE(EQUAL),
    COMPARE(NOT_EQUAL),
    COMPARE(LESS),
    COMPARE(LESS_EQUAL),
    COMPARE(GREATER),
    COMPARE(GREATER_EQUAL),
    {INF_TFLITE_STABLEHLO_COMPARE, NULL, lower_stablehlo_compare, 2, 2, 1, INF_TFLITE_MODE_MOVE, 0,
     0},
    {INF_TFLITE_ADD_N, NULL, lower_add_n, 1, INF_LIMIT_NODE_INPUTS, 1, INF_TFLITE_MODE_REAL, 0, 0},
    {INF_TFLITE_PRELU, NULL, lower_prelu, 2, 2, 1, INF_TFLITE_MODE_REAL, 0, 0},
};

const struct inf_tflite_op_table inf_tflite_ops_binary = {ops, INF_ARRAY_LENGTH(ops)};
