// SPDX-License-Identifier: Apache-2.0
// Positions of windows that slide over up to three spatial axes, for convolutions and transposed
// convolutions. A transposed convolution is the gradient of a convolution: `big` below is then its
// result and `small` its operand x; for a convolution it is the other way round.
#ifndef INF_BACKENDS_CPU_SPATIAL_WINDOW_ND_H
#define INF_BACKENDS_CPU_SPATIAL_WINDOW_ND_H

#include "backends/cpu/core/kernel.h"
#include "backends/graph/shape/infer.h"

#define INF_WINDOW_ND_AXES 3

// Taps (positions in the window) are numbered in row-major order. A run is a group of taps that are
// neighbours in memory: a row of the window, or a single tap if the window is dilated along the
// last axis.
struct inf_window_nd {
    struct inf_window axes[INF_WINDOW_ND_AXES]; // missing leading axes have size 1
    size_t batch;
    size_t big_pixels, small_pixels;     // pixels of one image
    size_t big_channels, small_channels; // elements of one pixel
    size_t groups;                       // groups of channels
    size_t row_runs, run_taps;           // runs of a row of the window, and taps of each run
};

// A row of `small`: where along the first two axes of `big` its windows begin. May be negative.
struct inf_window_nd_row {
    int64_t start[INF_WINDOW_ND_AXES - 1];
};

// The taps of a run that lie inside the image.
struct inf_window_nd_run {
    size_t first, count; // first tap, counted from the start of the run, and number of taps
    size_t column;       // of `big`, under the first tap
};

// Describes the windows of a conv_nd, conv_nd_transpose or conv2d_transpose node.
//
// INF_UNSUPPORTED  the node has more than three spatial axes, or its operands x and filter are not
//                  f32.
enum inf_code inf_window_nd_init(struct inf_window_nd *window, const struct inf_graph *graph,
                                 const struct inf_node *node, struct inf_error *err) INF_NODISCARD;

// Returns the number of taps of the window.
size_t inf_window_nd_taps(const struct inf_window_nd *window);

// Returns where the windows of row `row` begin; rows are counted from the first one of the image.
struct inf_window_nd_row inf_window_nd_find_row(const struct inf_window_nd *window, size_t row);

// Finds the row of `big` under row (first, second) of the windows, counted along the first two
// axes. Returns false if it is outside of the image.
static inline bool inf_window_nd_find_big_row(const struct inf_window_nd *window,
                                              const struct inf_window_nd_row *row, int32_t first,
                                              int32_t second, size_t *out_row)
{
    const struct inf_window *axes = window->axes;
    int64_t a = row->start[0] + (int64_t)first * axes[0].dilation;
    int64_t b = row->start[1] + (int64_t)second * axes[1].dilation;
    if (a < 0 || a >= axes[0].input || b < 0 || b >= axes[1].input)
        return false;
    *out_row = (size_t)(a * axes[1].input + b);
    return true;
}

// Finds the taps of run `run` (counted from the start of a row of the window) that lie inside the
// image, for the window at column `column` of `small`. Returns false if there are none.
static inline bool inf_window_nd_find_run(const struct inf_window_nd *window, size_t column,
                                          size_t run, struct inf_window_nd_run *found)
{
    const struct inf_window *axis = &window->axes[INF_WINDOW_ND_AXES - 1];
    int64_t place = (int64_t)column * axis->stride - axis->pad_before +
                    (int64_t)run * (int64_t)window->run_taps * axis->dilation;
    int64_t first = INF_MAX(-place, 0);
    int64_t end = INF_MIN((int64_t)window->run_taps, axis->input - place);
    if (first >= end)
        return false;
    *found =
        (struct inf_window_nd_run){(size_t)first, (size_t)(end - first), (size_t)(place + first)};
    return true;
}

#endif
