// SPDX-License-Identifier: Apache-2.0
// Loss functions, which remain in models that are exported with their training part.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/op_table.h"

// Combines the weighted losses of all positions by the rule in the attribute `reduction`.
static uint32_t combine_losses(struct inf_onnx_scope *s, uint32_t loss, uint32_t weight,
                               bool weighted)
{
    const char *reduction = inf_onnx_attr_text(s, "reduction", "mean");
    struct inf_ints axes = {.count = inf_build_rank(&s->b, loss)};
    for (int32_t i = 0; i < axes.count; i++)
        axes.values[i] = i;
    if (strcmp(reduction, "none") == 0)
        return loss;
    if (strcmp(reduction, "sum") == 0)
        return inf_build_reduce(&s->b, INF_REDUCE_SUM, loss, &axes, false);
    if (strcmp(reduction, "mean") != 0)
        inf_build_fail(&s->b, INF_INVALID, "reduction is '%.20s'", reduction);
    if (!weighted)
        return inf_build_reduce(&s->b, INF_REDUCE_MEAN, loss, &axes, false);
    return inf_build_div(&s->b, inf_build_reduce(&s->b, INF_REDUCE_SUM, loss, &axes, false),
                         inf_build_reduce(&s->b, INF_REDUCE_SUM, weight, &axes, false));
}

// Adds nodes that compute -x[n,c,...] for the class c in target [n,...], times the class's weight.
// Positions whose target is ignored give 0.
static uint32_t add_negative_likelihood(struct inf_onnx_scope *s, uint32_t x)
{
    enum inf_dtype dtype = inf_build_dtype(&s->b, x), index = inf_build_dtype(&s->b, s->inputs[1]);
    uint32_t target = s->inputs[1], weights = inf_onnx_input(s, 2), ignored = INF_VALUE_NONE;
    bool ignores = inf_onnx_has_attr(s, "ignore_index");
    if (ignores) {
        uint32_t number = inf_build_scalar(&s->b, index, inf_onnx_attr_int(s, "ignore_index", 0));
        ignored = inf_build_compare(&s->b, INF_COMPARE_EQUAL, target, number);
        target = inf_build_select(&s->b, ignored, inf_build_scalar(&s->b, index, 0), target);
    }
    const uint32_t inputs[] = {x, inf_build_expand_dims(&s->b, target, (int64_t[]){1}, 1)};
    struct inf_build_node node = inf_build_describe_list(INF_OP_GATHER_ELEMENTS, inputs, 2);
    node.attrs.gather_elements.axis = 1;
    uint32_t loss = inf_build_squeeze(&s->b, inf_build_value(&s->b, &node), (int64_t[]){1}, 1);
    loss = inf_build_unary(&s->b, INF_UNARY_NEG, loss);
    uint32_t weight = inf_build_scalar(&s->b, dtype, 1), zero = inf_build_scalar(&s->b, dtype, 0);
    if (weights != INF_VALUE_NONE)
        weight = inf_build_gather(&s->b, weights, target, 0);
    if (ignores) {
        // Use a select instead of a multiplication by 0, because ignored elements may be infinite.
        loss = inf_build_select(&s->b, ignored, zero, loss);
        weight = inf_build_select(&s->b, ignored, zero, weight);
    }
    if (weights != INF_VALUE_NONE)
        loss = inf_build_mul(&s->b, loss, weight);
    return combine_losses(s, loss, weight, ignores || weights != INF_VALUE_NONE);
}

static void lower_nll_loss(struct inf_onnx_scope *s)
{
    s->outputs[0] = add_negative_likelihood(s, s->inputs[0]);
}

static void lower_cross_entropy(struct inf_onnx_scope *s)
{
    uint32_t likelihood = inf_build_softmax(&s->b, s->inputs[0], 1, true);
    s->outputs[0] = add_negative_likelihood(s, likelihood);
    if (s->output_count > 1)
        s->outputs[1] = likelihood;
}

static const struct inf_onnx_op ops[] = {
    {"NegativeLogLikelihoodLoss", lower_nll_loss, 2, 3, 1, 0},
    {"SoftmaxCrossEntropyLoss", lower_cross_entropy, 2, 3, 2, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_loss = {ops, INF_ARRAY_LENGTH(ops)};
