// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of several tensors, and matrix products.
#include <math.h>
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/common/einsum.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"
#include "backends/import/onnx/ops/block_weights.h"

// The largest number of rows of a matrix for Det.
#define DET_MAX 4

// Aligns the second operand for old versions: before opset 7, operands broadcast only if
// `broadcast` is set, and `axis` is the axis of the first operand where the second one begins.
static uint32_t align_old_operand(struct inf_onnx_scope *s, uint32_t a, uint32_t b)
{
    int64_t axes[INF_LIMIT_RANK];
    if (s->opset >= 7)
        return b;
    int32_t enabled = inf_onnx_attr_int(s, "broadcast", 0);
    int32_t rank = inf_build_rank(&s->b, a), other = inf_build_rank(&s->b, b);
    if (!inf_onnx_has_attr(s, "axis") || enabled == 0)
        return b;
    int32_t axis = inf_build_axis(&s->b, inf_onnx_attr_int(s, "axis", 0), rank);
    int32_t missing = rank - axis - other;
    for (int32_t i = 0; i < missing; i++)
        axes[i] = other + i;
    if (missing < 0)
        inf_build_fail(&s->b, INF_INVALID, "axis %d leaves no room for rank %d in rank %d", axis,
                       other, rank);
    return missing > 0 ? inf_build_expand_dims(&s->b, b, axes, missing) : b;
}

static void lower_binary(struct inf_onnx_scope *s)
{
    uint32_t b = align_old_operand(s, s->inputs[0], s->inputs[1]);
    s->outputs[0] = inf_build_binary(&s->b, (enum inf_binary_kind)s->op->kind, s->inputs[0], b);
}

static void lower_compare(struct inf_onnx_scope *s)
{
    uint32_t b = align_old_operand(s, s->inputs[0], s->inputs[1]);
    s->outputs[0] = inf_build_compare(&s->b, (enum inf_compare_kind)s->op->kind, s->inputs[0], b);
}

// Lowers Max, Min and Sum, which combine the first two operands, then the result with the next one.
static void lower_chain(struct inf_onnx_scope *s)
{
    uint32_t y = s->inputs[0];
    for (uint32_t i = 1; i < s->input_count; i++)
        y = inf_build_binary(&s->b, (enum inf_binary_kind)s->op->kind, y, s->inputs[i]);
    s->outputs[0] = y;
}

static void lower_mean(struct inf_onnx_scope *s)
{
    uint32_t y = s->inputs[0];
    for (uint32_t i = 1; i < s->input_count; i++)
        y = inf_build_add(&s->b, y, s->inputs[i]);
    s->outputs[0] = inf_build_binary_number(&s->b, INF_BINARY_DIV, y, s->input_count);
}

// Lowers Pow. The exponent may have another type; the result has the type of the base.
static void lower_pow(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], y = align_old_operand(s, s->inputs[0], s->inputs[1]);
    enum inf_dtype dtype = inf_build_dtype(&s->b, x);
    double exponent;
    if (inf_dtype_is_float(dtype) && inf_build_const_number(&s->b, y, &exponent) && exponent == 2 &&
        s->b.graph->values[y].shape.rank == 0) {
        s->outputs[0] = inf_build_unary(&s->b, INF_UNARY_SQUARE, x);
        return;
    }
    bool through_float =
        !inf_dtype_is_float(dtype) && inf_dtype_is_float(inf_build_dtype(&s->b, y));
    enum inf_dtype work = through_float ? INF_DTYPE_F64 : dtype;
    uint32_t z = inf_build_binary(&s->b, INF_BINARY_POW, inf_build_cast(&s->b, x, work),
                                  inf_build_cast(&s->b, y, work));
    s->outputs[0] = inf_build_cast(&s->b, z, dtype);
}

static void lower_mod(struct inf_onnx_scope *s)
{
    bool is_float = inf_dtype_is_float(inf_build_dtype(&s->b, s->inputs[0]));
    bool fmod = inf_onnx_attr_int(s, "fmod", 0) != 0;
    if (is_float && !fmod)
        inf_build_fail(&s->b, INF_INVALID, "fmod is not set, floats want it");
    s->outputs[0] = inf_build_binary(&s->b, fmod ? INF_BINARY_MOD : INF_BINARY_FLOOR_MOD,
                                     s->inputs[0], s->inputs[1]);
}

static void lower_where(struct inf_onnx_scope *s)
{
    s->outputs[0] = inf_build_select(&s->b, s->inputs[0], s->inputs[1], s->inputs[2]);
}

static void lower_prelu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], slope = s->inputs[1];
    int32_t rank = inf_build_rank(&s->b, x);
    // In old versions there is one slope for each channel.
    if (s->opset < 7 && inf_build_rank(&s->b, slope) == 1 && rank > 2)
        slope = inf_build_expand_dims(&s->b, slope, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - 2);
    if (inf_dtype_is_float(inf_build_dtype(&s->b, x))) {
        const uint32_t inputs[] = {x, slope};
        struct inf_build_node node = inf_build_describe_list(INF_OP_PRELU, inputs, 2);
        s->outputs[0] = inf_build_value(&s->b, &node);
        return;
    }
    uint32_t zero = inf_build_scalar(&s->b, inf_build_dtype(&s->b, x), 0);
    s->outputs[0] = inf_build_select(&s->b, inf_build_compare(&s->b, INF_COMPARE_LESS, x, zero),
                                     inf_build_mul(&s->b, x, slope), x);
}

static void lower_bit_shift(struct inf_onnx_scope *s)
{
    const char *direction = inf_onnx_attr_text(s, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        inf_build_fail(&s->b, INF_INVALID, "direction is '%.20s', wanted LEFT or RIGHT", direction);
    s->outputs[0] = inf_build_binary(&s->b, left ? INF_BINARY_SHIFT_LEFT : INF_BINARY_SHIFT_RIGHT,
                                     s->inputs[0], s->inputs[1]);
}

static void lower_matmul(struct inf_onnx_scope *s)
{
    uint32_t y = inf_onnx_blocks_multiply(s, s->inputs[0], s->inputs[1], false);
    s->outputs[0] = y != INF_VALUE_NONE ? y : inf_build_matmul(&s->b, s->inputs[0], s->inputs[1]);
}

static uint32_t add_scaled(struct inf_onnx_scope *s, uint32_t x, float by)
{
    return by == 1.0f ? x : inf_build_binary_number(&s->b, INF_BINARY_MUL, x, (double)by);
}

static void lower_gemm(struct inf_onnx_scope *s)
{
    struct inf_build_node node = inf_build_describe_list(INF_OP_MATMUL, s->inputs, 2);
    uint32_t c = inf_onnx_input(s, 2);
    float alpha = inf_onnx_attr_float(s, "alpha", 1.0f),
          beta = inf_onnx_attr_float(s, "beta", 1.0f);
    (void)inf_onnx_find_attr(s, "broadcast"); // old attribute; C is broadcast in any case
    node.attrs.matmul.transpose_a = inf_onnx_attr_int(s, "transA", 0) != 0;
    node.attrs.matmul.transpose_b = inf_onnx_attr_int(s, "transB", 0) != 0;
    if (inf_build_rank(&s->b, s->inputs[0]) != 2 || inf_build_rank(&s->b, s->inputs[1]) != 2)
        inf_build_fail(&s->b, INF_INVALID, "an operand is no matrix");
    uint32_t y = INF_VALUE_NONE;
    if (inf_build_ok(&s->b) && !node.attrs.matmul.transpose_a)
        y = inf_onnx_blocks_multiply(s, s->inputs[0], s->inputs[1], node.attrs.matmul.transpose_b);
    y = add_scaled(s, y != INF_VALUE_NONE ? y : inf_build_value(&s->b, &node), alpha);
    if (c != INF_VALUE_NONE && beta != 0)
        y = inf_build_add(&s->b, y, add_scaled(s, c, beta));
    s->outputs[0] = y;
}

static void lower_einsum(struct inf_onnx_scope *s)
{
    const char *equation = inf_onnx_attr_text(s, "equation", "");
    if (inf_build_ok(&s->b))
        s->b.code = inf_graph_add_einsum(s->b.graph, s->node->name, equation, s->inputs,
                                         s->input_count, s->outputs, s->b.err);
}

// Adds nodes that take the element at one row and column of each matrix in x [..., n, n].
static uint32_t add_element(struct inf_onnx_scope *s, uint32_t x, int32_t rank, int64_t row,
                            int64_t column)
{
    uint32_t part = inf_build_slice(&s->b, x, rank - 2, row, row + 1, 1);
    part = inf_build_slice(&s->b, part, rank - 1, column, column + 1, 1);
    return inf_build_squeeze(&s->b, part, (int64_t[]){rank - 2, rank - 1}, 2);
}

// Lowers Det: expands the determinants of small matrices by minors, from the last row up.
static void lower_det(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], minors[1 << DET_MAX];
    int32_t rank = inf_build_rank(&s->b, x);
    if (inf_build_ok(&s->b) && rank < 2)
        inf_build_fail(&s->b, INF_INVALID, "x has rank %d, wanted 2 or more", rank);
    int64_t size = inf_build_known_dim(&s->b, x, -1);
    if (inf_build_ok(&s->b) &&
        (size < 1 || size > DET_MAX || inf_build_known_dim(&s->b, x, -2) != size))
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "matrices of %lld by %lld, wanted square ones up to %d",
                       (long long)inf_build_known_dim(&s->b, x, -2), (long long)size, DET_MAX);
    for (uint32_t columns = 1; inf_build_ok(&s->b) && columns < 1u << size; columns++) {
        int64_t row = size - __builtin_popcount(columns);
        uint32_t sum = INF_VALUE_NONE;
        bool adds = true;
        for (uint32_t i = 0; i < size; i++) {
            if (!(columns & 1u << i))
                continue;
            uint32_t term = add_element(s, x, rank, row, i), rest = columns & ~(1u << i);
            term = rest == 0 ? term : inf_build_mul(&s->b, term, minors[rest]);
            if (sum != INF_VALUE_NONE)
                term = adds ? inf_build_add(&s->b, sum, term) : inf_build_sub(&s->b, sum, term);
            sum = term;
            adds = !adds;
        }
        minors[columns] = sum;
    }
    if (inf_build_ok(&s->b))
        s->outputs[0] = minors[(1u << size) - 1];
}

static const struct inf_onnx_op ops[] = {
    {"Add", lower_binary, 2, 2, 1, INF_BINARY_ADD},
    {"Sub", lower_binary, 2, 2, 1, INF_BINARY_SUB},
    {"Mul", lower_binary, 2, 2, 1, INF_BINARY_MUL},
    {"Div", lower_binary, 2, 2, 1, INF_BINARY_DIV},
    {"And", lower_binary, 2, 2, 1, INF_BINARY_LOGICAL_AND},
    {"Or", lower_binary, 2, 2, 1, INF_BINARY_LOGICAL_OR},
    {"Xor", lower_binary, 2, 2, 1, INF_BINARY_LOGICAL_XOR},
    {"BitwiseAnd", lower_binary, 2, 2, 1, INF_BINARY_BITWISE_AND},
    {"BitwiseOr", lower_binary, 2, 2, 1, INF_BINARY_BITWISE_OR},
    {"BitwiseXor", lower_binary, 2, 2, 1, INF_BINARY_BITWISE_XOR},
    {"Equal", lower_compare, 2, 2, 1, INF_COMPARE_EQUAL},
    {"Less", lower_compare, 2, 2, 1, INF_COMPARE_LESS},
    {"LessOrEqual", lower_compare, 2, 2, 1, INF_COMPARE_LESS_EQUAL},
    {"Greater", lower_compare, 2, 2, 1, INF_COMPARE_GREATER},
    {"GreaterOrEqual", lower_compare, 2, 2, 1, INF_COMPARE_GREATER_EQUAL},
    {"Max", lower_chain, 1, INF_LIMIT_NODE_INPUTS, 1, INF_BINARY_MAX},
    {"Min", lower_chain, 1, INF_LIMIT_NODE_INPUTS, 1, INF_BINARY_MIN},
    {"Sum", lower_chain, 1, INF_LIMIT_NODE_INPUTS, 1, INF_BINARY_ADD},
    {"Mean", lower_mean, 1, INF_LIMIT_NODE_INPUTS, 1, 0},
    {"Pow", lower_pow, 2, 2, 1, 0},
    {"Mod", lower_mod, 2, 2, 1, 0},
    {"Where", lower_where, 3, 3, 1, 0},
    {"PRelu", lower_prelu, 2, 2, 1, 0},
    {"BitShift", lower_bit_shift, 2, 2, 1, 0},
    {"MatMul", lower_matmul, 2, 2, 1, 0},
    {"Gemm", lower_gemm, 2, 3, 1, 0},
    {"Det", lower_det, 1, 1, 1, 0},
    {"Einsum", lower_einsum, 1, INF_LIMIT_NODE_INPUTS, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_math = {ops, INF_ARRAY_LENGTH(ops)};
