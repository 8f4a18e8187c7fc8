// SPDX-License-Identifier: Apache-2.0
// The node that a run is computing, so that another thread can name it while the run continues, for
// example in a log line about a run that takes too long.
#ifndef INF_BACKENDS_DEVICE_RUN_STEP_H
#define INF_BACKENDS_DEVICE_RUN_STEP_H

#include <stdatomic.h>
#include <stddef.h>

#include "backends/base/idle_gate.h"
#include "backends/base/thread.h"
#include "backends/device/run_pause.h"

// Embedded in its owner. Used by one run at a time.
struct inf_run_step {
    // Held while another thread reads the name, and while the run clears it. Therefore the graph
    // that owns the name cannot be freed while the name is read.
    struct inf_mutex mutex;
    _Atomic(const char *) node; // name of the node that is computed; NULL: no run
    // Set by the owner before a run, and read by the run: the pause that the run watches, and until
    // when; NULL: it does not pause.
    struct inf_run_pause *pause;
    uint64_t pause_until_ns;
    // Set likewise: the run pauses while requests wait or run, until the same time. For runs of
    // loads, which no request waits for. NULL: it does not.
    const struct inf_idle_gate *idle_gate;
    uint64_t paused_ns; // the time for which the run paused; set to 0 by the owner before a run
};

// Initialises an embedded step.
void inf_run_step_init(struct inf_run_step *step);

// Releases an embedded step. No thread may use it.
void inf_run_step_fini(struct inf_run_step *step);

// Sets the node that the run computes next. `node` must be valid until inf_run_step_clear(). Does
// nothing if `step` is NULL. Called by the thread that runs.
static inline void inf_run_step_set(struct inf_run_step *step, const char *node)
{
    // Relaxed is enough: the name was written before the run began, and the reader holds the mutex
    // that inf_run_step_clear() needs.
    if (step != NULL)
        atomic_store_explicit(&step->node, node, memory_order_relaxed);
}

// Returns true if the run must call inf_run_step_pause() before its next step. Called by the thread
// that runs, which may give up cores before it pauses.
static inline bool inf_run_step_must_pause(const struct inf_run_step *step)
{
    if (step == NULL)
        return false;
    return (step->pause != NULL &&
            atomic_load_explicit(&step->pause->wanted, memory_order_relaxed)) ||
           (step->idle_gate != NULL &&
            atomic_load_explicit(&step->idle_gate->busy, memory_order_relaxed) > 0);
}

// Waits until more urgent runs have ended, the run is cancelled, or its time to pause is over, and
// adds the time to step->paused_ns. Called by the thread that runs.
void inf_run_step_pause(struct inf_run_step *step, const atomic_bool *cancelled) INF_MAY_BLOCK;

// Ends the use of the name that was set last. Does nothing if `step` is NULL. Called by the thread
// that runs, before it releases the graph.
void inf_run_step_clear(struct inf_run_step *step);

// Copies the name of the current node to `text`; "" if there is no run. Names that are too long are
// cut. Any thread.
void inf_run_step_copy(struct inf_run_step *step, char *text, size_t size);

#endif
