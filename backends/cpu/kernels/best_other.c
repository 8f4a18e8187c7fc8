// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/kernels/q8.h"
#include "backends/cpu/kernels/simd.h"

const struct inf_simd *inf_simd_best(void)
{
    return &inf_simd_baseline;
}

const struct inf_nn *inf_nn_level(unsigned level)
{
    static const struct inf_nn baseline = {&inf_nn_gemm_baseline, &inf_nn_gemm_baseline,
                                           &inf_nn_depthwise_baseline, &inf_nn_depthwise_baseline,
                                           false};
    return level == 0 ? &baseline : NULL;
}

const struct inf_nn *inf_nn_best(void)
{
    return inf_nn_level(0);
}

const struct inf_q8 *inf_q8_level(unsigned level)
{
    static const struct inf_q8 baseline = {&inf_q8_gemm_baseline};
    return level == 0 ? &baseline : NULL;
}

const struct inf_q8 *inf_q8_best(void)
{
    return inf_q8_level(0);
}
