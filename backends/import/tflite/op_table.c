// SPDX-License-Identifier: Apache-2.0
// The list of all TFLite operators that can be lowered: the tables of the families, searched in
// order.
#include "backends/import/tflite/op_table.h"

#include <assert.h>
#include <string.h>

static const struct inf_tflite_op_table *const tables[] = {
    &inf_tflite_ops_unary,     &inf_tflite_ops_binary,   &inf_tflite_ops_conv,
    &inf_tflite_ops_matmul,    &inf_tflite_ops_pool,     &inf_tflite_ops_shape,
    &inf_tflite_ops_join,      &inf_tflite_ops_slice,    &inf_tflite_ops_reduce,
    &inf_tflite_ops_norm,      &inf_tflite_ops_resize,   &inf_tflite_ops_select,
    &inf_tflite_ops_source,    &inf_tflite_ops_control,  &inf_tflite_ops_segment,
    &inf_tflite_ops_spectral,  &inf_tflite_ops_detect,   &inf_tflite_ops_lstm,
    &inf_tflite_ops_rnn,       &inf_tflite_ops_variable, &inf_tflite_ops_mediapipe,
    &inf_tflite_ops_stablehlo, &inf_tflite_ops_window,
};

const struct inf_tflite_op *inf_tflite_op_find(const struct inf_tflite_code *code)
{
    const struct inf_tflite_op *op;
    assert(code != NULL);
    for (size_t i = 0; (op = inf_tflite_op_at(i)) != NULL; i++) {
        if (op->builtin != code->builtin)
            continue;
        if (op->builtin != INF_TFLITE_CUSTOM || strcmp(op->custom, code->custom) == 0)
            return op;
    }
    return NULL;
}

const struct inf_tflite_op *inf_tflite_op_at(size_t index)
{
    for (size_t i = 0; i < INF_ARRAY_LENGTH(tables); i++) {
        if (index < tables[i]->count)
            return &tables[i]->ops[index];
        index -= tables[i]->count;
    }
    return NULL;
}
