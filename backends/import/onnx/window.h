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
    // true: auto_pad is SAME_UPPER; the operator or inf_onnx_window_resolve() computes the padding
    bool same;
    bool lower; // true: inf_onnx_window_resolve() must pad x as auto_pad SAME_LOWER says
};

// Reads strides, dilations, pads, auto_pad and kernel_shape of a node whose x has rank 3 to 5.
// `kernel` has the sizes of the filter, which may be INF_DIM_UNKNOWN if the attribute kernel_shape
// is present. If `kernel` is NULL, the attribute must be present.
void inf_onnx_window_read(struct inf_onnx_scope *s, struct inf_onnx_window *window, uint32_t x,
                          const int64_t *kernel);

// Like inf_onnx_window_read(), but leaves the padding of auto_pad SAME_UPPER and SAME_LOWER at 0,
// because that of a transposed convolution follows from the size of its output.
void inf_onnx_window_read_transposed(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                                     uint32_t x, const int64_t *kernel);

// Reads the spatial sizes of a filter [m, c, ...] for inf_onnx_window_read(). Those of further axes
// of `kernel` stay as they are.
void inf_onnx_window_read_filter(struct inf_onnx_scope *s, uint32_t filter,
                                 int64_t kernel[INF_ONNX_WINDOW_AXES]);

// If `same` or `lower` is set, clears both and computes the padding. If that needs a size that is
// not known, the window gets no padding, and x is padded by nodes, with the scalar `value`;
// INF_VALUE_NONE means 0. Returns x, or x padded. x has its channels first.
uint32_t inf_onnx_window_resolve(struct inf_onnx_scope *s, struct inf_onnx_window *window,
                                 uint32_t x, uint32_t value);

// Returns true if the sizes of all spatial axes of x [n, c, ...] are known at import.
bool inf_onnx_window_has_sizes(struct inf_onnx_scope *s, uint32_t x);

// Adds a node that pads the spatial axes of x [n, c, ...] with the scalar `value`; INF_VALUE_NONE
// means 0. `amounts` has two values i32 [1] for each axis: elements before and after.
uint32_t inf_onnx_window_pad(struct inf_onnx_scope *s, uint32_t x, const uint32_t *amounts,
                             int32_t axes, uint32_t value);

// Returns the number of elements from a window's first tap to its last along a spatial axis.
int64_t inf_onnx_window_reach(const struct inf_onnx_window *window, int32_t axis);

// Converts a window over one axis to a window over two axes; the first one has size 1.
void inf_onnx_window_widen(struct inf_onnx_window *window);

#endif
