// SPDX-License-Identifier: Apache-2.0
// Memory of tensors that an interpreted run needs no more, kept for others of the same size, in
// this run and in the next: a system that takes it back clears it again each time.
#ifndef INF_BACKENDS_EXEC_DYNAMIC_SCRATCH_CACHE_H
#define INF_BACKENDS_EXEC_DYNAMIC_SCRATCH_CACHE_H

#include <stdatomic.h>
#include <stdint.h>

#include "backends/base/blob.h"

#define INF_SCRATCH_CACHE_MAX       64
#define INF_SCRATCH_CACHE_BYTES_MAX ((uint64_t)2 << 20)

// Of one slot; all zero is empty. One thread at a time, but for `bytes`. NULL keeps nothing.
struct inf_scratch_cache {
    struct inf_blob *blobs[INF_SCRATCH_CACHE_MAX]; // as they came
    uint32_t count;
    _Atomic uint64_t bytes; // of all
};

// A blob of so many bytes, of which nothing is known; NULL where there is none.
struct inf_blob *inf_scratch_cache_take(struct inf_scratch_cache *scratch_cache,
                                        size_t size_bytes) INF_NODISCARD;

// Takes over the reference and sets the pointer NULL. The blob is kept if no other
// reference exists and it fits the limits above; the oldest blobs are freed to make room.
void inf_scratch_cache_put(struct inf_scratch_cache *scratch_cache, struct inf_blob **blob);

// Frees all.
void inf_scratch_cache_fini(struct inf_scratch_cache *scratch_cache);

#endif
