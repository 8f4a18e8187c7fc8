// SPDX-License-Identifier: Apache-2.0
// What the machine is, found once at start: read-only facts, from which some settings get their
// values.
#ifndef INF_DAEMON_SYSTEM_HOST_INFO_H
#define INF_DAEMON_SYSTEM_HOST_INFO_H

#include <stdint.h>

#include "backends/base/role.h"

#define INF_FACT_TEXT 192

struct inf_host_info {
    char architecture[32];       // "x86_64"
    char kernel[72];             // "Linux 6.1.0-18-amd64"
    char cpu[96];                // the processor's name; "" where it does not say
    char cpu_isa[INF_FACT_TEXT]; // its extensions that matter to kernels: "avx2 fma f16c"
    uint32_t cores_online;
    uint32_t cores_usable; // by affinity and quota
    uint32_t cores_quota;  // of the control groups, rounded up; 0: no bound
    uint64_t memory_bytes;
    uint64_t memory_limit_bytes; // of the control groups; 0: no bound
    uint32_t page_bytes;
};

// Finds the facts. What cannot be found is 0 or "". Files of the system are read beneath `root`
// ("": this system's).
void inf_host_info_read(struct inf_host_info *facts, const char *root) INF_MAY_BLOCK;

#endif
