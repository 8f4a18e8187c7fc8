// SPDX-License-Identifier: Apache-2.0
// Frames on their way out of a connection: kept in order, written as far as the socket takes them.
// The loop's.
#ifndef INF_DAEMON_OUTPUT_OUTPUT_QUEUE_H
#define INF_DAEMON_OUTPUT_OUTPUT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "daemon/output/buffer_pool.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

struct inf_output_frame;

// What all connections share: frames kept for the next use. Embedded.
struct inf_output_store {
    struct inf_pool *pool; // outlives the store
    struct inf_output_frame *unused;
    uint32_t unused_count;
};

// Prepares an embedded store.
void inf_output_store_init(struct inf_output_store *store, struct inf_pool *pool);

// Frees the frames it keeps; every output has been emptied.
void inf_output_store_fini(struct inf_output_store *store);

// The frames of one connection. Embedded; all zero is an empty one.
struct inf_output {
    struct inf_output_frame *first, *last;
    uint64_t bytes;          // not yet written
    uint64_t first_since_ns; // when `first` became the first; 0: no frame has had to wait
};

// A frame to be sent.
struct inf_output_item {
    struct inf_span head; // header and metadata; copied
    struct inf_span data; // in the buffer of this frame, or of one that follows it soon
    uint8_t *buffer;      // of the pool, or NULL; taken over, also on failure
    size_t capacity;      // what `buffer` was acquired with
    int fd_plus_1;        // 0: none; else a descriptor that goes with it, taken over, plus 1
};

// Appends a frame.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code inf_output_push(struct inf_output *output, struct inf_output_store *store,
                              const struct inf_output_item *item,
                              struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Puts the rest of a frame that was begun elsewhere ahead of all others; none of them is begun. `buffer` is
// of the pool, and taken over, also on failure.
//
// INF_EXHAUSTED  (HOST_OOM)
enum inf_code inf_output_push_rest(struct inf_output *output, struct inf_output_store *store,
                                   uint8_t *buffer, size_t size_bytes,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Appends all frames of `from`, none of which has been written, and leaves it empty.
void inf_output_append(struct inf_output *output, struct inf_output *from) INF_ON_LOOP;

enum inf_output_state {
    INF_OUTPUT_EMPTY,   // everything is written
    INF_OUTPUT_BLOCKED, // the socket takes no more for now
    INF_OUTPUT_BROKEN   // the client is gone
};

// Writes what the socket takes. Never blocks.
enum inf_output_state inf_output_flush(struct inf_output *output, struct inf_output_store *store,
                                       int fd) INF_ON_LOOP;

// Drops all frames of which nothing is written yet.
void inf_output_cut(struct inf_output *output, struct inf_output_store *store) INF_ON_LOOP;

// Drops what is not written.
void inf_output_clear(struct inf_output *output, struct inf_output_store *store) INF_ON_LOOP;

#endif
