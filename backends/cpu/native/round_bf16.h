// SPDX-License-Identifier: Apache-2.0
// Operands of bf16 products: whether they are rounded as well, and where the rounded copies are.
#ifndef INF_BACKENDS_CPU_NATIVE_ROUND_BF16_H
#define INF_BACKENDS_CPU_NATIVE_ROUND_BF16_H

#include "backends/cpu/native/conv_packed.h"

// Returns true if this processor is faster at bf16 products with dot instructions (nn->gemm_dot),
// for which operands are rounded, than at widening the weights and multiplying in fp32
// (nn->gemm_bf16). Processors differ: dot products take half as long on some and twice as long on
// others. Measures both for about 20 us if the processor has both.
bool inf_round_bf16_is_faster(const struct inf_nn *nn);

// Returns the floats of scratch memory for the rounded operands of a run of `count` pixels; 0 if
// operands are not rounded.
size_t inf_round_bf16_scratch(const struct inf_conv_packed *conv, size_t count);

// Returns where rounded operands go: `offset` floats into `scratch`; NULL if operands are not
// rounded.
uint16_t *inf_round_bf16_target(const struct inf_conv_packed *conv, float *scratch, size_t offset);

// Rounds the operands of a run to run->rounded. Sets rounded[] to the start of each segment; NULL
// for a segment of zeros.
void inf_round_bf16_run(const struct inf_conv_packed *conv, const struct inf_conv_packed_run *run,
                        const uint16_t **rounded);

#endif
