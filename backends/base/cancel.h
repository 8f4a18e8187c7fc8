// SPDX-License-Identifier: Apache-2.0
// Cancellation: a flag that another thread sets, and that long work checks between its steps.
#ifndef INF_BACKENDS_BASE_CANCEL_H
#define INF_BACKENDS_BASE_CANCEL_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Returns true if the work is cancelled. `cancelled` may be NULL: the work cannot be cancelled.
static inline bool inf_is_cancelled(const atomic_bool *cancelled)
{
    // Relaxed is enough, because the flag is only a hint to stop early.
    return cancelled != NULL && atomic_load_explicit(cancelled, memory_order_relaxed);
}

#endif
