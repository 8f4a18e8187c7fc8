// SPDX-License-Identifier: Apache-2.0
// Computes rows of windows that are larger than a pixel. Windows that lie inside x read x in place.
// Windows at the left and right edges also cover padding, so they read a copy of x with zeros for
// the padding. If rows are long, only the few pixels under these windows are copied, otherwise
// whole rows.
#include "backends/cpu/native/conv_window.h"

#include <string.h>

#include "backends/graph/shape/infer.h"

// Computing one window at an edge costs about as much as this many windows in a row, because the
// kernel cannot share loads between pixels.
#define PIXELS_FOR_AN_EDGE 16

// Which windows of a row lie inside x: those from `left` on and below `right`. All other windows
// cover padding.
struct inner {
    size_t left, right;
};

static struct inner find_inner(const struct inf_conv_packed *conv)
{
    const struct inf_window *w = &conv->width;
    int64_t left = ((int64_t)w->pad_before + w->stride - 1) / w->stride;
    int64_t room = w->input + w->pad_before - w->kernel; // the last position of a window inside x
    int64_t right = room >= 0 ? room / w->stride + 1 : 0;
    left = INF_MIN(left, w->output);
    right = INF_MIN(INF_MAX(right, left), w->output);
    return (struct inner){(size_t)left, (size_t)right};
}

static bool has_padding(const struct inf_conv_packed *conv)
{
    return conv->width.pad_before > 0 || conv->width.pad_after > 0;
}

// Returns true if whole rows of x are copied. This is faster if many windows of a row cover
// padding.
static bool copies_rows(const struct inf_conv_packed *conv)
{
    struct inner inner = find_inner(conv);
    size_t edges = inner.left + conv->row_pixels - inner.right;
    return has_padding(conv) && edges * PIXELS_FOR_AN_EDGE > conv->row_pixels;
}

// Returns how many pixels of x, including padding, `windows` neighbouring windows cover.
static size_t window_span(const struct inf_conv_packed *conv, size_t windows)
{
    if (windows == 0)
        return 0;
    return (windows - 1) * (size_t)conv->width.stride + (size_t)conv->width.kernel;
}

static size_t row_span(const struct inf_conv_packed *conv)
{
    const struct inf_window *w = &conv->width;
    return (size_t)(w->input + w->pad_before + w->pad_after);
}

size_t inf_conv_window_scratch(const struct inf_conv_packed *conv)
{
    struct inner inner = find_inner(conv);
    size_t pixels =
        INF_MAX(window_span(conv, inner.left), window_span(conv, conv->row_pixels - inner.right));
    if (!has_padding(conv))
        return 0;
    return conv->segments * (copies_rows(conv) ? row_span(conv) : pixels) * conv->inputs;
}

// Copies `count` pixels of a row of x to scratch memory, starting at pixel `first`. Pixels outside
// the row become zeros.
static const float *copy_pixels(const struct inf_conv_packed *conv, const float *row, int64_t first,
                                size_t count, float *to)
{
    int64_t width = conv->width.input;
    int64_t end = first + (int64_t)count;
    size_t before = (size_t)INF_MIN(INF_MAX(-first, 0), (int64_t)count);
    size_t after = (size_t)INF_MIN(INF_MAX(end - width, 0), (int64_t)(count - before));
    size_t inside = count - before - after;
    memset(to, 0, before * conv->inputs * sizeof(float));
    if (inside > 0)
        memcpy(to + before * conv->inputs, row + (size_t)(first + (int64_t)before) * conv->inputs,
               inside * conv->inputs * sizeof(float));
    memset(to + (before + inside) * conv->inputs, 0, after * conv->inputs * sizeof(float));
    return to;
}

// A row of windows (one row of results), and the rows of x that the windows cover.
struct row {
    // The run of all pixels of the result row. compute_windows() sets its pointers to x.
    struct inf_conv_packed_run run;
    // Indexed by row of the window: the row of x; NULL: a row of zeros.
    const float *x[INF_CONV_SEGMENTS_MAX];
};

// Computes windows `first` to `end` (exclusive) of a result row. If `scratch` is not NULL, the
// windows cover padding, so the pixels of x are first copied to `scratch` with zeros for the
// padding.
static void compute_windows(const struct inf_conv_packed *conv, const struct row *row, size_t first,
                            size_t end, float *scratch)
{
    struct inf_conv_packed_run run = row->run;
    if (first >= end)
        return;
    int64_t pixel = (int64_t)first * conv->width.stride - conv->width.pad_before;
    size_t pixels = window_span(conv, end - first);
    for (size_t s = 0; s < conv->segments; s++) {
        run.a[s] = NULL;
        if (row->x[s] == NULL)
            continue;
        run.a[s] = scratch == NULL ? row->x[s] + (size_t)pixel * conv->inputs
                                   : copy_pixels(conv, row->x[s], pixel, pixels,
                                                 scratch + s * pixels * conv->inputs);
    }
    run.count = end - first;
    run.y += first * conv->outputs;
    if (run.residual != NULL)
        run.residual += first * conv->residual_channels;
    inf_conv_packed_compute(conv, &run, 0, conv->panel_count);
}

// Computes a row of windows from copied rows of x. Rows below *copied are already in `scratch`,
// because earlier rows of windows needed them.
static void compute_copied_row(const struct inf_conv_packed *conv, struct row *row, size_t index,
                               float *scratch, int64_t *copied)
{
    const struct inf_window *h = &conv->height;
    size_t size = row_span(conv) * conv->inputs;
    for (int32_t k = 0; k < h->kernel; k++) {
        int64_t input = (int64_t)index * h->stride - h->pad_before + k;
        row->run.a[k] = NULL;
        if (row->x[k] == NULL)
            continue;
        float *to = scratch + (size_t)(input % h->kernel) * size;
        row->run.a[k] = input < *copied ? to
                                        : copy_pixels(conv, row->x[k], -conv->width.pad_before,
                                                      row_span(conv), to);
        *copied = INF_MAX(*copied, input + 1);
    }
    row->run.count = conv->row_pixels;
    inf_conv_packed_compute(conv, &row->run, 0, conv->panel_count);
}

void inf_conv_window_gather(const struct inf_conv_packed *conv, const struct inf_conv_packed_io *io,
                            size_t first, size_t end, float *to)
{
    const struct inf_window *h = &conv->height, *w = &conv->width;
    size_t row_size = (size_t)w->input * conv->inputs;
    size_t segment = (size_t)w->kernel * conv->inputs;
    for (size_t i = first * conv->row_pixels; i < end * conv->row_pixels; i++) {
        int64_t row = (int64_t)(i / conv->row_pixels) * h->stride - h->pad_before;
        int64_t pixel = (int64_t)(i % conv->row_pixels) * w->stride - w->pad_before;
        for (int32_t k = 0; k < h->kernel; k++, row++, to += segment) {
            if (row >= 0 && row < h->input)
                copy_pixels(conv, io->x + (size_t)row % io->x_rows * row_size, pixel,
                            (size_t)w->kernel, to);
            else
                memset(to, 0, segment * sizeof(float));
        }
    }
}

void inf_conv_window_rows(const struct inf_conv_packed *conv, const struct inf_conv_packed_io *io,
                          size_t first, size_t end, float *scratch, float *run_scratch)
{
    const struct inf_window *h = &conv->height;
    size_t row_size = (size_t)conv->width.input * conv->inputs;
    struct inner inner = find_inner(conv);
    bool whole = copies_rows(conv);
    int64_t copied = INT64_MIN;
    for (size_t index = first; index < end; index++) {
        struct row row = {.run = {.scratch = run_scratch}};
        for (int32_t k = 0; k < h->kernel; k++) {
            int64_t input = (int64_t)index * h->stride - h->pad_before + k;
            if (input >= 0 && input < h->input)
                row.x[k] = io->x + (size_t)input % io->x_rows * row_size;
        }
        inf_conv_packed_set_target(conv, io, index, &row.run);
        if (whole) {
            compute_copied_row(conv, &row, index, scratch, &copied);
            continue;
        }
        compute_windows(conv, &row, 0, inner.left, scratch);
        compute_windows(conv, &row, inner.left, inner.right, NULL);
        compute_windows(conv, &row, inner.right, conv->row_pixels, scratch);
    }
}
