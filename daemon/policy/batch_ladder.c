// SPDX-License-Identifier: Apache-2.0
// Chooses how many rows to run at once, from the measured row counts (rungs) of a model. The best
// rung has the highest number of waiting rows per nanosecond of run time. If fewer rows wait than
// the rung has, padding rows fill it; they cost time but do not count.
#include "daemon/policy/batch_ladder.h"

#include <assert.h>

#include "proto/core/attributes.h"

// The most that a row of a new rung may cost, in percent of a row of the rung below.
#define PAYS_PERCENT 90u

bool inf_batch_ladder_pays(const struct inf_batch_ladder *ladder, uint32_t rows, uint64_t run_ns)
{
    assert(ladder->count > 0);
    const struct inf_batch_rung *below = &ladder->rungs[ladder->count - 1];
    return run_ns * below->rows * 100 <= below->run_ns * rows * PAYS_PERCENT;
}

struct inf_batch_choice inf_batch_choose(const struct inf_batch_ladder *ladder, uint64_t rows)
{
    assert(ladder->count > 0 && rows > 0);
    struct inf_batch_choice best = {0, 1};
    for (uint32_t i = 1; i < ladder->count; i++) {
        const struct inf_batch_rung *rung = &ladder->rungs[i];
        uint32_t filled = (uint32_t)INF_MIN(rows, rung->rows);
        // Compares the throughput of this rung, filled / run_ns, with that of the best rung by
        // cross-multiplying. Run times are hours at most, so the products do not overflow.
        if (filled * ladder->rungs[best.rung].run_ns >= best.rows * rung->run_ns)
            best = (struct inf_batch_choice){i, filled};
        if (rung->rows >= rows)
            break; // larger rungs would only run more padding rows
    }
    return best;
}

uint32_t inf_batch_rows_max(const struct inf_batch_ladder *ladder)
{
    return ladder->count > 0 ? ladder->rungs[ladder->count - 1].rows : 0;
}
