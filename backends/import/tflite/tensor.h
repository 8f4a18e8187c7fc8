// SPDX-License-Identifier: Apache-2.0
// Reads the elements of constants: unpacks integers below 8 bits, makes sparse data dense, and
// converts quantised numbers and 16-bit floats to f32.
#ifndef INF_BACKENDS_IMPORT_TFLITE_TENSOR_H
#define INF_BACKENDS_IMPORT_TFLITE_TENSOR_H

#include "backends/base/blob.h"
#include "backends/import/tflite/model.h"

// Returns true if the tensor has elements in the file.
bool inf_tflite_tensor_is_const(const struct inf_tflite_tensor *tensor);

// Returns true if the tensor holds integers of at most 16 bits that represent real numbers.
bool inf_tflite_tensor_is_quantized(const struct inf_tflite_tensor *tensor);

// Returns true if equal integers of two quantised tensors represent equal numbers. False if one of
// them has several scales.
bool inf_tflite_tensor_same_scale(const struct inf_tflite_tensor *a,
                                  const struct inf_tflite_tensor *b);

// Returns `tensor` as TFLite's kernels read the weights of an operator with the input `x`. If x has
// floats, UINT8 weights with one scale are the bytes of signed numbers without a zero point, as
// early converters wrote them. Other tensors are returned as they are. The result has pointers to
// the data of `tensor`.
struct inf_tflite_tensor inf_tflite_tensor_as_weights(const struct inf_tflite_tensor *tensor,
                                                      const struct inf_tflite_tensor *x);

// Copies the elements of a constant in the type that inf_tflite_type_info() gives. The caller owns
// the reference *out_data.
//
// INF_INVALID      the sparse data do not fit the shape; the text names the tensor.
// INF_UNSUPPORTED  the type is not supported.
// INF_EXHAUSTED    no memory.
enum inf_code inf_tflite_tensor_read(struct inf_blob **out_data,
                                     const struct inf_tflite_tensor *tensor,
                                     struct inf_error *err) INF_NODISCARD;

// Copies the elements of a constant as f32: quantised numbers are multiplied by their scales,
// floats of 16 bits are converted. `subgraph` has the scales of blockwise quantisation. Fails like
// inf_tflite_tensor_read().
enum inf_code inf_tflite_tensor_read_floats(struct inf_blob **out_data,
                                            const struct inf_tflite_subgraph *subgraph,
                                            const struct inf_tflite_tensor *tensor,
                                            struct inf_error *err) INF_NODISCARD;

// Returns the tensor that has the scales of blockwise quantisation; NULL if there is none that fits
// `tensor`.
const struct inf_tflite_tensor *
inf_tflite_tensor_block_scales(const struct inf_tflite_subgraph *subgraph,
                               const struct inf_tflite_tensor *tensor);

// Returns the scale of block `block` of a tensor with blockwise quantisation, in the order of its
// elements. inf_tflite_tensor_block_scales() has found the scales.
float inf_tflite_tensor_block_scale(const struct inf_tflite_subgraph *subgraph,
                                    const struct inf_tflite_tensor *tensor, size_t block);

#endif
