// SPDX-License-Identifier: Apache-2.0
// Operands of products in bf16: whether they are rounded, too, and where they lie then.
#ifndef INF_BACKENDS_CPU_NATIVE_ROUND_BF16_H
#define INF_BACKENDS_CPU_NATIVE_ROUND_BF16_H

#include "backends/cpu/native/conv_packed.h"

// Whether this processor is faster at products in bf16 when it multiplies pairs (nn->gemm_dot) than when
// it widens weights and multiplies in fp32 (nn->gemm_bf16). Tries both for some 20 us where it could be:
// there are processors that take half as long, and others that take twice as long.
bool inf_round_bf16_is_faster(const struct inf_nn *nn);

// Elements of scratch memory, in floats, that rounding a run of `count` pixels takes; 0 where the
// convolution's operands stay as they are.
size_t inf_round_bf16_scratch(const struct inf_conv_packed *conv, size_t count);

// Where operands go that are rounded: `offset` floats behind `scratch`. NULL where they stay as they are.
uint16_t *inf_round_bf16_target(const struct inf_conv_packed *conv, float *scratch, size_t offset);

// Rounds the operands of a run to run->rounded; rounded[] says where each segment lies there, NULL
// where it is zeros.
void inf_round_bf16_run(const struct inf_conv_packed *conv, const struct inf_conv_packed_run *run,
                        const uint16_t **rounded);

#endif
