// SPDX-License-Identifier: Apache-2.0
// What many measurements of a time are like.
#ifndef INF_CLIENT_INFERCTL_BENCH_LATENCY_H
#define INF_CLIENT_INFERCTL_BENCH_LATENCY_H

#include <stddef.h>

struct latency {
    double median, mean, p95, p99, min, max;
};

// Sorts the `count` samples (one at least) and describes them. The median of an even count is the
// mean of the two in the middle; a percentile is the smallest sample that so many percent of all do
// not exceed.
struct latency latency_of(double *samples, size_t count);

#endif
