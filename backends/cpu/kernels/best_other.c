// SPDX-License-Identifier: Apache-2.0
#include "backends/cpu/kernels/simd.h"

const struct inf_simd *inf_simd_best(void)
{
    return &inf_simd_baseline;
}
