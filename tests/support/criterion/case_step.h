// SPDX-License-Identifier: Apache-2.0
// INF_OPS_STEP=N makes tests with many cases run every N-th one. ./check sets it for builds with
// sanitizers, which are slow, after all cases have run in the build as it ships.
#ifndef INF_TESTS_SUPPORT_CRITERION_CASE_STEP_H
#define INF_TESTS_SUPPORT_CRITERION_CASE_STEP_H

#include <criterion/criterion.h>
#include <stdint.h>
#include <stdlib.h>

#define INF_CASE_STEP_MAX 20

// Returns N if only every N-th case is to run. Fails the test if INF_OPS_STEP is no such number.
static inline uint32_t inf_case_step(void)
{
    const char *text = getenv("INF_OPS_STEP");
    long step = text != NULL ? strtol(text, NULL, 10) : 1;
    cr_assert(step >= 1 && step <= INF_CASE_STEP_MAX, "INF_OPS_STEP is '%s', wanted 1 to %d", text,
              INF_CASE_STEP_MAX);
    return (uint32_t)step;
}

#endif
