// SPDX-License-Identifier: Apache-2.0
// The ISA levels of arm64: NEON, and NEON with dot products.
#include <sys/auxv.h>

#include "backends/cpu/kernels/isa.h"

static bool is_always_present(void)
{
    return true;
}

static bool has_dotprod(void)
{
    return (getauxval(AT_HWCAP) & HWCAP_ASIMDDP) != 0;
}

static const struct inf_nn nn_neon = {
    .gemm = &inf_nn_gemm_neon,
    .gemm_half = &inf_nn_gemm_neon,
    .depthwise = &inf_nn_depthwise_neon,
    .depthwise_half = &inf_nn_depthwise_neon,
    .blocks = &inf_nn_blocks_neon,
    .blocks_half = &inf_nn_blocks_neon,
    .winograd = &inf_winograd_neon,
    .expand = &inf_nn_expand_neon,
};

static const struct inf_q8 q8_neon = {&inf_gemm_q8_neon, &inf_eltwise_q8_neon,
                                      &inf_depthwise_q8_neon, &inf_depthwise_q8_neon,
                                      &inf_lookup_q8_neon};
static const struct inf_q8 q8_dotprod = {&inf_gemm_q8_dotprod, &inf_eltwise_q8_dotprod,
                                         &inf_depthwise_q8_dotprod, &inf_depthwise_q8_dotprod,
                                         &inf_lookup_q8_neon};

// The second level adds dot product instructions, which multiply only integers. Therefore its float
// loops are those of plain NEON.
const struct inf_isa_row inf_isa_rows[] = {
    {{"neon", "NEON", &inf_simd_neon, &inf_element_neon, &inf_rnn_neon, &inf_pick_neon,
      &inf_norm_neon, &nn_neon, &q8_neon},
     is_always_present},
    {{"neon_dotprod", "NEON with dot products", &inf_simd_neon, &inf_element_neon, &inf_rnn_neon,
      &inf_pick_neon, &inf_norm_neon, &nn_neon, &q8_dotprod},
     has_dotprod},
    {.present = NULL},
};
