// SPDX-License-Identifier: Apache-2.0
// Convolutions of 3x3 at stride 1 by Winograd's algorithm (backends/base/winograd.h): the
// description of a step. step.c chooses sizes and prepares the weights, run.c computes.
#ifndef INF_BACKENDS_CPU_WINOGRAD_CONV_H
#define INF_BACKENDS_CPU_WINOGRAD_CONV_H

#include "backends/cpu/native/epilogue.h"
#include "backends/cpu/native/fusion.h"
#include "backends/graph/shape/infer.h"

// A panel of output channels.
struct inf_winograd_panel {
    inf_gemm_fn *const *gemm; // kernels for this panel; gemm[t - 1] computes t tiles
    const float *w;           // transformed weights: [side * side][inputs][width]
    size_t first, width;      // first column, and number of columns including padding
};

// Consecutive panels whose sums are in memory at the same time.
struct inf_winograd_group {
    size_t first_panel, end_panel;
    size_t first, columns; // first column, and number of columns without padding
};

struct inf_winograd_conv {
    size_t form; // index of the form F(m) in struct inf_winograd: m = 2 * form + 2
    struct inf_winograd_factors factors;
    // Width in pixels of a tile of inputs, width of a tile of results, and side * side, the number
    // of matrix products.
    size_t side, tile, products;
    struct inf_window height, width;
    size_t batch, inputs, outputs;
    // Tiles of an image along its height and along its width, and tiles of all images.
    size_t tiles_down, tiles_across, tiles;
    size_t block, blocks; // tiles of a block, and number of blocks
    size_t rows_max;      // largest number of tiles in one kernel call
    bool shares_prefetch; // as in struct inf_nn_gemm

    struct inf_winograd_panel *panels;
    struct inf_winograd_group *groups;
    size_t panel_count, group_count;

    // Elements between neighbouring tiles (*_step) and between matrices (*_matrix), for transformed
    // inputs (v_*) and for sums (sum_*).
    size_t v_step, v_matrix, sum_step, sum_matrix;
    size_t copy_count; // floats of a tile of inputs that is copied because it crosses a border

    // Indexed by output channel, padded to a multiple of INF_WINOGRAD_PAD. If `slopes` is NULL,
    // there are no slopes.
    const float *bias, *slopes;
    const float *zeros; // zeros, which the kernels of the products read as bias
    struct inf_native_epilogue epilogue;
    size_t residual_channels; // 0: no residual is added

    const struct inf_winograd *loops;
    // True: each thread computes whole blocks. False: there are too few tiles to give each thread a
    // block, so all threads compute one block together and then the next block.
    bool by_blocks;
    size_t workers;
    size_t worker_scratch; // floats of scratch memory of each worker
};

// Addresses of one run.
struct inf_winograd_task {
    const struct inf_winograd_conv *conv;
    const float *x, *residual;
    float *y, *scratch;
    size_t block; // if !conv->by_blocks: the block that all threads compute together
};

// Return the number of floats of scratch memory for the transformed inputs of a block, and for the
// sums of a block and a group.
size_t inf_winograd_inputs_count(const struct inf_winograd_conv *conv);
size_t inf_winograd_sums_count(const struct inf_winograd_conv *conv);

// Computes the convolution.
void inf_winograd_run(struct inf_cpu_team *team, struct inf_winograd_task *task);

#endif
