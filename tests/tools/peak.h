// SPDX-License-Identifier: Apache-2.0
#ifndef INF_TESTS_TOOLS_PEAK_H
#define INF_TESTS_TOOLS_PEAK_H

// GFLOP/s of one core in multiply-adds on numbers in its first cache, by the widest loop that is
// built; 0 where none is.
double tool_peak(void);

#endif
