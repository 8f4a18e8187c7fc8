// SPDX-License-Identifier: Apache-2.0
// Computes rows of the result of a packed convolution (conv_packed.h).
#ifndef INF_BACKENDS_CPU_NATIVE_CONV_ROWS_H
#define INF_BACKENDS_CPU_NATIVE_CONV_ROWS_H

#include "backends/cpu/native/conv_packed.h"

// Returns the floats of scratch memory needed to compute `rows` rows of results in one call.
size_t inf_conv_rows_scratch(const struct inf_conv_packed *conv, size_t rows);

// Computes rows `first` to `end` (exclusive) of the convolution's result for one image.
void inf_conv_rows_compute(const struct inf_conv_packed *conv, const struct inf_conv_packed_io *io,
                           size_t first, size_t end, float *scratch);

#endif
