// SPDX-License-Identifier: Apache-2.0
// Experimental operators of the first versions of ai.onnx, which models of old converters contain.
#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

// Lowers Affine: alpha * x + beta.
static void lower_affine(struct inf_onnx_scope *s)
{
    double alpha = (double)inf_onnx_attr_float(s, "alpha", 1);
    double beta = (double)inf_onnx_attr_float(s, "beta", 0);
    uint32_t x = inf_build_binary_number(&s->b, INF_BINARY_MUL, s->inputs[0], alpha);
    s->outputs[0] = inf_build_binary_number(&s->b, INF_BINARY_ADD, x, beta);
}

// Lowers Scale: scale * x.
static void lower_scale(struct inf_onnx_scope *s)
{
    s->outputs[0] = inf_build_binary_number(&s->b, INF_BINARY_MUL, s->inputs[0],
                                            (double)inf_onnx_attr_float(s, "scale", 1));
}

// Lowers ImageScaler: scale * x + bias. x is pictures [n,c,h,w]; bias has one number per channel.
static void lower_image_scaler(struct inf_onnx_scope *s)
{
    uint32_t bias = inf_onnx_attr_floats(s, "bias");
    lower_scale(s);
    if (bias == INF_VALUE_NONE)
        return;
    bias = inf_build_cast(&s->b, bias, inf_build_dtype(&s->b, s->inputs[0]));
    bias = inf_build_expand_dims(&s->b, bias, (int64_t[]){1, 2}, 2);
    s->outputs[0] = inf_build_add(&s->b, s->outputs[0], bias);
}

// Lowers Crop of pictures [n,c,h,w]: removes the borders (left, top, right, bottom). If the
// attribute `scale` gives a height and width, the result has this size and begins behind the left
// and the top border.
static void lower_crop(struct inf_onnx_scope *s)
{
    struct inf_build_ints border, size;
    uint32_t y = s->inputs[0];
    bool has_size = inf_onnx_attr_ints(s, "scale", &size);
    if (!inf_onnx_attr_ints(s, "border", &border) || border.count != 4)
        inf_build_fail(&s->b, INF_INVALID, "border has %u numbers, wanted 4", border.count);
    if (has_size && size.count != 2)
        inf_build_fail(&s->b, INF_INVALID, "scale has %u numbers, wanted 2", size.count);
    for (int32_t i = 0; inf_build_ok(&s->b) && i < 2; i++) {
        // Axis 2 has the borders 1 (top) and 3 (bottom), axis 3 the borders 0 (left) and 2 (right).
        int64_t begin = border.values[1 - i], after = border.values[3 - i], end = INT64_MAX;
        if (begin < 0 || after < 0)
            inf_build_fail(&s->b, INF_INVALID, "border has a negative number");
        if (has_size)
            end = begin + size.values[i];
        else if (after > 0)
            end = -after;
        y = inf_build_slice(&s->b, y, 2 + i, begin, end, 1);
    }
    s->outputs[0] = y;
}

// Lowers ParametricSoftplus: alpha * log(1 + e^(beta * x)), and ScaledTanh: alpha * tanh(beta * x).
static void lower_scaled(struct inf_onnx_scope *s)
{
    double alpha = (double)inf_onnx_attr_float(s, "alpha", 1);
    double beta = (double)inf_onnx_attr_float(s, "beta", 1);
    uint32_t x = inf_build_binary_number(&s->b, INF_BINARY_MUL, s->inputs[0], beta);
    x = inf_build_unary(&s->b, (enum inf_unary_kind)s->op->kind, x);
    s->outputs[0] = inf_build_binary_number(&s->b, INF_BINARY_MUL, x, alpha);
}

static const struct inf_onnx_op ops[] = {
    {"Affine", lower_affine, 1, 1, 1, 0},
    {"Scale", lower_scale, 1, 1, 1, 0},
    {"ImageScaler", lower_image_scaler, 1, 1, 1, 0},
    {"Crop", lower_crop, 1, 1, 1, 0},
    {"ParametricSoftplus", lower_scaled, 1, 1, 1, INF_UNARY_SOFTPLUS},
    {"ScaledTanh", lower_scaled, 1, 1, 1, INF_UNARY_TANH},
};

const struct inf_onnx_op_table inf_onnx_ops_early = {ops, INF_ARRAY_LENGTH(ops)};
