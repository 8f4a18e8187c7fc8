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
    size_t images;
};

// The window that inf_q8_windows_copy() copies next.
struct inf_q8_cursor {
    const uint8_t *image; // the first byte of the image, in the group of channels that is copied
    const uint8_t *end;   // the end of all images
    size_t row, column;   // the pixel of y that has the window
};

// Bytes behind a copied window that may be overwritten with any values.
#define INF_Q8_WINDOW_SLACK 16

// Returns a cursor at the window of pixel `pixel` of y, which counts the pixels of all images. `x`
// is the first image. Only channels of group `group` are copied.
struct inf_q8_cursor inf_q8_windows_start(const struct inf_q8_windows *windows, const uint8_t *x,
                                          size_t group, size_t pixel);

// Copies the windows of `count` pixels of y from the cursor on, `step` bytes apart, and makes their
// bytes unsigned: [height of the window][width of the window][inputs]. Padding becomes the zero
// point of x. Up to INF_Q8_WINDOW_SLACK bytes behind each window may be overwritten, before the
// next window is written. Moves the cursor behind the last pixel.
void inf_q8_windows_copy(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                         struct inf_q8_cursor *cursor, size_t count, uint8_t *to, size_t step);

#endif
