// SPDX-License-Identifier: Apache-2.0
// Keeps freed tensors of one slot (concurrent run) for reuse. The operating system zeroes each page
// of a newly allocated block; a kept block avoids this cost.
#include "backends/exec/dynamic/scratch_cache.h"

#include <string.h>

// Smaller blocks are not kept, because they cost the allocator little.
#define BYTES_MIN ((size_t)4096)

// Removes the blob at `index` from the cache and returns it.
static struct inf_blob *take_at(struct inf_scratch_cache *scratch_cache, uint32_t index)
{
    struct inf_blob *blob = scratch_cache->blobs[index];
    scratch_cache->count--;
    memmove(&scratch_cache->blobs[index], &scratch_cache->blobs[index + 1],
            (scratch_cache->count - index) * sizeof(scratch_cache->blobs[0]));
    atomic_fetch_sub_explicit(&scratch_cache->bytes, blob->size_bytes, memory_order_relaxed);
    return blob;
}

struct inf_blob *inf_scratch_cache_take(struct inf_scratch_cache *scratch_cache, size_t size_bytes)
{
    // Search backwards, because the most recently freed block is most likely still in the CPU's
    // cache.
    for (uint32_t i = scratch_cache != NULL ? scratch_cache->count : 0; i > 0; i--)
        if (scratch_cache->blobs[i - 1]->size_bytes == size_bytes)
            return take_at(scratch_cache, i - 1);
    return NULL;
}

static bool is_full(const struct inf_scratch_cache *scratch_cache, size_t size_bytes)
{
    uint64_t bytes = atomic_load_explicit(&scratch_cache->bytes, memory_order_relaxed);
    return scratch_cache->count == INF_SCRATCH_CACHE_MAX ||
           bytes + size_bytes > INF_SCRATCH_CACHE_BYTES_MAX;
}

void inf_scratch_cache_put(struct inf_scratch_cache *scratch_cache, struct inf_blob **blob)
{
    struct inf_blob *given = *blob;
    // The load has acquire order, so that this thread sees the writes of all threads that dropped
    // their references to the blob.
    if (scratch_cache == NULL || given == NULL || given->data == NULL ||
        given->size_bytes < BYTES_MIN || given->size_bytes > INF_SCRATCH_CACHE_BYTES_MAX ||
        atomic_load_explicit(&given->references, memory_order_acquire) != 1) {
        inf_blob_unref(blob);
        return;
    }
    *blob = NULL;
    while (is_full(scratch_cache, given->size_bytes)) {
        struct inf_blob *oldest = take_at(scratch_cache, 0);
        inf_blob_unref(&oldest);
    }
    scratch_cache->blobs[scratch_cache->count++] = given;
    atomic_fetch_add_explicit(&scratch_cache->bytes, given->size_bytes, memory_order_relaxed);
}

void inf_scratch_cache_fini(struct inf_scratch_cache *scratch_cache)
{
    while (scratch_cache->count > 0) {
        struct inf_blob *blob = take_at(scratch_cache, scratch_cache->count - 1);
        inf_blob_unref(&blob);
    }
}
