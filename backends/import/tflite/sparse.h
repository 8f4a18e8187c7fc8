// SPDX-License-Identifier: Apache-2.0
// Makes sparse constants dense.
#ifndef INF_BACKENDS_IMPORT_TFLITE_SPARSE_H
#define INF_BACKENDS_IMPORT_TFLITE_SPARSE_H

#include "backends/import/tflite/model.h"

// Writes the elements of a tensor with sparse data to `elements`, which has room for its shape and
// is zero. `element_bytes` is the size of an element: 1, 2, 4 or 8.
//
// INF_INVALID      the indices do not fit the shape; the text names tensor and field.
// INF_UNSUPPORTED  a tensor of elements below 8 bits.
enum inf_code inf_tflite_sparse_read(uint8_t *elements, const struct inf_tflite_tensor *tensor,
                                     uint32_t element_bytes, struct inf_error *err) INF_NODISCARD;

#endif
