// SPDX-License-Identifier: Apache-2.0
// Finds how many cores this process may use.
#ifndef INF_BACKENDS_BASE_SYSTEM_CORES_H
#define INF_BACKENDS_BASE_SYSTEM_CORES_H

#include <stdint.h>

#include "backends/base/role.h"

// Returns the number of cores in the affinity mask, limited by the CPU quota of the process's
// control group (v2) and of all groups above it. At least 1.
uint32_t inf_cores_usable(void) INF_MAY_BLOCK;

// Returns the number of cores that the control groups grant; UINT32_MAX if they set no limit.
// `root` is the directory for reading their files; "" except in tests.
uint32_t inf_cores_quota(const char *root) INF_MAY_BLOCK;

#endif
