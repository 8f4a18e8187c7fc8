// SPDX-License-Identifier: Apache-2.0
// Inner loops that find extremes: their position, and the order of elements. pick.c is compiled
// once for each ISA level and gives one table each.
#ifndef INF_BACKENDS_CPU_KERNELS_PICK_H
#define INF_BACKENDS_CPU_KERNELS_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/dtype.h"

#define INF_PICK_COLUMNS 256 // columns in one call, at most

enum inf_pick_extreme {
    INF_PICK_MAX,
    INF_PICK_MIN,
    INF_PICK_EXTREME_COUNT,
};

struct inf_pick {
    // Returns the index of the first extreme of `count` contiguous elements, at least 1. NaN is
    // skipped, except if it is the first element: then nothing exceeds it.
    size_t (*line[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x);
    // Sets index[i] to the row of the first extreme of column i, as in a line, of `rows` rows that
    // are `stride` elements apart, for i below `count`, which is at most INF_PICK_COLUMNS.
    void (*rows[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x, size_t rows,
                                                          size_t stride, int32_t *index);
    // Sets keys[i] so that keys order elements: a larger key for a larger x[i] (for the minimum:
    // for a smaller one), equal keys for 0 and -0, and the smallest key for NaN. For 32-bit types
    // only.
    void (*keys[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x,
                                                          uint32_t *keys);
    // Returns the largest of `count` keys, at least 1.
    uint32_t (*largest_key)(size_t count, const uint32_t *keys);
};

// Tables that this build may have. isa.h says which ones it has.
extern const struct inf_pick inf_pick_baseline, inf_pick_avx2, inf_pick_avx512, inf_pick_neon;

#endif
