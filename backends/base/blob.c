// SPDX-License-Identifier: Apache-2.0
#include "backends/base/blob.h"

#include <stdlib.h>
#include <string.h>

#include "proto/core/span.h"

#define ALIGNMENT 64

struct inf_blob *inf_blob_create(size_t size_bytes)
{
    struct inf_blob *blob = inf_blob_create_unset(size_bytes);
    if (blob != NULL)
        memset(blob->data, 0, size_bytes);
    return blob;
}

struct inf_blob *inf_blob_create_unset(size_t size_bytes)
{
    size_t total;
    if (!inf_size_add(size_bytes, INF_BLOB_SLACK_BYTES + ALIGNMENT - 1, &total))
        return NULL;
    struct inf_blob *blob = calloc(1, sizeof *blob);
    if (blob == NULL)
        return NULL;
    blob->data = aligned_alloc(ALIGNMENT, total & ~(size_t)(ALIGNMENT - 1));
    if (blob->data == NULL) {
        free(blob);
        return NULL;
    }
    total &= ~(size_t)(ALIGNMENT - 1);
    memset((char *)blob->data + size_bytes, 0, total - size_bytes);
    blob->size_bytes = size_bytes;
    atomic_init(&blob->references, 1);
    return blob;
}

struct inf_blob *inf_blob_ref(struct inf_blob *blob)
{
    // Relaxed: whoever hands us the blob holds a reference, so it cannot vanish meanwhile.
    atomic_fetch_add_explicit(&blob->references, 1, memory_order_relaxed);
    return blob;
}

void inf_blob_unref(struct inf_blob **blob)
{
    struct inf_blob *gone = *blob;
    *blob = NULL;
    // Release our writes to whoever frees; acquire everybody's before freeing.
    if (gone == NULL || atomic_fetch_sub_explicit(&gone->references, 1, memory_order_acq_rel) != 1)
        return;
    free(gone->data);
    free(gone);
}
