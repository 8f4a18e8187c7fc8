// SPDX-License-Identifier: Apache-2.0
// The only ISA level of other architectures: plain C.
#include "backends/cpu/kernels/isa.h"

static bool is_always_present(void)
{
    return true;
}

static const struct inf_nn nn_baseline = {
    .gemm = &inf_nn_gemm_baseline,
    .gemm_half = &inf_nn_gemm_baseline,
    .depthwise = &inf_nn_depthwise_baseline,
    .depthwise_half = &inf_nn_depthwise_baseline,
    .blocks = &inf_nn_blocks_baseline,
    .blocks_half = &inf_nn_blocks_baseline,
    .winograd = &inf_winograd_baseline,
    .expand = &inf_nn_expand_baseline,
};

static const struct inf_q8 q8_baseline = {&inf_gemm_q8_baseline, &inf_eltwise_q8_baseline,
                                          &inf_depthwise_q8_baseline, &inf_depthwise_q8_baseline,
                                          &inf_lookup_q8_baseline};

const struct inf_isa_row inf_isa_rows[] = {
    {{"baseline", "plain C", &inf_simd_baseline, &inf_element_baseline, &inf_rnn_baseline,
      &inf_pick_baseline, &inf_norm_baseline, &nn_baseline, &q8_baseline},
     is_always_present},
    {.present = NULL},
};
