// SPDX-License-Identifier: Apache-2.0
// Makes sparse constants dense.
#ifndef INF_BACKENDS_IMPORT_TFLITE_SPARSE_H
#define INF_BACKENDS_IMPORT_TFLITE_SPARSE_H

#include "backends/import/tflite/model.h"

// Checks a tensor with sparse data before memory for its shape is allocated: a small file must not
// make large tensors. `element_bits` is the size of an element.
//
// INF_UNSUPPORTED  elements below 8 bits.
// INF_EXHAUSTED    the shape has many more elements than the data have bytes.
enum inf_code inf_tflite_sparse_check(const struct inf_tflite_tensor *tensor, uint32_t element_bits,
                                      struct inf_error *err) INF_NODISCARD;

// Writes the elements of a tensor with sparse data to `elements`, which has room for its shape and
// is zero. inf_tflite_sparse_check() accepted the tensor. `element_bytes` is the size of an
// element: 1, 2, 4 or 8. The text of a failure goes where the reader of the file has its texts.
//
// INF_INVALID  the indices do not fit the shape; the text names tensor and field.
enum inf_code inf_tflite_sparse_read(uint8_t *elements, const struct inf_tflite_tensor *tensor,
                                     uint32_t element_bytes) INF_NODISCARD;

#endif
