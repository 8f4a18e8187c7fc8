// SPDX-License-Identifier: Apache-2.0
// Cases of element-wise operators and reductions, with the types and extreme values for which each
// result is defined.
#include "tests/conformance/cases.h"

#include <math.h>

#define EXTREME_ENDS (EXTREME_ZERO | EXTREME_INFINITE | EXTREME_NAN)

// --- making cases of unary operators ---

struct unary_domain {
    unsigned dtypes;
    enum filling filling;
    // bits of enum extreme: operand values for which the result of this kind is still defined
    unsigned extremes;
};

static struct unary_domain unary_domain(enum inf_unary_kind kind)
{
    switch (kind) {
    case INF_UNARY_NEG:
    case INF_UNARY_ABS:
    case INF_UNARY_SIGN:
    case INF_UNARY_SQUARE:
    case INF_UNARY_RELU:
    case INF_UNARY_RELU6:
        return (struct unary_domain){DTYPES_NUMBER, FILL_UNIFORM, EXTREME_ALL};
    case INF_UNARY_FLOOR:
    case INF_UNARY_CEIL:
    case INF_UNARY_ROUND:
    case INF_UNARY_TRUNC:
        return (struct unary_domain){DTYPES_FLOAT, FILL_QUARTERS, EXTREME_ENDS | EXTREME_LARGE};
    case INF_UNARY_SQRT:
    case INF_UNARY_LOG:
        return (struct unary_domain){DTYPES_FLOAT, FILL_POSITIVE, EXTREME_ENDS | EXTREME_LARGE};
    case INF_UNARY_RSQRT:
    case INF_UNARY_LOG1P:
    case INF_UNARY_ACOSH:
        return (struct unary_domain){DTYPES_FLOAT, FILL_POSITIVE, EXTREME_ENDS};
    case INF_UNARY_RECIPROCAL:
        return (struct unary_domain){DTYPES_FLOAT, FILL_POWERS, EXTREME_ENDS};
    case INF_UNARY_ASIN:
    case INF_UNARY_ACOS:
    case INF_UNARY_ATANH:
        return (struct unary_domain){DTYPES_FLOAT, FILL_UNIT, EXTREME_ENDS};
    case INF_UNARY_HARD_SWISH: // the result for -inf is undefined, because it is -inf * 0
        return (struct unary_domain){DTYPES_FLOAT, FILL_QUARTERS, EXTREME_ZERO | EXTREME_NAN};
    case INF_UNARY_TAN:
        return (struct unary_domain){DTYPES_FLOAT, FILL_UNIT, EXTREME_ENDS};
    case INF_UNARY_LOGICAL_NOT:
        return (struct unary_domain){DTYPE(BOOL), FILL_UNIFORM, 0};
    default:
        return (struct unary_domain){DTYPES_FLOAT, FILL_UNIFORM, EXTREME_ENDS};
    }
}

void make_unary(struct one_node *one, struct random *random, uint32_t number)
{
    enum inf_unary_kind kind = number % INF_UNARY_COUNT;
    struct unary_domain domain = unary_domain(kind);
    one->attrs.unary.kind = kind;
    one->attrs.unary.alpha = (float)random_in(random, 1, 8) / 4;
    struct operand x = {.dtype = random_dtype(random, domain.dtypes),
                        .shape = random_shape(random, random_rank(random, 0, 5)),
                        .filling = domain.filling,
                        .extremes = random_once_in(random, 2) ? domain.extremes : 0};
    add_operand(one, random, &x);
}

void make_clip(struct one_node *one, struct random *random, uint32_t number)
{
    one->attrs.clip.min = number % 3 == 0 ? -INFINITY : (float)random_in(random, -8, 2) / 4;
    one->attrs.clip.max = number % 4 == 0 ? INFINITY : (float)random_in(random, 3, 8) / 4;
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER),
                        .shape = random_shape(random, random_rank(random, 0, 4)),
                        .extremes = random_once_in(random, 2) ? EXTREME_ALL : 0};
    add_operand(one, random, &x);
}

void make_cast(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct operand x = {.dtype = random_dtype(random, DTYPES_ANY),
                        .shape = random_shape(random, random_rank(random, 0, 4)),
                        // Half of the cases have positive numbers only. A cast of a negative
                        // number to an unsigned type has no defined result.
                        .filling = random_once_in(random, 2) ? FILL_POSITIVE : FILL_QUARTERS};
    one->attrs.cast.dtype = random_dtype(random, DTYPES_ANY);
    if (inf_dtype_is_float(x.dtype) && one->attrs.cast.dtype <= INF_DTYPE_U64)
        x.filling = FILL_POSITIVE;
    add_operand(one, random, &x);
}

void make_bitcast(struct one_node *one, struct random *random, uint32_t number)
{
    static const enum inf_dtype pairs[][2] = {
        {INF_DTYPE_F32, INF_DTYPE_I32}, {INF_DTYPE_I64, INF_DTYPE_F64},
        {INF_DTYPE_U16, INF_DTYPE_I16}, {INF_DTYPE_BOOL, INF_DTYPE_U8},
        {INF_DTYPE_U32, INF_DTYPE_F32}, {INF_DTYPE_U8, INF_DTYPE_BOOL},
    };
    const enum inf_dtype *pair = pairs[number % INF_ARRAY_LENGTH(pairs)];
    struct operand x = {.dtype = pair[0],
                        .shape = random_shape(random, random_rank(random, 0, 4)),
                        .filling = FILL_POSITIVE};
    one->attrs.bitcast.dtype = pair[1];
    add_operand(one, random, &x);
}

// --- making cases of binary operators ---

// Adds two operands. Either one may broadcast to the shape of the other. The second may be
// constant.
static void add_pair(struct one_node *one, struct random *random, const struct operand *a,
                     const struct operand *b)
{
    struct inf_shape whole = random_shape(random, random_rank(random, 0, 5));
    struct operand first = *a, second = *b;
    first.shape = second.shape = whole;
    if (random_once_in(random, 2)) {
        struct inf_shape part = random_broadcastable(random, &whole);
        if (random_once_in(random, 3))
            first.shape = part;
        else
            second.shape = part;
    }
    if (random_once_in(random, 6)) // give both operands shapes that broadcast
        first.shape = random_broadcastable(random, &whole);
    second.constant = random_once_in(random, 3);
    add_operand(one, random, &first);
    add_operand(one, random, &second);
}

static unsigned binary_dtypes(enum inf_binary_kind kind)
{
    if (kind >= INF_BINARY_LOGICAL_AND)
        return DTYPE(BOOL);
    return kind == INF_BINARY_ATAN2 ? DTYPES_FLOAT : DTYPES_NUMBER;
}

static unsigned binary_extremes(enum inf_binary_kind kind)
{
    switch (kind) {
    case INF_BINARY_ADD:
    case INF_BINARY_SUB:
    case INF_BINARY_MUL:
    case INF_BINARY_MIN:
    case INF_BINARY_MAX:
        return EXTREME_ALL;
    case INF_BINARY_DIV:
    case INF_BINARY_DIV_NO_NAN:
    case INF_BINARY_SQUARED_DIFFERENCE:
        return EXTREME_ENDS | EXTREME_LARGE;
    default:
        return 0;
    }
}

void make_binary(struct one_node *one, struct random *random, uint32_t number)
{
    enum inf_binary_kind kind = number % INF_BINARY_COUNT;
    one->attrs.binary.kind = kind;
    bool floors =
        kind == INF_BINARY_FLOOR_DIV || kind == INF_BINARY_FLOOR_MOD || kind == INF_BINARY_MOD;
    struct operand a = {.dtype = random_dtype(random, binary_dtypes(kind)),
                        .filling = floors ? FILL_QUARTERS : FILL_UNIFORM};
    if (random_once_in(random, 2))
        a.extremes = binary_extremes(kind);
    struct operand b = a;
    if (floors || kind == INF_BINARY_DIV || kind == INF_BINARY_DIV_NO_NAN)
        b.filling = FILL_POWERS;
    if (kind == INF_BINARY_POW)
        a.filling = FILL_POSITIVE;
    if (inf_dtype_is_float(a.dtype) && random_once_in(random, 3)) {
        one->attrs.binary.activation =
            (enum inf_activation)random_in(random, 0, INF_ACTIVATION_CLIP);
        one->attrs.binary.activation_min = -0.5f;
        one->attrs.binary.activation_max = 1.25f;
    }
    add_pair(one, random, &a, &b);
}

void make_compare(struct one_node *one, struct random *random, uint32_t number)
{
    one->attrs.compare.kind = number % INF_COMPARE_COUNT;
    bool orders = one->attrs.compare.kind >= INF_COMPARE_LESS;
    struct operand a = {.dtype = random_dtype(random, orders ? DTYPES_NUMBER : DTYPES_ANY),
                        .filling = FILL_POWERS,
                        .extremes = random_once_in(random, 2) ? EXTREME_ENDS | EXTREME_LARGE : 0};
    add_pair(one, random, &a, &a);
}

void make_prelu(struct one_node *one, struct random *random, uint32_t number)
{
    (void)number;
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT),
                        .shape = random_shape(random, random_rank(random, 1, 4)),
                        .extremes = random_once_in(random, 2) ? EXTREME_ENDS : 0};
    struct operand alpha = {.dtype = x.dtype, .filling = FILL_POWERS, .constant = true};
    alpha.shape = random_broadcastable(random, &x.shape);
    if (random_once_in(random, 2)) // frequent in networks: one constant element per channel
        alpha.shape = INF_SHAPE(x.shape.dims[x.shape.rank - 1]);
    alpha.constant = !random_once_in(random, 4);
    add_operand(one, random, &x);
    add_operand(one, random, &alpha);
}

void make_select(struct one_node *one, struct random *random, uint32_t number)
{
    // Some cases have long rows with one condition for each row, which the cpu device copies.
    bool by_row = number % 4 == 0;
    struct inf_shape whole = by_row ? INF_SHAPE(random_in(random, 1, 7), random_in(random, 12, 300))
                                    : random_shape(random, random_rank(random, 0, 4));
    enum inf_dtype dtype = random_dtype(random, DTYPES_ANY);
    for (uint32_t i = 0; i < 3; i++) {
        struct operand operand = {
            .dtype = i == 0 ? INF_DTYPE_BOOL : dtype, .shape = whole, .extremes = EXTREME_ALL};
        if (i == 0 && by_row)
            operand.shape = INF_SHAPE(whole.dims[0], 1);
        else if (random_once_in(random, 3))
            operand.shape = random_broadcastable(random, &whole);
        add_operand(one, random, &operand);
    }
}

// --- making cases of reductions ---

static struct inf_ints random_axes(struct random *random, int32_t rank)
{
    struct inf_ints axes = {0};
    for (int32_t i = 0; i < rank; i++)
        if (random_once_in(random, 2))
            axes.values[axes.count++] = random_once_in(random, 3) ? i - rank : i;
    return axes;
}

void make_reduce(struct one_node *one, struct random *random, uint32_t number)
{
    enum inf_reduce_kind kind = number % INF_REDUCE_COUNT;
    bool logical = kind == INF_REDUCE_ALL || kind == INF_REDUCE_ANY;
    bool extreme = kind == INF_REDUCE_MAX || kind == INF_REDUCE_MIN;
    struct operand x = {.dtype = random_dtype(random, logical ? DTYPE(BOOL) : DTYPES_NUMBER),
                        .shape = random_shape(random, random_rank(random, 0, 5)),
                        // Products of many numbers overflow a float, but products of powers of two
                        // do not.
                        .filling = kind == INF_REDUCE_PROD ? FILL_POWERS : FILL_UNIFORM,
                        .extremes = extreme && random_once_in(random, 3) ? EXTREME_ENDS : 0};
    one->attrs.reduce.kind = kind;
    one->attrs.reduce.axes = random_axes(random, x.shape.rank);
    one->attrs.reduce.keep_dims = random_once_in(random, 2);
    // frequent in networks: a reduction over the height and width of a picture
    if (x.shape.rank == 4 && random_once_in(random, 2))
        one->attrs.reduce.axes = (struct inf_ints){.count = 2, .values = {1, 2}};
    add_operand(one, random, &x);
}

void make_arg(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = random_dtype(random, DTYPES_NUMBER),
                        .shape = random_shape(random, random_rank(random, 1, 4)),
                        .filling = FILL_POWERS,
                        .extremes = random_once_in(random, 4) ? EXTREME_INFINITE : 0};
    one->attrs.arg.kind = number % INF_ARG_COUNT;
    one->attrs.arg.axis = (int32_t)random_in(random, -x.shape.rank, x.shape.rank - 1);
    one->attrs.arg.keep_dims = random_once_in(random, 2);
    one->attrs.arg.dtype = random_once_in(random, 3) ? INF_DTYPE_I64 : INF_DTYPE_I32;
    add_operand(one, random, &x);
}

void make_softmax(struct one_node *one, struct random *random, uint32_t number)
{
    struct operand x = {.dtype = random_dtype(random, DTYPES_FLOAT),
                        .shape = random_shape(random, random_rank(random, 1, 4)),
                        .filling = number % 3 == 0 ? FILL_QUARTERS : FILL_UNIFORM};
    one->attrs.softmax.axis = (int32_t)random_in(random, -x.shape.rank, x.shape.rank - 1);
    if (random_once_in(random, 2))
        one->attrs.softmax.axis = -1;
    one->attrs.softmax.log = random_once_in(random, 4);
    add_operand(one, random, &x);
}
