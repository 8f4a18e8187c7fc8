// SPDX-License-Identifier: Apache-2.0
// The sliding windows of ONNX's convolutions and poolings: strides, dilations and padding for one
// to three spatial axes.
#ifndef INF_BACKENDS_IMPORT_ONNX_WINDOW_H
#define INF_BACKENDS_IMPORT_ONNX_WINDOW_H

#include "backends/import/onnx/scope.h"

// The largest number of spatial axes of a tensor [n, c, ...].
#define INF_ONNX_WINDOW_AXES 3

struct inf_onnx_window {
    int32_t axes; // number of spatial axes, 1 to 3
    int64_t kernel[INF_ONNX_WINDOW_AXES];
    int64_t stride[INF_ONNX_WINDOW_AXES];
    int64_t dilation[INF_ONNX_WINDOW_AXES];
    int64_t before[INF_ONNX_WINDOW_AXES]; // padding before the first element
    int64_t after[INF_ONNX_WINDOW_AXES];
    bool same; // true: inf_onnx_window_settle() must still compute the padding
};

// Reads strides, dilations, pads, auto_pad and kernel_shape of a node whose x has rank 3 to 5.
// `kernel` is used if the attribute kernel_shape is absent. If `kernel` is NULL, the attribute must
// be present.
void inf_onnx_window_read(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x,
                          const int64_t *kernel);

// Like inf_onnx_window_read(), but leaves the padding of auto_pad SAME_UPPER and SAME_LOWER at 0,
// because that of a transposed convolution follows from the size of its output.
void inf_onnx_window_read_transposed(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                                     uint32_t x, const int64_t *kernel);

// If `same` is set, computes the padding from the sizes of x, which must be known along axes with
// another stride than 1, and clears `same`. Otherwise does nothing.
void inf_onnx_window_settle(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x);

// Returns the number of elements from a window's first tap to its last along a spatial axis.
int64_t inf_onnx_window_reach(const struct inf_onnx_window *window, int32_t axis);

// Converts a window over one axis to a window over two axes; the first one has size 1.
void inf_onnx_window_widen(struct inf_onnx_window *window);

#endif
