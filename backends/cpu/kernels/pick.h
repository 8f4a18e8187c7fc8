// SPDX-License-Identifier: Apache-2.0
// Inner loops that look for extremes: where they are, and in what order. pick.c is compiled once for each
// instruction set, each giving one table.
#ifndef INF_BACKENDS_CPU_KERNELS_PICK_H
#define INF_BACKENDS_CPU_KERNELS_PICK_H

#include <stddef.h>
#include <stdint.h>

#include "proto/core/dtype.h"

#define INF_PICK_COLUMNS 256 // most of one call

enum inf_pick_extreme {
    INF_PICK_MAX,
    INF_PICK_MIN,
    INF_PICK_EXTREME_COUNT,
};

struct inf_pick {
    // The first extreme of `count` neighbours, at least 1. What is not a number is passed over, unless it comes
    // first: nothing is beyond it then.
    size_t (*line[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x);
    // index[i] = the row, of `rows` rows that lie `stride` elements apart, of the first extreme of column i, as
    // in a line, for i below `count`, at most INF_PICK_COLUMNS.
    void (*rows[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x, size_t rows,
                                                          size_t stride, int32_t *index);
    // keys[i] is larger the larger x[i] is (by least ones: the smaller), the same for 0 and -0, and least where
    // x[i] is not a number. Of 32 bits only.
    void (*keys[INF_PICK_EXTREME_COUNT][INF_DTYPE_COUNT])(size_t count, const void *x,
                                                          uint32_t *keys);
    // The largest of `count` keys, at least 1.
    uint32_t (*largest_key)(size_t count, const uint32_t *keys);
};

// Tables that this build may have; which it has is known from isa.h only.
extern const struct inf_pick inf_pick_baseline, inf_pick_avx2, inf_pick_avx512, inf_pick_neon;

#endif
