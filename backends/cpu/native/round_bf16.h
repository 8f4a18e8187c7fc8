// SPDX-License-Identifier: Apache-2.0
// Decides whether the operands of bf16 products are rounded to bf16 too, and where the rounded
// copies are stored.
#ifndef INF_BACKENDS_CPU_NATIVE_ROUND_BF16_H
#define INF_BACKENDS_CPU_NATIVE_ROUND_BF16_H

#include "backends/cpu/native/conv_packed.h"

// Returns true if bf16 products with dot instructions (nn->gemm_dot), which need rounded operands,
// are faster than widening the weights and multiplying in fp32 (nn->gemm_bf16). This depends on the
// processor: dot products take half as long on some processors and twice as long on others. If the
// processor has both kernels, measures both for about 20 us.
bool inf_round_bf16_is_faster(const struct inf_nn *nn);

// Returns the distance of pixels in a copy in bf16, for kernels with tile registers. It is an odd
// number of cache lines. Otherwise the rows of a tile register, which are one pixel apart, would
// compete for a few sets of the cache.
size_t inf_round_bf16_padded_step(size_t a_step);

// Returns the floats of scratch memory for the rounded operands of a run of `count` pixels; 0 if
// operands are not rounded.
size_t inf_round_bf16_scratch(const struct inf_conv_packed *conv, size_t count);

// Rounds the operands of a run to run->scratch. Sets rounded[] to the start of each segment, or to
// NULL for a segment of zeros.
void inf_round_bf16_run(const struct inf_conv_packed *conv, const struct inf_conv_packed_run *run,
                        const uint16_t **rounded);

#endif
