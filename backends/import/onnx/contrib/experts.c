// SPDX-License-Identifier: Apache-2.0
// MoE: a mixture of experts. All experts compute all rows, and the experts that the router did not
// choose get weight 0. This costs more than running only the chosen experts, but no shape depends
// on values.
#include <string.h>

#include "backends/graph/build/operators.h"
#include "backends/import/onnx/attr.h"
#include "backends/import/onnx/contrib/call.h"
#include "backends/import/onnx/heads.h"
#include "backends/import/onnx/op_table.h"

// Adds nodes that compute the weights of the experts [rows, experts]: the softmax of all scores of
// a row, in which all but the k largest weights are replaced by 0. If normalize_routing_weights is
// set, the k weights are divided by their sum.
static uint32_t add_routing(struct inf_onnx_scope *s, uint32_t scores, int32_t k)
{
    uint32_t best[2], weights = inf_build_softmax(&s->b, scores, -1, false);
    enum inf_dtype dtype = inf_build_dtype(&s->b, weights);
    struct inf_build_node node = inf_build_describe(
        INF_OP_TOPK, weights, inf_build_scalar(&s->b, INF_DTYPE_I32, k), INF_VALUE_NONE);
    node.output_count = 2;
    inf_build_emit(&s->b, &node, best);
    uint32_t least = inf_build_slice(&s->b, best[0], 1, k - 1, k, 1);
    uint32_t chosen = inf_build_compare(&s->b, INF_COMPARE_GREATER_EQUAL, weights, least);
    weights = inf_build_select(&s->b, chosen, weights, inf_build_scalar(&s->b, dtype, 0));
    if (inf_onnx_attr_int(s, "normalize_routing_weights", 0) == 0)
        return weights;
    const struct inf_ints experts = {.count = 1, .values = {1}};
    return inf_build_div(&s->b, weights,
                         inf_build_reduce(&s->b, INF_REDUCE_SUM, weights, &experts, true));
}

// Adds nodes that compute x [experts or 1, rows, in] times the transposed weights [experts, out,
// in] plus the bias [experts, out]. INF_VALUE_NONE: no bias.
static uint32_t add_layer(struct inf_onnx_scope *s, uint32_t x, uint32_t weights, uint32_t bias)
{
    uint32_t y = inf_onnx_multiply_keys(s, x, weights);
    if (bias == INF_VALUE_NONE)
        return y;
    return inf_build_add(&s->b, y, inf_build_expand_dims(&s->b, bias, (int64_t[]){1}, 1));
}

// Lowers MoE. Inputs: x [rows, hidden] or [batch, sequence, hidden], scores [rows, experts],
// weights and bias of the first layer, weights and bias of the second layer.
static void lower_experts(struct inf_onnx_scope *s)
{
    static const struct {
        const char *name;
        enum inf_unary_kind kind;
    } activations[] = {{"relu", INF_UNARY_RELU},
                       {"gelu", INF_UNARY_GELU},
                       {"silu", INF_UNARY_SILU},
                       {"identity", INF_UNARY_COUNT}};
    const char *name = inf_onnx_attr_text(s, "activation_type", "relu");
    int32_t k = inf_onnx_attr_int(s, "k", 1);
    uint32_t scores = inf_onnx_needed_input(s, 1);
    uint32_t layers[2] = {inf_onnx_needed_input(s, 2), inf_onnx_needed_input(s, 4)};
    size_t at = 0;
    while (at < INF_ARRAY_LENGTH(activations) && strcmp(activations[at].name, name) != 0)
        at++;
    if (at == INF_ARRAY_LENGTH(activations) || inf_onnx_attr_int(s, "use_sparse_mixer", 0) != 0)
        inf_build_fail(&s->b, INF_UNSUPPORTED,
                       "activation_type is '%.40s', or use_sparse_mixer "
                       "is set",
                       name);
    if (k < 1 || k > inf_build_known_dim(&s->b, scores, 1))
        inf_build_fail(&s->b, INF_INVALID, "k is %d", k);
    if (!inf_build_ok(&s->b))
        return;
    uint32_t x = s->inputs[0], shape = inf_build_shape(&s->b, x);
    int64_t width = inf_build_known_dim(&s->b, x, -1);
    x = inf_build_reshape(&s->b, x, (int64_t[]){1, -1, width}, 3);
    x = add_layer(s, x, layers[0], inf_onnx_input(s, 3));
    if (activations[at].kind != INF_UNARY_COUNT)
        x = inf_build_unary(&s->b, activations[at].kind, x);
    x = add_layer(s, x, layers[1], inf_onnx_input(s, 5));
    uint32_t weights = inf_build_transpose(&s->b, add_routing(s, scores, k), (int64_t[]){1, 0}, 2);
    x = inf_build_mul(&s->b, x, inf_build_expand_dims(&s->b, weights, (int64_t[]){2}, 1));
    x = inf_build_reduce(&s->b, INF_REDUCE_SUM, x, &(struct inf_ints){.count = 1}, false);
    s->outputs[0] = inf_build_reshape_to(&s->b, x, shape);
}

static const struct inf_onnx_op ops[] = {
    {"com.microsoft::MoE", lower_experts, 1, 6, 1, 0},
};

const struct inf_onnx_op_table inf_onnx_ops_contrib_experts = {ops, INF_ARRAY_LENGTH(ops)};
