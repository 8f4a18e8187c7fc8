// SPDX-License-Identifier: Apache-2.0
// Positions of windows that slide over up to three spatial axes, for convolutions and transposed
// convolutions. A transposed convolution is the gradient of a convolution: `big` below is then its
// result and `small` its operand x; for a convolution it is the other way round.
#ifndef INF_BACKENDS_CPU_NATIVE_WINDOW_ND_H
#define INF_BACKENDS_CPU_NATIVE_WINDOW_ND_H

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
    size_t runs, run_taps;               // number of runs, and taps of each run
};

// The taps of a run that lie inside the image.
struct inf_window_nd_run {
    size_t first, count; // first tap, counted from the start of the run, and number of taps
    size_t pixel;        // pixel of `big` under the first tap
};

// Describes the windows of a conv_nd, conv_nd_transpose or conv2d_transpose node.
//
// INF_UNSUPPORTED  the node has more than three spatial axes, or its operands x and filter are not
//                  f32.
enum inf_code inf_window_nd_init(struct inf_window_nd *window, const struct inf_graph *graph,
                                 const struct inf_node *node, struct inf_error *err) INF_NODISCARD;

// Returns the number of taps of the window.
static inline size_t inf_window_nd_taps(const struct inf_window_nd *window)
{
    return window->runs * window->run_taps;
}

// Finds the taps of run `run` that lie inside the image, for the window of pixel `small` (counted
// from the first pixel of the image). Returns false if there are none.
bool inf_window_nd_find_run(const struct inf_window_nd *window, size_t small, size_t run,
                            struct inf_window_nd_run *found);

#endif
