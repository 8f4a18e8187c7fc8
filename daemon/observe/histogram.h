// SPDX-License-Identifier: Apache-2.0
// Histograms with logarithmic buckets, as Prometheus' native histograms of schema 2: four buckets
// for each power of two. Not thread-safe.
#ifndef INF_DAEMON_OBSERVE_HISTOGRAM_H
#define INF_DAEMON_OBSERVE_HISTOGRAM_H

#include <stdint.h>

// Buckets for each power of two. The upper bounds of two neighbours have the ratio 2^(1/4) = 1.19.
#define INF_HISTOGRAM_PER_OCTAVE 4
// The least and the greatest upper bound are these powers of two, in the unit of the metric: 0.24
// microseconds and 17 minutes for a time.
#define INF_HISTOGRAM_LEAST_POWER    (-22)
#define INF_HISTOGRAM_GREATEST_POWER 10
// Number of buckets that have an upper bound. One more bucket counts all greater values.
#define INF_HISTOGRAM_BOUNDS                                                                       \
    ((INF_HISTOGRAM_GREATEST_POWER - INF_HISTOGRAM_LEAST_POWER) * INF_HISTOGRAM_PER_OCTAVE + 1)
#define INF_HISTOGRAM_BUCKETS (INF_HISTOGRAM_BOUNDS + 1)

// Values of a histogram are in 1/INF_HISTOGRAM_SCALE of the unit of the metric: nanoseconds for a
// metric in seconds.
#define INF_HISTOGRAM_SCALE 1000000000u

// A zeroed histogram is empty. All members are uint64_t, so that inf_histogram_add() and the
// metrics can add histograms as arrays of numbers.
struct inf_histogram {
    uint64_t counts[INF_HISTOGRAM_BUCKETS]; // number of values in each bucket, not cumulative
    uint64_t sum;                           // sum of all values; wraps around beyond 584 years
};

// Returns the upper bound of bucket `index` (less than INF_HISTOGRAM_BOUNDS), rounded down to an
// integer. A value belongs to the first bucket whose bound is at least as large as the value.
uint64_t inf_histogram_bound(uint32_t index);

// Returns the bucket of a value; INF_HISTOGRAM_BOUNDS if the value exceeds all bounds.
uint32_t inf_histogram_bucket(uint64_t value);

// Adds one value.
static inline void inf_histogram_record(struct inf_histogram *histogram, uint64_t value)
{
    histogram->counts[inf_histogram_bucket(value)]++;
    histogram->sum += value;
}

#endif
