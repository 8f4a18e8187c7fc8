// SPDX-License-Identifier: Apache-2.0
// The state of one connection, and of the set of all connections; for the files of this folder
// only.
#ifndef INF_DAEMON_CONNECTION_STATE_H
#define INF_DAEMON_CONNECTION_STATE_H

#include "daemon/connection/connection.h"
#include "daemon/output/output_queue.h"
#include "daemon/output/reply_writer.h"
#include "proto/wire/assembler.h"

struct event;

// The time from accept to HELLO.
#define INF_CONNECTION_GREETING_MS 5000u
// The requests in flight that a client may have unless it asks for another number.
#define INF_CONNECTION_STREAMS 256u

// After this many refused requests in a row beyond the credit, the connection is closed.
#define INF_CONNECTION_VIOLATIONS 4096u

// Advice to a client that has too many requests in flight: try again after this time.
#define INF_CONNECTION_RETRY_MS 10u

enum inf_connection_state {
    INF_CONNECTION_GREETING, // waits for HELLO
    INF_CONNECTION_OPEN,
    INF_CONNECTION_CLOSING, // nothing is read; closed when everything is written
    INF_CONNECTION_OVER,    // closed; freed by the next inf_connections_flush()
};

// Buckets of the table of uploads.
#define INF_CONNECTION_UPLOAD_BUCKETS 64u

// Why an upload is refused.
struct inf_upload_refusal {
    enum inf_code code;
    enum inf_reason reason;
    uint32_t retry_after_ms;
    char text[200]; // cut; shorter than struct inf_error, because a client can make many
};

// Data of a request whose REQUEST frame has not arrived.
struct inf_upload {
    struct inf_upload *older, *newer; // in the order of their last DATA frames
    struct inf_upload *next;          // in the bucket
    uint64_t stream_id;
    uint8_t *data; // of the pool; NULL: the upload is refused
    uint64_t total_bytes, got_bytes;
    uint64_t since_ns;                  // time of the last DATA frame
    struct inf_upload_refusal *refusal; // NULL: the upload is not refused
};

struct inf_connection {
    struct inf_connections *set;
    struct inf_connection *previous, *next; // in set->all
    struct inf_connection *next_dirty;      // in set->dirty
    struct inf_connection *next_over;       // in set->over
    bool dirty;
    enum inf_connection_state state;
    int fd; // owned by `writer`
    struct inf_reply_writer *writer;
    uid_t uid;
    struct inf_quota_user *user; // one reference
    bool socket_charged; // the user is charged for the socket, and the writer does not close it yet
    bool admin;

    struct event *read_event, *write_event, *timer_event;
    bool reading;      // read_event is added
    bool writing;      // write_event is added
    uint64_t timer_ns; // time at which the timer fires; 0: it is off

    struct inf_assembler assembler;
    struct inf_output output;
    struct inf_region_table regions;
    struct inf_session_table sessions;
    uint64_t opened_ns;
    uint64_t frame_since_ns; // time at which the frame being assembled began; 0: none
    uint64_t soft_since_ns; // time since which unread replies exceed the soft limit; 0: they do not

    struct inf_call *calls; // in flight, or answered but still with a worker
    uint32_t in_flight;     // calls that are not answered
    struct inf_ordered *first_ordered, *last_ordered; // in the order of the requests
    uint32_t stashed; // replies that wait for earlier ones with the same key
    uint64_t stashed_bytes;
    uint64_t last_stream;
    struct inf_upload *oldest_upload, *newest_upload; // by their last DATA frames
    struct inf_upload *upload_buckets[INF_CONNECTION_UPLOAD_BUCKETS];
    uint32_t upload_count;            // refused ones included; at most streams_granted
    uint64_t bytes_in_flight;         // data of uploads and of unanswered requests
    uint64_t credit_bytes;            // limit of bytes_in_flight
    uint32_t violations;              // requests in a row beyond the credit
    uint64_t reply_bytes_max;         // limit of the data of a reply, over all its frames
    struct inf_limits_message limits; // in force for this client
    uint32_t
        streams_granted; // granted at HELLO; limits.streams is lower if an admin lowered the limit
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
    bool draining;
    union inf_message message; // the message that is decoded or encoded
    struct inf_fault fault;
    uint8_t read_buffer[INF_CONNECTION_READ_BYTES];
    uint8_t head[INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES]; // head of the frame that is queued
};

#endif
