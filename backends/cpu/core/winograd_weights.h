// SPDX-License-Identifier: Apache-2.0
// Transforms the weights of 3x3 convolutions for Winograd's algorithm.
#ifndef INF_BACKENDS_CPU_CORE_WINOGRAD_WEIGHTS_H
#define INF_BACKENDS_CPU_CORE_WINOGRAD_WEIGHTS_H

#include "backends/cpu/core/pack.h"
#include "backends/cpu/core/panel.h"

// Computes G g G' (backends/base/winograd.h) for the columns of one panel, and writes the panel to
// `to`: matrix->rows rows of panel->width floats.
void inf_cpu_winograd_pack_panel(const struct inf_cpu_matrix *matrix,
                                 const struct inf_cpu_panel *panel, float *to);

#endif
