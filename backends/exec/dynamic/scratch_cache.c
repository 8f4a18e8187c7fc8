// SPDX-License-Identifier: Apache-2.0
#include "backends/exec/dynamic/scratch_cache.h"

#include <string.h>

// Smaller ones cost the allocator little.
#define BYTES_MIN ((size_t)4096)

// Takes the blob at `index` out.
static struct inf_blob *take_at(struct inf_spares *spares, uint32_t index)
{
    struct inf_blob *blob = spares->blobs[index];
    spares->count--;
    memmove(&spares->blobs[index], &spares->blobs[index + 1],
            (spares->count - index) * sizeof(spares->blobs[0]));
    atomic_fetch_sub_explicit(&spares->bytes, blob->size_bytes, memory_order_relaxed);
    return blob;
}

struct inf_blob *inf_spares_take(struct inf_spares *spares, size_t size_bytes)
{
    // The last one is the nearest to the processor.
    for (uint32_t i = spares != NULL ? spares->count : 0; i > 0; i--)
        if (spares->blobs[i - 1]->size_bytes == size_bytes)
            return take_at(spares, i - 1);
    return NULL;
}

static bool is_full(const struct inf_spares *spares, size_t size_bytes)
{
    uint64_t bytes = atomic_load_explicit(&spares->bytes, memory_order_relaxed);
    return spares->count == INF_SPARES_MAX || bytes + size_bytes > INF_SPARES_BYTES_MAX;
}

void inf_spares_give(struct inf_spares *spares, struct inf_blob **blob)
{
    struct inf_blob *given = *blob;
    // Acquire what others wrote before they dropped theirs.
    if (spares == NULL || given == NULL || given->data == NULL || given->size_bytes < BYTES_MIN ||
        given->size_bytes > INF_SPARES_BYTES_MAX ||
        atomic_load_explicit(&given->references, memory_order_acquire) != 1) {
        inf_blob_unref(blob);
        return;
    }
    *blob = NULL;
    while (is_full(spares, given->size_bytes)) {
        struct inf_blob *oldest = take_at(spares, 0);
        inf_blob_unref(&oldest);
    }
    spares->blobs[spares->count++] = given;
    atomic_fetch_add_explicit(&spares->bytes, given->size_bytes, memory_order_relaxed);
}

void inf_spares_fini(struct inf_spares *spares)
{
    while (spares->count > 0) {
        struct inf_blob *blob = take_at(spares, spares->count - 1);
        inf_blob_unref(&blob);
    }
}
