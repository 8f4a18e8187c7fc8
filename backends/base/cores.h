// SPDX-License-Identifier: Apache-2.0
// How many cores this process may use.
#ifndef INF_BACKENDS_BASE_CORES_H
#define INF_BACKENDS_BASE_CORES_H

#include <stdint.h>

#include "backends/base/role.h"

// Cores of the affinity mask, bounded by the CPU quota of the process's control group (v2) and of all
// groups above it. At least 1.
uint32_t inf_cores_usable(void) INF_MAY_BLOCK;

// What the control groups grant alone, of the system whose files lie beneath `root` ("": this one);
// UINT32_MAX where they set no bound.
uint32_t inf_cores_quota(const char *root) INF_MAY_BLOCK;

#endif
