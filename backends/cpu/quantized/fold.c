// SPDX-License-Identifier: Apache-2.0
// Subtracts the zero point of weights when they are packed.
//
// The problem: models of early TFLite have unsigned weights with one zero point for all channels.
// If kernels subtract it, each pixel needs the sum of its bytes, and each result a multiplication.
// The difference of weight and zero point needs nine bits.
//
// The idea: pack the low eight bits of the difference, as a signed number. The rest of the
// difference is 256 times a number that is called its carry: -1, 0 or 1. The zero point was chosen
// for the largest and the smallest weight of all channels, so that in most models only one or two
// channels have carries other than 0. Kernels add the products with carries separately, and only
// for groups of four rows in which a carry is not 0 (struct inf_q8_carry). The bytes of the model
// can be restored from the packed ones.
#include "backends/cpu/quantized/fold.h"

#include <stdlib.h>
#include <string.h>

#include "backends/cpu/core/pack_bytes.h"

// With the zero point farther than this from the middle of the range, more than a quarter of evenly
// distributed weights have carries.
#define ZERO_MAX 64

struct inf_q8_fold inf_q8_fold_channel(const struct inf_q8_params *params, size_t channel)
{
    int32_t zero = inf_q8_w_zero(params, channel);
    return (struct inf_q8_fold){.subtracted = (uint8_t)zero ^ params->w_flip, .zero = zero};
}

bool inf_q8_fold_pays(const struct inf_q8_params *params)
{
    int32_t zero = inf_q8_w_zero(params, 0);
    for (size_t i = 1; i < params->w_zero_count; i++)
        if (inf_q8_w_zero(params, i) != zero)
            return false;
    return abs(zero) <= ZERO_MAX;
}

// A vector of bytes. A group of four rows is a whole number of them.
typedef int8_t lanes __attribute__((vector_size(16)));

// Returns true if a weight of the group of four rows at `quad` has a carry.
static bool has_carry(const struct inf_q8_fold *fold, const int8_t *quad, size_t width)
{
    const int8_t least = inf_q8_fold_least(fold), most = inf_q8_fold_most(fold);
    lanes found = {0};
    uint64_t parts[sizeof(lanes) / sizeof(uint64_t)];
    for (size_t i = 0; i < INF_CPU_QUAD * width; i += sizeof(lanes)) {
        lanes packed;
        memcpy(&packed, quad + i, sizeof packed);
        found |= (packed > most) | (packed < least);
    }
    memcpy(parts, &found, sizeof parts);
    return (parts[0] | parts[1]) != 0;
}

size_t inf_q8_carries_count(const struct inf_q8_fold *fold, const int8_t *w, size_t quads,
                            size_t width)
{
    size_t count = 0;
    for (size_t q = 0; fold->zero != 0 && q < quads; q++)
        count += has_carry(fold, w + INF_CPU_QUAD * width * q, width);
    return count;
}

size_t inf_q8_carries_list(const struct inf_q8_fold *fold, const int8_t *w, size_t quads,
                           size_t width, struct inf_q8_carry *carries, int8_t *blocks,
                           uint32_t *sums)
{
    const int8_t least = inf_q8_fold_least(fold), most = inf_q8_fold_most(fold);
    size_t size = INF_CPU_QUAD * width;
    size_t count = 0;
    for (size_t q = 0; fold->zero != 0 && q < quads; q++, w += size) {
        if (!has_carry(fold, w, width))
            continue;
        carries[count++] = (struct inf_q8_carry){.quad = q, .w = blocks};
        for (size_t i = 0; i < size; i++) {
            int32_t carry = inf_q8_fold_carry(w[i], least, most);
            blocks[i] = (int8_t)(INF_Q8_CARRY_TWICE * carry);
            blocks[size + i] = (int8_t)(INF_Q8_CARRY_ONCE * carry);
            sums[i / INF_CPU_QUAD] += 256 * (uint32_t)carry;
        }
        blocks += INF_Q8_CARRY_BLOCKS * size;
    }
    return count;
}
