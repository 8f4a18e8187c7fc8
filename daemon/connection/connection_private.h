// SPDX-License-Identifier: Apache-2.0
// One connection, and what the set of them shares; for connection*.c only.
#ifndef INF_DAEMON_CONNECTION_CONNECTION_PRIVATE_H
#define INF_DAEMON_CONNECTION_CONNECTION_PRIVATE_H

#include "daemon/connection/connection.h"
#include "daemon/output/output_queue.h"
#include "daemon/output/reply_writer.h"
#include "proto/wire/assembler.h"

struct event;

// From accept to HELLO.
#define INF_CONNECTION_GREETING_MS 5000u
// Requests in flight that a client gets unless it asks for another number.
#define INF_CONNECTION_STREAMS 256u

// Requests beyond the credit that are refused one by one; whoever sends more of them does not listen.
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

// --- connection.c ---

// Closes the connection for good: calls are withdrawn, regions released.
void inf_connection_close(struct inf_connection *connection) INF_ON_LOOP;

// Tells the client what it did wrong, and closes once that is written.
void inf_connection_fail(struct inf_connection *connection,
                         const struct inf_error *err) INF_ON_LOOP;

// --- io.c ---

// libevent's callbacks; `context` is the connection.
void inf_connection_on_readable(int fd, short what, void *context);
// As above.
void inf_connection_on_writable(int fd, short what, void *context);
// As above.
void inf_connection_on_timer(int fd, short what, void *context);

// Starts or stops reading.
void inf_connection_set_reading(struct inf_connection *connection, bool on);

// Writes what waits, and decides what to wait for next.
void inf_connection_flush(struct inf_connection *connection) INF_ON_LOOP;

// Sets the timer where it would fire too late for what the client is doing.
void inf_connection_watch(struct inf_connection *connection);

// --- frame.c ---

// Tells every client whose credit is another one now.
void inf_connections_adjust_credit(struct inf_connections *connections) INF_ON_LOOP;

// Acts on one frame. Takes over its data and descriptors.
void inf_connection_take_frame(struct inf_connection *connection,
                               struct inf_frame *frame) INF_ON_LOOP;

// Whether another request, with so many bytes of data, is within the connection's credit.
enum inf_code inf_connection_check_credit(const struct inf_connection *connection, uint64_t bytes,
                                          struct inf_fault *fault) INF_NODISCARD;

// --- upload.c ---

// Acts on a DATA frame.
void inf_connection_take_data(struct inf_connection *connection,
                              struct inf_frame *frame) INF_ON_LOOP;

// The upload of a stream, now the caller's to free; NULL where there is none.
struct inf_upload *inf_connection_take_upload(struct inf_connection *connection,
                                              uint64_t stream_id) INF_ON_LOOP;

// Adds the data of a frame to an upload that is not refused.
//
// INF_INVALID  (SIZE_MISMATCH) they are more than was announced.
enum inf_code inf_connection_add_data(struct inf_upload *upload, const struct inf_frame *frame,
                                      struct inf_error *err) INF_NODISCARD;

// Frees an upload and refunds what it still holds.
void inf_connection_free_upload(struct inf_connection *connection,
                                struct inf_upload *upload) INF_ON_LOOP;

// Frees all uploads.
void inf_connection_drop_uploads(struct inf_connection *connection) INF_ON_LOOP;

// When the first of them will have taken too long; 0: there are none.
uint64_t inf_connection_uploads_due_ns(const struct inf_connection *connection);

// --- order.c ---

// Notes that a request with an order key has come. False without memory.
bool inf_connection_order_begin(struct inf_connection *connection, uint64_t stream_id,
                                uint64_t order_key) INF_NODISCARD INF_ON_LOOP;

// Where the final reply of such a request goes: the connection's output where no other of its key is
// before it, else a stash.
struct inf_output *inf_connection_order_place(struct inf_connection *connection,
                                              uint64_t stream_id) INF_ON_LOOP;

// That reply is where it goes: it and what waited for it is on its way now.
void inf_connection_order_end(struct inf_connection *connection, uint64_t stream_id) INF_ON_LOOP;

// Forgets every key and stash.
void inf_connection_order_clear(struct inf_connection *connection) INF_ON_LOOP;

// Frees what is kept for later requests.
void inf_connections_order_fini(struct inf_connections *connections);

// --- reply.c ---

// A frame to be sent, apart from its metadata.
struct inf_reply {
    uint8_t type;
    uint16_t flags;
    uint16_t method;
    uint64_t stream_id;
    uint64_t order_key;   // of the final reply of a request that has one; else 0
    struct inf_span data; // as in struct inf_output_item
    uint8_t *buffer;      // of the pool, taken over; NULL where there is none
    size_t capacity;
    int fd_plus_1; // 0: none; else a descriptor that goes with it, taken over, plus 1
};

// Encodes and queues a frame. Metadata that does not fit becomes a Status that says so; without
// memory the connection is closed.
void inf_connection_send(struct inf_connection *connection, const struct inf_reply *reply,
                         enum inf_message_kind kind, const union inf_message *message) INF_ON_LOOP;

// As above, with a Status made of `fault` as the metadata; INF_FRAME_FLAG_ERROR is added.
void inf_connection_send_fault(struct inf_connection *connection, const struct inf_reply *reply,
                               const struct inf_fault *fault) INF_ON_LOOP;

// Sends the final reply of a request and counts it: the failure in `fault`, or `answer` where that
// is NULL.
void inf_connection_answer(struct inf_connection *connection, const struct inf_reply *reply,
                           const struct inf_answer *answer,
                           const struct inf_fault *fault) INF_ON_LOOP;

// Why a call ends before it is done.
enum inf_call_end {
    INF_CALL_END_CANCEL,     // the client asked
    INF_CALL_END_DEADLINE,   // its time ran out
    INF_CALL_END_SHUTDOWN,   // the daemon's time ran out
    INF_CALL_END_DISCONNECT, // the client is gone: nobody is answered
};

// Withdraws a call and answers it, unless it has been answered already.
void inf_connection_end_call(struct inf_connection *connection, struct inf_call *call,
                             enum inf_call_end end) INF_ON_LOOP;

// Charges the client for a request, or says that it has too many.
enum inf_code inf_connection_charge(struct inf_connection *connection, uint64_t bytes,
                                    struct inf_error *err) INF_NODISCARD INF_ON_LOOP;

// Gives back what inf_connection_charge() took, or what a call that is over had taken.
void inf_connection_refund(struct inf_quota_user *payer, uint64_t bytes) INF_ON_LOOP;

// Puts a new call among those of the connection.
void inf_connection_link_call(struct inf_connection *connection, struct inf_call *call) INF_ON_LOOP;

// Sends MEM_RELEASED for every region that is gone.
void inf_connection_report_released(struct inf_connection *connection) INF_ON_LOOP;

#endif
