// SPDX-License-Identifier: Apache-2.0
// What the kernels of our own share.
#ifndef INF_BACKENDS_CPU_OWN_H
#define INF_BACKENDS_CPU_OWN_H

#include "backends/cpu/cpu_kernel.h"
#include "backends/cpu/kernels/simd.h"

// Flags of every call into the pool; as INF_XNN_FLAGS.
#define INF_OWN_FLAGS PTHREADPOOL_FLAG_YIELD_WORKERS

// values[i] = map(values[i]).
void inf_own_map(pthreadpool_t pool, inf_simd_map_fn *map, size_t count, float *values);

#endif
