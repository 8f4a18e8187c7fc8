// SPDX-License-Identifier: Apache-2.0
// Decides whether a worker waits a moment for more rows before it runs a batch.
//
// The problem: four clients send one request each, wait for the answer, and send the next. A batch
// of four costs little more than a run of one. But if a worker starts as soon as one request is
// queued, the clients fall into two groups that alternate for ever:
//
//   run 1: A      queue while it runs: B C D
//   run 2: B C D  queue while it runs: A
//   run 3: A      ...                             half of the device time is lost
//
// The idea: clients that were just answered are likely to send another request soon. Suppose the
// last run had `rows` rows of the same model, and `fresh` rows have arrived since it ended. Then up
// to rows - fresh more rows are expected. Waiting pays if running everything together saves more
// time than the wait costs:
//
//   saved = run(waiting) + run(expected) - run(waiting + expected)     wait at most saved / 2
//
// The wait ends early if no row arrives for INF_BATCH_WAIT_STALL_NS. Three rules limit the harm. A
// single client never waits, because its next request makes `fresh` equal to `rows`. A wait is
// forbidden if a deadline would be missed. After waits without result, the worker backs off, so
// that clients that pause between requests are not delayed repeatedly.
#include "daemon/policy/batch_wait.h"

#include "proto/core/attributes.h"

// After this many consecutive waits to which no row was added, the worker does not wait the next 2,
// 4, ... 64 times that it could.
#define FRUITLESS_MOST 3
#define SKIP_LOG2_MOST 6

// Returns the time of a run of `rows` rows: the measured time of the smallest rung of the batch
// ladder that holds them.
static uint64_t find_run_ns(const struct inf_batch_ladder *ladder, uint64_t rows)
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
    // Do not wait if the last run ended long ago, because its clients are then unlikely to send
    // more soon.
    if (waiting->model != wait->model || wait->rows <= waiting->fresh ||
        now_ns > wait->end_ns + INF_BATCH_WAIT_MAX_NS)
        return 0;
    uint64_t rows =
        INF_MIN(waiting->rows + wait->rows - waiting->fresh, (uint64_t)inf_batch_rows_max(ladder));
    if (rows <= waiting->rows)
        return 0;
    uint64_t apart_ns =
        find_run_ns(ladder, waiting->rows) + find_run_ns(ladder, rows - waiting->rows);
    uint64_t together_ns = find_run_ns(ladder, rows);
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
