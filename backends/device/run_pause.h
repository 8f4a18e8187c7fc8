// SPDX-License-Identifier: Apache-2.0
// Lets several runs pause between two steps while more urgent runs use the device.
#ifndef INF_BACKENDS_DEVICE_RUN_PAUSE_H
#define INF_BACKENDS_DEVICE_RUN_PAUSE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

#include "backends/base/thread.h"

// A cancelled run notices that while it pauses within this time.
#define INF_RUN_PAUSE_POLL_MS 5u

// Embedded in its owner, which must outlive the runs.
struct inf_run_pause {
    atomic_bool wanted; // runs that watch the pause wait at their next step
    struct inf_mutex mutex;
    struct inf_cond ended;
};

// Initialises an embedded pause, which is not wanted.
void inf_run_pause_init(struct inf_run_pause *pause);

// Releases an embedded pause. No run may use it.
void inf_run_pause_fini(struct inf_run_pause *pause);

// Wakes the runs that pause. The caller sets `wanted` to false before. Any thread.
void inf_run_pause_end(struct inf_run_pause *pause);

// Waits until the pause is not wanted, *cancelled is true (NULL: it never is), or the time
// `until_ns` of inf_clock_ns(). Returns how long it waited in nanoseconds.
uint64_t inf_run_pause_wait(struct inf_run_pause *pause, const atomic_bool *cancelled,
                            uint64_t until_ns) INF_MAY_BLOCK;

#endif
