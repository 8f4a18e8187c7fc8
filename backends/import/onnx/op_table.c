// SPDX-License-Identifier: Apache-2.0
// The list of all ONNX operators that can be lowered: the tables of the families, searched in
// order.
#include "backends/import/onnx/op_table.h"

#include <assert.h>
#include <string.h>

static const struct inf_onnx_op_table *const tables[] = {
    &inf_onnx_ops_unary,
    &inf_onnx_ops_math,
    &inf_onnx_ops_reduce,
    &inf_onnx_ops_norm,
    &inf_onnx_ops_conv,
    &inf_onnx_ops_pool,
    &inf_onnx_ops_shape,
    &inf_onnx_ops_move,
    &inf_onnx_ops_gather,
    &inf_onnx_ops_resize,
    &inf_onnx_ops_source,
    &inf_onnx_ops_quant,
    &inf_onnx_ops_rnn,
    &inf_onnx_ops_attention,
    &inf_onnx_ops_tensor_scatter,
    &inf_onnx_ops_linear,
    &inf_onnx_ops_bits,
    &inf_onnx_ops_sample,
    &inf_onnx_ops_loss,
    &inf_onnx_ops_deform,
    &inf_onnx_ops_branch,
    &inf_onnx_ops_loop,
    &inf_onnx_ops_unconv,
    &inf_onnx_ops_sequence,
    &inf_onnx_ops_patch,
    &inf_onnx_ops_feature,
    &inf_onnx_ops_spectral,
    &inf_onnx_ops_contrib_alias,
    &inf_onnx_ops_contrib_attention,
    &inf_onnx_ops_contrib_experts,
    &inf_onnx_ops_contrib_token,
    &inf_onnx_ops_contrib_gelu,
    &inf_onnx_ops_contrib_group_query,
    &inf_onnx_ops_contrib_matmul,
    &inf_onnx_ops_contrib_norm,
    &inf_onnx_ops_contrib_move,
    &inf_onnx_ops_contrib_nbits,
    &inf_onnx_ops_contrib_qlinear,
    &inf_onnx_ops_contrib_quant,
    &inf_onnx_ops_early,
    &inf_onnx_ops_classic,
    &inf_onnx_ops_trees,
    &inf_onnx_ops_trees_flat,
    &inf_onnx_ops_support,
    &inf_onnx_ops_label,
    &inf_onnx_ops_text,
};

const struct inf_onnx_op *inf_onnx_op_find(const char *domain, const char *name)
{
    assert(domain != NULL && name != NULL);
    size_t length = strlen(domain);
    const struct inf_onnx_op *op;
    for (size_t i = 0; (op = inf_onnx_op_at(i)) != NULL; i++) {
        if (length > 0 &&
            (strncmp(op->name, domain, length) != 0 || strncmp(op->name + length, "::", 2) != 0))
            continue;
        if (strcmp(length > 0 ? op->name + length + 2 : op->name, name) == 0)
            return op;
    }
    return NULL;
}

const struct inf_onnx_op *inf_onnx_op_at(size_t index)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(tables); i++) {
        if (index < tables[i]->count)
            return &tables[i]->ops[index];
        index -= tables[i]->count;
    }
    return NULL;
}
