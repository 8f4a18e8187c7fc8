// SPDX-License-Identifier: Apache-2.0
// Windows of convolutions and pooling, as options describe them.
#ifndef INF_BACKENDS_IMPORT_TFLITE_WINDOW_H
#define INF_BACKENDS_IMPORT_TFLITE_WINDOW_H

#include "backends/import/tflite/scope.h"

// The window's axes are height and width.
struct inf_tflite_window {
    int32_t stride[2], dilation[2];
    enum inf_padding padding; // same or valid
};

// Numbers of the option fields that describe a window. Field 0 is always the padding.
struct inf_tflite_window_fields {
    uint32_t stride_h, stride_w;
    uint32_t dilation_h, dilation_w; // 0: there are no such fields
};

// Reads a window from the options. Latches INF_INVALID for strides below 1 or above 65535.
struct inf_tflite_window inf_tflite_window_read(struct inf_tflite_scope *s,
                                                const struct inf_tflite_window_fields *fields);

// Returns an option that is a size from 1 to 65535. Latches INF_INVALID for other numbers.
int32_t inf_tflite_window_size(struct inf_tflite_scope *s, uint32_t id, const char *field,
                               int32_t fallback);

// Returns the padding that option 0 names.
enum inf_padding inf_tflite_window_padding(struct inf_tflite_scope *s);

// Copies a window to the attributes of a convolution node.
#define INF_TFLITE_SET_WINDOW(attrs, window)                                                       \
    do {                                                                                           \
        (attrs)->stride_h = (window)->stride[0];                                                   \
        (attrs)->stride_w = (window)->stride[1];                                                   \
        (attrs)->dilation_h = (window)->dilation[0];                                               \
        (attrs)->dilation_w = (window)->dilation[1];                                               \
        (attrs)->padding = (window)->padding;                                                      \
    } while (0)

#endif
