// SPDX-License-Identifier: Apache-2.0
// The windows of an 8-bit product: which bytes of x belong to a pixel of y.
#ifndef INF_BACKENDS_CPU_QUANTIZED_WINDOWS_H
#define INF_BACKENDS_CPU_QUANTIZED_WINDOWS_H

#include "backends/cpu/quantized/q8.h"
#include "backends/graph/shape/infer.h"

struct inf_q8_windows {
    struct inf_window height, width;
    size_t channels; // channels in a pixel of x
    size_t groups;   // groups of channels that are multiplied separately
    size_t inputs;   // channels of x in one group
};

// Copies the bytes of x that the window of one pixel of y covers to `to`, and makes them unsigned:
// [height of the window][width of the window][inputs]. `pixel` counts the pixels of all images.
// Only channels of group `group` are copied. Padding becomes the zero point of x.
void inf_q8_windows_copy(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                         const uint8_t *x, size_t group, size_t pixel, uint8_t *to);

#endif
