// SPDX-License-Identifier: Apache-2.0
// Constant matrices of 2, 4 or 8 bits in blocks with a scale each, as DequantizeLinear with
// block_size widens them. A product reads such a matrix packed, so that it takes as much memory as
// in the file; as floats it would take up to 16 times as much.
#ifndef INF_BACKENDS_IMPORT_ONNX_OPS_BLOCK_WEIGHTS_H
#define INF_BACKENDS_IMPORT_ONNX_OPS_BLOCK_WEIGHTS_H

#include "backends/import/onnx/scope.h"

// The operands of a DequantizeLinear and its result, all values of the graph. Blocks are parts of
// the columns of a matrix [k, n], or of the rows of its transposed form [n, k], which may have
// further axes of size 1, as the filter of a convolution.
struct inf_onnx_blocks {
    uint32_t weights; // [k, n] or [n, k], one element in a byte
    uint32_t scales;  // as weights, with k / block rounded up instead of k
    uint32_t zeros;   // as scales, of the type of the weights; INF_VALUE_NONE: all 0
    uint32_t result;  // the matrix as floats
    int32_t bits, block;
    bool has_rows; // true: [n, k]
};

// Remembers the matrix for products that read its result, if matmul_blocks is built for such
// weights. Does nothing otherwise.
void inf_onnx_blocks_note(struct inf_onnx_scope *s, const struct inf_onnx_blocks *blocks);

// Remembers that `to` is the matrix `from` transposed, if `from` was remembered.
void inf_onnx_blocks_transpose(struct inf_onnx_scope *s, uint32_t from, uint32_t to);

// Returns true if `w` was remembered.
bool inf_onnx_blocks_known(const struct inf_onnx_scope *s, uint32_t w);

// Adds the product of x and `w`, or of x and `w` transposed, as a node that reads packed weights,
// and returns it. Returns INF_VALUE_NONE, without adding anything, if `w` is no matrix that was
// remembered, if its blocks are along the other axis, or if the last axis of x has another size or
// one that is not known.
uint32_t inf_onnx_blocks_multiply(struct inf_onnx_scope *s, uint32_t x, uint32_t w,
                                  bool transposes_w);

// Adds the rows `indices` of `w` [n, k], widened after they were gathered, so that `w` stays in
// bytes. The indices are not negative. Returns INF_VALUE_NONE, without adding anything, if `w` is
// no matrix that was remembered with blocks in rows.
uint32_t inf_onnx_blocks_gather(struct inf_onnx_scope *s, uint32_t w, uint32_t indices);

#endif
