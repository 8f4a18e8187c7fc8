// SPDX-License-Identifier: Apache-2.0
// All TensorFlow operators that can be lowered, by family.
#ifndef INF_BACKENDS_IMPORT_TFJS_OP_TABLE_H
#define INF_BACKENDS_IMPORT_TFJS_OP_TABLE_H

#include "backends/import/tfjs/lower.h"

// The operators of one family, such as convolutions. Each file of tfjs/ops has one family.
struct inf_tfjs_op_table {
    const struct inf_tfjs_op *ops;
    size_t count;
};

// Returns how a TensorFlow operator is lowered; NULL if it is not supported.
const struct inf_tfjs_op *inf_tfjs_op_find(const char *name);

// The tables of the families. There is one per file of tfjs/ops, and one for If and While in
// function.c.
extern const struct inf_tfjs_op_table inf_tfjs_ops_math;
extern const struct inf_tfjs_op_table inf_tfjs_ops_conv;
extern const struct inf_tfjs_op_table inf_tfjs_ops_shape;
extern const struct inf_tfjs_op_table inf_tfjs_ops_array;
extern const struct inf_tfjs_op_table inf_tfjs_ops_source;
extern const struct inf_tfjs_op_table inf_tfjs_ops_control;
extern const struct inf_tfjs_op_table inf_tfjs_ops_list;
extern const struct inf_tfjs_op_table inf_tfjs_ops_select;
extern const struct inf_tfjs_op_table inf_tfjs_ops_window;
extern const struct inf_tfjs_op_table inf_tfjs_ops_table;
extern const struct inf_tfjs_op_table inf_tfjs_ops_spectral;
extern const struct inf_tfjs_op_table inf_tfjs_ops_random;
extern const struct inf_tfjs_op_table inf_tfjs_ops_text;
extern const struct inf_tfjs_op_table inf_tfjs_ops_sparse;

#endif
