// SPDX-License-Identifier: Apache-2.0
// Functions of several tensors, element by element, and matrix products.
#include <math.h>
#include <string.h>

#include "backends/import/common/einsum.h"
#include "backends/import/onnx/lower.h"

// Rows of the largest matrices that Det is written out for.
#define DET_MAX 4

// Before opset 7 operands broadcast only where `broadcast` was set, the second one aligned at
// `axis` of the first.
static uint32_t align_old(struct inf_onnx_scope *s, uint32_t a, uint32_t b)
{
    int64_t axes[INF_LIMIT_RANK];
    if (s->opset >= 7)
        return b;
    int32_t enabled = inf_ox_attr_int(s, "broadcast", 0);
    int32_t rank = inf_ox_rank(s, a), other = inf_ox_rank(s, b);
    if (!inf_ox_has_attr(s, "axis") || enabled == 0)
        return b;
    int32_t axis = inf_ox_axis(s, inf_ox_attr_int(s, "axis", 0), rank);
    int32_t missing = rank - axis - other;
    for (int32_t i = 0; i < missing; i++)
        axes[i] = other + i;
    if (missing < 0)
        inf_ox_fail(s, INF_INVALID, "axis %d leaves no room for rank %d in rank %d", axis, other,
                    rank);
    return missing > 0 ? inf_ox_expand_dims(s, b, axes, missing) : b;
}

static void lower_binary(struct inf_onnx_scope *s)
{
    uint32_t b = align_old(s, s->inputs[0], s->inputs[1]);
    s->outputs[0] = inf_ox_binary(s, (enum inf_binary_kind)s->op->kind, s->inputs[0], b);
}

static void lower_compare(struct inf_onnx_scope *s)
{
    uint32_t b = align_old(s, s->inputs[0], s->inputs[1]);
    s->outputs[0] = inf_ox_compare(s, (enum inf_compare_kind)s->op->kind, s->inputs[0], b);
}

// Max, Min, Sum: one operand after the other.
static void lower_chain(struct inf_onnx_scope *s)
{
    uint32_t y = s->inputs[0];
    for (uint32_t i = 1; i < s->input_count; i++)
        y = inf_ox_binary(s, (enum inf_binary_kind)s->op->kind, y, s->inputs[i]);
    s->outputs[0] = y;
}

static void lower_mean(struct inf_onnx_scope *s)
{
    uint32_t y = s->inputs[0];
    for (uint32_t i = 1; i < s->input_count; i++)
        y = inf_ox_add(s, y, s->inputs[i]);
    s->outputs[0] = inf_ox_binary_number(s, INF_BINARY_DIV, y, s->input_count);
}

// The exponent may be of another type; the result is of the base's.
static void lower_pow(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], y = align_old(s, s->inputs[0], s->inputs[1]);
    enum inf_dtype dtype = inf_ox_dtype(s, x);
    double exponent;
    if (inf_dtype_is_float(dtype) && inf_ox_const_number(s, y, &exponent) && exponent == 2 &&
        s->graph->values[y].shape.rank == 0) {
        s->outputs[0] = inf_ox_unary(s, INF_UNARY_SQUARE, x);
        return;
    }
    bool through_float = !inf_dtype_is_float(dtype) && inf_dtype_is_float(inf_ox_dtype(s, y));
    enum inf_dtype work = through_float ? INF_DTYPE_F64 : dtype;
    uint32_t z = inf_ox_binary(s, INF_BINARY_POW, inf_ox_cast(s, x, work), inf_ox_cast(s, y, work));
    s->outputs[0] = inf_ox_cast(s, z, dtype);
}

static void lower_mod(struct inf_onnx_scope *s)
{
    bool is_float = inf_dtype_is_float(inf_ox_dtype(s, s->inputs[0]));
    bool fmod = inf_ox_attr_int(s, "fmod", 0) != 0;
    if (is_float && !fmod)
        inf_ox_fail(s, INF_INVALID, "fmod is not set, floats want it");
    s->outputs[0] =
        inf_ox_binary(s, fmod ? INF_BINARY_MOD : INF_BINARY_FLOOR_MOD, s->inputs[0], s->inputs[1]);
}

static void lower_where(struct inf_onnx_scope *s)
{
    s->outputs[0] = inf_ox_select(s, s->inputs[0], s->inputs[1], s->inputs[2]);
}

static void lower_prelu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], slope = s->inputs[1];
    int32_t rank = inf_ox_rank(s, x);
    // Of old, one slope a channel.
    if (s->opset < 7 && inf_ox_rank(s, slope) == 1 && rank > 2)
        slope = inf_ox_expand_dims(s, slope, (int64_t[]){1, 2, 3, 4, 5, 6, 7}, rank - 2);
    if (inf_dtype_is_float(inf_ox_dtype(s, x))) {
        const uint32_t inputs[] = {x, slope};
        struct inf_ox_call call = inf_ox_call(INF_OP_PRELU, inputs, 2);
        s->outputs[0] = inf_ox_value(s, &call);
        return;
    }
    uint32_t zero = inf_ox_scalar(s, inf_ox_dtype(s, x), 0);
    s->outputs[0] =
        inf_ox_select(s, inf_ox_compare(s, INF_COMPARE_LESS, x, zero), inf_ox_mul(s, x, slope), x);
}

static void lower_bit_shift(struct inf_onnx_scope *s)
{
    const char *direction = inf_ox_attr_text(s, "direction", "");
    bool left = strcmp(direction, "LEFT") == 0;
    if (!left && strcmp(direction, "RIGHT") != 0)
        inf_ox_fail(s, INF_INVALID, "direction is '%.20s', wanted LEFT or RIGHT", direction);
    s->outputs[0] = inf_ox_binary(s, left ? INF_BINARY_SHIFT_LEFT : INF_BINARY_SHIFT_RIGHT,
                                  s->inputs[0], s->inputs[1]);
}

static void lower_matmul(struct inf_onnx_scope *s)
{
    s->outputs[0] = inf_ox_matmul(s, s->inputs[0], s->inputs[1]);
}

static uint32_t scaled(struct inf_onnx_scope *s, uint32_t x, float by)
{
    return by == 1.0f ? x : inf_ox_binary_number(s, INF_BINARY_MUL, x, (double)by);
}

static void lower_gemm(struct inf_onnx_scope *s)
{
    struct inf_ox_call call = inf_ox_call(INF_OP_MATMUL, s->inputs, 2);
    uint32_t c = inf_ox_in(s, 2);
    float alpha = inf_ox_attr_float(s, "alpha", 1.0f), beta = inf_ox_attr_float(s, "beta", 1.0f);
    (void)inf_ox_attr(s, "broadcast"); // of old: C may be stretched, as it may without
    call.attrs.matmul.transpose_a = inf_ox_attr_int(s, "transA", 0) != 0;
    call.attrs.matmul.transpose_b = inf_ox_attr_int(s, "transB", 0) != 0;
    if (inf_ox_rank(s, s->inputs[0]) != 2 || inf_ox_rank(s, s->inputs[1]) != 2)
        inf_ox_fail(s, INF_INVALID, "an operand is no matrix");
    uint32_t y = scaled(s, inf_ox_value(s, &call), alpha);
    if (c != INF_VALUE_NONE && beta != 0)
        y = inf_ox_add(s, y, scaled(s, c, beta));
    s->outputs[0] = y;
}

static void lower_einsum(struct inf_onnx_scope *s)
{
    const char *equation = inf_ox_attr_text(s, "equation", "");
    if (inf_ox_ok(s))
        s->code = inf_graph_add_einsum(s->graph, s->node->name, equation, s->inputs, s->input_count,
                                       s->outputs, s->err);
}

// Row `row` and column `column` of matrices [..., n, n].
static uint32_t element(struct inf_onnx_scope *s, uint32_t x, int32_t rank, int64_t row,
                        int64_t column)
{
    uint32_t part = inf_ox_slice(s, x, rank - 2, row, row + 1, 1);
    part = inf_ox_slice(s, part, rank - 1, column, column + 1, 1);
    return inf_ox_squeeze(s, part, (int64_t[]){rank - 2, rank - 1}, 2);
}

// Small determinants written out, minor by minor from the last row up.
static void lower_det(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], minors[1 << DET_MAX];
    int32_t rank = inf_ox_rank(s, x);
    if (inf_ox_ok(s) && rank < 2)
        inf_ox_fail(s, INF_INVALID, "x has rank %d, wanted 2 or more", rank);
    int64_t size = inf_ox_known_dim(s, x, -1);
    if (inf_ox_ok(s) && (size < 1 || size > DET_MAX || inf_ox_known_dim(s, x, -2) != size))
        inf_ox_fail(s, INF_UNSUPPORTED, "matrices of %lld by %lld, wanted square ones up to %d",
                    (long long)inf_ox_known_dim(s, x, -2), (long long)size, DET_MAX);
    for (uint32_t columns = 1; inf_ox_ok(s) && columns < 1u << size; columns++) {
        int64_t row = size - __builtin_popcount(columns);
        uint32_t sum = INF_VALUE_NONE;
        bool adds = true;
        for (uint32_t i = 0; i < size; i++) {
            if (!(columns & 1u << i))
                continue;
            uint32_t term = element(s, x, rank, row, i), rest = columns & ~(1u << i);
            term = rest == 0 ? term : inf_ox_mul(s, term, minors[rest]);
            if (sum != INF_VALUE_NONE)
                term = adds ? inf_ox_add(s, sum, term) : inf_ox_sub(s, sum, term);
            sum = term;
            adds = !adds;
        }
        minors[columns] = sum;
    }
    if (inf_ox_ok(s))
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
