// SPDX-License-Identifier: Apache-2.0
#ifndef INF_TESTS_TOOLS_KERNELS_PEAK_H
#define INF_TESTS_TOOLS_KERNELS_PEAK_H

// The peak of one core in 10^9 multiply-adds per second, on data in its L1 cache, with the widest
// loops of each kind in this build; 0 if there is none.
struct tool_peaks {
    double fp32, bf16, q8;
};

struct tool_peaks tool_peaks(void);

#endif
