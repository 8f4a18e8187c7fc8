// SPDX-License-Identifier: Apache-2.0
// All TFLite operators that can be lowered, by family.
#ifndef INF_BACKENDS_IMPORT_TFLITE_OP_TABLE_H
#define INF_BACKENDS_IMPORT_TFLITE_OP_TABLE_H

#include "backends/import/tflite/scope.h"

// The operators of one family, such as convolutions. Each file of tflite/ops has one family.
struct inf_tflite_op_table {
    const struct inf_tflite_op *ops;
    size_t count;
};

// Returns the row of an operator; NULL if it is not supported.
const struct inf_tflite_op *inf_tflite_op_find(const struct inf_tflite_code *code);

// Returns operator number `index` in the order of all tables; NULL after the last one.
const struct inf_tflite_op *inf_tflite_op_at(size_t index);

// The tables of the families, one per file of tflite/ops.
extern const struct inf_tflite_op_table inf_tflite_ops_unary;
extern const struct inf_tflite_op_table inf_tflite_ops_binary;
extern const struct inf_tflite_op_table inf_tflite_ops_conv;
extern const struct inf_tflite_op_table inf_tflite_ops_matmul;
extern const struct inf_tflite_op_table inf_tflite_ops_pool;
extern const struct inf_tflite_op_table inf_tflite_ops_shape;
extern const struct inf_tflite_op_table inf_tflite_ops_join;
extern const struct inf_tflite_op_table inf_tflite_ops_slice;
extern const struct inf_tflite_op_table inf_tflite_ops_reduce;
extern const struct inf_tflite_op_table inf_tflite_ops_norm;
extern const struct inf_tflite_op_table inf_tflite_ops_resize;
extern const struct inf_tflite_op_table inf_tflite_ops_select;
extern const struct inf_tflite_op_table inf_tflite_ops_source;
extern const struct inf_tflite_op_table inf_tflite_ops_control;
extern const struct inf_tflite_op_table inf_tflite_ops_segment;
extern const struct inf_tflite_op_table inf_tflite_ops_spectral;
extern const struct inf_tflite_op_table inf_tflite_ops_detect;
extern const struct inf_tflite_op_table inf_tflite_ops_lstm;
extern const struct inf_tflite_op_table inf_tflite_ops_rnn;
extern const struct inf_tflite_op_table inf_tflite_ops_variable;
extern const struct inf_tflite_op_table inf_tflite_ops_mediapipe;
extern const struct inf_tflite_op_table inf_tflite_ops_stablehlo;
extern const struct inf_tflite_op_table inf_tflite_ops_window;

#endif
