// SPDX-License-Identifier: Apache-2.0
// Variants of Gelu, and BiasAdd, which ONNX Runtime's optimiser writes into models.
#include <math.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

// Lowers Gelu, BiasGelu and FastGelu: the function `kind` of the sum of x and an optional bias.
static void lower_gelu(struct inf_onnx_scope *s)
{
    uint32_t x = s->inputs[0], bias = inf_onnx_input(s, 1);
    if (bias != INF_VALUE_NONE)
        x = inf_build_add(&s->b, x, bias);
    s->outputs[0] = inf_build_unary(&s->b, (enum inf_unary_kind)s->op->kind, x);
}

// Lowers QuickGelu: x * sigmoid(alpha * x).
static void lower_quick_gelu(struct inf_onnx_scope *s)
{
    double alpha = (double)inf_onnx_attr_float(s, "alpha", 1.702f);
    if (alpha == 1) {
        s->outputs[0] = inf_build_unary(&s->b, INF_UNARY_SILU, s->inputs[0]);
        return;
    }
    uint32_t x = inf_build_binary_number(&s->b, INF_BINARY_MUL, s->inputs[0], alpha);
    s->outputs[0] =
        inf_build_mul(&s->b, s->inputs[0], inf_build_unary(&s->b, INF_UNARY_SIGMOID, x));
}

// Lowers BiasSplitGelu: in x + bias, the first half of the channels times gelu of the second half.
static void lower_bias_split_gelu(struct inf_onnx_scope *s)
{
    uint32_t x = inf_build_add(&s->b, s->inputs[0], s->inputs[1]);
    int32_t last = inf_build_rank(&s->b, x) - 1;
    int64_t size = inf_build_known_dim(&s->b, x, last);
    if (inf_build_ok(&s->b) && size % 2 != 0)
        inf_build_fail(&s->b, INF_INVALID, "%lld channels do not divide into halves",
                       (long long)size);
    uint32_t left = inf_build_slice(&s->b, x, last, 0, size / 2, 1);
    uint32_t right = inf_build_slice(&s->b, x, last, size / 2, size, 1);
    s->outputs[0] = inf_build_mul(&s->b, left, inf_build_unary(&s->b, INF_UNARY_GELU, right));
}

// Lowers BiasAdd: x + bias + skip.
static void lower_bias_add(struct inf_onnx_scope *s)
{
    uint32_t x = inf_build_add(&s->b, s->inputs[0], s->inputs[1]);
    s->outputs[0] = inf_build_add(&s->b, x, s->inputs[2]);
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::Gelu", lower_gelu, 1, 1, 1, INF_UNARY_GELU},
    {"com.microsoft::BiasGelu", lower_gelu, 2, 2, 1, INF_UNARY_GELU},
    {"com.microsoft::FastGelu", lower_gelu, 1, 2, 1, INF_UNARY_GELU_TANH},
    {"com.microsoft::QuickGelu", lower_quick_gelu, 1, 1, 1, 0},
    {"com.microsoft::BiasSplitGelu", lower_bias_split_gelu, 2, 2, 1, 0},
    {"com.microsoft::BiasAdd", lower_bias_add, 3, 3, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_gelu = {ops, INF_ARRAY_LENGTH(ops)};
