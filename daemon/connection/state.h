// SPDX-License-Identifier: Apache-2.0
// The fields of one connection, and of the set of all connections. Only the files of this folder
// include this header.
#ifndef INF_DAEMON_CONNECTION_STATE_H
#define INF_DAEMON_CONNECTION_STATE_H

#include "daemon/connection/connection.h"
#include "daemon/handover/handover.h"
#include "daemon/output/output_queue.h"
#include "daemon/output/reply_writer.h"
#include "daemon/system/caller.h"
#include "proto/core/utf8.h"
#include "proto/wire/assembler.h"

struct event;

// The time in which a client must send HELLO after the daemon accepts its connection.
#define INF_CONNECTION_GREETING_MS 5000u
// The number of requests in flight that a client may have if its HELLO does not ask for another
// number.
#define INF_CONNECTION_STREAMS 256u

// The daemon closes a connection after this number of consecutive requests beyond the credit.
#define INF_CONNECTION_VIOLATIONS 4096u

// How long a restart waits for a kept client that has sent a frame in part, or that does not read
// its answers.
#define INF_CONNECTION_PARTIAL_MS 200u

// The retry delay that the daemon suggests to a client with too many requests in flight.
#define INF_CONNECTION_RETRY_MS 10u

enum inf_connection_state {
    INF_CONNECTION_GREETING, // the daemon waits for HELLO
    INF_CONNECTION_OPEN,
    INF_CONNECTION_CLOSING, // nothing is read; the connection closes when all output is written
    INF_CONNECTION_OVER,    // closed; freed by the next inf_connections_flush()
};

// Number of buckets of the hash table with the uploads of one connection.
#define INF_CONNECTION_UPLOAD_BUCKETS 64u

// Why an upload is refused. The client gets this error as the answer to its REQUEST frame.
struct inf_upload_refusal {
    enum inf_code code;
    enum inf_reason reason;
    uint32_t retry_after_ms;
    // The error text, cut to this size. It is shorter than the text of struct inf_error to save
    // memory, because a client can cause many refusals.
    char text[200];
};

// An upload: data of a request whose REQUEST frame has not arrived.
struct inf_upload {
    // Neighbours in the list of all uploads of the connection, which is ordered by the times of
    // their last DATA frames.
    struct inf_upload *older, *newer;
    struct inf_upload *next; // next upload in the same hash bucket
    uint64_t stream_id;
    uint8_t *data; // uploaded bytes, in a buffer of the buffer pool; NULL: the upload is refused
    uint64_t total_bytes, got_bytes;
    uint64_t since_ns;                  // time of the last DATA frame
    uint32_t pending_plus_1;            // entry of the stream in the send log, plus 1; 0: none
    struct inf_upload_refusal *refusal; // NULL: the upload is not refused
};

// What a connection that is kept for the next process has beside its slot.
struct inf_kept {
    struct inf_kept_slot *slot; // in the handover
    uint32_t index;             // of the slot
    // The connection ends with the process after all: its slot says so, and is used only because a
    // worker may be sending through the log.
    bool given_up;
    struct inf_send_log *log; // belongs to `writer`
    // A reference. The slot may be used again when no worker can write, which may be after the end
    // of the connection.
    struct inf_reply_writer *writer;
    struct inf_kept *next; // link of the list set->leaving
};

struct inf_connection {
    struct inf_connections *set;
    struct inf_connection *previous, *next; // links of the list set->all
    struct inf_connection *next_dirty;      // link of the list set->dirty
    struct inf_connection *next_over;       // link of the list set->over
    bool dirty;
    enum inf_connection_state state;
    int fd; // the client's socket; `writer` closes it
    struct inf_reply_writer *writer;
    pid_t pid;                   // of the client when it connected; used in log lines only
    struct inf_quota_user *user; // the user who pays for this connection; one reference
    // True if the connection must refund the socket to the user's descriptor quota. Becomes false
    // when `writer` takes over closing the socket, which refunds it.
    bool socket_charged;
    struct inf_caller caller; // the client: its user, groups and rights
    uint64_t id;              // number by which clients name this connection; not reused
    struct inf_quoted name;   // name of the client, from its HELLO frame
    uint64_t requests;        // number of REQUEST frames so far
    uint64_t data_bytes;      // bytes of data in all REQUEST and DATA frames so far

    struct inf_kept *kept;         // NULL: the connection ends with the process
    uint32_t frame_pending_plus_1; // entry of the frame that is being handled, plus 1; 0: none
    // The loop does not read: the next process will, or this one after inf_connections_resume().
    bool paused;

    struct event *read_event, *write_event, *timer_event;
    bool reading;      // whether read_event is registered with libevent
    bool writing;      // whether write_event is registered with libevent
    uint64_t timer_ns; // time at which the timer fires; 0: it is off

    struct inf_assembler assembler;
    struct inf_output output;
    struct inf_region_table regions;
    struct inf_session_table sessions;
    uint64_t opened_ns;
    // When the first byte of the frame being assembled arrived; 0: no frame is being assembled.
    uint64_t frame_since_ns;
    // Time at which the unread replies grew above the soft limit; 0: they are below the limit.
    uint64_t soft_since_ns;

    struct inf_call *calls; // calls in flight, and answered calls that a worker still holds
    uint32_t call_count;    // number of elements of `calls`
    uint32_t in_flight;     // number of calls without an answer
    uint32_t waiting;       // number of calls that wait for a model to be loaded
    struct inf_ordered *first_ordered, *last_ordered; // unanswered requests with an order key
    uint32_t stashed; // number of replies that wait for earlier replies with the same order key
    uint64_t stashed_bytes;
    uint64_t last_stream;
    struct inf_upload *oldest_upload, *newest_upload; // ordered by their last DATA frames
    struct inf_upload *upload_buckets[INF_CONNECTION_UPLOAD_BUCKETS];
    uint32_t upload_count;    // includes refused uploads; at most streams_granted
    uint64_t bytes_in_flight; // bytes of data in uploads and unanswered requests
    uint64_t credit_bytes;    // the most bytes_in_flight that the client may cause
    uint32_t violations;      // number of consecutive requests beyond the credit
    // The most bytes of data in one reply, summed over all its frames.
    uint64_t reply_bytes_max;
    struct inf_limits_message limits; // credit and size limits that currently apply to this client
    // Requests in flight that HELLO granted; limits.streams is lower if an admin lowered the limit.
    uint32_t streams_granted;
};

#define INF_CONNECTION_READ_BYTES (64u << 10)

struct inf_connections {
    struct inf_connections_options options;
    struct inf_connection *all;
    struct inf_connection *dirty; // connections with frames to write
    struct inf_connection *over;
    struct inf_output_store output_store;
    struct inf_ordered *unused_ordered;
    struct inf_scratch *scratch;
    uint64_t epoch[2];
    struct inf_kept *leaving; // slots of connections that ended while a worker was writing
    uint64_t drain_since_ns;  // when draining began
    uint32_t frame_end;       // end of the frame that is being handled, in the bytes of its read
    bool ending;              // the process ends: kept connections stay open
    bool held;                // connections of another process wait until models are loaded
    bool draining;
    union inf_message message; // the message that is being decoded or encoded
    struct inf_fault fault;
    uint8_t read_buffer[INF_CONNECTION_READ_BYTES];
    // Header and metadata of the frame that is being queued.
    uint8_t head[INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES];
};

#endif
