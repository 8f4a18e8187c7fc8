// SPDX-License-Identifier: Apache-2.0
// The number of references to a shared object: a member of the object that begins at 1. Any thread
// that holds a reference may take further ones and drop its own.
#ifndef INF_BACKENDS_BASE_REFERENCE_H
#define INF_BACKENDS_BASE_REFERENCE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>

// Takes another reference.
static inline void inf_reference_take(_Atomic size_t *references)
{
    // Relaxed order is enough: the caller holds a reference, so the object cannot be freed during
    // the call.
    atomic_fetch_add_explicit(references, 1, memory_order_relaxed);
}

// Drops a reference. Returns true if it was the last one: the caller then frees the object.
static inline bool inf_reference_drop(_Atomic size_t *references)
{
    // Acquire-release order: each thread releases its writes, and the thread that frees the object
    // sees the writes of all others.
    return atomic_fetch_sub_explicit(references, 1, memory_order_acq_rel) == 1;
}

#endif
