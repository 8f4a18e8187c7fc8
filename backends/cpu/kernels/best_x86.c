// SPDX-License-Identifier: Apache-2.0
#include <cpuinfo.h>

#include "backends/cpu/kernels/nn.h"
#include "backends/cpu/kernels/q8.h"
#include "backends/cpu/kernels/simd.h"

static bool has_avx512(void)
{
    return cpuinfo_has_x86_avx512f() && cpuinfo_has_x86_avx512dq() && cpuinfo_has_x86_avx512vl();
}

static bool has_avx2(void)
{
    return cpuinfo_has_x86_avx2() && cpuinfo_has_x86_fma3();
}

const struct inf_simd *inf_simd_best(void)
{
    if (has_avx512())
        return &inf_simd_avx512;
    return has_avx2() ? &inf_simd_avx2 : &inf_simd_baseline;
}

const struct inf_nn *inf_nn_level(unsigned level)
{
    static const struct inf_nn levels[] = {
        {&inf_nn_gemm_baseline, &inf_nn_gemm_baseline, &inf_nn_depthwise_baseline,
         &inf_nn_depthwise_baseline, false},
        {&inf_nn_gemm_avx2, &inf_nn_gemm_avx2, &inf_nn_depthwise_avx2, &inf_nn_depthwise_avx2,
         true},
        {&inf_nn_gemm_avx512, &inf_nn_gemm_avx512_half, &inf_nn_depthwise_avx512,
         &inf_nn_depthwise_avx512_half, true},
    };
    unsigned best = has_avx512() ? 2 : has_avx2() ? 1 : 0;
    return level <= best ? &levels[level] : NULL;
}

const struct inf_nn *inf_nn_best(void)
{
    return inf_nn_level(has_avx512() ? 2 : has_avx2() ? 1 : 0);
}

static bool has_vnni(void)
{
    return has_avx512() && cpuinfo_has_x86_avx512bw() && cpuinfo_has_x86_avx512vnni();
}

const struct inf_q8 *inf_q8_level(unsigned level)
{
    static const struct inf_q8 levels[] = {
        {&inf_q8_gemm_baseline},
        {&inf_q8_gemm_avx2},
        {&inf_q8_gemm_vnni},
    };
    unsigned best = has_vnni() ? 2 : has_avx2() ? 1 : 0;
    return level <= best ? &levels[level] : NULL;
}

const struct inf_q8 *inf_q8_best(void)
{
    return inf_q8_level(has_vnni() ? 2 : has_avx2() ? 1 : 0);
}
