// SPDX-License-Identifier: Apache-2.0
// Fills the panels of a pack with the elements of its matrix, and restores the matrix from them.
#ifndef INF_BACKENDS_CPU_CORE_PACK_FILL_H
#define INF_BACKENDS_CPU_CORE_PACK_FILL_H

#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/panel.h"

// Returns the panel of `matrix` that begins with column `first`. If the matrix has groups of
// columns, the panel ends at the end of the group at the latest.
struct inf_cpu_panel inf_cpu_matrix_panel(const struct inf_nn *nn,
                                          const struct inf_cpu_matrix *matrix, size_t first);

// Sets *out_size to the size in bytes of the panels of a matrix whose elements are kept in this
// form. Returns false if the size overflows.
bool inf_cpu_pack_size(const struct inf_isa *isa, const struct inf_cpu_matrix *matrix,
                       enum inf_cpu_element element, size_t *out_size);

// Returns true if the fp32 elements of the matrix, whose bytes are present, can be restored from
// two halves of 16 bits each. Infinity, NaN and the largest magnitudes cannot.
bool inf_cpu_pack_can_restore(const struct inf_cpu_matrix *matrix);

// Fills the panels of a pack, on several cores if they are large. The pack has its matrix, whose
// bytes are present, its element, and memory of inf_cpu_pack_size() bytes. `units` are those that
// inf_cpu_narrow_find() set; NULL if the element is INF_CPU_ELEMENT_F32. Returns false if there is
// no memory for the list of panels.
bool inf_cpu_pack_fill(const struct inf_cpu_pack *pack, const float *units);

// Writes the bytes of the original constant to `data`, restored from the panels. `form` is the form
// of a pack that is not transformed and, if its elements are halves, has the lower ones.
void inf_cpu_pack_restore(const struct inf_blob_form *form, void *data);

#endif
