// SPDX-License-Identifier: Apache-2.0
// Median, percentiles and other statistics of measured times.
#ifndef INF_CLIENT_INFERCTL_BENCH_LATENCY_H
#define INF_CLIENT_INFERCTL_BENCH_LATENCY_H

#include <stddef.h>

struct latency {
    double median, mean, p95, p99, min, max;
};

// Sorts the `count` samples (at least one) and returns their statistics. The median of an even
// count is the mean of the two samples in the middle. The p-th percentile is the smallest sample
// that at least p percent of the samples do not exceed.
struct latency latency_of(double *samples, size_t count);

#endif
