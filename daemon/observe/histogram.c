// SPDX-License-Identifier: Apache-2.0
// The buckets of histograms. The upper bound of bucket i is 2^(i / 4 - 22) of the unit, that is
// 10^9 * 2^(i / 4 - 22) values, which is no whole number. A value v is whole, so v does not exceed
// the exact bound if and only if it does not exceed the bound rounded down. Bounds are therefore
// compared as integers, without rounding errors: a table holds 10^9 * 2^(k / 4) for the four
// fractions k with 32 more bits, and a shift makes each bound from it.
#include "daemon/observe/histogram.h"

#include <assert.h>
#include <stddef.h>

// Number of bits by which the numbers in `fractions` are greater than the values.
#define FRACTION_BITS 32

// 10^9 * 2^(k / 4) * 2^FRACTION_BITS, rounded down.
static const uint64_t fractions[INF_HISTOGRAM_PER_OCTAVE] = {
    4294967296000000000, 5107605667107197932, 6074000999952099384, 7223245205676679009};

// Returns the upper bound of bucket `fraction` of an octave, which may be one beyond the last.
static inline uint64_t find_bound(uint32_t octave, uint32_t fraction)
{
    return fractions[fraction] >> (FRACTION_BITS - INF_HISTOGRAM_LEAST_POWER - (int)octave);
}

uint64_t inf_histogram_bound(uint32_t index)
{
    assert(index < INF_HISTOGRAM_BOUNDS);
    return find_bound(index / INF_HISTOGRAM_PER_OCTAVE, index % INF_HISTOGRAM_PER_OCTAVE);
}

// 10^9 is between 2^29 and 2^30, so the first bound, 10^9 * 2^-22, has FIRST_BITS bits. The bounds
// of octave k have FIRST_BITS + k bits or one more, so a value of n bits is beyond all octaves
// before n - FIRST_BITS - 1, and within the two octaves from there on.
#define FIRST_BITS 8

uint32_t inf_histogram_bucket(uint64_t value)
{
    if (value > inf_histogram_bound(INF_HISTOGRAM_BOUNDS - 1))
        return INF_HISTOGRAM_BOUNDS;
    uint32_t bits = 64 - (uint32_t)__builtin_clzll(value | 1);
    uint32_t octave = bits > FIRST_BITS ? bits - FIRST_BITS - 1 : 0;
    uint32_t index = octave * INF_HISTOGRAM_PER_OCTAVE;
    for (uint32_t i = 0; i < INF_HISTOGRAM_PER_OCTAVE; i++)
        index += (value > find_bound(octave, i)) + (value > find_bound(octave + 1, i));
    return index;
}
