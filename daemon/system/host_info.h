// SPDX-License-Identifier: Apache-2.0
// Facts about the machine, read once at start. Some flags get their default from them.
#ifndef INF_DAEMON_SYSTEM_HOST_INFO_H
#define INF_DAEMON_SYSTEM_HOST_INFO_H

#include <stdint.h>

#include "backends/base/role.h"

#define INF_FACT_TEXT 192

struct inf_host_info {
    char architecture[32];       // name of the instruction set, such as "x86_64"
    char kernel[72];             // name and release, such as "Linux 6.1.0-18-amd64"
    char cpu[96];                // name of the processor; "" if it is not known
    char cpu_isa[INF_FACT_TEXT]; // instruction set extensions that kernels use: "avx2 fma f16c"
    uint32_t cores_online;
    // Number of processors that the process may use, after applying CPU affinity and quota.
    uint32_t cores_usable;
    uint32_t cores_quota; // CPU quota of the control groups in processors, rounded up; 0: no limit
    uint64_t memory_bytes;
    uint64_t memory_limit_bytes; // memory limit of the control groups; 0: no limit
    uint32_t page_bytes;
};

// Reads the facts about the machine. A fact that cannot be read is 0 or "". System files are read
// below the directory `root` ("": the real system; tests pass another directory).
void inf_host_info_read(struct inf_host_info *facts, const char *root) INF_MAY_BLOCK;

#endif
