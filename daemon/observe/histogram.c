// SPDX-License-Identifier: Apache-2.0
// The buckets of histograms. The upper bound of bucket i is 2^(i / 4 - 22) of the unit, that is
// 10^9 * 2^(i / 4 - 22) values, which is no whole number. A value v is whole, so v does not exceed
// the exact bound if and only if it does not exceed the bound rounded down. Bounds are therefore
// compared as integers, without rounding errors: the header has the bits of 10^9 * 2^(k / 4) for
// the four fractions k, and a shift makes each bound from them.
#include "daemon/observe/histogram.h"

#include <assert.h>
#include <stddef.h>

// Number of bits by which the numbers in `fractions` are greater than the values.
#define FRACTION_BITS 32

// 10^9 * 2^(k / 4) * 2^FRACTION_BITS, rounded down.
static const uint64_t fractions[INF_HISTOGRAM_PER_OCTAVE] = {
    INF_HISTOGRAM_FRACTION_0 >> 2, INF_HISTOGRAM_FRACTION_1 >> 1, INF_HISTOGRAM_FRACTION_2 >> 1,
    INF_HISTOGRAM_FRACTION_3 >> 1};

// Returns the upper bound of bucket `fraction` of an octave.
static inline uint64_t find_bound(uint32_t octave, uint32_t fraction)
{
    return fractions[fraction] >> (FRACTION_BITS - INF_HISTOGRAM_LEAST_POWER - (int)octave);
}

uint64_t inf_histogram_bound(uint32_t index)
{
    assert(index < INF_HISTOGRAM_BOUNDS);
    return find_bound(index / INF_HISTOGRAM_PER_OCTAVE, index % INF_HISTOGRAM_PER_OCTAVE);
}
