// SPDX-License-Identifier: Apache-2.0
// A random number generator for the inputs of checks and of measured trials: a linear congruential
// generator with the constants of Numerical Recipes. The caller keeps the state, whose first value
// determines all numbers.
#ifndef INF_BACKENDS_BASE_RANDOM_H
#define INF_BACKENDS_BASE_RANDOM_H

#include <stdint.h>

// Returns the next 24 random bits.
static inline uint32_t inf_random_bits(uint32_t *state)
{
    *state = *state * 1664525u + 1013904223u;
    return *state >> 8;
}

// Returns the next random number that is at least -1 and less than 1.
static inline float inf_random_float(uint32_t *state)
{
    return (float)inf_random_bits(state) / (float)(1 << 23) - 1;
}

#endif
