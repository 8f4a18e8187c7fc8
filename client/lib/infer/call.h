// SPDX-License-Identifier: Apache-2.0
// Calls: requests of this client, from sending to the caller's callback.
//
// A call ends in two ways, and either may happen first:
//
//   the daemon's final answer      the call leaves the table     inf_client_call_remove()
//   the caller is informed         the callback is queued        inf_client_call_end()
//
// If the client stops waiting first, because a timeout passed or the connection hangs, the call
// stays in the table, because until the final answer the daemon may use the memory that the call
// refers to. Callbacks are queued and run by inf_client_event_loop_dispatch() only, so that a
// callback may call any function of the library.
#ifndef INF_CLIENT_LIB_INFER_CALL_H
#define INF_CLIENT_LIB_INFER_CALL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "client/lib/infer/metadata_cache.h"
#include "client/lib/io/outgoing.h"
#include "proto/core/limits.h"
#include "proto/core/status.h"
#include "proto/wire/message.h"

#define INF_CLIENT_BUCKETS 256u
// A daemon that has not answered this long after a request's own timeout is considered hung.
#define INF_CLIENT_GRACE_NS ((uint64_t)1000 * 1000 * 1000)

enum inf_client_call_phase {
    INF_CLIENT_CALL_CONTROL,  // a question (question.h)
    INF_CLIENT_CALL_INFER,    // an inference
    INF_CLIENT_CALL_METADATA, // an inference that first asks for the sizes of the outputs
};

// Where to copy an output that arrives through the socket although the caller gave shared memory
// for it (because the daemon refused that memory).
struct inf_client_output_target {
    uint32_t index;        // position among the outputs of the answer
    size_t size;           // room at `data`, in bytes
    uint8_t *data;         // an address inside `memory`
    inferd_memory *memory; // the caller's memory; the call holds a reference
};

struct inf_client_call {
    // --- fields of every call ---

    // Next call in the same list: a bucket of the table of calls, the retry queue, or the list of
    // unused calls.
    struct inf_client_call *next;
    struct inf_client_call *next_ended; // next call in the queue of callbacks
    // Stream number in the frames of this call. The call gets a new number each time it is sent.
    uint64_t stream;
    uint64_t handle; // the number by which the caller can cancel the call
    enum inf_client_call_phase phase;
    bool in_table;  // the call is in the table of calls: the daemon's final answer has not arrived
    bool ended;     // the caller has been informed, or the callback is queued
    bool in_ended;  // the call is in the queue of calls whose callback is to be run
    bool cancelled; // the caller has cancelled the call
    // The callback belongs to a blocking function of the library and only stores the result.
    bool internal_callback;
    uint64_t start_ns;
    uint64_t deadline_ns; // when the caller's timeout passes; 0: no deadline
    uint64_t give_up_ns;  // when to stop waiting for a daemon that hangs; 0: never stop
    inferd_callback callback;
    void *context;
    inferd_result *result;       // NULL: no result yet, or the call failed
    struct inferd_error failure; // valid if there is no result

    // --- fields for calls of the phase INF_CLIENT_CALL_CONTROL only (questions) ---
    enum inf_message_kind reply_kind;
    // Called with each decoded answer; NULL: answers are ignored.
    enum inf_code (*on_reply)(void *context, const union inf_message *message, bool final,
                              struct inf_error *err);
    void *reply_context;

    // --- fields for calls whose answers have data: inferences and the question Metrics ---
    uint8_t *partial; // data of the answer that came in DATA frames, from the data pool; NULL: none
    // Announced size of all data of the answer; 0: no DATA frame has arrived.
    size_t partial_size;
    size_t partial_received; // bytes of `partial` that are filled

    // --- fields for inferences only ---
    // Bytes of the request's data, which count against the limit of data in flight (struct
    // inf_client_credit).
    size_t data_bytes;
    // Time at which retries because of inferd_set_retry() end; 0: the call is not retried.
    uint64_t retry_until_ns;
    // While the call is in the retry queue: the time at which the call fails if it was not sent
    // again.
    uint64_t queued_until_ns;
    // while the call is in the retry queue: the earliest time to send it again
    uint64_t retry_at_ns;
    char model[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_CLIENT_VERSION_BYTES];
    struct inf_client_outgoing *frame; // the encoded request, on which the call holds one reference
    // True: the request must not be sent again, because its order matters and later requests would
    // overtake it.
    bool no_resend;
    bool default_outputs; // the caller named no outputs
    bool outputs_listed;  // the library listed all outputs, to give them shared memory
    uint32_t attempts;    // how many times the request was sent
    inferd_memory *input_region, *output_region; // shared memory of the library; NULL: none
    inferd_memory **memories;                    // shared memory of the caller; one reference each
    size_t memory_count, memory_capacity;
    struct inf_client_output_target *targets; // where to copy outputs that come over the socket
    size_t target_count;
    bool without_memory; // some tensors go through the socket because shared memory was refused
};

// All calls of a client. Zero-initialise, then point ended_tail to ended_head.
struct inf_client_call_table {
    struct inf_client_call *buckets[INF_CLIENT_BUCKETS]; // calls in the table, hashed by stream
    struct inf_client_call *unused;
    struct inf_client_call *ended_head, **ended_tail; // calls whose callback is queued
    uint32_t open_count;                              // number of calls in the buckets
    uint32_t waiting_count;   // number of inferences whose callback has not been called
    uint64_t next_give_up_ns; // no call has an earlier give_up_ns; 0: no call has a give_up_ns
};

// Returns an empty call. The caller fills and sends it, or releases it with
// inf_client_call_release(). Returns NULL and fills *err if there is no memory.
struct inf_client_call *inf_client_call_acquire(inferd_client *client, struct inf_error *err);

// Puts the call in the table of calls under a new stream number, queues its frame and writes as
// much as the socket accepts. The connection fails if only a part of the request could be queued.
void inf_client_call_send(inferd_client *client, struct inf_client_call *call,
                          struct inf_client_outgoing *outgoing, uint16_t method);

// Removes the call from the table of calls when the final answer has arrived. Adds `credit` to the
// number of requests that the client may send.
void inf_client_call_remove(inferd_client *client, struct inf_client_call *call, uint32_t credit);

// Queues the callback with call->result, or with `error` (NULL: call->failure or call->result is
// set already). Only the first invocation for a call has an effect.
void inf_client_call_end(inferd_client *client, struct inf_client_call *call,
                         const struct inf_error *error, uint32_t retry_after_ms);

// Releases the regions, the frame and the partial data of a call, and frees the call itself if it
// is neither in the table nor in the queue of callbacks. `daemon_done`: the daemon no longer uses
// the call's memory.
void inf_client_call_release(inferd_client *client, struct inf_client_call *call, bool daemon_done);

// Sends a CANCEL frame for the call, unless its final answer has arrived.
void inf_client_call_send_cancel(inferd_client *client, struct inf_client_call *call);

// Returns the call on a stream, or NULL if there is none.
struct inf_client_call *inf_client_call_find(inferd_client *client, uint64_t stream);

// Calls `visit` with each call that waits for its final answer. `visit` may remove the call from
// the table of calls.
void inf_client_call_table_visit(inferd_client *client,
                                 void (*visit)(inferd_client *client, struct inf_client_call *call,
                                               const void *context),
                                 const void *context);

// Ends the connection: each call in flight is queued for a retry if the daemon has not received all
// of it, or else ends with UNAVAILABLE and the text of `error`. Does nothing if the connection has
// failed already.
void inf_client_connection_fail(inferd_client *client, const struct inf_error *error);

// Handles GOAWAY: no further requests are sent. Requests on streams after `last_stream` end or are
// queued for a retry, because the daemon will not start them.
void inf_client_connection_drain(inferd_client *client, uint64_t last_stream);

// Puts a call into the list of unused calls, for reuse. Nothing may refer to the call any longer.
void inf_client_call_recycle(inferd_client *client, struct inf_client_call *call);

// Frees every call, including the calls of the retry queue.
void inf_client_call_table_fini(inferd_client *client);

#endif
