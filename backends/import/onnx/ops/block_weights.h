// SPDX-License-Identifier: Apache-2.0
// Constant matrices of 2, 4 or 8 bits whose columns consist of blocks with a scale each, as
// DequantizeLinear with block_size widens them. A product reads such a matrix packed, so that it
// takes as much memory as in the file; as floats it would take up to 16 times as much.
#ifndef INF_BACKENDS_IMPORT_ONNX_OPS_BLOCK_WEIGHTS_H
#define INF_BACKENDS_IMPORT_ONNX_OPS_BLOCK_WEIGHTS_H

#include "backends/import/onnx/scope.h"

// The operands of a DequantizeLinear and its result, all values of the graph.
struct inf_onnx_blocks {
    uint32_t weights; // [k, n], one element in a byte
    uint32_t scales;  // [k / block rounded up, n]
    uint32_t zeros;   // as scales, of the type of the weights; INF_VALUE_NONE: all 0
    uint32_t result;  // [k, n] as floats
    int32_t bits, block;
};

// Remembers the matrix for products that read its result, if matmul_blocks is built for such
// weights. Does nothing otherwise.
void inf_onnx_blocks_note(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks);

// Adds the product of x and `w` as a node that reads packed weights, and returns it. Returns
// INF_VALUE_NONE, without adding anything, if `w` is no matrix that was remembered, or the last
// axis of x has another size or one that is not known.
uint32_t inf_onnx_blocks_multiply(struct inf_onnx_scope *s, uint32_t x, uint32_t w);

#endif
