// SPDX-License-Identifier: Apache-2.0
// Buffers for the data segments of frames, kept for the next one: in the steady state nothing is
// allocated between a request and its reply. Any thread; a lock is held for a swap only.
#ifndef INF_DAEMON_OUTPUT_BUFFER_POOL_H
#define INF_DAEMON_OUTPUT_BUFFER_POOL_H

#include <stddef.h>

#include "proto/core/limits.h"
#include "proto/core/status.h"

// The largest buffer that is kept for the next: a data segment, or header and metadata of a frame.
#define INF_POOL_BYTES_MAX INF_LIMIT_DATA_BYTES

struct inf_pool;

// Makes a pool that keeps at most `kept_bytes_max` of unused buffers. *out_pool is the caller's to
// destroy.
enum inf_code inf_pool_create(struct inf_pool **out_pool, size_t kept_bytes_max,
                              struct inf_error *err) INF_NODISCARD;

// Frees the pool and what it keeps; every buffer was given back. NULL is fine.
void inf_pool_destroy(struct inf_pool **pool);

// A buffer of at least `size_bytes`, aligned to 64, with
// INF_BLOB_SLACK_BYTES readable ones behind it; what it holds is anybody's. NULL without memory.
void *inf_pool_acquire(struct inf_pool *pool, size_t size_bytes) INF_NODISCARD;

// Gives a buffer back; `size_bytes` is what it was acquired with. NULL is fine.
void inf_pool_release(struct inf_pool *pool, void *buffer, size_t size_bytes);

#endif
