// SPDX-License-Identifier: Apache-2.0
// Inner loops of Winograd's algorithm (backends/base/winograd.h): the transforms of one tile of
// inputs and of one tile of results. winograd.c is compiled once for each ISA level.
#ifndef INF_BACKENDS_CPU_KERNELS_WINOGRAD_H
#define INF_BACKENDS_CPU_KERNELS_WINOGRAD_H

#include <stddef.h>

#define INF_WINOGRAD_FORMS 3 // F(2), F(4), F(6): form f has f + 1 pairs of points p and -p

// Number of floats in the longest vector of any ISA level. Rows of transformed inputs and of sums
// are padded to a multiple of this number, because the loops store whole vectors.
#define INF_WINOGRAD_PAD 16

// The factors of both transforms, computed from the points p[i] of the form.
struct inf_winograd_factors {
    // whole[k] is the coefficient of x^(2k) in the product of (x^2 - p[i]^2) over all i. The
    // highest power is not stored; its coefficient is 1.
    float whole[INF_WINOGRAD_FORMS];
    // rest[i] holds the coefficients of the same product without the factor (x^2 - p[i]^2).
    float rest[INF_WINOGRAD_FORMS][INF_WINOGRAD_FORMS];
    float powers[INF_WINOGRAD_FORMS][2 * INF_WINOGRAD_FORMS]; // powers[i][k] is p[i]^k
};

// Operands of the transform of one tile of inputs, for all channels. The transform stores the
// side * side results of each channel in side * side matrices.
struct inf_winograd_in {
    const float *x;              // first channel of the top left pixel
    size_t row_step, pixel_step; // elements between neighbouring rows and pixels of x
    size_t channels;
    float *v;           // the tile's row in matrix 0, padded to a multiple of INF_WINOGRAD_PAD
    size_t matrix_step; // elements between the starts of two matrices
};

// Operands of the transform of one tile of results, for some columns (output channels). The
// side * side sums of a column are read from side * side matrices.
struct inf_winograd_out {
    // The tile's row in the first of these matrices. A row has a multiple of INF_WINOGRAD_PAD
    // elements.
    const float *sums;
    size_t matrix_step; // elements between the starts of two matrices
    size_t columns;     // number of columns to compute
    const float *bias;  // one value for each column, padded like `sums`
    // One value for each column, padded like `sums`; NULL: there are no slopes.
    const float *slopes;
    const float *residual; // residual of the first pixel; NULL: no residual is added
    size_t residual_row_step, residual_step;
    size_t residual_columns; // only the first `residual_columns` columns have a residual
    float min, max;
    float *y;
    size_t row_step, pixel_step;
    size_t rows, pixels; // how many rows are stored, and how many pixels of each row
};

struct inf_winograd {
    // Indexed by form.
    void (*in[INF_WINOGRAD_FORMS])(const struct inf_winograd_factors *factors,
                                   const struct inf_winograd_in *tile);
    void (*out[INF_WINOGRAD_FORMS])(const struct inf_winograd_factors *factors,
                                    const struct inf_winograd_out *tile);
};

// One table for each ISA level. A build defines only the tables of its architecture; isa.h gives
// the tables that this processor uses.
extern const struct inf_winograd inf_winograd_baseline, inf_winograd_avx2, inf_winograd_avx512,
    inf_winograd_neon;

#endif
