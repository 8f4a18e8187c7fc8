// SPDX-License-Identifier: Apache-2.0
// Writes packed weights of 8 or 16 bits as floats. Compiled once for each ISA level; INF_NN_EXPAND
// is the name of the table that it defines. The loops are simple, so that the compiler makes vector
// instructions of them.
#include "backends/cpu/kernels/map/expand.h"

#include "backends/cpu/kernels/map/halves.h"

// Panels of the ISA levels are 4 to 32 columns wide. A width that the compiler knows lets it keep
// all units in registers.
static inline __attribute__((always_inline)) void
expand_columns(size_t rows, const int8_t *restrict from, const float *restrict units,
               float *restrict to, const size_t width)
{
    for (size_t row = 0; row < rows; row++, from += width, to += width)
        for (size_t c = 0; c < width; c++)
            to[c] = (float)from[c] * units[c];
}

static void expand_bytes(size_t rows, size_t width, const int8_t *from, const float *units,
                         float *to)
{
    if (width == 32)
        expand_columns(rows, from, units, to, 32);
    else if (width == 16)
        expand_columns(rows, from, units, to, 16);
    else if (width == 8)
        expand_columns(rows, from, units, to, 8);
    else
        expand_columns(rows, from, units, to, width);
}

const struct inf_nn_expand INF_NN_EXPAND = {expand_bytes, expand_halves};
