// SPDX-License-Identifier: Apache-2.0
#include <criterion/criterion.h>

#include "daemon/policy/batch_ladder.h"

static const struct inf_batch_ladder ladder = {
    .count = 4,
    .rungs = {{1, 1000}, {2, 1400}, {4, 2000}, {8, 3800}}, // a row takes 1000, 700, 500, 475
    .bytes = 1,
};

static void expect(uint64_t waiting, uint32_t rung_rows, uint32_t rows)
{
    struct inf_batch_choice choice = inf_batch_choose(&ladder, waiting);
    cr_expect_eq(ladder.rungs[choice.rung].rows, rung_rows, "%llu rows: rung of %u",
                 (unsigned long long)waiting, ladder.rungs[choice.rung].rows);
    cr_expect_eq(choice.rows, rows, "%llu rows: %u", (unsigned long long)waiting, choice.rows);
}

Test(batch_ladder, chooses_the_rung_with_the_highest_throughput)
{
    expect(1, 1, 1);
    expect(2, 2, 2);
    // Three padded to four take 667 each, two take 700.
    expect(3, 4, 3);
    expect(4, 4, 4);
    // Five in a run of eight would take 760 each, four alone 500; seven 543: not either.
    expect(5, 4, 4);
    expect(7, 4, 4);
    expect(8, 8, 8);
    expect(1000, 8, 8);
}

Test(batch_ladder, has_no_rows_without_a_ladder)
{
    const struct inf_batch_ladder none = {.count = 0};
    cr_expect_eq(inf_batch_rows_max(&none), 0);
    cr_expect_eq(inf_batch_rows_max(&ladder), 8);
}
