// SPDX-License-Identifier: Apache-2.0
#include "daemon/output/buffer_pool.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/blob.h"
#include "backends/base/thread.h"
#include "proto/core/span.h"

#define ALIGNMENT   64
#define CLASS_MIN   12 // the smallest buffer is 4 KiB,
#define CLASS_MAX   20 // the largest 1 MiB
#define CLASS_COUNT (CLASS_MAX - CLASS_MIN + 1)

_Static_assert(INF_POOL_BYTES_MAX == 1u << CLASS_MAX, "the largest class holds a data segment");

// An unused buffer holds the link to the next one.
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

// The class whose buffers hold `size_bytes`, counted from the smallest.
static size_t class_of(size_t size_bytes)
{
    assert(size_bytes <= INF_POOL_BYTES_MAX);
    if (size_bytes <= (size_t)1 << CLASS_MIN)
        return 0;
    return (size_t)(64 - __builtin_clzll(size_bytes - 1)) - CLASS_MIN;
}

static size_t class_bytes(size_t class)
{
    return (size_t)1 << (class + CLASS_MIN);
}

// Zeroed once, so that what a frame does not fill is at least no stranger's heap.
static void *make_buffer(size_t size_bytes)
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
        return make_buffer(size_bytes);
    size_t class = class_of(size_bytes);
    inf_mutex_lock(&pool->mutex);
    struct unused *found = pool->unused[class];
    if (found != NULL) {
        pool->unused[class] = found->next;
        pool->kept_bytes -= class_bytes(class);
    }
    inf_mutex_unlock(&pool->mutex);
    return found != NULL ? found : make_buffer(class_bytes(class));
}

void inf_pool_release(struct inf_pool *pool, void *buffer, size_t size_bytes)
{
    if (buffer == NULL || size_bytes > INF_POOL_BYTES_MAX) {
        free(buffer);
        return;
    }
    size_t class = class_of(size_bytes);
    struct unused *unused = buffer;
    inf_mutex_lock(&pool->mutex);
    bool keep = pool->kept_bytes + class_bytes(class) <= pool->kept_bytes_max;
    if (keep) {
        unused->next = pool->unused[class];
        pool->unused[class] = unused;
        pool->kept_bytes += class_bytes(class);
    }
    inf_mutex_unlock(&pool->mutex);
    if (!keep)
        free(buffer);
}
