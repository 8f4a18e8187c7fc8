// SPDX-License-Identifier: Apache-2.0
// Buffers for the values of session tensors. Forked sessions share them.
#ifndef INF_DAEMON_RESOURCE_SESSION_BUFFER_H
#define INF_DAEMON_RESOURCE_SESSION_BUFFER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "proto/core/status.h"

// Memory for one value of a session tensor, followed by INF_BLOB_SLACK_BYTES readable bytes. A
// counter of its users is in front of it.
struct inf_session_buffer {
    uint8_t *data;
    size_t capacity;
    // Used in `next` of a session tensor: the elements are those of `now`, except for the rows in
    // the tensor's `lag`.
    bool lags;
};

// Gives the buffer memory for a value of `size_bytes`, which no other session uses, so that the
// caller may write it. The bytes are not defined unless *out_new is set: then the memory is new and
// its bytes are all 0. out_new may be NULL. Any thread may call the function, but only one at a
// time for the same buffer.
//
// INF_EXHAUSTED  (QUOTA_BYTES) the buffer would exceed INF_LIMIT_SESSION_BYTES; (HOST_OOM)
//                memory is exhausted.
enum inf_code inf_session_buffer_reserve(struct inf_session_buffer *buffer, size_t size_bytes,
                                         bool *out_new, struct inf_error *err) INF_NODISCARD;

// Returns the capacity that the buffer will have after inf_session_buffer_reserve() for
// `size_bytes`.
size_t inf_session_buffer_capacity(const struct inf_session_buffer *buffer, size_t size_bytes);

// Returns true if another session uses the buffer too, so that it must not be written.
bool inf_session_buffer_is_shared(const struct inf_session_buffer *buffer);

// Returns a further reference to the memory of a buffer, for another session.
struct inf_session_buffer inf_session_buffer_share(const struct inf_session_buffer *buffer);

// Gives up the reference to the memory of a buffer, and frees it if no other session uses it.
void inf_session_buffer_drop(struct inf_session_buffer *buffer);

#endif
