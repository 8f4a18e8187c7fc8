// SPDX-License-Identifier: Apache-2.0
// Describes for each operator how it changes rounding errors, and which of its operands may be any
// value.
#include "tests/conformance/random_graph.h"

#define ALL UINT32_MAX

// How each operator changes rounding errors. Bit i of `open` is set if operand i may be any value.
// The other operands are indices, sizes and divisors, which keep the elements of the test case.
static const struct random_nature natures[INF_OP_COUNT] = {
    [INF_OP_COMPARE] = {.open = 3, .jumps = true},
    [INF_OP_SELECT] = {.open = 7},
    [INF_OP_CLIP] = {.open = 1},
    [INF_OP_PRELU] = {.open = 3, .rounds = true},
    [INF_OP_ARG] = {.open = 1, .jumps = true},
    [INF_OP_SOFTMAX] = {.open = 1, .rounds = true},
    [INF_OP_CONV2D] = {.open = ALL, .rounds = true},
    [INF_OP_DEPTHWISE_CONV2D] = {.open = ALL, .rounds = true},
    [INF_OP_CONV2D_TRANSPOSE] = {.open = 11, .rounds = true},
    [INF_OP_MATMUL] = {.open = ALL, .rounds = true},
    [INF_OP_MATMUL_BLOCKS] = {.open = 1 | 16, .rounds = true},
    [INF_OP_BATCH_NORM] = {.open = 15, .rounds = true},
    [INF_OP_RESIZE] = {.open = 1, .rounds = true},
    [INF_OP_IDENTITY] = {.open = 1},
    [INF_OP_RESHAPE] = {.open = 1},
    [INF_OP_EXPAND_DIMS] = {.open = 1},
    [INF_OP_SQUEEZE] = {.open = 1},
    [INF_OP_TRANSPOSE] = {.open = 1},
    [INF_OP_CONCAT] = {.open = ALL},
    [INF_OP_SPLIT] = {.open = 1},
    [INF_OP_SLICE] = {.open = 1},
    [INF_OP_PAD] = {.open = 5},
    [INF_OP_TILE] = {.open = 1},
    [INF_OP_BROADCAST] = {.open = 1},
    [INF_OP_GATHER] = {.open = 1},
    [INF_OP_SPACE_TO_DEPTH] = {.open = 1},
    [INF_OP_DEPTH_TO_SPACE] = {.open = 1},
    [INF_OP_SHAPE] = {.open = 1},
    [INF_OP_FILL] = {.open = 2},
    [INF_OP_RANDOM] = {.rounds = true},
    [INF_OP_REVERSE] = {.open = 1},
    [INF_OP_REVERSE_SEQUENCE] = {.open = 1},
    [INF_OP_CUMULATE] = {.open = 1, .rounds = true},
    [INF_OP_TOPK] = {.open = 1, .jumps = true},
    [INF_OP_SEARCH_SORTED] = {.open = 2, .jumps = true},
    [INF_OP_PAIR_COUPLING] = {.rounds = true},
    [INF_OP_BINCOUNT] = {.open = 4, .rounds = true},
    [INF_OP_BAND] = {.open = 1},
    [INF_OP_GATHER_ND] = {.open = 1},
    [INF_OP_APPEND] = {.open = 5},
    [INF_OP_SCATTER_ND] = {.open = 5, .rounds = true},
    [INF_OP_GATHER_ELEMENTS] = {.open = 1},
    [INF_OP_SCATTER_ELEMENTS] = {.open = 5, .rounds = true},
    [INF_OP_SPACE_TO_BATCH] = {.open = 1},
    [INF_OP_BATCH_TO_SPACE] = {.open = 1},
    [INF_OP_CONV_ND] = {.open = 7, .rounds = true},
    [INF_OP_CONV_ND_TRANSPOSE] = {.open = 11, .rounds = true},
    [INF_OP_DILATION2D] = {.open = 3, .rounds = true},
    [INF_OP_LRN] = {.open = 1, .rounds = true},
    [INF_OP_NORMALIZE] = {.open = 7, .rounds = true},
    [INF_OP_RESAMPLE] = {.open = 1, .rounds = true},
    [INF_OP_CROP_AND_RESIZE] = {.open = 1, .rounds = true},
    [INF_OP_ROI_ALIGN] = {.open = 1, .rounds = true},
    [INF_OP_GRID_SAMPLE] = {.open = 1, .rounds = true},
    [INF_OP_IMAGE_TRANSFORM] = {.open = 1, .rounds = true},
    [INF_OP_QUANTIZE] = {.open = 1, .jumps = true},
    [INF_OP_DEQUANTIZE] = {.open = 1, .rounds = true},
    [INF_OP_RNN] = {.open = 15, .rounds = true},
    [INF_OP_NONZERO] = {.open = 1, .jumps = true},
    [INF_OP_UNIQUE] = {.open = 1, .jumps = true},
    [INF_OP_LIST_DIFF] = {.open = 3, .jumps = true},
    [INF_OP_LIST_SET] = {.open = 5},
};

static struct random_nature unary_nature(enum inf_unary_kind kind)
{
    switch (kind) {
    case INF_UNARY_NEG:
    case INF_UNARY_ABS:
    case INF_UNARY_RELU:
    case INF_UNARY_RELU6:
    case INF_UNARY_LOGICAL_NOT:
    case INF_UNARY_BITWISE_NOT:
        return (struct random_nature){.open = 1};
    case INF_UNARY_SIGN:
    case INF_UNARY_FLOOR:
    case INF_UNARY_CEIL:
    case INF_UNARY_ROUND:
    case INF_UNARY_TRUNC:
    case INF_UNARY_IS_NAN:
    case INF_UNARY_IS_INF:
    case INF_UNARY_IS_FINITE:
    case INF_UNARY_SIGN_OR_ZERO:
    case INF_UNARY_STEP:
    case INF_UNARY_THRESHOLDED_RELU:
        return (struct random_nature){.open = 1, .jumps = true};
    case INF_UNARY_SHRINK:
    case INF_UNARY_SQRT:
    case INF_UNARY_RSQRT:
    case INF_UNARY_RECIPROCAL:
    case INF_UNARY_LOG:
    case INF_UNARY_LOG1P:
    case INF_UNARY_TAN:
    case INF_UNARY_ASIN:
    case INF_UNARY_ACOS:
    case INF_UNARY_ACOSH:
    case INF_UNARY_ATANH:
        return (struct random_nature){.open = 1, .jumps = true, .rounds = true};
    default:
        return (struct random_nature){.open = 1, .rounds = true};
    }
}

static struct random_nature binary_nature(const struct inf_attrs_binary *attrs)
{
    struct random_nature nature = {.open = 3, .rounds = true};
    switch (attrs->kind) {
    case INF_BINARY_MIN:
    case INF_BINARY_MAX:
        nature.rounds = attrs->activation > INF_ACTIVATION_CLIP;
        break;
    case INF_BINARY_DIV:
    case INF_BINARY_DIV_NO_NAN:
        nature.open = 1;
        break;
    case INF_BINARY_FLOOR_DIV:
    case INF_BINARY_FLOOR_MOD:
    case INF_BINARY_MOD:
        nature.open = 1;
        nature.jumps = true;
        break;
    case INF_BINARY_POW:
    case INF_BINARY_ATAN2:
    case INF_BINARY_SHIFT_LEFT:
    case INF_BINARY_SHIFT_RIGHT:
        nature.open = 0;
        break;
    default:
        break;
    }
    return nature;
}

static struct random_nature cast_nature(enum inf_dtype from, enum inf_dtype to)
{
    bool rounds = inf_dtype_is_float(from) && inf_dtype_is_float(to);
    // The conversion of a float to an integer type that cannot hold the float is undefined.
    bool open = !inf_dtype_is_float(from) || inf_dtype_is_float(to) || to == INF_DTYPE_BOOL;
    return (struct random_nature){.open = open, .jumps = !rounds, .rounds = rounds};
}

struct random_nature random_nature(enum inf_op op, const union inf_attrs *attrs,
                                   enum inf_dtype first, uint32_t output_count)
{
    switch (op) {
    case INF_OP_UNARY:
        return unary_nature(attrs->unary.kind);
    case INF_OP_BINARY:
        return binary_nature(&attrs->binary);
    case INF_OP_CAST:
        return cast_nature(first, attrs->cast.dtype);
    case INF_OP_REDUCE: {
        enum inf_reduce_kind kind = attrs->reduce.kind;
        bool picks = kind == INF_REDUCE_MAX || kind == INF_REDUCE_MIN;
        return (struct random_nature){
            .open = 1, .jumps = kind == INF_REDUCE_LOG_SUM, .rounds = !picks};
    }
    case INF_OP_POOL2D:
        return (struct random_nature){
            .open = 1, .rounds = attrs->pool2d.kind != INF_POOL_MAX, .ordered = true};
    case INF_OP_POOL_ND:
        return (struct random_nature){.open = 1,
                                      .jumps = output_count > 1,
                                      .rounds = attrs->pool_nd.kind != INF_POOL_MAX,
                                      .ordered = true};
    default:
        return natures[op];
    }
}
