// SPDX-License-Identifier: Apache-2.0
// Free lists of buffers, one for each power of two from 4 KiB to 1 MiB. Larger buffers are not
// kept.
#include "daemon/output/buffer_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/blob.h"
#include "backends/base/thread.h"
#include "proto/core/span.h"

#define ALIGNMENT   64
#define CLASS_MIN   12 // log2 of the smallest buffer: 4 KiB
#define CLASS_MAX   20 // log2 of the largest buffer: 1 MiB
#define CLASS_COUNT (CLASS_MAX - CLASS_MIN + 1)

_Static_assert(INF_POOL_BYTES_MAX == 1u << CLASS_MAX, "the largest class holds a data segment");

// An unused buffer begins with the link to the next one.
struct unused {
    struct unused *next;
};

struct inf_pool {
    struct inf_mutex mutex; // guards `unused` and `kept_bytes`
    struct unused *unused[CLASS_COUNT];
    size_t kept_bytes;
    size_t kept_bytes_max;
};

enum inf_code inf_pool_create(struct inf_pool **out_pool, size_t kept_bytes_max,
                              struct inf_error *err)
{
    struct inf_pool *pool = calloc(1, sizeof *pool);
    if (pool == NULL)
        return inf_fail(err, INF_EXHAUSTED, "no memory for a buffer pool");
    inf_mutex_init(&pool->mutex);
    pool->kept_bytes_max = kept_bytes_max;
    *out_pool = pool;
    return INF_OK;
}

void inf_pool_destroy(struct inf_pool **pool)
{
    if (*pool == NULL)
        return;
    for (size_t i = 0; i < CLASS_COUNT; i++) {
        while ((*pool)->unused[i] != NULL) {
            struct unused *gone = (*pool)->unused[i];
            (*pool)->unused[i] = gone->next;
            free(gone);
        }
    }
    inf_mutex_fini(&(*pool)->mutex);
    free(*pool);
    *pool = NULL;
}

// Returns the index of the free list with the smallest buffers that hold `size_bytes`.
static size_t find_class(size_t size_bytes)
{
    assert(size_bytes <= INF_POOL_BYTES_MAX);
    if (size_bytes <= (size_t)1 << CLASS_MIN)
        return 0;
    return (size_t)(64 - __builtin_clzll(size_bytes - 1)) - CLASS_MIN;
}

static size_t find_class_bytes(size_t class)
{
    return (size_t)1 << (class + CLASS_MIN);
}

// Allocates a buffer and zeroes it, so that a client never receives other heap memory in bytes of a
// frame that nothing was written to.
static void *alloc_buffer(size_t size_bytes)
{
    size_t room = inf_size_align(size_bytes + INF_BLOB_SLACK_BYTES, ALIGNMENT);
    void *buffer = aligned_alloc(ALIGNMENT, room);
    if (buffer != NULL)
        memset(buffer, 0, room);
    return buffer;
}

void *inf_pool_acquire(struct inf_pool *pool, size_t size_bytes)
{
    if (size_bytes > INF_POOL_BYTES_MAX)
        return alloc_buffer(size_bytes);
    size_t class = find_class(size_bytes);
    inf_mutex_lock(&pool->mutex);
    struct unused *found = pool->unused[class];
    if (found != NULL) {
        pool->unused[class] = found->next;
        pool->kept_bytes -= find_class_bytes(class);
    }
    inf_mutex_unlock(&pool->mutex);
    return found != NULL ? found : alloc_buffer(find_class_bytes(class));
}

void inf_pool_release(struct inf_pool *pool, void *buffer, size_t size_bytes)
{
    if (buffer == NULL || size_bytes > INF_POOL_BYTES_MAX) {
        free(buffer);
        return;
    }
    size_t class = find_class(size_bytes);
    struct unused *unused = buffer;
    inf_mutex_lock(&pool->mutex);
    bool keep = pool->kept_bytes + find_class_bytes(class) <= pool->kept_bytes_max;
    if (keep) {
        unused->next = pool->unused[class];
        pool->unused[class] = unused;
        pool->kept_bytes += find_class_bytes(class);
    }
    inf_mutex_unlock(&pool->mutex);
    if (!keep)
        free(buffer);
}
