// SPDX-License-Identifier: Apache-2.0
// Adds up what the daemon uses, and compares the sum with the limit. Sums that exceed 64 bits count
// as the largest number.
#include "daemon/policy/memory_budget.h"

#include <assert.h>

uint64_t inf_memory_budget_used(const struct inf_memory_budget *budget)
{
    uint64_t sum = 0;
    for (int i = 0; i < INF_MEMORY_USES; i++)
        if (__builtin_add_overflow(sum, budget->used[i], &sum))
            return UINT64_MAX;
    return sum;
}

uint64_t inf_memory_budget_excess(const struct inf_memory_budget *budget, uint64_t more_bytes)
{
    uint64_t sum;
    if (__builtin_add_overflow(inf_memory_budget_used(budget), more_bytes, &sum))
        sum = UINT64_MAX;
    return budget->limit_bytes == 0 || sum <= budget->limit_bytes ? 0 : sum - budget->limit_bytes;
}

const char *inf_memory_use_name(enum inf_memory_use use)
{
    static const char *const names[INF_MEMORY_USES] = {
        [INF_MEMORY_PROCESS] = "process", [INF_MEMORY_MODELS] = "models",
        [INF_MEMORY_LOADING] = "loading", [INF_MEMORY_SESSIONS] = "sessions",
        [INF_MEMORY_REGIONS] = "regions", [INF_MEMORY_REQUESTS] = "requests"};
    assert(use < INF_MEMORY_USES);
    return names[use];
}
