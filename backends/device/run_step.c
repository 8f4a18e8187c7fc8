// SPDX-License-Identifier: Apache-2.0
// The node that a run is computing. Setting it is one store without a lock, because it happens
// before every step. Clearing it and reading it exclude each other, so that the reader never sees a
// name that was freed.
#include "backends/device/run_step.h"

#include <stdio.h>

#include "backends/base/clock.h"

void inf_run_step_init(struct inf_run_step *step)
{
    inf_mutex_init(&step->mutex);
    atomic_init(&step->node, NULL);
    step->pause = NULL;
}

void inf_run_step_fini(struct inf_run_step *step)
{
    inf_mutex_fini(&step->mutex);
}

void inf_run_step_pause(struct inf_run_step *step, const atomic_bool *cancelled)
{
    step->paused_ns += inf_run_pause_wait(step->pause, cancelled, step->pause_until_ns);
    // A run whose time to pause is over does not check the time again before each step.
    if (inf_clock_ns() >= step->pause_until_ns)
        step->pause = NULL;
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
