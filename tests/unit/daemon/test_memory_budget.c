// SPDX-License-Identifier: Apache-2.0
// The budget of memory: sums, what is missing, and numbers beyond 64 bits.
#include <criterion/criterion.h>

#include "daemon/policy/memory_budget.h"

Test(memory_budget, adds_up_every_use)
{
    struct inf_memory_budget budget = {.limit_bytes = 100};
    cr_expect_eq(inf_memory_budget_used(&budget), 0);
    for (int i = 0; i < INF_MEMORY_USES; i++)
        budget.used[i] = (uint64_t)1 << i;
    cr_expect_eq(inf_memory_budget_used(&budget), ((uint64_t)1 << INF_MEMORY_USES) - 1);
}

Test(memory_budget, says_how_much_is_missing)
{
    struct inf_memory_budget budget = {
        .limit_bytes = 100,
        .used = {[INF_MEMORY_PROCESS] = 30, [INF_MEMORY_MODELS] = 40, [INF_MEMORY_REQUESTS] = 5}};
    cr_expect_eq(inf_memory_budget_excess(&budget, 0), 0);
    cr_expect_eq(inf_memory_budget_excess(&budget, 25), 0, "exactly full");
    cr_expect_eq(inf_memory_budget_excess(&budget, 26), 1);
    cr_expect_eq(inf_memory_budget_excess(&budget, UINT64_MAX), UINT64_MAX - 100);
    budget.limit_bytes = 60;
    cr_expect_eq(inf_memory_budget_excess(&budget, 0), 15);
    budget.limit_bytes = 0;
    cr_expect_eq(inf_memory_budget_excess(&budget, UINT64_MAX), 0, "no limit");
    budget.used[INF_MEMORY_SESSIONS] = UINT64_MAX;
    cr_expect_eq(inf_memory_budget_used(&budget), UINT64_MAX);
}

Test(memory_budget, names_are_those_of_the_metrics)
{
    static const char *const names[] = {"process",  "models",  "loading",
                                        "sessions", "regions", "requests"};
    for (int i = 0; i < INF_MEMORY_USES; i++)
        cr_expect_str_eq(inf_memory_use_name((enum inf_memory_use)i), names[i]);
}
