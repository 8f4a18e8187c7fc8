// SPDX-License-Identifier: Apache-2.0
// Copies the bytes of x that one window of an 8-bit product covers to contiguous memory, where the
// kernels read them.
//
// Windows of a first layer are short: three rows of nine bytes. Therefore bytes are copied in
// chunks of 16, the last of which may write behind the window. Windows are copied in the order of
// the pixels, so that the next window replaces these bytes.
#include "backends/cpu/quantized/windows.h"

#include <string.h>

#define CHUNK ((size_t)INF_Q8_WINDOW_SLACK)

typedef uint8_t chunk __attribute__((vector_size(INF_Q8_WINDOW_SLACK)));

struct inf_q8_cursor inf_q8_windows_start(const struct inf_q8_windows *windows, const uint8_t *x,
                                          size_t group, size_t pixel)
{
    size_t columns = (size_t)windows->width.output;
    size_t rows = (size_t)windows->height.output;
    size_t image_size =
        (size_t)(windows->height.input * windows->width.input) * windows->channels;
    return (struct inf_q8_cursor){
        .image = x + pixel / columns / rows * image_size + group * windows->inputs,
        .end = x + windows->images * image_size,
        .row = pixel / columns % rows,
        .column = pixel % columns,
    };
}

// Copies `count` bytes of x and converts them to unsigned. Writes whole chunks, but reads no byte
// at `end` or behind it.
static void copy_bytes(uint8_t *to, const uint8_t *from, size_t count, uint8_t flip,
                       const uint8_t *end)
{
    size_t done = 0;
    if ((size_t)(end - from) >= count + CHUNK)
        for (; done < count; done += CHUNK) {
            chunk bytes;
            memcpy(&bytes, from + done, CHUNK);
            bytes ^= flip;
            memcpy(to + done, &bytes, CHUNK);
        }
    for (; done < count; done++)
        to[done] = from[done] ^ flip;
}

// Copies one row of taps of a window that is partly padding. The first tap is at column `column` of
// the row of x at `row`. If `row` is NULL, all taps are padding. Taps outside of x become the zero
// point of x.
static void copy_taps(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                      const uint8_t *row, int64_t column, uint8_t *to)
{
    const struct inf_window *w = &windows->width;
    for (int32_t k = 0; k < w->kernel; k++, column += w->dilation, to += windows->inputs) {
        bool inside = row != NULL && column >= 0 && column < w->input;
        const uint8_t *from = inside ? row + (size_t)column * windows->channels : NULL;
        for (size_t i = 0; i < windows->inputs; i++)
            to[i] = inside ? from[i] ^ terms->flip : (uint8_t)terms->x_zero;
    }
}

void inf_q8_windows_copy_next(const struct inf_q8_windows *windows,
                              const struct inf_q8_params *terms, struct inf_q8_cursor *cursor,
                              uint8_t *to)
{
    const struct inf_window *h = &windows->height;
    const struct inf_window *w = &windows->width;
    size_t row_size = (size_t)w->input * windows->channels;
    size_t taps_size = (size_t)w->kernel * windows->inputs;
    int64_t column = (int64_t)cursor->column * w->stride - w->pad_before;
    int64_t row = (int64_t)cursor->row * h->stride - h->pad_before;
    int64_t last = column + (int64_t)(w->kernel - 1) * w->dilation;
    // All taps of a row are neighbours in x and inside of it.
    bool whole = windows->groups == 1 && w->dilation == 1 && column >= 0 && last < w->input;
    for (int32_t k = 0; k < h->kernel; k++, row += h->dilation, to += taps_size) {
        const uint8_t *from =
            row >= 0 && row < h->input ? cursor->image + (size_t)row * row_size : NULL;
        if (whole && from != NULL)
            copy_bytes(to, from + (size_t)column * windows->channels, taps_size, terms->flip,
                       cursor->end);
        else
            copy_taps(windows, terms, from, column, to);
    }
    if (++cursor->column < (size_t)w->output)
        return;
    cursor->column = 0;
    if (++cursor->row < (size_t)h->output)
        return;
    cursor->row = 0;
    cursor->image += (size_t)h->input * row_size;
}
