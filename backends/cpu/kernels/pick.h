// SPDX-License-Identifier: Apache-2.0
// Inner loops that find the position of a minimum or maximum, and the order of elements. pick.c is
// compiled once for each ISA level; each compilation defines one table.
#ifndef INF_BACKENDS_CPU_KERNELS_PICK_H
#define INF_BACKENDS_CPU_KERNELS_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/dtype.h"

#define INF_PICK_COLUMNS 256 // most columns in one call

enum inf_pick_extreme {
    INF_PICK_MAX,
    INF_PICK_MIN,
    INF_PICK_EXTREME_COUNT,
};

struct inf_pick {
    // Returns the index of the first extreme (minimum or maximum) of `count` contiguous elements;
    // `count` is at least 1. NaN is skipped, except if the first element is NaN: then index 0 is
    // returned.
    size_t (*line[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x);
    // Sets index[i] to the row of the first extreme (minimum or maximum) of column i, for i below
    // `count`. NaN is skipped, except in row 0: then index[i] is 0. A column has `rows` rows that
    // are `stride` elements apart. `count` is at most INF_PICK_COLUMNS.
    void (*rows[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x, size_t rows,
                                                          size_t stride, int32_t *index);
    // Sets keys[i] so that a larger key means a larger x[i] (for the minimum: a smaller x[i]). 0
    // and -0 get equal keys, and NaN gets the smallest key. Only for 32-bit types.
    void (*keys[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x,
                                                          uint32_t *keys);
    // Returns the largest of `count` keys; `count` is at least 1.
    uint32_t (*largest_key)(size_t count, const uint32_t *keys);
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_pick inf_pick_baseline, inf_pick_avx2, inf_pick_avx512, inf_pick_neon;

#endif
