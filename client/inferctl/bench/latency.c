// SPDX-License-Identifier: Apache-2.0
// Statistics of measured times. The times are sorted first, so that each percentile is the element
// at an index that depends only on the number of times.
#include "client/inferctl/bench/latency.h"

#include <stdlib.h>

static int compare_ascending(const void *a, const void *b)
{
    double left = *(const double *)a;
    double right = *(const double *)b;
    return (left > right) - (left < right);
}

static double read_percentile(const double *sorted, size_t count, size_t percent)
{
    size_t rank = (count * percent + 99) / 100;
    return sorted[rank - 1];
}

struct latency latency_of(double *samples, size_t count)
{
    qsort(samples, count, sizeof *samples, compare_ascending);
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += samples[i];
    return (struct latency){.median = (samples[(count - 1) / 2] + samples[count / 2]) / 2,
                            .mean = sum / (double)count,
                            .p95 = read_percentile(samples, count, 95),
                            .p99 = read_percentile(samples, count, 99),
                            .min = samples[0],
                            .max = samples[count - 1]};
}
