// SPDX-License-Identifier: Apache-2.0
// Functions of one element: unary, clip, cast, and activations.
#include <math.h>
#include <string.h>

#include "backends/ref/kernels.h"
#include "backends/ref/text.h"

#define SELU_SCALE 1.0507009873554805
#define SELU_ALPHA 1.6732632423543772

static double sign_of(double x)
{
    if (isnan(x))
        return x;
    return (x > 0) - (x < 0);
}

// Returns min(max(x, low), high); NaN stays NaN. If low > high, the result is high.
static double clip_value(double x, double low, double high)
{
    double at_least = x < low ? low : x;
    return at_least > high ? high : at_least;
}

// Computes the elementary unary kinds: changes of sign, rounding, powers, exponentials and so on.
static double basic_value(enum inf_unary_kind kind, double x)
{
    switch (kind) {
    case INF_UNARY_NEG:
        return -x;
    case INF_UNARY_ABS:
        return fabs(x);
    case INF_UNARY_SIGN:
        return sign_of(x);
    case INF_UNARY_FLOOR:
        return floor(x);
    case INF_UNARY_CEIL:
        return ceil(x);
    case INF_UNARY_ROUND:
        // nearbyint() rounds ties to even, because the program never changes the rounding mode
        return nearbyint(x);
    case INF_UNARY_TRUNC:
        return trunc(x);
    case INF_UNARY_SQUARE:
        return x * x;
    case INF_UNARY_SQRT:
        return sqrt(x);
    case INF_UNARY_RSQRT:
        return 1 / sqrt(x);
    case INF_UNARY_RECIPROCAL:
        return 1 / x;
    case INF_UNARY_EXP:
        return exp(x);
    case INF_UNARY_EXPM1:
        return expm1(x);
    case INF_UNARY_LOG:
        return log(x);
    case INF_UNARY_LOG1P:
        return log1p(x);
    default:
        return NAN;
    }
}

static double trigonometric_value(enum inf_unary_kind kind, double x)
{
    switch (kind) {
    case INF_UNARY_SIN:
        return sin(x);
    case INF_UNARY_COS:
        return cos(x);
    case INF_UNARY_TAN:
        return tan(x);
    case INF_UNARY_ASIN:
        return asin(x);
    case INF_UNARY_ACOS:
        return acos(x);
    case INF_UNARY_ATAN:
        return atan(x);
    case INF_UNARY_SINH:
        return sinh(x);
    case INF_UNARY_COSH:
        return cosh(x);
    case INF_UNARY_TANH:
        return tanh(x);
    case INF_UNARY_ASINH:
        return asinh(x);
    case INF_UNARY_ACOSH:
        return acosh(x);
    case INF_UNARY_ATANH:
        return atanh(x);
    case INF_UNARY_ERF:
        return erf(x);
    default:
        return basic_value(kind, x);
    }
}

// Returns log(1 + e^x) without e^x, which overflows from 710 on.
static double compute_softplus(double x)
{
    return x > 0 ? x + log1p(exp(-x)) : log1p(exp(x));
}

// Computes the unary kinds that are activation functions without a parameter.
static double smooth_value(enum inf_unary_kind kind, double x)
{
    switch (kind) {
    case INF_UNARY_SIGN_OR_ZERO:
        return (x > 0) - (x < 0);
    case INF_UNARY_GELU:
        return x / 2 * (1 + erf(x / sqrt(2.0)));
    case INF_UNARY_GELU_TANH:
        return x / 2 * (1 + tanh(sqrt(2 / acos(-1.0)) * (x + 0.044715 * x * x * x)));
    case INF_UNARY_MISH:
        return x * tanh(compute_softplus(x));
    case INF_UNARY_SILU:
        return x / (1 + exp(-x));
    case INF_UNARY_SOFTSIGN:
        return x / (1 + fabs(x));
    default:
        return trigonometric_value(kind, x);
    }
}

double inf_ref_unary_value(enum inf_unary_kind kind, double x, double alpha, double beta)
{
    switch (kind) {
    case INF_UNARY_SIGMOID:
        return 1 / (1 + exp(-x));
    case INF_UNARY_SOFTPLUS:
        return compute_softplus(x);
    case INF_UNARY_RELU:
        return x < 0 ? 0 : x;
    case INF_UNARY_RELU6:
        return clip_value(x, 0, 6);
    case INF_UNARY_ELU:
        return x < 0 ? alpha * expm1(x) : x;
    case INF_UNARY_SELU:
        return SELU_SCALE * (x < 0 ? SELU_ALPHA * expm1(x) : x);
    case INF_UNARY_LEAKY_RELU:
        return x < 0 ? alpha * x : x;
    case INF_UNARY_HARD_SWISH:
        return x * clip_value(x + 3, 0, 6) / 6;
    case INF_UNARY_LOGICAL_NOT:
        return x == 0;
    case INF_UNARY_IS_NAN:
        return isnan(x);
    case INF_UNARY_IS_INF:
        return isinf(x);
    case INF_UNARY_IS_FINITE:
        return isfinite(x);
    case INF_UNARY_HARD_SIGMOID:
        return clip_value(alpha * x + beta, 0, 1);
    case INF_UNARY_CELU:
        return x < 0 ? alpha * expm1(x / alpha) : x;
    case INF_UNARY_THRESHOLDED_RELU:
        return x <= alpha ? 0 : x;
    case INF_UNARY_SHRINK:
        if (x < -alpha)
            return x + beta;
        return x > alpha ? x - beta : x * 0;
    case INF_UNARY_STEP:
        if (isnan(x))
            return x;
        return x > 0 ? 1 : alpha;
    default:
        return smooth_value(kind, x);
    }
}

// Computes functions of integers exactly. Returns false if computing in double is exact enough.
static bool integer_value(enum inf_unary_kind kind, __int128 x, __int128 *result)
{
    switch (kind) {
    case INF_UNARY_NEG:
        *result = -x;
        return true;
    case INF_UNARY_ABS:
        *result = x < 0 ? -x : x;
        return true;
    case INF_UNARY_FLOOR:
    case INF_UNARY_CEIL:
    case INF_UNARY_ROUND:
    case INF_UNARY_TRUNC:
        *result = x;
        return true;
    case INF_UNARY_SQUARE:
        *result = (__int128)((unsigned __int128)x * (unsigned __int128)x);
        return true;
    case INF_UNARY_RELU:
        *result = x < 0 ? 0 : x;
        return true;
    case INF_UNARY_BITWISE_NOT:
        *result = ~x;
        return true;
    default:
        return false;
    }
}

enum inf_code inf_ref_unary(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    const struct inf_attrs_unary *attrs = &call->node->attrs.unary;
    bool is_float = inf_dtype_is_float(x->dtype);
    for (size_t i = 0; i < y->count; i++) {
        __int128 result;
        if (!is_float && integer_value(attrs->kind, inf_ref_load_int(x, i), &result))
            inf_ref_store_int(y, i, result);
        else
            inf_ref_put(
                y, i,
                inf_ref_unary_value(attrs->kind, inf_ref_get(x, i), attrs->alpha, attrs->beta));
    }
    return INF_OK;
}

enum inf_code inf_ref_clip(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    double low = call->node->attrs.clip.min;
    double high = call->node->attrs.clip.max;
    for (size_t i = 0; i < y->count; i++) {
        double value = inf_ref_get(x, i);
        // An integer within the bounds is copied, because a double cannot hold all 64-bit integers.
        if (value < low || value > high || low > high)
            inf_ref_put(y, i, clip_value(value, low, high));
        else
            inf_ref_copy(y, i, x, i, 1);
    }
    return INF_OK;
}

enum inf_code inf_ref_cast(const struct inf_ref_call *call, struct inf_error *err)
{
    const struct inf_ref_tensor *x = &call->inputs[0];
    const struct inf_ref_tensor *y = &call->outputs[0];
    if (x->dtype == INF_DTYPE_BYTES || y->dtype == INF_DTYPE_BYTES)
        return inf_ref_cast_strings(call, err);
    bool through_double = inf_dtype_is_float(x->dtype) || inf_dtype_is_float(y->dtype);
    for (size_t i = 0; i < y->count; i++) {
        if (through_double)
            inf_ref_put(y, i, inf_ref_get(x, i));
        else
            inf_ref_store_int(y, i, inf_ref_load_int(x, i));
    }
    return INF_OK;
}

enum inf_code inf_ref_bitcast(const struct inf_ref_call *call, struct inf_error *err)
{
    (void)err;
    const struct inf_ref_tensor *y = &call->outputs[0];
    uint8_t *bytes = y->data;
    if (y->count > 0)
        memcpy(bytes, call->inputs[0].data, y->count * inf_dtype_size(y->dtype));
    // Kernels assume that a bool is 0 or 1.
    for (size_t i = 0; y->dtype == INF_DTYPE_BOOL && i < y->count; i++)
        bytes[i] = bytes[i] != 0;
    return INF_OK;
}

// --- reading the activation attributes of a node, and computing activations ---

#define ACTIVATION_OF(attrs)                                                                       \
    (struct inf_ref_activation)                                                                    \
    {                                                                                              \
        .kind = (attrs).activation, .alpha = (attrs).activation_alpha,                             \
        .min = (attrs).activation_min, .max = (attrs).activation_max                               \
    }

struct inf_ref_activation inf_ref_node_activation(const struct inf_node *node)
{
    switch (node->op) {
    case INF_OP_CONV2D:
        return ACTIVATION_OF(node->attrs.conv2d);
    case INF_OP_DEPTHWISE_CONV2D:
        return ACTIVATION_OF(node->attrs.depthwise_conv2d);
    case INF_OP_CONV2D_TRANSPOSE:
        return ACTIVATION_OF(node->attrs.conv2d_transpose);
    case INF_OP_MATMUL:
        return ACTIVATION_OF(node->attrs.matmul);
    case INF_OP_BINARY:
        return (struct inf_ref_activation){.kind = node->attrs.binary.activation,
                                           .min = node->attrs.binary.activation_min,
                                           .max = node->attrs.binary.activation_max};
    default:
        return (struct inf_ref_activation){.kind = INF_ACTIVATION_NONE};
    }
}

double inf_ref_activate(const struct inf_ref_activation *activation, double value,
                        double prelu_alpha)
{
    enum inf_unary_kind kind = inf_activation_unary(activation->kind);
    if (kind != INF_UNARY_COUNT)
        return inf_ref_unary_value(kind, value, activation->alpha, 0);
    if (activation->kind == INF_ACTIVATION_CLIP)
        return clip_value(value, activation->min, activation->max);
    if (activation->kind == INF_ACTIVATION_PRELU)
        return inf_ref_unary_value(INF_UNARY_LEAKY_RELU, value, prelu_alpha, 0);
    return value;
}
