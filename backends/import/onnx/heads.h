// SPDX-License-Identifier: Apache-2.0
// Indices along an axis, and the building blocks of attention that several operators share:
// splitting into heads, rotary embedding, biases that hide keys, and the softmax. Tensors with
// heads are [batch, heads, sequence, size]. Batch and sequence can be unknown while the model is
// imported.
#ifndef INF_BACKENDS_IMPORT_ONNX_HEADS_H
#define INF_BACKENDS_IMPORT_ONNX_HEADS_H

#include "backends/import/onnx/scope.h"

// Adds a constant or nodes that compute 0, 1, ... n-1 as i32 [n], where n is the size of axis
// `axis` of x.
uint32_t inf_onnx_add_range(struct inf_onnx_scope *s, uint32_t x, int32_t axis);
// Adds the indices along axis `axis` of x, with the size of the axis added to those that are
// negative, because they count from the end.
uint32_t inf_onnx_wrap_indices(struct inf_onnx_scope *s, uint32_t indices, uint32_t x,
                               int32_t axis);
// Adds nodes that compute the column minus the row of each element of the last two axes of x, as
// i32 [rows, columns].
uint32_t inf_onnx_add_diagonals(struct inf_onnx_scope *s, uint32_t x);

// Adds nodes that convert x [batch, sequence, heads * size] to [batch, heads, sequence, size].
uint32_t inf_onnx_split_heads(struct inf_onnx_scope *s, uint32_t x, int32_t heads);
// Adds nodes that convert x [batch, heads, sequence, size] to [batch, sequence, heads * size].
uint32_t inf_onnx_join_heads(struct inf_onnx_scope *s, uint32_t x);
// Adds nodes that repeat each head of x, so that the result has as many heads as q. The copies of a
// head are adjacent. If the number of heads of q is not a multiple of that of x, latches a failure,
// or the run fails.
uint32_t inf_onnx_repeat_heads(struct inf_onnx_scope *s, uint32_t x, uint32_t q);

// A rotary embedding: each pair of channels is rotated by an angle that depends on the position.
struct inf_onnx_rotation {
    uint32_t cosine, sine; // [positions, size / 2], or [batch, sequence, size / 2] without `ids`
    uint32_t ids;          // rows of cosine and sine, [batch, sequence]; INF_VALUE_NONE: absent
    int64_t size;          // the number of channels that are rotated; 0: all
    bool interleaved;      // true: pairs are channels 2i and 2i + 1; false: i and i + size / 2
};

// Adds nodes that rotate the first channels of x [batch, heads, sequence, size].
uint32_t inf_onnx_rotate(struct inf_onnx_scope *s, uint32_t x,
                         const struct inf_onnx_rotation *rotation);

// Adds a node that multiplies q with k transposed: the scores of each query for all keys.
uint32_t inf_onnx_multiply_keys(struct inf_onnx_scope *s, uint32_t q, uint32_t k);
// Adds nodes that multiply x with `scale` or, if `scale` is 0, with 1 / sqrt(size of a head of q).
uint32_t inf_onnx_scale(struct inf_onnx_scope *s, uint32_t x, uint32_t q, float scale);
// Adds nodes that compute cap * tanh(x / cap). Returns x if `cap` is 0.
uint32_t inf_onnx_softcap(struct inf_onnx_scope *s, uint32_t x, float cap);
// Adds a node that makes a tensor which is 0 where `mask` is true and `hidden` elsewhere.
uint32_t inf_onnx_mask_bias(struct inf_onnx_scope *s, uint32_t mask, enum inf_dtype dtype,
                            double hidden);
// Adds nodes that compute the softmax of scores of rank 4 along the last axis. If all scores of a
// row are minus infinity, the result has zeros.
uint32_t inf_onnx_softmax(struct inf_onnx_scope *s, uint32_t scores);

#endif
