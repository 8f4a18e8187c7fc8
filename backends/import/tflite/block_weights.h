// SPDX-License-Identifier: Apache-2.0
// Weights that stay integers although the product is one of floats (dynamic range, weight-only, and
// blockwise quantisation).
#ifndef INF_BACKENDS_IMPORT_TFLITE_BLOCK_WEIGHTS_H
#define INF_BACKENDS_IMPORT_TFLITE_BLOCK_WEIGHTS_H

#include "backends/import/tflite/scope.h"

// The constant operands of matmul_blocks.
struct inf_tflite_block_weights {
    uint32_t weights, scales, zeros; // `zeros` may be INF_VALUE_NONE
    int32_t bits, block;
    int64_t outputs, inputs;
};

// Adds input `index`, a constant matrix [outputs, inputs], as packed integers with their scales.
// Input `data` is the other operand. Returns false, without adding anything, if matmul_blocks is
// not built for such weights, the operands are both quantised, or the matrix is small.
bool inf_tflite_block_weights_add(struct inf_tflite_scope *s, uint32_t index, uint32_t data,
                                  struct inf_tflite_block_weights *weights);

#endif
