// SPDX-License-Identifier: Apache-2.0
// Buffers for the data segments of frames, kept for reuse: in the steady state, nothing is
// allocated between a request and its reply. Any thread may use a pool; its lock is held only to
// link or unlink a buffer.
#ifndef INF_DAEMON_OUTPUT_BUFFER_POOL_H
#define INF_DAEMON_OUTPUT_BUFFER_POOL_H

#include <stddef.h>

#include "proto/core/limits.h"
#include "proto/core/status.h"

// The largest buffer that is kept for reuse. It holds a data segment, or the header and metadata of
// a frame.
#define INF_POOL_BYTES_MAX INF_LIMIT_DATA_BYTES

struct inf_pool;

// Creates a pool that keeps at most `kept_bytes_max` bytes of unused buffers. The caller destroys
// *out_pool.
enum inf_code inf_pool_create(struct inf_pool **out_pool, size_t kept_bytes_max,
                              struct inf_error *err) INF_NODISCARD;

// Frees the pool and the buffers in it. All buffers must have been released. NULL is allowed.
void inf_pool_destroy(struct inf_pool **pool);

// Returns a buffer of at least `size_bytes`, aligned to 64 bytes and followed by
// INF_BLOB_SLACK_BYTES readable bytes. The content is undefined. Returns NULL if memory is
// exhausted.
void *inf_pool_acquire(struct inf_pool *pool, size_t size_bytes) INF_NODISCARD;

// Releases a buffer; `size_bytes` is the size that it was acquired with. NULL is allowed.
void inf_pool_release(struct inf_pool *pool, void *buffer, size_t size_bytes);

#endif
