// SPDX-License-Identifier: Apache-2.0
// SOFTMAX of 16-bit integers.
#ifndef INF_BACKENDS_IMPORT_TFLITE_OPS_SOFTMAX16_H
#define INF_BACKENDS_IMPORT_TFLITE_OPS_SOFTMAX16_H

#include "backends/graph/build/builder.h"

// Adds the softmax of x (i16) along the last axis, as i16 in units of 2^-15. `scale` is what one
// unit of x stands for, times beta; it is positive.
uint32_t inf_tflite_softmax16(struct inf_builder *b, uint32_t x, double scale);

#endif
