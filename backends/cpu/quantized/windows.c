// SPDX-License-Identifier: Apache-2.0
// Copies the bytes of x that one window of an 8-bit product covers to contiguous memory, where the
// kernels read them.
//
// Windows of a first layer are short: three rows of nine bytes. Therefore bytes are copied in
// chunks of 16, the last of which may write behind the window. Windows are copied in the order of
// the pixels, so that the next window replaces these bytes.
#include "backends/cpu/quantized/windows.h"

#include <string.h>

#include "proto/core/span.h"

#define CHUNK ((size_t)INF_Q8_WINDOW_SLACK)

typedef uint8_t chunk __attribute__((vector_size(INF_Q8_WINDOW_SLACK)));

struct inf_q8_cursor inf_q8_windows_start(const struct inf_q8_windows *windows, const uint8_t *x,
                                          size_t group, size_t pixel)
{
    size_t columns = (size_t)windows->width.output;
    size_t rows = (size_t)windows->height.output;
    size_t image_size = (size_t)(windows->height.input * windows->width.input) * windows->channels;
    return (struct inf_q8_cursor){
        .image = x + pixel / columns / rows * image_size + group * windows->inputs,
        .end = x + windows->images * image_size,
        .row = pixel / columns % rows,
        .column = pixel % columns,
    };
}

// Copies `count` bytes and XORs each with `flip`. Reads and writes whole chunks.
static inline void copy_chunks(uint8_t *to, const uint8_t *from, size_t count, uint8_t flip)
{
    for (size_t done = 0; done < count; done += CHUNK) {
        chunk bytes;
        memcpy(&bytes, from + done, CHUNK);
        bytes ^= flip;
        memcpy(to + done, &bytes, CHUNK);
    }
}

// Returns the first byte of x under the window at the cursor, whose taps are all inside of x.
static const uint8_t *first_tap(const struct inf_q8_windows *windows,
                                const struct inf_q8_cursor *cursor)
{
    const struct inf_window *h = &windows->height;
    const struct inf_window *w = &windows->width;
    int64_t row = (int64_t)cursor->row * h->stride - h->pad_before;
    int64_t column = (int64_t)cursor->column * w->stride - w->pad_before;
    return cursor->image + (size_t)(row * w->input + column) * windows->channels;
}

// Copies `count` bytes and XORs each with `flip`. Reads and writes only these bytes.
static inline void copy_exactly(uint8_t *to, const uint8_t *from, size_t count, uint8_t flip)
{
    size_t whole = count / CHUNK * CHUNK;
    copy_chunks(to, from, whole, flip);
    for (size_t i = whole; i < count; i++)
        to[i] = from[i] ^ flip;
}

// Returns how many of the windows from the cursor on, in its row, can be copied in chunks: the taps
// of a row of the window are neighbours in x, no tap is padding, and chunks end before the end of
// x. Returns 0 if the first one cannot.
static size_t count_inside(const struct inf_q8_windows *windows, const struct inf_q8_cursor *cursor)
{
    const struct inf_window *h = &windows->height;
    const struct inf_window *w = &windows->width;
    int64_t row = (int64_t)cursor->row * h->stride - h->pad_before;
    int64_t last_row = row + (int64_t)(h->kernel - 1) * h->dilation;
    int64_t column = (int64_t)cursor->column * w->stride - w->pad_before;
    int64_t last_column = w->input - w->kernel; // where the last window inside of x may begin
    if (windows->groups > 1 || w->dilation > 1 || row < 0 || last_row >= h->input || column < 0 ||
        column > last_column)
        return 0;
    size_t count = (size_t)((last_column - column) / w->stride) + 1;
    count = INF_MIN(count, (size_t)w->output - cursor->column);
    // Where the last chunk of the first window ends. Each further window ends x_step bytes later.
    size_t first_end = (size_t)(last_row * w->input + column) * windows->channels +
                       inf_size_align((size_t)w->kernel * windows->inputs, CHUNK);
    size_t x_step = (size_t)w->stride * windows->channels;
    size_t left = (size_t)(cursor->end - cursor->image);
    return left < first_end ? 0 : INF_MIN(count, (left - first_end) / x_step + 1);
}

// Copies `count` windows that count_inside() has counted.
static void copy_inside(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                        const struct inf_q8_cursor *cursor, size_t count, uint8_t *to, size_t step)
{
    size_t rows = (size_t)windows->height.kernel;
    size_t taps_size = (size_t)windows->width.kernel * windows->inputs;
    size_t row_step =
        (size_t)windows->width.input * windows->channels * (size_t)windows->height.dilation;
    size_t x_step = (size_t)windows->width.stride * windows->channels;
    const uint8_t *from = first_tap(windows, cursor);
    for (size_t i = 0; i < count; i++, from += x_step, to += step)
        for (size_t k = 0; k < rows; k++)
            copy_chunks(to + k * taps_size, from + k * row_step, taps_size, terms->flip);
}

// Copies the window at the cursor, which may be partly padding.
static void copy_any(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                     const struct inf_q8_cursor *cursor, uint8_t *to)
{
    const struct inf_window *h = &windows->height;
    const struct inf_window *w = &windows->width;
    int64_t row = (int64_t)cursor->row * h->stride - h->pad_before;
    for (int32_t k = 0; k < h->kernel; k++, row += h->dilation) {
        int64_t column = (int64_t)cursor->column * w->stride - w->pad_before;
        for (int32_t i = 0; i < w->kernel; i++, column += w->dilation, to += windows->inputs) {
            bool inside = row >= 0 && row < h->input && column >= 0 && column < w->input;
            if (inside)
                copy_exactly(to,
                             cursor->image + (size_t)(row * w->input + column) * windows->channels,
                             windows->inputs, terms->flip);
            else
                memset(to, (uint8_t)terms->x_zero, windows->inputs);
        }
    }
}

static void advance_cursor(const struct inf_q8_windows *windows, struct inf_q8_cursor *cursor,
                           size_t count)
{
    const struct inf_window *h = &windows->height;
    cursor->column += count;
    if (cursor->column < (size_t)windows->width.output)
        return;
    cursor->column = 0;
    if (++cursor->row < (size_t)h->output)
        return;
    cursor->row = 0;
    cursor->image += (size_t)(h->input * windows->width.input) * windows->channels;
}

void inf_q8_windows_copy(const struct inf_q8_windows *windows, const struct inf_q8_params *terms,
                         struct inf_q8_cursor *cursor, size_t count, uint8_t *to, size_t step)
{
    while (count > 0) {
        size_t run = INF_MIN(count_inside(windows, cursor), count);
        if (run > 0) {
            copy_inside(windows, terms, cursor, run, to, step);
        } else {
            run = 1;
            copy_any(windows, terms, cursor, to);
        }
        advance_cursor(windows, cursor, run);
        to += run * step;
        count -= run;
    }
}
