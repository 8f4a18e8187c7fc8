// SPDX-License-Identifier: Apache-2.0
// How much memory the daemon may use, and how much it uses for what. The numbers are what the parts
// of the daemon know that they hold, not resident memory: that stays high for a while after memory
// was freed, and would make the daemon refuse what fits. Used by the loop only.
#ifndef INF_DAEMON_POLICY_MEMORY_BUDGET_H
#define INF_DAEMON_POLICY_MEMORY_BUDGET_H

#include <stdbool.h>
#include <stdint.h>

enum inf_memory_use {
    INF_MEMORY_PROCESS,  // resident memory of the process before it loaded a model
    INF_MEMORY_MODELS,   // constants, packed weights and arenas of loaded models
    INF_MEMORY_LOADING,  // estimate of the model that is being loaded
    INF_MEMORY_SESSIONS, // tensors that sessions keep
    INF_MEMORY_REGIONS,  // pages that the daemon allocated in shared memory of clients
    INF_MEMORY_REQUESTS, // input data of requests in flight
    INF_MEMORY_USES
};

struct inf_memory_budget {
    uint64_t limit_bytes; // 0: no limit
    uint64_t used[INF_MEMORY_USES];
    // Where the limit comes from, such as "memory.high of /system.slice/inferd.service".
    char source[128];
};

// Returns the bytes of all uses.
uint64_t inf_memory_budget_used(const struct inf_memory_budget *budget);

// Returns by how many bytes the limit would be exceeded if `more_bytes` were used in addition; 0 if
// they fit, or if there is no limit.
uint64_t inf_memory_budget_excess(const struct inf_memory_budget *budget, uint64_t more_bytes);

// Returns the name of a use: "process", "models", "loading", "sessions", "regions" or "requests".
const char *inf_memory_use_name(enum inf_memory_use use);

#endif
