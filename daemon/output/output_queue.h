// SPDX-License-Identifier: Apache-2.0
// Frames on their way to a client. They stay in order, and are written as the socket accepts bytes.
// Used by the loop only.
#ifndef INF_DAEMON_OUTPUT_OUTPUT_QUEUE_H
#define INF_DAEMON_OUTPUT_OUTPUT_QUEUE_H

#include <stdbool.h>
#include <stdint.h>

#include "backends/base/role.h"
#include "daemon/output/buffer_pool.h"
#include "daemon/output/send_log.h"
#include "proto/core/span.h"
#include "proto/core/status.h"

struct inf_output_frame;

// Empty frame objects, kept for reuse and shared by all connections. Embedded in struct
// inf_connections.
struct inf_output_store {
    struct inf_pool *pool; // outlives the store
    struct inf_output_frame *unused;
    uint32_t unused_count;
};

// Initialises the store, a struct that is embedded in another object.
void inf_output_store_init(struct inf_output_store *store, struct inf_pool *pool);

// Frees the unused frames. Every output must be empty.
void inf_output_store_fini(struct inf_output_store *store);

// The queued frames of one connection. Embedded in the connection; all zero is an empty queue.
struct inf_output {
    struct inf_output_frame *first, *last;
    uint64_t bytes; // bytes of all queued frames that are not written yet
    // Time at which the socket stopped accepting the bytes of frame `first`; 0: it accepts bytes.
    uint64_t first_since_ns;
};

// A frame to be queued.
struct inf_output_item {
    struct inf_span head; // header and metadata, which the queue copies
    struct inf_span data; // data in the buffer of this frame, or of a later frame of the same reply
    uint8_t *buffer; // a buffer of the pool, or NULL; the queue takes ownership, even on failure
    size_t capacity; // size that `buffer` was acquired with
    int fd_plus_1; // descriptor to send with the frame, plus 1; the queue takes ownership; 0: none
    // Entry of the send log that the frame answers, plus 1; 0: none.
    uint32_t pending_plus_1;
    bool fill; // if the process ends within the frame, zeros may replace the rest of it
};

// Appends a frame to the queue.
//
// INF_EXHAUSTED  (HOST_OOM) memory is exhausted.
enum inf_code inf_output_push(struct inf_output *output, struct inf_output_store *store,
                              const struct inf_output_item *item,
                              struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Queues the unwritten bytes of a frame that a worker, or another process, wrote partly, in front
// of all other frames, none of which may be partly written. `rest` has only bytes in its buffer,
// for which the queue takes ownership, even on failure. `partial` is false if no byte was written.
//
// INF_EXHAUSTED  (HOST_OOM) memory is exhausted.
enum inf_code inf_output_push_rest(struct inf_output *output, struct inf_output_store *store,
                                   const struct inf_output_item *rest, bool partial,
                                   struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Moves all frames of `from` to the end of `output`. No frame of `from` may be partly written.
void inf_output_append(struct inf_output *output, struct inf_output *from) INF_ON_LOOP;

enum inf_output_state {
    INF_OUTPUT_EMPTY,   // all queued frames are written
    INF_OUTPUT_BLOCKED, // the socket buffer is full, so frames remain
    INF_OUTPUT_BROKEN   // the client disconnected
};

// Writes as many queued bytes as the socket accepts, through a send log (NULL: none). Never blocks.
enum inf_output_state inf_output_flush(struct inf_output *output, struct inf_output_store *store,
                                       int fd, struct inf_send_log *log) INF_ON_LOOP;

// Drops all queued frames except a frame that is partly written.
void inf_output_drop_unsent(struct inf_output *output, struct inf_output_store *store) INF_ON_LOOP;

// Drops all queued frames, even a partly written one.
void inf_output_clear(struct inf_output *output, struct inf_output_store *store) INF_ON_LOOP;

#endif
