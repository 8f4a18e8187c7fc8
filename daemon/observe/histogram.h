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

// The bits of the bounds 10^9 * 2^(k / 4) for the fractions k, shifted left until the highest bit
// is set, and rounded down. Sorted by size; the last one is that of fraction 0.
#define INF_HISTOGRAM_FRACTION_1 UINT64_C(10215211334214395864)
#define INF_HISTOGRAM_FRACTION_2 UINT64_C(12148001999904198768)
#define INF_HISTOGRAM_FRACTION_3 UINT64_C(14446490411353358018)
#define INF_HISTOGRAM_FRACTION_0 UINT64_C(17179869184000000000)
// The first bound, 10^9 * 2^-22, has this number of bits.
#define INF_HISTOGRAM_FIRST_BITS 8

// Returns the bucket of a value; INF_HISTOGRAM_BOUNDS if the value exceeds all bounds. Values of n
// bits lie between two powers of two, where there is one bound of each fraction. The bounds below
// them are those of fraction 0 with up to n - 1 bits, and three between each two of these.
static inline uint32_t inf_histogram_bucket(uint64_t value)
{
    const int zeros = __builtin_clzll(value | 1);
    const uint64_t bits = value << zeros;
    const int below = (64 - zeros - INF_HISTOGRAM_FIRST_BITS) * INF_HISTOGRAM_PER_OCTAVE - 3;
    const int index = below + (bits > INF_HISTOGRAM_FRACTION_1) +
                      (bits > INF_HISTOGRAM_FRACTION_2) + (bits > INF_HISTOGRAM_FRACTION_3) +
                      (bits > INF_HISTOGRAM_FRACTION_0);
    if (index <= 0)
        return 0;
    return index < INF_HISTOGRAM_BOUNDS ? (uint32_t)index : INF_HISTOGRAM_BOUNDS;
}

// Adds one value.
static inline void inf_histogram_record(struct inf_histogram *histogram, uint64_t value)
{
    histogram->counts[inf_histogram_bucket(value)]++;
    histogram->sum += value;
}

#endif
