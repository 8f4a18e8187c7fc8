// SPDX-License-Identifier: Apache-2.0
// The node that a run is computing. Setting it is one store without a lock, because it happens
// before every step. Clearing it and reading it exclude each other, so that the reader never sees a
// name that was freed.
#include "backends/device/run_step.h"

#include <stdio.h>
#include <time.h>

#include "backends/base/cancel.h"
#include "backends/base/clock.h"

#define GATE_POLL_NS 500000

void inf_run_step_init(struct inf_run_step *step)
{
    inf_mutex_init(&step->mutex);
    atomic_init(&step->node, NULL);
    step->pause = NULL;
    step->idle_gate = NULL;
}

void inf_run_step_fini(struct inf_run_step *step)
{
    inf_mutex_fini(&step->mutex);
}

// Waits while requests wait or run. The time between two checks costs a load little, and waking it
// at the end of each request would cost the requests more.
static uint64_t wait_for_gate(const struct inf_run_step *step, const atomic_bool *cancelled)
{
    uint64_t begin_ns = inf_clock_ns(), now_ns = begin_ns;
    while (atomic_load(&step->idle_gate->busy) > 0 && now_ns < step->pause_until_ns &&
           !inf_is_cancelled(cancelled)) {
        nanosleep(&(struct timespec){.tv_nsec = GATE_POLL_NS}, NULL);
        now_ns = inf_clock_ns();
    }
    return now_ns - begin_ns;
}

void inf_run_step_pause(struct inf_run_step *step, const atomic_bool *cancelled)
{
    if (step->pause != NULL)
        step->paused_ns += inf_run_pause_wait(step->pause, cancelled, step->pause_until_ns);
    if (step->idle_gate != NULL)
        step->paused_ns += wait_for_gate(step, cancelled);
    // A run whose time to pause is over does not check the time again before each step.
    if (inf_clock_ns() >= step->pause_until_ns) {
        step->pause = NULL;
        step->idle_gate = NULL;
    }
}

void inf_run_step_clear(struct inf_run_step *step)
{
    if (step == NULL)
        return;
    inf_mutex_lock(&step->mutex);
    atomic_store_explicit(&step->node, NULL, memory_order_relaxed);
    inf_mutex_unlock(&step->mutex);
}

void inf_run_step_copy(struct inf_run_step *step, char *text, size_t size)
{
    inf_mutex_lock(&step->mutex);
    const char *node = atomic_load_explicit(&step->node, memory_order_relaxed);
    snprintf(text, size, "%s", node != NULL ? node : "");
    inf_mutex_unlock(&step->mutex);
}
