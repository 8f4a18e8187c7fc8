// SPDX-License-Identifier: Apache-2.0
// Cuts the columns of a matrix into panels. A kernel computes the columns of one panel together.
#ifndef INF_BACKENDS_CPU_CORE_PANEL_H
#define INF_BACKENDS_CPU_CORE_PANEL_H

#include "backends/cpu/kernels/isa.h"

// A panel: consecutive columns of a matrix that a kernel computes together.
struct inf_cpu_panel {
    const struct inf_nn_gemm *gemm;
    size_t vectors;        // number of vectors, each gemm->width columns wide
    size_t first, columns; // first column in the matrix, and number of columns
    size_t width;          // columns including padding: vectors * gemm->width
};

// Returns the panel that begins with column `first` of a matrix with `columns` columns.
struct inf_cpu_panel inf_cpu_panel_at(const struct inf_nn *nn, size_t first, size_t columns);

// Returns the number of panels for `columns` columns. *out_width (NULL allowed) is the sum of their
// widths.
size_t inf_cpu_panel_count(const struct inf_nn *nn, size_t columns, size_t *out_width);

// Writes `columns` columns of a matrix to a panel of `width` columns. In the matrix each column is
// `depth` contiguous elements of 32 bits, and columns are x_step elements apart. In the panel each
// row is contiguous. Does not write the padding columns of the panel.
void inf_cpu_panel_transpose(size_t depth, size_t columns, const void *x, size_t x_step, void *to,
                             size_t width);

#endif
