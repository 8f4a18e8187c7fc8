// SPDX-License-Identifier: Apache-2.0
// How long a session whose steps fail stays out of joined runs.
#include <criterion/criterion.h>

#include "daemon/policy/join_back_off.h"

// Returns how many steps run alone before the session may join again.
static uint32_t count_alone(struct inf_join_back_off *back_off)
{
    uint32_t count = 0;
    while (!inf_join_back_off_may_join(back_off) && count < 10 * INF_JOIN_ALONE_MAX) {
        inf_join_back_off_note(back_off, INF_JOIN_ALONE);
        count++;
    }
    return count;
}

Test(join_back_off, a_session_joins_until_it_spoils_a_run)
{
    struct inf_join_back_off back_off = {0};
    for (int i = 0; i < 5; i++) {
        cr_expect(inf_join_back_off_may_join(&back_off));
        inf_join_back_off_note(&back_off, i % 2 == 0 ? INF_JOIN_ALONE : INF_JOIN_SHARED);
    }
    inf_join_back_off_note(&back_off, INF_JOIN_SPOILED);
    cr_expect_not(inf_join_back_off_may_join(&back_off));
    cr_expect_eq(count_alone(&back_off), INF_JOIN_ALONE_FIRST);
}

Test(join_back_off, steps_alone_double_up_to_a_bound)
{
    struct inf_join_back_off back_off = {0};
    for (uint32_t steps = INF_JOIN_ALONE_FIRST; steps < INF_JOIN_ALONE_MAX; steps *= 2) {
        inf_join_back_off_note(&back_off, INF_JOIN_SPOILED);
        cr_expect_eq(count_alone(&back_off), steps);
    }
    for (int i = 0; i < 3; i++) {
        inf_join_back_off_note(&back_off, INF_JOIN_SPOILED);
        cr_expect_eq(count_alone(&back_off), INF_JOIN_ALONE_MAX);
    }
}

Test(join_back_off, a_joined_run_that_succeeds_forgives)
{
    struct inf_join_back_off back_off = {0};
    inf_join_back_off_note(&back_off, INF_JOIN_SPOILED);
    (void)count_alone(&back_off);
    inf_join_back_off_note(&back_off, INF_JOIN_SPOILED);
    cr_expect_eq(count_alone(&back_off), 2 * INF_JOIN_ALONE_FIRST);
    inf_join_back_off_note(&back_off, INF_JOIN_SHARED);
    inf_join_back_off_note(&back_off, INF_JOIN_SPOILED);
    cr_expect_eq(count_alone(&back_off), INF_JOIN_ALONE_FIRST);
}
