// SPDX-License-Identifier: Apache-2.0
#ifndef INF_TESTS_TOOLS_BENCH_PEAK_H
#define INF_TESTS_TOOLS_BENCH_PEAK_H

// 10^9 multiplications and additions a second of one core, on numbers in its first cache, by the widest loop of each
// kind that is built; 0 where none is.
struct tool_peaks {
    double fp32, bf16, q8;
};

struct tool_peaks tool_peaks(void);

#endif
