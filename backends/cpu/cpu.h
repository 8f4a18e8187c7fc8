// SPDX-License-Identifier: Apache-2.0
// The fast CPU device: XNNPACK's operators where it has them, kernels of ours where it does not. It
// declines what it has no kernel for; such nodes run on ref in the same plan.
#ifndef INF_BACKENDS_CPU_CPU_H
#define INF_BACKENDS_CPU_CPU_H

#include "backends/device/device_impl.h"

extern const struct inf_backend inf_cpu_backend;

#endif
