// SPDX-License-Identifier: Apache-2.0
#include "daemon/policy/batch_wait.h"

#include "proto/core/attributes.h"

// Waits that bring nothing before chances are let go, and how many at most: 2, 4, ... 64.
#define FRUITLESS_MOST 3
#define SKIP_LOG2_MOST 6

// What a run of so many rows takes: that of the first rung that holds them.
static uint64_t run_ns(const struct inf_batch_ladder *ladder, uint64_t rows)
{
    uint32_t rung = 0;
    while (rung + 1 < ladder->count && ladder->rungs[rung].rows < rows)
        rung++;
    return ladder->rungs[rung].run_ns;
}

uint64_t inf_batch_wait_plan(struct inf_batch_wait *wait, const struct inf_batch_ladder *ladder,
                             const struct inf_batch_waiting *waiting, uint64_t now_ns,
                             uint64_t *out_rows)
{
    // What ran long ago tells nothing of who asks again now.
    if (waiting->model != wait->model || wait->rows <= waiting->fresh ||
        now_ns > wait->end_ns + INF_BATCH_WAIT_MAX_NS)
        return 0;
    uint64_t rows =
        INF_MIN(waiting->rows + wait->rows - waiting->fresh, (uint64_t)inf_batch_rows_max(ladder));
    if (rows <= waiting->rows)
        return 0;
    uint64_t apart_ns = run_ns(ladder, waiting->rows) + run_ns(ladder, rows - waiting->rows);
    uint64_t together_ns = run_ns(ladder, rows);
    if (apart_ns < together_ns + 2 * INF_BATCH_WAIT_STALL_NS)
        return 0;
    uint64_t most_ns = INF_MIN((apart_ns - together_ns) / 2, INF_BATCH_WAIT_MAX_NS);
    if (waiting->deadline_ns != 0 && now_ns + most_ns + together_ns > waiting->deadline_ns)
        return 0;
    if (wait->skip > 0) {
        wait->skip--;
        return 0;
    }
    *out_rows = rows;
    return most_ns;
}

void inf_batch_wait_learn(struct inf_batch_wait *wait, bool fruitful)
{
    if (fruitful)
        wait->fruitless = 0;
    else if (++wait->fruitless >= FRUITLESS_MOST)
        wait->skip = 1u << INF_MIN(wait->fruitless - FRUITLESS_MOST + 1, SKIP_LOG2_MOST);
}

void inf_batch_wait_note(struct inf_batch_wait *wait, uint64_t model, uint32_t rows,
                         uint64_t end_ns)
{
    wait->model = model;
    wait->rows = rows;
    wait->end_ns = end_ns;
}
