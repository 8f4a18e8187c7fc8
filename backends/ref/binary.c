// SPDX-License-Identifier: Apache-2.0
// Functions of two or three elements that broadcast: binary, compare, select, prelu.
#include <math.h>

#include "backends/ref/kernels.h"
#include "backends/ref/text.h"

// Returns a - floor(a / b) * b without the rounding errors of that formula.
static double floor_mod(double a, double b)
{
    double rest = fmod(a, b);
    return rest != 0 && (rest < 0) != (b < 0) ? rest + b : rest;
}

static double pick_smaller(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return b < a ? b : a;
}

static double pick_larger(double a, double b)
{
    if (isnan(a) || isnan(b))
        return NAN;
    return b > a ? b : a;
}

static double float_value(enum inf_binary_kind kind, double a, double b)
{
    switch (kind) {
    case INF_BINARY_ADD:
        return a + b;
    case INF_BINARY_SUB:
        return a - b;
    case INF_BINARY_MUL:
        return a * b;
    case INF_BINARY_DIV:
        return a / b;
    case INF_BINARY_DIV_NO_NAN:
        return b == 0 ? 0 : a / b;
    case INF_BINARY_FLOOR_DIV:
        return floor(a / b);
    case INF_BINARY_FLOOR_MOD:
        return floor_mod(a, b);
    case INF_BINARY_MOD:
        return fmod(a, b);
    case INF_BINARY_POW:
        return pow(a, b);
    case INF_BINARY_MIN:
        return pick_smaller(a, b);
    case INF_BINARY_MAX:
        return pick_larger(a, b);
    case INF_BINARY_SQUARED_DIFFERENCE:
        return (a - b) * (a - b);
    case INF_BINARY_ATAN2:
        return atan2(a, b);
    case INF_BINARY_LOGICAL_AND:
        return a != 0 && b != 0;
    case INF_BINARY_LOGICAL_OR:
        return a != 0 || b != 0;
    case INF_BINARY_LOGICAL_XOR:
        return (a != 0) != (b != 0);
    default:
        return NAN;
    }
}

static __int128 wrapping_mul(__int128 a, __int128 b)
{
    return (__int128)((unsigned __int128)a * (unsigned __int128)b);
}

static __int128 integer_pow(__int128 base, __int128 exponent)
{
    __int128 result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1)
            result = wrapping_mul(result, base);
        base = wrapping_mul(base, base);
    }
    return result;
}

static bool is_division(enum inf_binary_kind kind)
{
    return kind == INF_BINARY_DIV || kind == INF_BINARY_FLOOR_DIV || kind == INF_BINARY_FLOOR_MOD ||
           kind == INF_BINARY_MOD;
}

// Returns kind(a, b) for integers. If the kind divides, the caller must make sure that `b` is not
// 0.
static __int128 integer_value(enum inf_binary_kind kind, __int128 a, __int128 b)
{
    switch (kind) {
    case INF_BINARY_ADD:
        return a + b;
    case INF_BINARY_SUB:
        return a - b;
    case INF_BINARY_MUL:
        return wrapping_mul(a, b);
    case INF_BINARY_DIV:
        return a / b;
    case INF_BINARY_DIV_NO_NAN:
        return b == 0 ? 0 : a / b;
    case INF_BINARY_FLOOR_DIV:
        return a / b - (a % b != 0 && (a < 0) != (b < 0));
    case INF_BINARY_FLOOR_MOD:
        return a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    case INF_BINARY_MOD:
        return a % b;
    case INF_BINARY_POW:
        return b < 0 ? inf_ref_truncate(pow((double)a, (double)b), INF_DTYPE_I64)
                     : integer_pow(a, b);
    case INF_BINARY_MIN:
        return b < a ? b : a;
    case INF_BINARY_MAX:
        return b > a ? b : a;
    case INF_BINARY_SQUARED_DIFFERENCE:
        return wrapping_mul(a - b, a - b);
    case INF_BINARY_BITWISE_AND:
        return a & b;
    case INF_BINARY_BITWISE_OR:
        return a | b;
    case INF_BINARY_BITWISE_XOR:
        return a ^ b;
    case INF_BINARY_SHIFT_LEFT:
        return b < 0 || b > 63 ? 0 : (__int128)((unsigned __int128)a << b);
    case INF_BINARY_SHIFT_RIGHT:
        return b < 0 || b > 63 ? -(a < 0) : a >> b;
    default:
        return (__int128)float_value(kind, (double)a, (double)b);
    }
}

static enum inf_code integer_binary(const struct inf_ref_call *call, struct inf_ref_walk *walk,
                                    struct inf_error *err)
{
    enum inf_binary_kind kind = call->node->attrs.binary.kind;
    const struct inf_ref_tensor *y = &call->outputs[0];
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(walk)) {
        __int128 a = inf_ref_load_int(&call->inputs[0], (size_t)walk->offsets[0]);
        __int128 b = inf_ref_load_int(&call->inputs[1], (size_t)walk->offsets[1]);
        if (b == 0 && is_division(kind))
            return inf_fail(err, INF_INVALID, "element %zu: an integer is divided by 0", i);
        inf_ref_store_int(y, i, integer_value(kind, a, b));
    }
    return INF_OK;
}

enum inf_code inf_ref_binary(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, call->inputs[0].shape);
    inf_ref_walk_broadcast(&walk, 1, call->inputs[1].shape);
    if (!inf_dtype_is_float(y->dtype))
        return integer_binary(call, &walk, err);

    enum inf_binary_kind kind = call->node->attrs.binary.kind;
    struct inf_ref_activation activation = inf_ref_node_activation(call->node);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        double a = inf_ref_get(&call->inputs[0], (size_t)walk.offsets[0]);
        double b = inf_ref_get(&call->inputs[1], (size_t)walk.offsets[1]);
        inf_ref_put(y, i, inf_ref_activate(&activation, float_value(kind, a, b), 0));
    }
    return INF_OK;
}

// Returns whether the comparison `kind` is true. The caller passes the results of a < b, a == b and
// a > b; all three are false if an operand is NaN.
static bool compare_values(enum inf_compare_kind kind, bool less, bool equal, bool greater)
{
    switch (kind) {
    case INF_COMPARE_EQUAL:
        return equal;
    case INF_COMPARE_NOT_EQUAL:
        return !equal;
    case INF_COMPARE_LESS:
        return less;
    case INF_COMPARE_LESS_EQUAL:
        return less || equal;
    case INF_COMPARE_GREATER:
        return greater;
    case INF_COMPARE_GREATER_EQUAL:
        return greater || equal;
    default:
        return false;
    }
}

enum inf_code inf_ref_compare(const struct inf_ref_call *call, struct inf_error *err)
{
    if (call->inputs[0].dtype == INF_DTYPE_BYTES)
        return inf_ref_compare_strings(call, err);
    enum inf_compare_kind kind = call->node->attrs.compare.kind;
    const struct inf_ref_tensor *y = &call->outputs[0];
    bool is_float = inf_dtype_is_float(call->inputs[0].dtype);
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, call->inputs[0].shape);
    inf_ref_walk_broadcast(&walk, 1, call->inputs[1].shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        size_t at_a = (size_t)walk.offsets[0], at_b = (size_t)walk.offsets[1];
        if (is_float) {
            double a = inf_ref_get(&call->inputs[0], at_a);
            double b = inf_ref_get(&call->inputs[1], at_b);
            inf_ref_store_int(y, i, compare_values(kind, a<b, a == b, a> b));
        } else {
            __int128 a = inf_ref_load_int(&call->inputs[0], at_a);
            __int128 b = inf_ref_load_int(&call->inputs[1], at_b);
            inf_ref_store_int(y, i, compare_values(kind, a<b, a == b, a> b));
        }
    }
    return INF_OK;
}

enum inf_code inf_ref_select(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    for (uint32_t i = 0; i < 3; i++)
        inf_ref_walk_broadcast(&walk, i, call->inputs[i].shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        uint32_t from = inf_ref_load_int(&call->inputs[0], (size_t)walk.offsets[0]) != 0 ? 1 : 2;
        inf_ref_copy(y, i, &call->inputs[from], (size_t)walk.offsets[from], 1);
    }
    return INF_OK;
}

enum inf_code inf_ref_prelu(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *alpha = &call->inputs[1];
    const struct inf_ref_tensor *y = &call->outputs[0];
    struct inf_ref_walk walk;
    inf_ref_walk_init(&walk, y->shape);
    inf_ref_walk_broadcast(&walk, 0, x->shape);
    inf_ref_walk_broadcast(&walk, 1, alpha->shape);
    for (size_t i = 0; i < y->count; i++, inf_ref_walk_next(&walk)) {
        double value = inf_ref_get(x, (size_t)walk.offsets[0]);
        if (value < 0)
            inf_ref_put(y, i, value * inf_ref_get(alpha, (size_t)walk.offsets[1]));
        else
            inf_ref_copy(y, i, x, (size_t)walk.offsets[0], 1);
    }
    return INF_OK;
}
