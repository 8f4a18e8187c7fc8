// SPDX-License-Identifier: Apache-2.0
// The peak rate of dot products of bytes.
#ifndef INF_BACKENDS_CPU_PROGRAM_DOT_PEAK_H
#define INF_BACKENDS_CPU_PROGRAM_DOT_PEAK_H

#include "backends/cpu/kernels/q8.h"

// Returns the multiply-adds per second that these loops reach on the calling thread, with all sums
// in registers and all operands in the L1 cache. Takes some milliseconds.
double inf_cpu_dot_peak_measure(const struct inf_q8_gemms *gemms);

#endif
