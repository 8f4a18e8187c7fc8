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

// From accept to HELLO.
#define INF_CONNECTION_GREETING_MS 5000u
// Requests in flight that a client gets unless it asks for another number.
#define INF_CONNECTION_STREAMS 256u

// Requests beyond the credit that are refused one by one; whoever sends more of them does not
// listen.
#define INF_CONNECTION_VIOLATIONS 4096u

// When to come again for who has too many requests in flight: its answers make room.
#define INF_CONNECTION_RETRY_MS 10u

enum inf_connection_state {
    INF_CONNECTION_GREETING, // HELLO has not come
    INF_CONNECTION_OPEN,
    INF_CONNECTION_CLOSING, // nothing is read any more; closed once everything is written
    INF_CONNECTION_OVER,    // closed; freed by the next inf_connections_settle()
};

// Data of a request that has not come yet.
struct inf_upload {
    struct inf_upload *next;
    uint64_t stream_id;
    uint8_t *data; // of the pool; NULL where it is refused
    uint64_t total_bytes, got_bytes;
    uint64_t since_ns;        // when the last piece came
    struct inf_fault refused; // why, where its code is not INF_OK
};

struct inf_connection {
    struct inf_connections *set;
    struct inf_connection *previous, *next; // in set->all
    struct inf_connection *next_dirty;      // in set->dirty
    struct inf_connection *next_over;       // in set->over
    bool dirty;
    enum inf_connection_state state;
    int fd; // the gate's
    struct inf_reply_writer *writer;
    uid_t uid;
    struct inf_quota_user *user; // a reference
    uint32_t fds; // that the user is charged for: the socket, and what came with frames
    bool admin;

    struct event *read_event, *write_event, *timer_event;
    bool reading;      // read_event is added
    bool writing;      // write_event is added
    uint64_t timer_ns; // when the timer fires; 0: it is off

    struct inf_assembler assembler;
    struct inf_output output;
    struct inf_region_table regions;
    struct inf_session_table sessions;
    uint64_t opened_ns;
    uint64_t frame_since_ns; // when the frame being assembled began; 0: none is
    uint64_t soft_since_ns;  // since when more replies wait than the soft limit; 0: less do

    struct inf_call *calls; // in flight, and answered ones that a worker still has
    uint32_t in_flight;     // of them, not answered
    struct inf_ordered *first_ordered, *last_ordered; // by their requests
    uint32_t stashed;                                 // answers that wait for others of their key
    uint64_t stashed_bytes;
    uint64_t last_stream;
    struct inf_upload *uploads;
    uint32_t upload_count;
    uint64_t bytes_in_flight; // of the data of uploads, and of requests that are not answered
    uint64_t credit_bytes;    // what those may be
    uint32_t violations;      // requests beyond the credit, since one that was within it
    uint64_t reply_bytes_max; // of a reply's data, in all its frames
    struct inf_limits_message limits; // in force
    uint32_t streams_granted;         // that is what `limits` has, unless an admin has lowered it
};

#define INF_CONNECTION_READ_BYTES (64u << 10)

struct inf_connections {
    struct inf_connections_options options;
    struct inf_connection *all;
    struct inf_connection *dirty; // with frames to be written
    struct inf_connection *over;
    struct inf_output_store output_store;
    struct inf_ordered *unused_ordered;
    struct inf_scratch *scratch;
    uint64_t epoch[2];
    bool draining;
    union inf_message message; // being decoded, or encoded
    struct inf_fault fault;
    uint8_t read_buffer[INF_CONNECTION_READ_BYTES];
    uint8_t head[INF_FRAME_HEADER_BYTES + INF_LIMIT_META_BYTES]; // of the frame being sent
};

#endif
