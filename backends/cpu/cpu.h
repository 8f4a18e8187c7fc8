// SPDX-License-Identifier: Apache-2.0
// The cpu device: native kernels, and XNNPACK's operators for nodes that the native kernels do not
// compute. The device declines nodes that it has no kernel for; these nodes run on the reference
// device `ref` in the same plan.
#ifndef INF_BACKENDS_CPU_CPU_H
#define INF_BACKENDS_CPU_CPU_H

#include "backends/device/backend.h"

extern const struct inf_backend inf_cpu_backend;

#endif
