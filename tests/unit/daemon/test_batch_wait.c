// SPDX-License-Identifier: Apache-2.0
// When a worker waits for more rows. In these tests a batch of 8 rows takes hardly longer than one
// row.
#include <criterion/criterion.h>

#include "daemon/policy/batch_wait.h"

#define US ((uint64_t)1000)

static const struct inf_batch_ladder ladder = {
    .count = 4,
    .rungs = {{1, 3000 * US}, {2, 3100 * US}, {4, 3300 * US}, {8, 3700 * US}},
    .bytes = 1,
};

static uint64_t rows_wanted;

// Plans the wait of a worker that looks for work at `now_us`. The last run had 6 rows of model 1
// and ended at 1000 us.
static uint64_t plan_wait(struct inf_batch_wait *wait, struct inf_batch_waiting waiting,
                          uint64_t now_us)
{
    rows_wanted = 0;
    inf_batch_wait_note(wait, 1, 6, 1000 * US);
    return inf_batch_wait_plan(wait, &ladder, &waiting, now_us * US, &rows_wanted);
}

Test(batch_wait, waits_for_clients_that_were_just_answered)
{
    struct inf_batch_wait wait = {0};
    // Separate runs of 2 and 6 rows take 3100 + 3700 us, and a common run of 8 rows takes 3700 us.
    // Expect a wait of at most half of the saving.
    cr_expect_eq(plan_wait(&wait, (struct inf_batch_waiting){.model = 1, .rows = 2}, 1001),
                 1550 * US);
    cr_expect_eq(rows_wanted, 8);
    // The client of one of the six rows of the last run has sent its next row (fresh = 1). 3 rows
    // wait, so expect that the worker waits for the other 5 rows too.
    cr_expect_gt(
        plan_wait(&wait, (struct inf_batch_waiting){.model = 1, .rows = 3, .fresh = 1}, 1001), 0);
    cr_expect_eq(rows_wanted, 8);
}

Test(batch_wait, does_not_wait_if_no_row_is_expected)
{
    struct inf_batch_wait wait = {0};
    cr_expect_eq(
        plan_wait(&wait, (struct inf_batch_waiting){.model = 1, .rows = 6, .fresh = 6}, 1001), 0,
        "all have come back: one that is alone never waits");
    cr_expect_eq(plan_wait(&wait, (struct inf_batch_waiting){.model = 2, .rows = 1}, 1001), 0,
                 "another model's ran");
    cr_expect_eq(plan_wait(&wait, (struct inf_batch_waiting){.model = 1, .rows = 1}, 4000), 0,
                 "it ran long ago");
    cr_expect_eq(plan_wait(&wait, (struct inf_batch_waiting){.model = 1, .rows = 8}, 1001), 0,
                 "there are enough");
}

Test(batch_wait, does_not_wait_past_a_deadline)
{
    struct inf_batch_wait wait = {0};
    struct inf_batch_waiting waiting = {.model = 1, .rows = 2, .deadline_ns = 6200 * US};
    // Expect no wait, because waiting until 1001 + 1550 us and then running for 3700 us would end
    // after the deadline.
    cr_expect_eq(plan_wait(&wait, waiting, 1001), 0);
    waiting.deadline_ns = 6300 * US;
    cr_expect_gt(plan_wait(&wait, waiting, 1001), 0);
}

Test(batch_wait, does_not_wait_for_a_small_saving)
{
    static const struct inf_batch_ladder cheap = {.count = 2,
                                                  .rungs = {{1, 300 * US}, {2, 301 * US}}};
    struct inf_batch_wait wait = {0};
    const struct inf_batch_waiting waiting = {.model = 1, .rows = 1};
    inf_batch_wait_note(&wait, 1, 1, 1000 * US);
    cr_expect_eq(inf_batch_wait_plan(&wait, &cheap, &waiting, 1001 * US, &rows_wanted), 0);
}

Test(batch_wait, backs_off_if_no_rows_come)
{
    struct inf_batch_wait wait = {0};
    const struct inf_batch_waiting waiting = {.model = 1, .rows = 2};
    unsigned waits = 0;
    for (int i = 0; i < 1000; i++) {
        if (plan_wait(&wait, waiting, 1001) == 0)
            continue;
        waits++;
        inf_batch_wait_learn(&wait, false);
    }
    cr_expect_geq(waits, 10, "it goes on trying: %u", waits);
    cr_expect_leq(waits, 25, "%u", waits);
    while (plan_wait(&wait, waiting, 1001) == 0)
        ;
    inf_batch_wait_learn(&wait, true);
    for (int i = 0; i < 3; i++)
        cr_expect_gt(plan_wait(&wait, waiting, 1001), 0, "and starts again after rows came");
}
