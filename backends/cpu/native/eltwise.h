// SPDX-License-Identifier: Apache-2.0
// Element-wise functions of one input, which other kernels apply to their results.
#ifndef INF_BACKENDS_CPU_NATIVE_ELTWISE_H
#define INF_BACKENDS_CPU_NATIVE_ELTWISE_H

#include "backends/cpu/core/kernel.h"

// Replaces values[i] by map(values[i]) for i below `count`, on all threads of the step.
void inf_native_map_in_place(const struct inf_cpu_step *step, inf_simd_map_fn *map, size_t count,
                             float *values);

// Returns the loop of a unary function that has no parameters; NULL if there is none.
inf_simd_map_fn *inf_native_map_find(const struct inf_simd *simd, enum inf_unary_kind kind);

#endif
