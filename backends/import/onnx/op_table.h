// SPDX-License-Identifier: Apache-2.0
// All ONNX operators that can be lowered, by family.
#ifndef INF_BACKENDS_IMPORT_ONNX_OP_TABLE_H
#define INF_BACKENDS_IMPORT_ONNX_OP_TABLE_H

#include "backends/import/onnx/scope.h"

// The ONNX operators of one family, such as convolutions. Each file of onnx/ops has one family.
struct inf_onnx_op_table {
    const struct inf_onnx_op *ops;
    size_t count;
};

// Returns how an ONNX operator is lowered; NULL if it is not supported. `domain` is "" for ai.onnx.
const struct inf_onnx_op *inf_onnx_op_find(const char *domain, const char *name);

// Returns operator number `index` in the order of all tables; NULL after the last one.
const struct inf_onnx_op *inf_onnx_op_at(size_t index);

// The tables of the families, one per file of onnx/ops.
extern const struct inf_onnx_op_table inf_onnx_ops_unary;
extern const struct inf_onnx_op_table inf_onnx_ops_math;
extern const struct inf_onnx_op_table inf_onnx_ops_reduce;
extern const struct inf_onnx_op_table inf_onnx_ops_norm;
extern const struct inf_onnx_op_table inf_onnx_ops_conv;
extern const struct inf_onnx_op_table inf_onnx_ops_unconv;
extern const struct inf_onnx_op_table inf_onnx_ops_pool;
extern const struct inf_onnx_op_table inf_onnx_ops_shape;
extern const struct inf_onnx_op_table inf_onnx_ops_move;
extern const struct inf_onnx_op_table inf_onnx_ops_gather;
extern const struct inf_onnx_op_table inf_onnx_ops_resize;
extern const struct inf_onnx_op_table inf_onnx_ops_source;
extern const struct inf_onnx_op_table inf_onnx_ops_quant;
extern const struct inf_onnx_op_table inf_onnx_ops_branch;
extern const struct inf_onnx_op_table inf_onnx_ops_loop;
extern const struct inf_onnx_op_table inf_onnx_ops_rnn;
extern const struct inf_onnx_op_table inf_onnx_ops_attention;
extern const struct inf_onnx_op_table inf_onnx_ops_tensor_scatter;
extern const struct inf_onnx_op_table inf_onnx_ops_bits;
extern const struct inf_onnx_op_table inf_onnx_ops_linear;
extern const struct inf_onnx_op_table inf_onnx_ops_sample;
extern const struct inf_onnx_op_table inf_onnx_ops_loss;
extern const struct inf_onnx_op_table inf_onnx_ops_deform;
extern const struct inf_onnx_op_table inf_onnx_ops_sequence;
extern const struct inf_onnx_op_table inf_onnx_ops_patch;
extern const struct inf_onnx_op_table inf_onnx_ops_feature;
extern const struct inf_onnx_op_table inf_onnx_ops_spectral;
extern const struct inf_onnx_op_table inf_onnx_ops_early;
extern const struct inf_onnx_op_table inf_onnx_ops_classic;
extern const struct inf_onnx_op_table inf_onnx_ops_trees;
extern const struct inf_onnx_op_table inf_onnx_ops_trees_flat;
extern const struct inf_onnx_op_table inf_onnx_ops_support;
extern const struct inf_onnx_op_table inf_onnx_ops_label;
extern const struct inf_onnx_op_table inf_onnx_ops_text;

// The tables of operators of com.microsoft, one for each file of onnx/contrib with operators.
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_alias;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_attention;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_experts;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_gelu;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_group_query;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_matmul;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_move;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_nbits;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_norm;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_qlinear;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_quant;
extern const struct inf_onnx_op_table inf_onnx_ops_contrib_token;

#endif
