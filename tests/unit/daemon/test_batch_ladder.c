// SPDX-License-Identifier: Apache-2.0
// Tests how many rows are run at once, given the measured row counts (rungs) of a model.
#include <criterion/criterion.h>

#include "daemon/policy/batch_ladder.h"

static const struct inf_batch_ladder ladder = {
    .count = 4,
    // {rows, ns}: the time per row is 1000, 700, 500 and 475 ns
    .rungs = {{1, 1000}, {2, 1400}, {4, 2000}, {8, 3800}},
    .bytes = 1,
};

static void expect_choice(uint64_t waiting, uint32_t rung_rows, uint32_t rows)
{
    struct inf_batch_choice choice = inf_batch_choose(&ladder, waiting);
    cr_expect_eq(ladder.rungs[choice.rung].rows, rung_rows, "%llu rows: rung of %u",
                 (unsigned long long)waiting, ladder.rungs[choice.rung].rows);
    cr_expect_eq(choice.rows, rows, "%llu rows: %u", (unsigned long long)waiting, choice.rows);
}

Test(batch_ladder, chooses_the_rung_with_the_highest_throughput)
{
    expect_choice(1, 1, 1);
    expect_choice(2, 2, 2);
    // In a run of four rows, one of them padding, three rows take 667 ns each. In a run of two,
    // each row takes 700 ns. Expect the run of four.
    expect_choice(3, 4, 3);
    expect_choice(4, 4, 4);
    // In a run of eight rows, five rows take 760 ns each, and seven take 543 ns each. In a run of
    // four, four rows take only 500 ns each. Expect the run of four.
    expect_choice(5, 4, 4);
    expect_choice(7, 4, 4);
    expect_choice(8, 8, 8);
    expect_choice(1000, 8, 8);
}

// A row takes 475 ns on the highest rung, so 16 rows may take 0.9 * 475 * 16 = 6840 ns.
Test(batch_ladder, a_rung_pays_if_a_row_costs_a_tenth_less)
{
    cr_expect(inf_batch_ladder_pays(&ladder, 16, 6840));
    cr_expect_not(inf_batch_ladder_pays(&ladder, 16, 6841));
}

Test(batch_ladder, has_no_rows_without_a_ladder)
{
    const struct inf_batch_ladder none = {.count = 0};
    cr_expect_eq(inf_batch_rows_max(&none), 0);
    cr_expect_eq(inf_batch_rows_max(&ladder), 8);
}
