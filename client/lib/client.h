// SPDX-License-Identifier: Apache-2.0
// The client: one struct per module, and the rules by which modules and threads share it.
//
//   infer_async, infer_wait        models, status, placement, ...      public functions
//            |                          question                      (blocking or not)
//            +------------ event_loop -----+
//                    |            |
//      receive -> incoming      retry                                 rounds
//                    | reply      |
//                    +-- infer ---+   tensor_placement, fallback      inferences
//                          |
//                        call      region      connection             requests, memory, socket
//                          |          |
//                      outgoing -> send_queue                         bytes
//
// io/ has the modules that move bytes, infer/ those of inferences, and admin/ the questions about
// the daemon.
//
// Public functions stand between inf_client_enter() and inf_client_leave(). Functions of a lower
// layer never call a higher one.
#ifndef INF_CLIENT_LIB_CLIENT_H
#define INF_CLIENT_LIB_CLIENT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "client/lib/infer/call.h"
#include "client/lib/infer/metadata_cache.h"
#include "client/lib/infer/result_pool.h"
#include "client/lib/infer/retry_queue.h"
#include "client/lib/io/connection.h"
#include "client/lib/io/credit.h"
#include "client/lib/io/data_pool.h"
#include "client/lib/io/outgoing.h"
#include "client/lib/io/receive.h"
#include "client/lib/io/region.h"
#include "client/lib/io/send_queue.h"
#include "proto/wire/message.h"

struct inf_client_lock;

// A session that is open in the daemon until the caller closes it.
struct inferd_session {
    inferd_client *client;
    inferd_session *next;
    uint64_t id;
};

// The open sessions of a client. Zero-initialise.
struct inf_client_sessions {
    inferd_session *head;
    uint64_t last_id;
};

// Options that inferd_set_run_options() sets and that each later request contains. Zero-initialise.
struct inf_client_run_options {
    char precision[16], mode[16]; // "": what the placement of the model says
    uint64_t queue_timeout_ns;    // nanoseconds; 0: no queue timeout
    // Set by inferd_set_trace_context(); "": none.
    char traceparent[INF_LIMIT_TRACE_PARENT + 1], tracestate[INF_LIMIT_TRACE_STATE + 1];
};

struct inferd_client {
    struct inf_client_lock *lock; // NULL: the client has no background thread
    // Number of functions of the library that are running, nested calls included, over all threads.
    uint32_t depth;
    bool closing; // true: inferd_close() was called
    // The fields memory_bytes and in_flight are computed only when the caller reads the statistics.
    inferd_statistics statistics;
    struct inferd_error no_error; // code INFERD_OK; passed to callbacks of calls that succeeded
    struct inf_client_run_options options;
    // How many nanoseconds the client waits for the greeting of a connection, and for the answer
    // to a question. Questions that cost the daemon work have longer times of their own.
    uint64_t answer_ns;
    struct inf_client_connection connection;
    struct inf_client_credit credit;
    struct inf_client_call_table calls;
    struct inf_client_retry_queue retry;
    struct inf_client_outgoing_pool frames;
    struct inf_client_send_queue output;
    struct inf_client_data_pool data_pool;
    struct inf_client_receive_buffer input;
    struct inf_client_region_table regions;
    struct inf_client_metadata_cache metadata;
    struct inf_client_result_pool results;
    struct inf_client_sessions sessions;
    // `message` and `control` are members of the client because they are too large for the stack.
    struct inf_scratch *scratch; // memory for encoding and decoding
    union inf_message message;   // the message that was decoded last, or an inference to be encoded
    union inf_message control;   // any other message to be encoded
};

// Allocates a client without a connection.
//
// INF_EXHAUSTED  no memory.
enum inf_code inf_client_create(inferd_client **client, const char *path,
                                struct inf_error *err) INF_NODISCARD;

// Frees the client and everything that belongs to it. No other thread may be in the library.
void inf_client_destroy(inferd_client *client);

// Takes the client's lock, if the client has a lock, and counts the nesting of calls. Blocks while
// another thread holds the lock.
void inf_client_enter(inferd_client *client);

// Releases the lock that inf_client_enter() took, and ends the counted call. If a callback has
// closed the client, the outermost inf_client_leave() frees it: the client must not be used after
// this call.
void inf_client_leave(inferd_client *client);

#endif
