// SPDX-License-Identifier: Apache-2.0
// Nodes and constants of quantised tensors: between stored integers and real numbers.
#ifndef INF_BACKENDS_IMPORT_TFLITE_QUANTIZE_H
#define INF_BACKENDS_IMPORT_TFLITE_QUANTIZE_H

#include "backends/base/blob.h"
#include "backends/import/tflite/scope.h"

// Adds a constant. Takes over the reference `data`, which is NULL after a failure.
uint32_t inf_tflite_add_blob(struct inf_builder *b, const char *name, enum inf_dtype dtype,
                             const struct inf_shape *shape, struct inf_blob *data);

// Adds a constant of the tensor's shape and type whose elements represent 0: the first value of a
// variable tensor.
uint32_t inf_tflite_add_zeros(struct inf_builder *b, const struct inf_tflite_tensor *tensor);

// Adds the elements `data` of a constant tensor, converted to `dtype`, with permuted axes unless
// `layout` is NULL. Takes over the reference `data`, which is NULL after a failure.
uint32_t inf_tflite_add_permuted(struct inf_builder *b, const struct inf_tflite_tensor *tensor,
                                 enum inf_dtype dtype, struct inf_blob *data,
                                 const struct inf_tflite_layout *layout);

// Adds a constant tensor as f32, with permuted axes unless `layout` is NULL.
uint32_t inf_tflite_add_floats(struct inf_tflite_scope *s, const struct inf_tflite_tensor *tensor,
                               const struct inf_tflite_layout *layout);

// Adds the constants of a quantised tensor: its scales, and its zero points; *out_zero is
// INF_VALUE_NONE if all of these are 0.
void inf_tflite_add_scales(struct inf_builder *b, const struct inf_tflite_tensor *tensor,
                           uint32_t *out_scale, uint32_t *out_zero);

// Adds a dequantize node with the scales of `tensor`, which belong to axis `axis` of the value.
uint32_t inf_tflite_dequantize(struct inf_builder *b, uint32_t value,
                               const struct inf_tflite_tensor *tensor, int32_t axis);

// Adds a quantize node with the scale of `tensor`.
uint32_t inf_tflite_quantize(struct inf_builder *b, uint32_t value,
                             const struct inf_tflite_tensor *tensor);

// Returns false if cutting to min..max changes no value that the quantised tensor can hold. Returns
// true for tensors that are not quantised.
bool inf_tflite_clamps(const struct inf_tflite_tensor *tensor, float min, float max);

// Converts the bounds of a clamp to stored integers of a quantised tensor with one scale.
void inf_tflite_store_bounds(const struct inf_tflite_tensor *tensor, float min, float max,
                             int32_t *low, int32_t *high);

// Stores the least and largest integers of a quantised tensor's type in *low and *high.
void inf_tflite_stored_range(const struct inf_tflite_tensor *tensor, int32_t *low, int32_t *high);

#endif
