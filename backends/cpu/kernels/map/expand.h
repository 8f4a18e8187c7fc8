// SPDX-License-Identifier: Apache-2.0
// Loops that write packed weights of 8 or 16 bits as floats, for the kernels that multiply floats.
// nn_expand.c is compiled once for each ISA level.
#ifndef INF_BACKENDS_CPU_KERNELS_MAP_EXPAND_H
#define INF_BACKENDS_CPU_KERNELS_MAP_EXPAND_H

#include <stddef.h>
#include <stdint.h>

struct inf_nn_expand {
    // to[row][c] = from[row][c] * units[c], rounded once, for `rows` rows of `width` columns. The
    // arrays do not overlap.
    void (*bytes)(size_t rows, size_t width, const int8_t *from, const float *units, float *to);
    // to[i] = the value of the binary16 bits from[i], which must be finite, for i below `count`.
    // The arrays do not overlap.
    void (*halves)(size_t count, const uint16_t *from, float *to);
};

// One table for each ISA level. A build defines only those of its architecture; isa.h gives them.
extern const struct inf_nn_expand inf_nn_expand_baseline, inf_nn_expand_avx2, inf_nn_expand_avx512,
    inf_nn_expand_neon;

#endif
