// SPDX-License-Identifier: Apache-2.0
// What a client is made of; private to client/. One thread at a time (service.h), no globals.
//
//   infer, admin -> call -> io -> socket
//        memory  ->  ^      |
//   reply, admin <- call <--+
//
// A call is one request; it lies in the table until its last answer has come, whatever the caller
// has been told by then, because until then the daemon may use its memory. Calls that have ended
// wait in the list `ended` for their callbacks, which run from inf_client_dispatch() only, so that
// a callback may call anything.
#ifndef INF_CLIENT_LIB_CLIENT_H
#define INF_CLIENT_LIB_CLIENT_H

#include <poll.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "client/inferd.h"
#include "proto/core/limits.h"
#include "proto/core/span.h"
#include "proto/wire/assembler.h"
#include "proto/wire/message.h"

// Tensors from this size on go through shared memory (measured: copying costs more).
#define INF_CLIENT_REGION_FROM_BYTES (16u << 10)
// Idle shared memory beyond this is given back to the system.
#define INF_CLIENT_IDLE_BYTES ((size_t)128 << 20)
// Unused buffers for frames, in each direction, beyond this are freed.
#define INF_CLIENT_POOL_BYTES ((size_t)8 << 20)
// The greeting, and questions that the daemon answers without work.
#define INF_CLIENT_ANSWER_NS ((uint64_t)10 * 1000 * 1000 * 1000)
// Unloading waits for requests in flight.
#define INF_CLIENT_UNLOAD_NS ((uint64_t)120 * 1000 * 1000 * 1000)
// How long after a request's own timeout the client stops waiting for a daemon that hangs.
#define INF_CLIENT_GRACE_NS      ((uint64_t)1000 * 1000 * 1000)
#define INF_CLIENT_BUCKETS       256u
#define INF_CLIENT_VERSION_BYTES 24u
#define INF_CLIENT_METADATA      64u  // models whose outputs are remembered
#define INF_CLIENT_REGION_SLOTS  512u // half of them for those whose release is not confirmed yet
#define INF_CLIENT_DATA_CLASSES  12u  // 512 bytes, 1 KiB ... 1 MiB

// A frame to the daemon, held by the queue while it is being sent and by its call for resending.
struct inf_outgoing {
    struct inf_outgoing *next;
    uint8_t *bytes; // header, metadata, data
    size_t capacity;
    size_t size;
    size_t sent;
    size_t meta_size;
    int fd; // goes with the first byte and is then closed; -1: none
    uint32_t references;
    // Of a piece: the bytes of another frame, which it keeps, that follow its own; and how many of that
    // one's have been sent when it has.
    struct inf_outgoing *owner; // NULL: none
    const uint8_t *tail;
    size_t tail_size, covers;
};

enum inf_call_phase {
    INF_CALL_CONTROL,  // a question of admin.c
    INF_CALL_INFER,    // an inference
    INF_CALL_METADATA, // an inference that asks first how large the outputs are
};

// One request.
struct inf_call {
    struct inf_call *next_in_bucket; // or in the list of unused calls
    struct inf_call *next_ended;
    uint64_t stream; // the number on the wire; another one after each resending
    uint64_t handle; // the number the caller was given
    enum inf_call_phase phase;
    bool in_table;  // the daemon still owes an answer
    bool ended;     // the caller has his, or it waits in the list
    bool in_ended;  // waits in the list
    bool cancelled; // by the caller
    bool waited;    // the callback is the library's own: it only notes the end for who waits
    uint64_t start_ns;
    uint64_t deadline_ns; // 0: none
    uint64_t guard_ns;    // when to stop waiting for a daemon that hangs; 0: never
    inferd_callback callback;
    void *context;
    inferd_result *result;
    struct inferd_error failure;

    // of INF_CALL_CONTROL: takes a decoded answer; NULL once abandoned
    enum inf_message_kind reply_kind;
    enum inf_code (*take)(void *context, const union inf_message *message, bool final,
                          struct inf_error *err);
    void *take_context;

    // of an inference
    uint8_t *pieces; // of the answer's data, in DATA frames; NULL: none have come
    size_t pieces_size, pieces_got;
    size_t data_bytes;       // of the request that is in flight
    uint64_t retry_until_ns; // 0: it is not sent again
    uint64_t wake_ns;        // when it may be sent again
    char model[INF_LIMIT_MODEL_NAME + 1];
    char version[INF_CLIENT_VERSION_BYTES];
    struct inf_outgoing *frame;
    bool once;            // not sent again: what was sent behind it would overtake it
    bool default_outputs; // the caller named none ...
    bool expanded;        // ... and the request names those metadata
    uint32_t attempts;    // times sent
    inferd_memory *input_block, *output_block;
    inferd_memory **memories; // the caller's, one reference each
    size_t memory_count, memory_capacity;
    struct inf_output_home *homes; // of outputs that come through the socket
    size_t home_count;
    bool plain; // what should have been in shared memory goes through the socket
};

// Where an output belongs that comes in the answer.
struct inf_output_home {
    uint32_t index; // among those of the answer
    size_t size;    // of the room
    uint8_t *data;
    inferd_memory *memory; // the caller's, which the call has a reference to
};

// A region: memory shared with the daemon.
struct inferd_memory {
    inferd_client *client;
    uint8_t *data;
    size_t size;     // as asked for
    size_t capacity; // of the region
    uint64_t region_id;
    uint64_t register_stream;
    uint64_t release_stream; // 0: not asked for yet
    uint64_t used_at;        // a count of uses
    uint32_t references;     // 0: idle
    bool counted;            // against the daemon's limits
    bool tainted;            // a call ended while the daemon may go on using this
    bool retired;            // unmapped; waits for MEM_RELEASED
    bool refused;            // by the daemon, for the reason in `refusal`
    char refusal[200];
};

// A session, in the client's list.
struct inferd_session {
    inferd_client *client;
    inferd_session *next;
    uint64_t id;
};

// What is known of a model's outputs: the library learns it from answers.
struct inf_metadata_cache_output {
    char name[INF_LIMIT_TENSOR_NAME + 1];
    size_t bytes; // the most seen
};
struct inf_metadata_cache {
    struct inf_metadata_cache *next;
    char model[INF_LIMIT_MODEL_NAME + 1];
    char version_asked[INF_CLIENT_VERSION_BYTES];
    char version_got[INF_CLIENT_VERSION_BYTES];
    inferd_model_info
        *info;        // what the daemon said of the model; NULL: was not asked, or is outdated
    uint64_t info_ns; // when it did
    bool complete;    // all of the model's outputs, in its order
    uint32_t count;
    uint32_t capacity;
    struct inf_metadata_cache_output *outputs;
};

struct inferd_result {
    inferd_client *client;
    inferd_result *next, **link; // of all results, or of the unused ones
    uint8_t *data;               // the answer's data segment
    size_t data_size;
    inferd_memory *output_block;
    inferd_tensor *outputs;
    size_t output_count, output_capacity;
    char *text; // every string below
    size_t text_capacity;
    const char *model_version, *device, *precision, *id;
    inferd_timing timing;
    unsigned batch_size, padded_size, flags;
};

struct inf_service;

struct inferd_client {
    struct inf_service *service; // NULL: the caller's threads serve the client
    int fd;
    char *path;
    uint64_t epoch[2];
    uint64_t retry_ns;            // how long inferd_infer() tries; 0: once
    char precision[16], mode[16]; // of requests; "": as the model is placed and told
    uint64_t queue_timeout_ns;    // of requests; 0: none
    inferd_statistics statistics;
    uint32_t depth;           // calls of the library on the stack
    bool closing;             // inferd_close() came from a callback
    bool greeted;             // HELLO_ACK has come
    bool send_dead;           // the socket takes nothing more
    bool draining;            // GOAWAY has come ...
    uint64_t last_stream;     // ... with this: later requests are not begun
    struct inf_error failure; // code != INF_OK: the connection is over
    struct inf_limits_message limits;
    uint32_t credit;       // requests that may still be sent
    uint64_t credit_bytes; // of their data that may be in flight; 0: any
    uint64_t bytes_in_flight;
    struct inf_call *parked;  // wait to be sent again; linked by next_in_bucket
    uint64_t connect_ns;      // when for their sake a connection was tried, and may be again
    bool connecting;          // regions are not registered yet
    size_t region_from_bytes; // INF_CLIENT_REGION_FROM_BYTES; a benchmark may change it

    uint64_t next_stream;
    struct inf_call *buckets[INF_CLIENT_BUCKETS];
    struct inf_call *unused_calls;
    struct inf_call *ended_head, **ended_tail;
    uint32_t open_count;    // calls in the table
    uint32_t waiting_count; // inferences whose callback has not been called
    uint64_t next_guard_ns; // the earliest guard, or earlier; 0: none

    struct inf_outgoing *out_head, **out_tail;
    struct inf_outgoing *unused_frames;
    size_t unused_frame_bytes;

    struct inf_assembler assembler;
    void *unused_data[INF_CLIENT_DATA_CLASSES];
    size_t unused_data_bytes;
    size_t in_begin, in_end;
    uint8_t in[64u << 10];

    inferd_memory *regions[INF_CLIENT_REGION_SLOTS];
    uint32_t region_slots; // used from the array's start
    uint32_t region_count; // these two as the daemon counts
    uint64_t region_bytes;
    uint64_t region_generation;
    uint64_t region_clock;
    size_t idle_bytes;
    uint64_t
        memory_from_ns; // the daemon has refused a region: none for the library's own use before

    struct inf_metadata_cache *metadata;
    inferd_result *results, *unused_results;
    inferd_session *sessions;
    uint64_t last_session; // id

    struct inf_scratch *scratch;
    union inf_message message; // decoded, or an inference's: too large for the stack
    union inf_message control; // any other to be encoded
};

// --- error.c ---

// Nanoseconds of CLOCK_MONOTONIC.
uint64_t inf_client_now_ns(void);

// Fills the caller's error (NULL allowed) from one of ours and returns the code.
int inf_client_report(struct inferd_error *err, const struct inf_error *error);

// --- client.c ---

// Stands around everything that touches a client: others wait meanwhile (service.h), and a client closed by
// a callback is freed when the outermost of these ends. The client must not be touched after
// inf_client_leave().
void inf_client_enter(inferd_client *client);
void inf_client_leave(inferd_client *client);

// Frees the client and all that comes from it.
void inf_client_destroy(inferd_client *client);

// Connects anew, as inferd_reconnect() says.
//
// INF_UNAVAILABLE  no daemon has answered by `until_ns`.
enum inf_code inf_client_reconnect(inferd_client *client, uint64_t until_ns,
                                   struct inf_error *err) INF_NODISCARD;

// Lets go of the connection, and begins another: HELLO is on its way, or client->failure tells why not.
// Never waits.
void inf_client_connect_begin(inferd_client *client, uint64_t now_ns);

// --- retry.c ---

// Whether a request that failed so was certainly not begun.
bool inf_reason_is_unbegun(enum inf_code code, enum inf_reason reason);

// Has a call, which is out of the table and not begun, wait to be sent again. False where it may not be,
// or the time does not allow it: the call is as it was.
bool inf_call_park(inferd_client *client, struct inf_call *call, const struct inf_error *error,
                   uint32_t retry_after_ms);

// Ends a call that waits so, as cancelled. False where there is none of this number.
bool inf_parked_cancel(inferd_client *client, uint64_t handle);

// Sends again what may be, connecting anew where it takes that. Never waits.
void inf_client_retry(inferd_client *client);

// When the clock has to be looked at next; 0: never.
uint64_t inf_client_wake_ns(const inferd_client *client);

// --- model_check.c ---

// Checks a request against what is known of its model, which may be nothing.
//
// INF_INVALID  (TENSOR_UNKNOWN, TENSOR_MISSING, DTYPE_MISMATCH, SHAPE_MISMATCH) the text names the
//              tensor, what it is and what was wanted.
enum inf_code inf_model_check(inferd_client *client, const inferd_request *request,
                              struct inf_error *err) INF_NODISCARD;

// --- io.c ---

// A frame with room for `capacity` bytes, header included, and one reference.
enum inf_code inf_outgoing_acquire(inferd_client *client, size_t capacity,
                                   struct inf_outgoing **outgoing,
                                   struct inf_error *err) INF_NODISCARD;

// Gives one reference back and clears the pointer.
void inf_outgoing_release(inferd_client *client, struct inf_outgoing **outgoing);

// Encodes `message` behind the room for the header and notes its size.
enum inf_code inf_outgoing_encode(inferd_client *client, struct inf_outgoing *outgoing,
                                  const union inf_message *message, enum inf_message_kind kind,
                                  struct inf_error *err) INF_NODISCARD;

// Writes the header in front of the metadata and puts the frame in the queue. The sizes and the
// number of fds are the frame's.
void inf_client_queue(inferd_client *client, struct inf_outgoing *outgoing,
                      struct inf_frame_header header);

// As inf_client_queue(), of a request whose data may be more than one frame holds: all but the last of them go ahead
// in DATA frames.
enum inf_code inf_client_queue_request(inferd_client *client, struct inf_outgoing *outgoing,
                                       struct inf_frame_header header,
                                       struct inf_error *err) INF_NODISCARD;

// The most data that a frame, and a request in all its frames, may have.
size_t inf_client_frame_data_max(const inferd_client *client);
size_t inf_client_request_data_max(const inferd_client *client);

// A whole small frame: encodes client->control and queues it. Takes `fd` over (-1: none).
enum inf_code inf_client_send(inferd_client *client, struct inf_frame_header header,
                              enum inf_message_kind kind, int fd,
                              struct inf_error *err) INF_NODISCARD;

// Writes what the socket takes.
void inf_client_flush(inferd_client *client);

// Reads what has come and handles whole frames, a bounded number of them.
void inf_client_receive(inferd_client *client);

// Memory for data segments, aligned to 64. The functions of struct inf_assembler_memory.
void *inf_client_data_alloc(void *client, size_t size);
void inf_client_data_free(void *client, void *data, size_t size);

// Forgets what was being sent and received, for a new connection.
void inf_client_io_reset(inferd_client *client);

// Frees queue and pools.
void inf_client_io_fini(inferd_client *client);

// --- call.c ---

// A call to be filled and sent, or given up with inf_call_finish(). NULL, and *err filled, where
// there is no memory.
struct inf_call *inf_call_acquire(inferd_client *client, struct inf_error *err);

// Whether a request may be sent now.
//
// INF_UNAVAILABLE  the connection is over, or the daemon drains.
// INF_EXHAUSTED    (QUOTA_REQUESTS) no credit is left.
enum inf_code inf_client_may_send(const inferd_client *client, struct inf_error *err) INF_NODISCARD;

// Whether the daemon's credit allows another `bytes` of data. Those of one request alone are the daemon's to
// judge.
//
// INF_EXHAUSTED  (QUOTA_BYTES) beside those in flight they are too many.
enum inf_code inf_client_may_send_bytes(const inferd_client *client, size_t bytes,
                                        struct inf_error *err) INF_NODISCARD;

// Puts the call in the table under a new stream, queues its frame and writes.
void inf_call_send(inferd_client *client, struct inf_call *call, struct inf_outgoing *outgoing,
                   uint16_t method);

// The answer has come: takes the call out of the table; `credit` requests may take its place.
void inf_call_answered(inferd_client *client, struct inf_call *call, uint32_t credit);

// Tells the caller, once: with call->result, or with an error. The call may be gone afterwards if
// it is out of the table.
void inf_call_end(inferd_client *client, struct inf_call *call, const struct inf_error *error,
                  uint32_t retry_after_ms);

// Lets go of memory and frame, and of the call itself where nobody else needs it.
void inf_call_finish(inferd_client *client, struct inf_call *call, bool daemon_done);

// Asks the daemon to drop the call.
void inf_call_cancel(inferd_client *client, struct inf_call *call);

// The call on a stream; NULL where none is open.
struct inf_call *inf_call_find(inferd_client *client, uint64_t stream);

// GOAWAY: no more requests, and those on streams after `last_stream` end: they will not be begun.
void inf_client_drain(inferd_client *client, uint64_t last_stream);

// Ends the connection: every call in flight gets UNAVAILABLE with the text of `error`.
void inf_client_fail(inferd_client *client, const struct inf_error *error);

// Calls the callbacks of calls that have ended. False where there were none.
bool inf_client_dispatch(inferd_client *client);

// One round: read, write, look at the clock, call callbacks. Never blocks.
void inf_client_process(inferd_client *client);

// Waits for the socket, at most until `until_ns` (0: no limit), and does a round; where another thread serves the
// client, waits until that one has done a round. False where there is nothing to wait for: the time
// is over, or the connection is, or the client has been closed.
bool inf_client_wait(inferd_client *client, uint64_t until_ns);

// What poll() has to look for; a descriptor of -1 where the connection is over.
struct pollfd inf_client_pollfd(const inferd_client *client);

// How long poll() may wait for `until_ns` (0: no limit) and what has a time: milliseconds, -1 for ever.
int inf_client_poll_ms(const inferd_client *client, uint64_t until_ns);

// Frees every call.
void inf_client_calls_fini(inferd_client *client);

// --- incoming.c ---

// Handles one frame; its data is the callee's.
void inf_client_handle(inferd_client *client, struct inf_frame *frame);

// --- memory.c ---

// A region of at least `size` bytes with one reference: an idle one, or a new one whose
// registration is on its way. Never waits.
//
// INF_EXHAUSTED  no memory, or the daemon's limits are reached.
enum inf_code inf_memory_acquire(inferd_client *client, size_t size, inferd_memory **memory,
                                 struct inf_error *err) INF_NODISCARD;

// One more reference.
void inf_memory_ref(inferd_memory *memory);

// As inf_memory_acquire(), for what could go through the socket as well: no new region is made just after the
// daemon has refused one.
enum inf_code inf_memory_acquire_block(inferd_client *client, size_t size, inferd_memory **memory,
                                       struct inf_error *err) INF_NODISCARD;

// Gives a reference back and clears the pointer. Where the daemon may go on using the memory
// (`daemon_done` false), the region is not used again but given up.
void inf_memory_unref(inferd_memory **memory, bool daemon_done);

// The region with this id; NULL where the daemon cannot know it.
inferd_memory *inf_memory_find(const inferd_client *client, uint64_t region_id);

// Handles MEM_REGISTERED and MEM_RELEASED, or an error for either. False where the frame answers
// nothing that was asked.
bool inf_memory_answer(inferd_client *client, const struct inf_frame *frame,
                       const struct inf_error *refusal);

// The connection is gone, and every registration with it: what nobody uses is freed.
void inf_client_memory_reset(inferd_client *client);

// Registers what is left with a new connection.
enum inf_code inf_client_memory_register(inferd_client *client,
                                         struct inf_error *err) INF_NODISCARD;

// Unmaps and frees every region.
void inf_client_memory_fini(inferd_client *client);

// --- check.c ---

// Checks a request before anything is done for it.
//
// INF_INVALID    (BAD_PARAMETER, SIZE_MISMATCH, REGION_BOUNDS) the text names what is wrong.
enum inf_code inf_request_check(const inferd_client *client, const inferd_request *request,
                                struct inf_error *err) INF_NODISCARD;

// --- infer.c ---

// Who gets the answer.
struct inf_infer_answer {
    inferd_callback callback;
    void *context;
    bool waited; // for: by a call of the caller's, which tries again by itself
};

// Sends an inference, or parks it until there is a connection.
//
// INF_EXHAUSTED    (QUOTA_REQUESTS, QUOTA_BYTES) the daemon's credit is used up.
// INF_UNAVAILABLE  there is no connection, and it may not wait for one.
enum inf_code inf_infer_start(inferd_client *client, const inferd_request *request,
                              const struct inf_infer_answer *answer, struct inf_call **out_call,
                              struct inf_error *err) INF_NODISCARD;

// Sends an inference again: with outputs placed as is now known, and the time that is left.
enum inf_code inf_infer_resend(inferd_client *client, struct inf_call *call,
                               struct inf_error *err) INF_NODISCARD;

// --- session.c ---

// Frees what the caller has not closed.
void inf_client_sessions_fini(inferd_client *client);

// --- reply.c ---

// Handles the answer to an inference (or to its question for metadata). False: the daemon has
// broken the protocol, and *err tells how.
bool inf_infer_answer(inferd_client *client, struct inf_call *call, struct inf_frame *frame,
                      struct inf_error *err);

// Handles a failure that the daemon reports for an inference, which client->message.status is: sends
// it again where that helps.
void inf_infer_refused(inferd_client *client, struct inf_call *call);

// --- metadata_cache.c ---

// What is known of a model, or NULL.
struct inf_metadata_cache *inf_metadata_cache_find(inferd_client *client, const char *model,
                                                   const char *version);

// As inf_metadata_cache_find(), but makes an entry, in place of the oldest; NULL where there is no memory.
struct inf_metadata_cache *inf_metadata_cache_make(inferd_client *client, const char *model,
                                                   const char *version);

// The output called `name`, or NULL.
struct inf_metadata_cache_output *
inf_metadata_cache_output(const struct inf_metadata_cache *metadata, const char *name);

// Notes that an output takes `bytes`. False where there is no memory.
bool inf_metadata_cache_note(struct inf_metadata_cache *metadata, const char *name, size_t bytes);

// Forgets the outputs.
void inf_metadata_cache_reset(struct inf_metadata_cache *metadata);

// Forgets what the daemon said of a model, or of all.
void inf_metadata_cache_forget_info(struct inf_metadata_cache *metadata);
void inf_client_forget_infos(inferd_client *client);

// Frees the list.
void inf_client_metadata_fini(inferd_client *client);

// --- fallback.c ---

// Memory of the call's that the daemon has refused; NULL where there is none.
const inferd_memory *inf_call_refused(const struct inf_call *call);

// Counts the call, once, among those that go without memory they should have had.
void inf_call_note_plain(inferd_client *client, struct inf_call *call);

// Places inputs that lie in refused memory behind the `data_bytes` of the frame's data, and returns how many bytes
// there are then. sources[i] is where the elements of input i are now; NULL: it stays where it is.
size_t inf_fallback_inputs(const struct inf_call *call, struct inf_infer_request *message,
                           size_t data_bytes, const uint8_t *sources[INF_LIMIT_TENSORS]);

// Has outputs that belong in refused memory come in the answer, and notes where they belong.
enum inf_code inf_fallback_outputs(struct inf_call *call, struct inf_infer_request *message,
                                   struct inf_error *err) INF_NODISCARD;

// Copies outputs where they belong.
//
// INF_RANGE  (OUTPUT_TOO_SMALL) one does not fit there.
enum inf_code inf_fallback_return(const struct inf_call *call, inferd_result *result,
                                  struct inf_error *err) INF_NODISCARD;

// --- result.c ---

// An empty result with room for `output_count` outputs and `text_size` bytes of text.
enum inf_code inf_result_acquire(inferd_client *client, size_t output_count, size_t text_size,
                                 inferd_result **result, struct inf_error *err) INF_NODISCARD;

// Frees all results, used or not.
void inf_client_results_fini(inferd_client *client);

#endif
