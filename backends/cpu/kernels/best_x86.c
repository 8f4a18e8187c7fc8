// SPDX-License-Identifier: Apache-2.0
#include <cpuinfo.h>

#include "backends/cpu/kernels/simd.h"

const struct inf_simd *inf_simd_best(void)
{
    if (cpuinfo_has_x86_avx512f() && cpuinfo_has_x86_avx512dq() && cpuinfo_has_x86_avx512vl())
        return &inf_simd_avx512;
    if (cpuinfo_has_x86_avx2() && cpuinfo_has_x86_fma3())
        return &inf_simd_avx2;
    return &inf_simd_baseline;
}
