// SPDX-License-Identifier: Apache-2.0
// A buffer has a counter of its users in front of its data. Forked sessions share buffers, and the
// last user frees the memory. Large buffers are mapped, so that pages that were never written take
// no memory.
#include "daemon/resource/session_buffer.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

#include "backends/base/blob.h"
#include "backends/base/pages.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"

#define ALIGNMENT    64
#define HEADER_BYTES ALIGNMENT // the counter in front of a buffer
// The least capacity of a buffer that is mapped, so that its memory goes back to the kernel with
// it, and that the unused rows of a history take none. Smaller ones would waste parts of pages.
#define MAPPED_LEAST ((size_t)64 << 10)

// Returns the bytes of memory of a buffer: its counter, its capacity and the slack.
static size_t allocated_bytes(size_t capacity)
{
    return HEADER_BYTES + inf_size_align(capacity + INF_BLOB_SLACK_BYTES, ALIGNMENT);
}

static _Atomic uint32_t *buffer_users(const struct inf_session_buffer *buffer)
{
    return (_Atomic uint32_t *)(void *)(buffer->data - HEADER_BYTES);
}

void inf_session_buffer_drop(struct inf_session_buffer *buffer)
{
    // Acquire-release order, so that the last user frees what the others have done with.
    if (buffer->data != NULL &&
        atomic_fetch_sub_explicit(buffer_users(buffer), 1, memory_order_acq_rel) == 1) {
        if (buffer->capacity >= MAPPED_LEAST)
            inf_pages_unmap(buffer->data - HEADER_BYTES, allocated_bytes(buffer->capacity));
        else
            free(buffer->data - HEADER_BYTES);
    }
    *buffer = (struct inf_session_buffer){.data = NULL};
}

struct inf_session_buffer inf_session_buffer_share(const struct inf_session_buffer *buffer)
{
    if (buffer->data != NULL)
        atomic_fetch_add_explicit(buffer_users(buffer), 1, memory_order_relaxed);
    return *buffer;
}

bool inf_session_buffer_is_shared(const struct inf_session_buffer *buffer)
{
    return buffer->data != NULL &&
           atomic_load_explicit(buffer_users(buffer), memory_order_acquire) > 1;
}

// Returns true if a value of `size_bytes` may be written to the present memory of the buffer.
static bool has_memory(const struct inf_session_buffer *buffer, size_t size_bytes)
{
    return buffer->data != NULL && buffer->capacity >= size_bytes &&
           !inf_session_buffer_is_shared(buffer);
}

size_t inf_session_buffer_capacity(const struct inf_session_buffer *buffer, size_t size_bytes)
{
    return has_memory(buffer, size_bytes) ? buffer->capacity
                                          : inf_size_align(INF_MAX(size_bytes, 1), ALIGNMENT);
}

enum inf_code inf_session_buffer_reserve(struct inf_session_buffer *buffer, size_t size_bytes,
                                         bool *out_new, struct inf_error *err)
{
    if (out_new != NULL)
        *out_new = false;
    buffer->lags = false;
    if (has_memory(buffer, size_bytes))
        return INF_OK;
    if (size_bytes > INF_LIMIT_SESSION_BYTES)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_QUOTA_BYTES,
                               "%zu bytes, a session keeps at most %" PRIu64, size_bytes,
                               INF_LIMIT_SESSION_BYTES);
    inf_session_buffer_drop(buffer);
    size_t capacity = inf_session_buffer_capacity(buffer, size_bytes);
    size_t allocated = allocated_bytes(capacity);
    uint8_t *memory =
        capacity >= MAPPED_LEAST ? inf_pages_map(allocated) : aligned_alloc(ALIGNMENT, allocated);
    if (memory == NULL)
        return inf_fail_reason(err, INF_EXHAUSTED, INF_REASON_HOST_OOM,
                               "no memory for %zu bytes of a session", capacity);
    if (capacity < MAPPED_LEAST)
        memset(memory, 0, allocated);
    buffer->data = memory + HEADER_BYTES;
    atomic_init(buffer_users(buffer), 1);
    buffer->capacity = capacity;
    if (out_new != NULL)
        *out_new = true;
    return INF_OK;
}
