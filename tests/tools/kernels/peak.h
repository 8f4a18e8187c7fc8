// SPDX-License-Identifier: Apache-2.0
#ifndef INF_TESTS_TOOLS_KERNELS_PEAK_H
#define INF_TESTS_TOOLS_KERNELS_PEAK_H

// The peak of one core in 10^9 multiply-adds per second, on data in its L1 cache. For each kind of
// arithmetic, the widest loops in this build are measured. A peak is 0 if the build has no such
// loops.
struct tool_peaks {
    double fp32, bf16;
    double q8, q8_dot; // 8 bits: the faster of both, and without tile registers (such as VNNI)
};

struct tool_peaks tool_peaks(void);

#endif
