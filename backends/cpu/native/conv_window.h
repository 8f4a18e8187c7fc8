// SPDX-License-Identifier: Apache-2.0
// Computes rows of results of convolutions whose windows are larger than a pixel, have a stride, or
// cover padding.
#ifndef INF_BACKENDS_CPU_NATIVE_CONV_WINDOW_H
#define INF_BACKENDS_CPU_NATIVE_CONV_WINDOW_H

#include "backends/cpu/native/conv_packed.h"

// Returns the floats of scratch memory that inf_conv_window_rows() needs for copies of x. Runs
// need further scratch memory.
size_t inf_conv_window_scratch(const struct inf_conv_packed *conv);

// Computes rows `first` to `end` (exclusive) of the result, like inf_conv_rows_compute(), for
// windows that are larger than a pixel. Runs of pixels get `run_scratch`.
void inf_conv_window_rows(const struct inf_conv_packed *conv, const struct inf_conv_packed_io *io,
                          size_t first, size_t end, float *scratch, float *run_scratch);

// Copies the pixels under all windows of rows `first` to `end` (exclusive) of the result to `to`,
// one window after the other: conv->depth floats for each window.
void inf_conv_window_gather(const struct inf_conv_packed *conv, const struct inf_conv_packed_io *io,
                            size_t first, size_t end, float *to);

#endif
