// SPDX-License-Identifier: Apache-2.0
// Memory of tensors that an interpreted run no longer needs. It is kept for other tensors of the
// same size, in the same run and in later runs. Memory that is returned to the system would be
// zeroed again at each allocation.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_SCRATCH_CACHE_H
#define INF_BACKENDS_EXEC_DYNAMIC_SCRATCH_CACHE_H

#include <stdatomic.h>
#include <stdint.h>

#include "backends/base/blob.h"

#define INF_SCRATCH_CACHE_MAX       64
#define INF_SCRATCH_CACHE_BYTES_MAX ((uint64_t)2 << 20)

// The cache of one slot. A zeroed struct is empty. Only one thread at a time may use it, except for
// reading `bytes`. A NULL cache keeps nothing.
struct inf_scratch_cache {
    struct inf_blob *blobs[INF_SCRATCH_CACHE_MAX]; // oldest first
    uint32_t count;
    _Atomic uint64_t bytes; // total size of the kept blobs
};

// Returns a kept blob of the given size with undefined contents; NULL if there is none.
struct inf_blob *inf_scratch_cache_take(struct inf_scratch_cache *scratch_cache,
                                        size_t size_bytes) INF_NODISCARD;

// Takes ownership of the reference and sets the pointer to NULL. The blob is kept if it has no
// other reference and fits the limits above. The oldest blobs are freed to make room.
void inf_scratch_cache_put(struct inf_scratch_cache *scratch_cache, struct inf_blob **blob);

// Frees all kept blobs.
void inf_scratch_cache_fini(struct inf_scratch_cache *scratch_cache);

#endif
