// SPDX-License-Identifier: Apache-2.0
// Runs long computations in the event loop, a slice at a time, so that the loop serves other
// clients between the slices.
#ifndef INF_GATEWAY_SLICES_H
#define INF_GATEWAY_SLICES_H

#include <stdbool.h>
#include <sys/queue.h>

#include "proto/core/attributes.h"
#include "proto/core/status.h"

struct event_base;
struct inf_slices;

// A computation that is not finished. Zero-initialise, and set `step` and `context`. Must stay
// valid until step() has returned false or inf_slices_cancel() was called.
struct inf_slice_task {
    // Computes for at most about 0.2 ms. Returns true if there is more to do; otherwise it can free
    // the task.
    bool (*step)(void *context);
    void *context;
    bool queued; // used by inf_slices only
    TAILQ_ENTRY(inf_slice_task) next;
};

// Creates an empty queue of tasks, which run on the thread of the loop `base`.
enum inf_code inf_slices_create(struct inf_slices **slices, struct event_base *base,
                                struct inf_error *err) INF_NODISCARD;

// Frees the queue, which must be empty. Sets *slices to NULL.
void inf_slices_destroy(struct inf_slices **slices);

// Calls the task's step() once, and queues the task if there is more to do. All queued tasks
// together get about 0.5 ms of each turn of the loop, one slice after the other in their order.
void inf_slices_start(struct inf_slices *slices, struct inf_slice_task *task);

// Removes the task from the queue if it is queued.
void inf_slices_cancel(struct inf_slices *slices, struct inf_slice_task *task);

#endif
