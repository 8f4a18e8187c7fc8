// SPDX-License-Identifier: Apache-2.0
// Panels of fp32 weights that are kept in 8 or 16 bits because the weights fit them exactly.
//
// The problem: models with float16 weights, or with 8-bit weights for float activations, are
// computed in fp32. Packed in fp32, the weights take two or four times the bytes of the file.
//
// The idea: no importer has to say how a weight was stored, because its values show it. If every
// weight of a column is an integer from -128 to 127 times one float, the *unit* of the column, the
// panel keeps the integers and the units. Otherwise, if every weight is a binary16 number, the
// panel keeps binary16 numbers. Both forms restore the weights bit by bit. A kernel expands a panel
// to floats in scratch memory and multiplies a strip of pixels with it, so that results do not
// depend on the form.
//
// A panel of 8-bit integers begins with its units, one for each column, padding included. Rows of
// `width` integers follow, as in pack.h.
#ifndef INF_BACKENDS_CPU_CORE_PACK_NARROW_H
#define INF_BACKENDS_CPU_CORE_PACK_NARROW_H

#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/panel.h"

// Returns the narrowest form that holds the weights of the matrix, whose bytes are present, without
// loss. If it is INF_CPU_ELEMENT_UNITS, sets the matrix->columns elements of `units`. The time is
// bounded by a multiple of the number of weights, and is short if the first column has no form.
enum inf_cpu_element inf_cpu_narrow_find(const struct inf_cpu_matrix *matrix, float *units);

// Returns the size in bytes of a panel with `rows` rows of `width` columns in this form.
size_t inf_cpu_narrow_panel_bytes(enum inf_cpu_element element, size_t rows, size_t width);

// Packs a panel of the matrix in a form that inf_cpu_narrow_find() returned, with the units that it
// set. `to` has inf_cpu_narrow_panel_bytes() bytes.
void inf_cpu_narrow_pack_panel(enum inf_cpu_element element, const struct inf_cpu_matrix *matrix,
                               const struct inf_cpu_panel *panel, const float *units, void *to);

// Restores the weights of a panel, and writes them to their places in the matrix at `data`.
void inf_cpu_narrow_restore_panel(enum inf_cpu_element element, const struct inf_cpu_matrix *matrix,
                                  const struct inf_cpu_panel *panel, const void *from, float *data);

// Writes a panel of `rows` rows of `width` columns to `to` as floats, [rows][width].
void inf_cpu_narrow_expand_panel(const struct inf_nn_expand *loops, enum inf_cpu_element element,
                                 size_t rows, size_t width, const void *from, float *to);

#endif
