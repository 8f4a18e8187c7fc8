// SPDX-License-Identifier: Apache-2.0
// Inner loops of normalisation. norm.c is compiled once for each ISA level; each compilation
// defines one table.
#ifndef INF_BACKENDS_CPU_KERNELS_NORM_H
#define INF_BACKENDS_CPU_KERNELS_NORM_H

#include <stddef.h>

#define INF_NORM_COLUMNS 64 // most columns in one call

// Two sums over elements x, relative to a number `about`: the sum of x - about, and the sum of (x -
// about)^2.
struct inf_norm_moments {
    double first, second;
};

struct inf_norm {
    // Returns sum(x - about) and sum((x - about)^2) over `count` contiguous elements.
    struct inf_norm_moments (*line)(size_t count, const float *x, float about);
    // Sets moments[i] to the sums of (x - about[i]) and (x - about[i])^2 over column i, for i below
    // `count`. A column has `rows` elements that are `stride` elements apart. `count` is at most
    // INF_NORM_COLUMNS.
    void (*rows)(size_t count, const float *x, size_t rows, size_t stride, const float *about,
                 struct inf_norm_moments *moments);
    // Normalises `count` elements with the same numbers: y[i] = ((x[i] - about) - less) * factor.
    void (*apply_line)(size_t count, const float *x, float about, float less, float factor,
                       float *y);
    // Normalises each element with numbers of its own:
    //   y[i] = ((x[i] - about[i]) - less[i]) * factor[i].
    void (*apply_row)(size_t count, const float *x, const float *about, const float *less,
                      const float *factor, float *y);
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_norm inf_norm_baseline, inf_norm_avx2, inf_norm_avx512, inf_norm_neon;

#endif
