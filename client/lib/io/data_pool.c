// SPDX-License-Identifier: Apache-2.0
// A pool of buffers in twelve size classes, each a power of two. The class of a buffer is computed
// from its size, so buffers need no header. Larger buffers are not pooled. An unused buffer stores
// the link to the next one in its first bytes.
#include "client/lib/io/data_pool.h"

#include <stdint.h>
#include <stdlib.h>

#include "proto/wire/frame.h"

#define DATA_CLASS_MIN_LOG 9u

static uint32_t find_class(size_t size)
{
    uint32_t log2 = 0;
    while (((size_t)1 << (DATA_CLASS_MIN_LOG + log2)) < size)
        log2++;
    return log2;
}

void *inf_client_data_pool_alloc(void *context, size_t size)
{
    struct inf_client_data_pool *pool = context;
    uint32_t log2 = find_class(size);
    size_t bytes = (size_t)1 << (DATA_CLASS_MIN_LOG + log2);
    if (log2 >= INF_CLIENT_DATA_CLASSES)
        return aligned_alloc(INF_FRAME_DATA_ALIGNMENT, bytes);
    void **unused = pool->unused[log2];
    if (unused == NULL)
        return aligned_alloc(INF_FRAME_DATA_ALIGNMENT, bytes);
    pool->unused[log2] = *unused;
    pool->unused_bytes -= bytes;
    return unused;
}

void inf_client_data_pool_free(void *context, void *data, size_t size)
{
    struct inf_client_data_pool *pool = context;
    if (data == NULL)
        return;
    uint32_t log2 = find_class(size);
    size_t bytes = (size_t)1 << (DATA_CLASS_MIN_LOG + log2);
    if (log2 >= INF_CLIENT_DATA_CLASSES || pool->unused_bytes + bytes > INF_CLIENT_POOL_BYTES) {
        free(data);
        return;
    }
    *(void **)data = pool->unused[log2];
    pool->unused[log2] = data;
    pool->unused_bytes += bytes;
}

void inf_client_data_pool_fini(struct inf_client_data_pool *pool)
{
    for (uint32_t log2 = 0; log2 < INF_CLIENT_DATA_CLASSES; log2++) {
        while (pool->unused[log2] != NULL) {
            void **data = pool->unused[log2];
            pool->unused[log2] = *data;
            free(data);
        }
    }
}
