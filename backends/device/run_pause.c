// SPDX-License-Identifier: Apache-2.0
// A pause of runs between two steps. Whether it is wanted is one load without a lock, because every
// step checks it. A run that pauses sleeps until the pause ends. It wakes up every few milliseconds
// to see whether it was cancelled, because the thread that cancels it does not end the pause.
#include "backends/device/run_pause.h"

#include "backends/base/cancel.h"
#include "backends/base/clock.h"
#include "proto/core/span.h"

void inf_run_pause_init(struct inf_run_pause *pause)
{
    atomic_init(&pause->wanted, false);
    inf_mutex_init(&pause->mutex);
    inf_cond_init(&pause->ended);
}

void inf_run_pause_fini(struct inf_run_pause *pause)
{
    inf_cond_fini(&pause->ended);
    inf_mutex_fini(&pause->mutex);
}

void inf_run_pause_end(struct inf_run_pause *pause)
{
    // The mutex is held so that no run goes to sleep between its check and this call.
    inf_mutex_lock(&pause->mutex);
    inf_cond_broadcast(&pause->ended);
    inf_mutex_unlock(&pause->mutex);
}

uint64_t inf_run_pause_wait(struct inf_run_pause *pause, const atomic_bool *cancelled,
                            uint64_t until_ns)
{
    uint64_t begin_ns = inf_clock_ns(), now_ns = begin_ns;
    inf_mutex_lock(&pause->mutex);
    while (atomic_load(&pause->wanted) && now_ns < until_ns && !inf_is_cancelled(cancelled)) {
        uint64_t wake_ns = now_ns + INF_RUN_PAUSE_POLL_MS * INF_NS_PER_MS;
        (void)inf_cond_wait_until(&pause->ended, &pause->mutex, INF_MIN(wake_ns, until_ns));
        now_ns = inf_clock_ns();
    }
    inf_mutex_unlock(&pause->mutex);
    return now_ns - begin_ns;
}
