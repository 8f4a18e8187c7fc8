// SPDX-License-Identifier: Apache-2.0
// Copies the bytes of x that one window of an 8-bit product covers to contiguous memory, where the
// kernels read them.
#include "backends/cpu/quantized/windows.h"

#include <string.h>

// Copies `count` bytes of x and converts them to unsigned.
static void copy_bytes(uint8_t *to, const uint8_t *from, size_t count, uint8_t flip)
{
    if (flip == 0) {
        memcpy(to, from, count);
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = from[i] ^ flip;
}

// Copies one row of taps of a window to `to`. The first tap is at column `column` of the row of x
// at `row`. If `row` is NULL, all taps are padding. Taps outside of x become the zero point of x.
static void copy_row(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                     const uint8_t *row, int64_t column, uint8_t *to)
{
    const struct inf_window *w = &windows->width;
    int64_t last = column + (int64_t)(w->kernel - 1) * w->dilation;
    bool whole = windows->groups == 1 && w->dilation == 1;
    if (row != NULL && whole && column >= 0 && last < w->input) {
        copy_bytes(to, row + (size_t)column * windows->channels,
                   (size_t)w->kernel * windows->inputs, terms->flip);
        return;
    }
    for (int32_t k = 0; k < w->kernel; k++, column += w->dilation, to += windows->inputs) {
        if (row != NULL && column >= 0 && column < w->input)
            copy_bytes(to, row + (size_t)column * windows->channels, windows->inputs, terms->flip);
        else
            memset(to, terms->x_zero, windows->inputs);
    }
}

void inf_q8_windows_copy(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                         const uint8_t *x, size_t group, size_t pixel, uint8_t *to)
{
    const struct inf_window *h = &windows->height;
    const struct inf_window *w = &windows->width;
    size_t columns = (size_t)w->output;
    size_t rows = (size_t)h->output;
    size_t row_size = (size_t)w->input * windows->channels;
    int64_t column = (int64_t)(pixel % columns) * w->stride - w->pad_before;
    int64_t row = (int64_t)(pixel / columns % rows) * h->stride - h->pad_before;
    x += pixel / columns / rows * (size_t)h->input * row_size + group * windows->inputs;
    for (int32_t k = 0; k < h->kernel; k++, row += h->dilation) {
        bool inside = row >= 0 && row < h->input;
        copy_row(windows, terms, inside ? x + (size_t)row * row_size : NULL, column, to);
        to += (size_t)w->kernel * windows->inputs;
    }
}
