// SPDX-License-Identifier: Apache-2.0
// Copies an array with its axes in another order. Weights are transposed so when they are loaded.
#ifndef INF_BACKENDS_BASE_PERMUTE_H
#define INF_BACKENDS_BASE_PERMUTE_H

#include <stddef.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "proto/core/limits.h"

// An array of 4-byte elements without gaps: axis i of the copy has `counts[i]` elements, which are
// `steps[i]` elements apart in the source. The copy has the same elements, the last axis innermost.
struct inf_permutation {
    uint32_t rank; // at most INF_LIMIT_RANK
    size_t counts[INF_LIMIT_RANK], steps[INF_LIMIT_RANK];
};

// Fills `to` with the elements of `from`, on several cores if they are many. The arrays do not
// overlap.
void inf_permute_32(const struct inf_permutation *permutation, void *to,
                    const void *from) INF_MAY_BLOCK;

#endif
