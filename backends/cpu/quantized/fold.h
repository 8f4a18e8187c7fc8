// SPDX-License-Identifier: Apache-2.0
// Subtracts the zero point of weights when they are packed.
#ifndef INF_BACKENDS_CPU_QUANTIZED_FOLD_H
#define INF_BACKENDS_CPU_QUANTIZED_FOLD_H

#include "backends/cpu/quantized/q8.h"

// How a byte of the weights becomes a packed byte, and what the packed byte leaves out.
struct inf_q8_fold {
    uint8_t subtracted; // a byte minus this number, modulo 256, is packed
    int32_t zero;       // zero point of the signed weights
};

// Returns how weights of channel `channel` are folded.
struct inf_q8_fold inf_q8_fold_channel(const struct inf_q8_params *params, size_t channel);

// Returns true if all channels have one zero point that is near enough to the middle of the range
// that few weights of usual models have carries.
bool inf_q8_fold_pays(const struct inf_q8_params *params);

// Returns the least packed byte without a carry. Weights above zero + 127 are packed as lower
// numbers, and their carry is 1.
static inline int8_t inf_q8_fold_least(const struct inf_q8_fold *fold)
{
    return (int8_t)(INT8_MIN - (fold->zero < 0 ? fold->zero : 0));
}

// Returns the largest packed byte without a carry. Weights below zero - 128 are packed as higher
// numbers, and their carry is -1.
static inline int8_t inf_q8_fold_most(const struct inf_q8_fold *fold)
{
    return (int8_t)(INT8_MAX - (fold->zero > 0 ? fold->zero : 0));
}

// Returns the carry of a packed byte: -1, 0 or 1. The weight minus its zero point is the packed
// byte plus 256 times the carry. `least` and `most` are the least and the largest packed byte of
// the channel that have no carry.
static inline int32_t inf_q8_fold_carry(int8_t packed, int8_t least, int8_t most)
{
    return (packed < least) - (packed > most);
}

// Returns the number of groups of four rows of a packed panel (pack_bytes.h) that have a carry.
size_t inf_q8_carries_count(const struct inf_q8_fold *fold, const int8_t *w, size_t quads,
                            size_t width);

// Lists the carries of a packed panel and returns their number. `carries` has room for
// inf_q8_carries_count() entries, and `blocks` for as many blocks of INF_Q8_CARRY_BLOCKS * 4 *
// width bytes. Adds 256 times the sum of the carries of each column to `sums`, modulo 2^32.
size_t inf_q8_carries_list(const struct inf_q8_fold *fold, const int8_t *w, size_t quads,
                           size_t width, struct inf_q8_carry *carries, int8_t *blocks,
                           uint32_t *sums);

#endif
