// SPDX-License-Identifier: Apache-2.0
// Operators whose axes a run computes. The number of axes must be known at import, because ranks
// depend on it.
#ifndef INF_BACKENDS_IMPORT_ONNX_OPS_AXES_H
#define INF_BACKENDS_IMPORT_ONNX_OPS_AXES_H

#include "backends/import/onnx/scope.h"

// Returns true if input `index` is present, is no constant and has at least one axis, so that the
// functions of this header are needed.
bool inf_onnx_axes_computed(struct inf_onnx_scope *s, uint32_t index);

// Adds x as i32. Numbers beyond i32 become its lowest or highest number.
uint32_t inf_onnx_axes_clamp(struct inf_onnx_scope *s, uint32_t x);

// Adds a list of `size` elements (i32): values[i] at index axes[i], and `fallback` elsewhere.
// `values` and `axes` are lists of equal length. The run fails if an axis is not in -size to
// size - 1. Values beyond i32 are clamped.
uint32_t inf_onnx_axes_spread(struct inf_onnx_scope *s, uint32_t axes, uint32_t values,
                              int64_t size, int64_t fallback);

// Adds x with axes of size 1 inserted; `axes` are positions in the result.
uint32_t inf_onnx_axes_unsqueeze(struct inf_onnx_scope *s, uint32_t x, uint32_t axes);

// Adds x without `axes`, which have size 1.
uint32_t inf_onnx_axes_squeeze(struct inf_onnx_scope *s, uint32_t x, uint32_t axes);

// Adds x reduced over `axes`, one axis after the other. `kind` must give the same result for all
// axes at once: any kind but mean, l2, log_sum and sum_square does. Sets *out_count to the number
// of elements (i32 scalar) that become one, unless out_count is NULL.
uint32_t inf_onnx_axes_reduce(struct inf_onnx_scope *s, enum inf_reduce_kind kind, uint32_t x,
                              uint32_t axes, bool keep, uint32_t *out_count);

#endif
