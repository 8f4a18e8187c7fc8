// SPDX-License-Identifier: Apache-2.0
// Transposes a matrix of elements of 1, 2, 4 or 8 bytes.
#ifndef INF_BACKENDS_CPU_KERNELS_MAP_TRANSPOSE_H
#define INF_BACKENDS_CPU_KERNELS_MAP_TRANSPOSE_H

#include <stddef.h>

// Writes a matrix of `rows` rows and `columns` columns to y, from x, where each of its columns is
// contiguous: element (r, c) is `element` bytes at x + c * x_step + r * element, and goes to
// y + r * y_step + c * element. The steps are in bytes; x_step may be negative. x and y must not
// overlap. The caller keeps `rows` and `columns` so small that the cache lines of all rows and
// columns fit into the first-level cache.
void inf_transpose(size_t element, size_t rows, size_t columns, const char *x, ptrdiff_t x_step,
                   char *y, size_t y_step);

#endif
