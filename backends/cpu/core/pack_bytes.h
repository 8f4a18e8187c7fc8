// SPDX-License-Identifier: Apache-2.0
// Panels of 8-bit weights: the order in which the 8-bit kernels read a constant matrix.
//
// Columns are cut into panels of at most INF_Q8_VECTORS_MAX vectors, so that no panel has columns
// of two groups. A kernel multiplies four neighbouring rows at once. Therefore a panel holds the
// rows in groups of four (quads), and in each quad the four weights of a column lie together.
// Missing rows are zeros. A panel of three columns 0 to 2 and five rows a to e:
//
//     a0 b0 c0 d0  a1 b1 c1 d1  a2 b2 c2 d2
//     e0 0  0  0   e1 0  0  0   e2 0  0  0
#ifndef INF_BACKENDS_CPU_CORE_PACK_BYTES_H
#define INF_BACKENDS_CPU_CORE_PACK_BYTES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "backends/cpu/kernels/q8.h"

// Number of rows that a kernel multiplies at once.
#define INF_CPU_QUAD 4u

// A matrix of 8-bit weights, and the layout of its bytes before packing.
struct inf_cpu_bytes {
    size_t rows, columns;
    bool transposed; // true: stored as [columns][rows]
    size_t group;    // number of columns in a convolution group; a divisor of `columns`
    uint8_t zero;    // byte - zero, modulo 256, is the signed number that is packed
};

// Returns the size in bytes of all panels of the matrix.
size_t inf_cpu_bytes_packed_size(const struct inf_q8_gemms *gemms,
                                 const struct inf_cpu_bytes *matrix);

// Returns how many vectors wide the panel is that begins with column `first` of a group. The group
// has `group` columns.
size_t inf_cpu_bytes_panel_vectors(const struct inf_q8_gemms *gemms, size_t first, size_t group);

// Packs the bytes at `from` into the panels at `to`, which have inf_cpu_bytes_packed_size() bytes.
void inf_cpu_bytes_pack(const struct inf_q8_gemms *gemms, const struct inf_cpu_bytes *matrix,
                        const uint8_t *from, int8_t *to);

// Restores the bytes that inf_cpu_bytes_pack() packed into the panels at `from`, and writes them to
// `to`.
void inf_cpu_bytes_restore(const struct inf_q8_gemms *gemms, const struct inf_cpu_bytes *matrix,
                           const int8_t *from, uint8_t *to);

// Sets sums[c] to the sum, modulo 2^32, of column c of the panel at `panel`. The panel has `quads`
// groups of four rows and `width` columns.
void inf_cpu_bytes_sum_columns(const int8_t *panel, size_t quads, size_t width, uint32_t *sums);

#endif
