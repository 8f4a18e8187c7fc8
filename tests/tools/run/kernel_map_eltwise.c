// SPDX-License-Identifier: Apache-2.0
// Maps element-wise TensorFlow.js kernels, and reductions.
#include <string.h>

#include "tests/tools/run/kernel_case.h"

// --- element-wise kernels ---

static void map_unary(struct kernel_case *call, int kind)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_UNARY);
    attrs.unary.kind = (enum inf_unary_kind)kind;
    attrs.unary.alpha = kind == INF_UNARY_ELU ? 1 : (float)kernel_attr(call, "alpha");
    kernel_result(call, kernel_add(call, INF_OP_UNARY, &attrs, kernel_input(call, "x")));
}

// Maps functions that the graph defines for floats only. TensorFlow.js also accepts integers and
// returns floats, so x is converted first.
static void map_unary_float(struct kernel_case *call, int kind)
{
    uint32_t x = kernel_cast(call, kernel_input(call, "x"), INF_DTYPE_F32);
    kernel_result(call, kernel_unary(call, (enum inf_unary_kind)kind, x));
}

// Maps functions that round. TensorFlow.js returns x for integers, which are round already.
static void map_rounding(struct kernel_case *call, int kind)
{
    uint32_t x = kernel_input(call, "x");
    kernel_result(call, kernel_dtype(call, x) == INF_DTYPE_F32
                            ? kernel_unary(call, (enum inf_unary_kind)kind, x)
                            : kernel_add(call, INF_OP_IDENTITY, NULL, x));
}

static void map_test(struct kernel_case *call, int kind)
{
    uint32_t x = kernel_cast(call, kernel_input(call, "x"), INF_DTYPE_F32);
    uint32_t y = kernel_unary(call, (enum inf_unary_kind)kind, x);
    kernel_result(call, kernel_cast(call, y, INF_DTYPE_BOOL));
}

static void map_binary(struct kernel_case *call, int kind)
{
    uint32_t a = kernel_input(call, "a"), b = kernel_input(call, "b");
    kernel_result(call, kernel_binary(call, (enum inf_binary_kind)kind, a, b));
}

// Maps FloorDiv, whose result TensorFlow.js always gives as int32.
static void map_floor_div(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t a = kernel_input(call, "a"), b = kernel_input(call, "b");
    uint32_t y = kernel_binary(call, INF_BINARY_FLOOR_DIV, a, b);
    kernel_result(call, kernel_cast(call, y, INF_DTYPE_I32));
}

static void map_divide(struct kernel_case *call, int kind)
{
    uint32_t a = kernel_cast(call, kernel_input(call, "a"), INF_DTYPE_F32);
    uint32_t b = kernel_cast(call, kernel_input(call, "b"), INF_DTYPE_F32);
    kernel_result(call, kernel_binary(call, (enum inf_binary_kind)kind, a, b));
}

static void map_compare(struct kernel_case *call, int kind)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_COMPARE);
    attrs.compare.kind = (enum inf_compare_kind)kind;
    uint32_t a = kernel_input(call, "a"), b = kernel_input(call, "b");
    if (kernel_dtype(call, a) == INF_DTYPE_BOOL && kind > INF_COMPARE_NOT_EQUAL) {
        a = kernel_cast(call, a, INF_DTYPE_I32);
        b = kernel_cast(call, b, INF_DTYPE_I32);
    }
    kernel_result(call, kernel_add(call, INF_OP_COMPARE, &attrs, a, b));
}

static void map_clip(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_CLIP);
    attrs.clip.min = (float)kernel_attr(call, "clipValueMin");
    attrs.clip.max = (float)kernel_attr(call, "clipValueMax");
    kernel_result(call, kernel_add(call, INF_OP_CLIP, &attrs, kernel_input(call, "x")));
}

static void map_prelu(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t x = kernel_input(call, "x"), alpha = kernel_input(call, "alpha");
    kernel_result(call, kernel_add(call, INF_OP_PRELU, NULL, x, alpha));
}

// Maps Select. A condition of rank 1 selects rows of operands that have a higher rank.
static void map_select(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t condition = kernel_input(call, "condition");
    uint32_t a = kernel_input(call, "t"), b = kernel_input(call, "e");
    int32_t rank = kernel_shape(call, a)->rank;
    if (kernel_shape(call, condition)->rank == 1 && rank > 1) {
        int64_t dims[INF_LIMIT_RANK] = {
            kernel_shape(call, condition)->dims[0], 1, 1, 1, 1, 1, 1, 1};
        condition = kernel_reshape(call, condition, dims, rank);
    }
    kernel_result(call, kernel_add(call, INF_OP_SELECT, NULL, condition, a, b));
}

static void map_cast(struct kernel_case *call, int unused)
{
    (void)unused;
    const char *name = kernel_text(call, "dtype");
    enum inf_dtype dtype = strcmp(name, "bool") == 0    ? INF_DTYPE_BOOL
                           : strcmp(name, "int32") == 0 ? INF_DTYPE_I32
                                                        : INF_DTYPE_F32;
    union inf_attrs attrs = kernel_attrs(INF_OP_CAST);
    attrs.cast.dtype = dtype;
    kernel_result(call, kernel_add(call, INF_OP_CAST, &attrs, kernel_input(call, "x")));
}

static void map_add_n(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t sum = kernel_input_at(call, 0);
    for (uint32_t i = 1; i < kernel_input_count(call); i++)
        sum = kernel_binary(call, INF_BINARY_ADD, sum, kernel_input_at(call, i));
    kernel_result(call, sum);
}

static void map_identity(struct kernel_case *call, int unused)
{
    (void)unused;
    kernel_result(call, kernel_add(call, INF_OP_IDENTITY, NULL, kernel_input(call, "x")));
}

static void map_like(struct kernel_case *call, int value)
{
    uint32_t x = kernel_input(call, "x");
    uint32_t shape = kernel_add(call, INF_OP_SHAPE, NULL, x);
    uint32_t scalar = kernel_scalar(call, kernel_dtype(call, x), value);
    kernel_result(call, kernel_add(call, INF_OP_FILL, NULL, shape, scalar));
}

const struct kernel_row kernel_rows_eltwise[] = {
    {"Abs", map_unary, INF_UNARY_ABS},
    {"Acos", map_unary_float, INF_UNARY_ACOS},
    {"Acosh", map_unary_float, INF_UNARY_ACOSH},
    {"Add", map_binary, INF_BINARY_ADD},
    {"AddN", map_add_n, 0},
    {"Asin", map_unary_float, INF_UNARY_ASIN},
    {"Asinh", map_unary_float, INF_UNARY_ASINH},
    {"Atan", map_unary_float, INF_UNARY_ATAN},
    {"Atan2", map_binary, INF_BINARY_ATAN2},
    {"Atanh", map_unary_float, INF_UNARY_ATANH},
    {"BitwiseAnd", map_binary, INF_BINARY_BITWISE_AND},
    {"Cast", map_cast, 0},
    {"Ceil", map_rounding, INF_UNARY_CEIL},
    {"ClipByValue", map_clip, 0},
    {"Cos", map_unary_float, INF_UNARY_COS},
    {"Cosh", map_unary_float, INF_UNARY_COSH},
    {"Elu", map_unary, INF_UNARY_ELU},
    {"Equal", map_compare, INF_COMPARE_EQUAL},
    {"Erf", map_unary_float, INF_UNARY_ERF},
    {"Exp", map_unary_float, INF_UNARY_EXP},
    {"Expm1", map_unary_float, INF_UNARY_EXPM1},
    {"Floor", map_rounding, INF_UNARY_FLOOR},
    {"FloorDiv", map_floor_div, 0},
    {"Greater", map_compare, INF_COMPARE_GREATER},
    {"GreaterEqual", map_compare, INF_COMPARE_GREATER_EQUAL},
    {"Identity", map_identity, 0},
    {"IsFinite", map_test, INF_UNARY_IS_FINITE},
    {"IsInf", map_test, INF_UNARY_IS_INF},
    {"IsNan", map_test, INF_UNARY_IS_NAN},
    {"LeakyRelu", map_unary, INF_UNARY_LEAKY_RELU},
    {"Less", map_compare, INF_COMPARE_LESS},
    {"LessEqual", map_compare, INF_COMPARE_LESS_EQUAL},
    {"Log", map_unary_float, INF_UNARY_LOG},
    {"Log1p", map_unary_float, INF_UNARY_LOG1P},
    {"LogicalAnd", map_binary, INF_BINARY_LOGICAL_AND},
    {"LogicalNot", map_unary, INF_UNARY_LOGICAL_NOT},
    {"LogicalOr", map_binary, INF_BINARY_LOGICAL_OR},
    {"Maximum", map_binary, INF_BINARY_MAX},
    {"Minimum", map_binary, INF_BINARY_MIN},
    {"Mod", map_binary, INF_BINARY_FLOOR_MOD},
    {"Multiply", map_binary, INF_BINARY_MUL},
    {"Neg", map_unary, INF_UNARY_NEG},
    {"NotEqual", map_compare, INF_COMPARE_NOT_EQUAL},
    {"OnesLike", map_like, 1},
    {"Pow", map_binary, INF_BINARY_POW},
    {"Prelu", map_prelu, 0},
    {"RealDiv", map_divide, INF_BINARY_DIV},
    {"Reciprocal", map_unary_float, INF_UNARY_RECIPROCAL},
    {"Relu", map_unary, INF_UNARY_RELU},
    {"Relu6", map_unary, INF_UNARY_RELU6},
    {"Round", map_rounding, INF_UNARY_ROUND},
    {"Rsqrt", map_unary_float, INF_UNARY_RSQRT},
    {"Select", map_select, 0},
    {"Selu", map_unary, INF_UNARY_SELU},
    {"Sigmoid", map_unary_float, INF_UNARY_SIGMOID},
    {"Sign", map_unary, INF_UNARY_SIGN_OR_ZERO},
    {"Sin", map_unary_float, INF_UNARY_SIN},
    {"Sinh", map_unary_float, INF_UNARY_SINH},
    {"Softplus", map_unary_float, INF_UNARY_SOFTPLUS},
    {"Sqrt", map_unary_float, INF_UNARY_SQRT},
    {"Square", map_unary, INF_UNARY_SQUARE},
    {"SquaredDifference", map_binary, INF_BINARY_SQUARED_DIFFERENCE},
    {"Step", map_unary, INF_UNARY_STEP},
    {"Sub", map_binary, INF_BINARY_SUB},
    {"Tan", map_unary_float, INF_UNARY_TAN},
    {"Tanh", map_unary_float, INF_UNARY_TANH},
    {"ZerosLike", map_like, 0},
    {0},
};

// --- kernels that reduce axes ---

// Reads the axes of a reduction. Returns false for an empty list: TensorFlow.js reduces nothing
// then, but the operator would reduce all axes.
static bool read_axes(const struct kernel_case *call, const char *name, struct inf_ints *axes)
{
    int count = kernel_list(call, name, axes->values, INF_LIMIT_RANK);
    axes->count = INF_MAX(count, 0);
    return count != 0;
}

static void build_reduce(struct kernel_case *call, int kind, uint32_t x, const char *axes)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_REDUCE);
    attrs.reduce.kind = (enum inf_reduce_kind)kind;
    attrs.reduce.keep_dims = kernel_flag(call, "keepDims");
    bool any = read_axes(call, axes, &attrs.reduce.axes);
    kernel_result(call, any ? kernel_add(call, INF_OP_REDUCE, &attrs, x)
                            : kernel_add(call, INF_OP_IDENTITY, NULL, x));
}

static void map_reduce(struct kernel_case *call, int kind)
{
    uint32_t x = kernel_input(call, "x");
    if (kernel_dtype(call, x) == INF_DTYPE_BOOL && kind != INF_REDUCE_ALL && kind != INF_REDUCE_ANY)
        x = kernel_cast(call, x, INF_DTYPE_I32);
    if (kind == INF_REDUCE_MEAN)
        x = kernel_cast(call, x, INF_DTYPE_F32);
    build_reduce(call, kind, x, "axis");
}

static void map_extreme(struct kernel_case *call, int kind)
{
    build_reduce(call, kind, kernel_input(call, "x"),
                 kind == INF_REDUCE_MAX ? "reductionIndices" : "axis");
}

static void map_arg(struct kernel_case *call, int kind)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_ARG);
    attrs.arg.kind = (enum inf_arg_kind)kind;
    attrs.arg.axis = (int32_t)kernel_attr(call, "axis");
    kernel_result(call, kernel_add(call, INF_OP_ARG, &attrs, kernel_input(call, "x")));
}

static void map_softmax(struct kernel_case *call, int unused)
{
    (void)unused;
    union inf_attrs attrs = kernel_attrs(INF_OP_SOFTMAX);
    attrs.softmax.axis = (int32_t)kernel_attr(call, "dim");
    kernel_result(call, kernel_add(call, INF_OP_SOFTMAX, &attrs, kernel_input(call, "logits")));
}

static void map_cumulate(struct kernel_case *call, int kind)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_CUMULATE);
    attrs.cumulate.kind = (enum inf_cumulate_kind)kind;
    attrs.cumulate.axis = (int32_t)kernel_attr(call, "axis");
    attrs.cumulate.exclusive = kernel_flag(call, "exclusive");
    attrs.cumulate.reverse = kernel_flag(call, "reverse");
    kernel_result(call, kernel_add(call, INF_OP_CUMULATE, &attrs, kernel_input(call, "x")));
}

static void map_bincount(struct kernel_case *call, int flat)
{
    union inf_attrs attrs = kernel_attrs(INF_OP_BINCOUNT);
    attrs.bincount.binary = kernel_flag(call, "binaryOutput");
    uint32_t x = kernel_input(call, "x"), weights = kernel_input(call, "weights");
    if (flat)
        x = kernel_reshape(call, x, (const int64_t[]){-1}, 1);
    uint32_t size = kernel_scalar(call, INF_DTYPE_I32, kernel_attr(call, "size"));
    kernel_result(call, kernel_add(call, INF_OP_BINCOUNT, &attrs, x, size, weights));
}

static void map_top_k(struct kernel_case *call, int unused)
{
    (void)unused;
    uint32_t inputs[] = {kernel_input(call, "x"),
                         kernel_scalar(call, INF_DTYPE_I32, kernel_attr(call, "k"))};
    const struct inf_shape shape = *kernel_shape(call, inputs[0]);
    int64_t count = shape.dims[INF_MAX(shape.rank - 1, 0)];
    if (!kernel_flag(call, "sorted") && (int64_t)kernel_attr(call, "k") == count) {
        // If all elements are requested unsorted, TensorFlow.js returns them in their original
        // order.
        uint32_t order = kernel_add(call, INF_OP_RANGE, NULL, kernel_scalar(call, INF_DTYPE_I32, 0),
                                    kernel_scalar(call, INF_DTYPE_I32, (double)count),
                                    kernel_scalar(call, INF_DTYPE_I32, 1));
        kernel_result(call, kernel_add(call, INF_OP_IDENTITY, NULL, inputs[0]));
        kernel_result(call, kernel_add(call, INF_OP_BROADCAST, NULL, order,
                                       kernel_ints(call, shape.dims, shape.rank)));
        return;
    }
    uint32_t first = kernel_node(call, INF_OP_TOPK, NULL, inputs, 2, 2);
    kernel_result(call, first);
    kernel_result(call, first + 1);
}

const struct kernel_row kernel_rows_reduce[] = {
    {"All", map_reduce, INF_REDUCE_ALL},
    {"Any", map_reduce, INF_REDUCE_ANY},
    {"ArgMax", map_arg, INF_ARG_MAX},
    {"ArgMin", map_arg, INF_ARG_MIN},
    {"Bincount", map_bincount, 1},
    {"Cumprod", map_cumulate, INF_CUMULATE_PROD},
    {"Cumsum", map_cumulate, INF_CUMULATE_SUM},
    {"DenseBincount", map_bincount, 0},
    {"Max", map_extreme, INF_REDUCE_MAX},
    {"Mean", map_reduce, INF_REDUCE_MEAN},
    {"Min", map_extreme, INF_REDUCE_MIN},
    {"Prod", map_reduce, INF_REDUCE_PROD},
    {"Softmax", map_softmax, 0},
    {"Sum", map_reduce, INF_REDUCE_SUM},
    {"TopK", map_top_k, 0},
    {0},
};
